"""google-adk's tools, called as its agents call them. Era "defaults": with its own limits for a call."""

# pyright: reportMissingImports=false
from __future__ import annotations

import asyncio
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.agents.invocation_context import InvocationContext
from google.adk.sessions import InMemorySessionService
from google.adk.tools.mcp_tool import McpToolset
from google.adk.tools.mcp_tool.mcp_session_manager import (
    SseConnectionParams,
    StdioConnectionParams,
    StreamableHTTPConnectionParams,
)
from google.adk.tools.tool_context import ToolContext
from mcp import StdioServerParameters
from steps import Plan, read_plan, report

# Its default of five seconds is for machines with nothing else to do.
PATIENCE_S = 600


def server(plan: Plan) -> Any:
    limit = {} if plan.era == "defaults" else {"timeout": PATIENCE_S}
    if plan.transport == "stdio":
        command, *arguments = plan.command
        started = StdioServerParameters(command=command, args=arguments, env=dict(plan.env) or None)
        return StdioConnectionParams(server_params=started, **limit)
    kind = StreamableHTTPConnectionParams if plan.transport == "http" else SseConnectionParams
    return kind(url=plan.url, **limit)


async def context(toolset: McpToolset) -> ToolContext:
    """What a tool is given when an agent calls it."""
    service = InMemorySessionService()
    session = await service.create_session(app_name="pdbox", user_id="someone")
    agent = LlmAgent(name="debugger", model="none", tools=[toolset])
    return ToolContext(
        InvocationContext(invocation_id="1", agent=agent, session=session, session_service=service)
    )


async def main() -> None:
    plan = read_plan()
    toolset = McpToolset(connection_params=server(plan))
    tools = {tool.name: tool for tool in await toolset.get_tools()}
    assert all(tool._get_declaration() is not None for tool in tools.values())
    called_by = await context(toolset)

    async def call(name: str, arguments: dict[str, Any]) -> Any:
        answer = await tools[name].run_async(args=arguments, tool_context=called_by)
        assert "content" in answer, answer
        return "\n".join(block["text"] for block in answer["content"])

    report(list(tools), await plan.make_calls(call))
    await toolset.close()


asyncio.run(main())
