"""autogen's tools, whose arguments go through pydantic models made of the schemas. Era "defaults": with its own limit for a call."""

# pyright: reportMissingImports=false
from __future__ import annotations

import asyncio
from typing import Any

from autogen_core import CancellationToken
from autogen_ext.tools.mcp import (
    SseServerParams,
    StdioServerParams,
    StreamableHttpServerParams,
    create_mcp_server_session,
    mcp_server_tools,
)
from steps import Plan, read_plan, report

# Its default of five seconds is for machines with nothing else to do.
PATIENCE_S = 600


def server(plan: Plan) -> Any:
    if plan.transport == "stdio":
        command, *arguments = plan.command
        limit = {} if plan.era == "defaults" else {"read_timeout_seconds": PATIENCE_S}
        return StdioServerParams(command=command, args=arguments, env=dict(plan.env), **limit)
    if plan.transport == "http":
        return StreamableHttpServerParams(url=plan.url, timeout=PATIENCE_S)
    return SseServerParams(url=plan.url, timeout=PATIENCE_S)


async def main() -> None:
    plan = read_plan()
    params = server(plan)
    async with create_mcp_server_session(params) as session:
        await session.initialize()
        tools = {tool.name: tool for tool in await mcp_server_tools(params, session=session)}

        async def call(name: str, arguments: dict[str, Any]) -> Any:
            tool = tools[name]
            result = await tool.run_json(arguments, CancellationToken())
            return "\n".join(block.text for block in result)

        report(list(tools), await plan.make_calls(call))


asyncio.run(main())
