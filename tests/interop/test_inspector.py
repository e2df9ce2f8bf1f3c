"""The MCP Inspector's command line, on each transport in both eras."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.interop.conftest import COMMAND, Served
from tests.interop.environments import Environments
from tests.interop.program import finished
from tests.interop.task import SAMPLE
from tools._catalog import catalog

pytestmark = [
    pytest.mark.docker,
    pytest.mark.parametrize("transport", ["stdio", "http", "sse"]),
    pytest.mark.parametrize("era", ["legacy", "modern"]),
]
PATIENCE_S = 600

Inspect = Callable[..., Any]


@pytest.fixture
def inspect(environments: Environments, request: pytest.FixtureRequest, transport: str, era: str) -> Inspect:
    """Run it once; gives the result. Any exit code but 0 is a failure."""
    program = (
        environments["inspector"]
        / "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
    )
    if transport == "stdio":
        server = [*COMMAND, "--answers", "both"]
    else:
        served: Served = request.getfixturevalue("served")
        server = [f"{served.url(transport)}?answers=both"]

    def run(method: str, *options: str) -> Any:
        said = ["--format", "json", "--quiet", "--protocol-era", era, "--method", method, *options]
        said += ["--connect-timeout", str(PATIENCE_S * 1000)]
        done = finished([environments.node(), program, "--cli", *server, *said], PATIENCE_S)
        assert done.returncode == 0, f"{done.returncode}: {done.stdout}\n{done.stderr[-4000:]}"
        return json.loads(done.stdout)["result"]

    return run


def test_tools_have_schemas_that_every_client_can_use(inspect: Inspect) -> None:
    # With --strict, a schema that some clients can't take is an exit code of its own.
    tools = inspect("tools/list", "--strict")["tools"]
    assert [tool["name"] for tool in tools] == list(catalog())


def test_a_session_can_be_opened_and_closed(inspect: Inspect, transport: str) -> None:
    opened = call(inspect, "start_session", repo=str(SAMPLE))["structuredContent"]
    assert opened["workdir"] == "/workspace"
    if transport == "stdio":
        return  # it ended with its server
    closed = call(inspect, "close_session", session_id=opened["session_id"])
    assert closed["structuredContent"]["files"] == []


def test_resources_and_prompts_can_be_listed_and_got(inspect: Inspect) -> None:
    assert isinstance(inspect("resources/list")["resources"], list)  # those of open sessions
    assert inspect("resources/templates/list")["resourceTemplates"]
    first = inspect("prompts/list")["prompts"][0]
    assert inspect("prompts/get", "--prompt-name", first["name"])["messages"]


def call(inspect: Inspect, tool: str, **arguments: Any) -> Any:
    return inspect("tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments))
