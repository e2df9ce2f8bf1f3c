"""llama-index's tools: each call over an MCP session of its own, over stdio with a server of its own. It shows models a repr."""

# pyright: reportMissingImports=false
from __future__ import annotations

import asyncio
from typing import Any

from llama_index.tools.mcp import BasicMCPClient, McpToolSpec
from steps import Plan, read_plan, report

PATIENCE_S = 600


def client(plan: Plan) -> BasicMCPClient:
    if plan.transport == "stdio":
        command, *arguments = plan.command
        return BasicMCPClient(command, args=arguments, env=dict(plan.env), timeout=PATIENCE_S)
    return BasicMCPClient(plan.url, timeout=PATIENCE_S)


async def main() -> None:
    plan = read_plan()
    tools = {tool.metadata.name: tool for tool in await McpToolSpec(client(plan)).to_tool_list_async()}

    async def call(name: str, arguments: dict[str, Any]) -> Any:
        output = await tools[name].acall(**arguments)
        assert str(output.raw_output) == output.content
        return "\n".join(block.text for block in output.raw_output.content)

    report(list(tools), await plan.make_calls(call))


asyncio.run(main())
