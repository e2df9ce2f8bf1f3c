"""agno's tools, called as its agents call them. Era "defaults": with its own limit for a call."""

# pyright: reportMissingImports=false
from __future__ import annotations

import asyncio
from typing import Any

from agno.tools.function import FunctionCall
from agno.tools.mcp import MCPTools
from mcp import StdioServerParameters
from steps import Plan, read_plan, report

# Its default of ten seconds is for machines with nothing else to do.
PATIENCE_S = 600


def server(plan: Plan) -> dict[str, Any]:
    if plan.transport == "stdio":
        command, *arguments = plan.command
        return {
            "server_params": StdioServerParameters(
                command=command, args=arguments, env=dict(plan.env) or None
            )
        }
    return {"url": plan.url, "transport": "streamable-http" if plan.transport == "http" else "sse"}


async def main() -> None:
    plan = read_plan()
    limit = {} if plan.era == "defaults" else {"timeout_seconds": PATIENCE_S}
    async with MCPTools(**server(plan), **limit) as tools:

        async def call(tool: str, arguments: dict[str, Any]) -> Any:
            done = await FunctionCall(function=tools.functions[tool], arguments=arguments).aexecute()
            assert done.status == "success", done.error
            return str(getattr(done.result, "content", done.result))

        report(list(tools.functions), await plan.make_calls(call))


asyncio.run(main())
