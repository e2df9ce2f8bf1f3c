"""An agent of openai-agents, its model a stand-in that makes the planned calls.

Era "strict": its tools have strict schemas. "defaults": with its own limit for a call.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from agents import Agent, Model, ModelResponse, Runner, Usage, set_tracing_disabled
from agents.mcp import MCPServerSse, MCPServerStdio, MCPServerStreamableHttp
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText
from steps import Plan, read_plan, report

# Its default of five seconds is for machines with nothing else to do.
PATIENCE_S = 600


def server(plan: Plan) -> Any:
    limit = {} if plan.era == "defaults" else {"client_session_timeout_seconds": PATIENCE_S}
    if plan.transport == "stdio":
        params: Any = {"command": plan.command[0], "args": plan.command[1:], "env": plan.env}
        return MCPServerStdio(params, **limit)
    kind = MCPServerStreamableHttp if plan.transport == "http" else MCPServerSse
    return kind({"url": plan.url}, **limit)


def returned(items: Any) -> list[str]:
    """What the tools have given the model so far."""
    if isinstance(items, str):
        return []
    return [text_of(item["output"]) for item in items if item.get("type") == "function_call_output"]


def text_of(output: Any) -> str:
    """Tools give a text, or a list of blocks with texts."""
    return output if isinstance(output, str) else "\n".join(block["text"] for block in output)


class Planned(Model):
    """Makes the planned calls one after the other."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.shown: list[str] = []
        self.answers: list[str] = []

    async def get_response(
        self,
        system_instructions: Any,
        input: Any,  # noqa: A002 - its name in the interface
        model_settings: Any,
        tools: Any,
        *others: Any,
        **named: Any,
    ) -> ModelResponse:
        strict = self.plan.era == "strict"
        self.shown = [tool.name for tool in tools if tool.strict_json_schema == strict]
        self.answers = returned(input)
        following = self.plan.next_call(self.answers)
        return ModelResponse(output=[self.say(following)], usage=Usage(), response_id=None)

    def say(self, following: tuple[str, dict[str, Any]] | None) -> Any:
        if following is None:
            text = ResponseOutputText(text="done", type="output_text", annotations=[])
            return ResponseOutputMessage(
                id="m", content=[text], role="assistant", status="completed", type="message"
            )
        tool, arguments = following
        return ResponseFunctionToolCall(
            call_id=f"call-{len(self.answers)}",
            name=tool,
            arguments=json.dumps(arguments),
            type="function_call",
        )

    def stream_response(self, *others: Any, **named: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


async def main() -> None:
    set_tracing_disabled(True)
    plan = read_plan()
    model = Planned(plan)
    async with server(plan) as connected:
        agent = Agent(
            "debugger",
            model=model,
            mcp_servers=[connected],
            mcp_config={"convert_schemas_to_strict": plan.era == "strict"},
        )
        await Runner.run(agent, "Mend the failing test.", max_turns=20 * len(plan.calls))
    report(model.shown, model.answers)


asyncio.run(main())
