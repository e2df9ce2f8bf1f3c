"""An agent of pydantic-ai, its model a function that makes the planned calls."""

# pyright: reportMissingImports=false
from __future__ import annotations

import asyncio
from typing import Any

from fastmcp.client.transports import SSETransport, StdioTransport, StreamableHttpTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from steps import Plan, read_plan, report

# Its default of five seconds is for machines with nothing else to do.
PATIENCE_S = 600


def transport(plan: Plan) -> Any:
    if plan.transport == "stdio":
        return StdioTransport(plan.command[0], list(plan.command[1:]), env=dict(plan.env), keep_alive=False)
    return (StreamableHttpTransport if plan.transport == "http" else SSETransport)(plan.url)


def returned(messages: list[ModelMessage]) -> list[Any]:
    """What the tools have given the model so far."""
    parts = [part for message in messages if isinstance(message, ModelRequest) for part in message.parts]
    return [part.content for part in parts if isinstance(part, ToolReturnPart)]


async def main() -> None:
    plan = read_plan()
    shown: list[str] = []

    def think(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        shown[:] = [tool.name for tool in info.function_tools]
        following = plan.next_call(returned(messages))
        return ModelResponse(parts=[TextPart("done") if following is None else ToolCallPart(*following)])

    toolset = MCPToolset(transport(plan), init_timeout=PATIENCE_S)
    agent = Agent(FunctionModel(think), toolsets=[toolset])
    async with agent:
        result = await agent.run("Mend the failing test.")
        report(shown, returned(result.all_messages()), toolset.client.protocol_version)


asyncio.run(main())
