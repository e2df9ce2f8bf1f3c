"""Each MCP client that people use does a real debugging task, in an environment of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.interop.clients.steps import SESSION
from tests.interop.conftest import COMMAND, Served
from tests.interop.environments import Environments
from tests.interop.program import finished
from tests.interop.task import SAMPLE, STEPS, disagreements
from tools._catalog import catalog

pytestmark = pytest.mark.docker
CLIENTS = Path(__file__).with_name("clients")
NEW = "2026-07-28"
OLD = "2025-11-25"
PATIENCE_S = 900


@dataclass(frozen=True)
class Client:
    """A client, how it is told which era to speak, and the revision that it then says it speaks, if it says so."""

    environment: str
    script: str
    era: str = "auto"
    protocol: str | None = None
    protocol_over_sse: str | None = None


ALL = {
    "mcp-new-era": Client("mcp", "mcp_client.py", "auto", NEW, NEW),
    "mcp-old-era": Client("mcp", "mcp_client.py", "legacy", OLD, OLD),
    "fastmcp": Client("fastmcp", "fastmcp_client.py", "auto", NEW, OLD),
    "pydantic-ai": Client("pydantic-ai", "pydantic_ai_client.py", "auto", NEW, OLD),
    "openai-agents": Client("openai-agents", "openai_agents_client.py"),
    "langchain": Client("langchain", "langchain_client.py"),
    "semantic-kernel": Client("semantic-kernel", "semantic_kernel_client.py"),
    "dspy": Client("dspy", "dspy_client.py"),
    "autogen": Client("autogen", "autogen_client.py"),
    "google-genai": Client("google-genai", "google_genai_client.py"),
    "google-adk": Client("google-adk", "google_adk_client.py"),
    "agno": Client("agno", "agno_client.py"),
    "typescript-1": Client("typescript-1", "typescript-1.mjs"),
    "typescript-2-new-era": Client("typescript-2", "typescript-2.mjs", "auto", NEW, NEW),
    "typescript-2-old-era": Client("typescript-2", "typescript-2.mjs", "legacy", OLD, OLD),
}
# What `get_tools` of langchain-mcp-adapters does: over stdio that is a server process for each call, too.
PER_CALL = {
    "langchain": Client("langchain", "langchain_client.py", "per-call"),
    "llama-index": Client("llama-index", "llama_index_client.py"),
}
ON_THE_NETWORK = {**ALL, **{f"{name}-session-per-call": client for name, client in PER_CALL.items()}}
# The other frameworks use the transport of the SDK, which is among these.
OVER_SSE = (
    "mcp-new-era",
    "mcp-old-era",
    "fastmcp",
    "pydantic-ai",
    "typescript-1",
    "typescript-2-new-era",
    "typescript-2-old-era",
)
REACHED = [("http", name) for name in ON_THE_NETWORK] + [("sse", name) for name in OVER_SSE]
BUSY_S = 1.5
# Those that give up on a call after 5 s, or 10 s (agno), unless they are told otherwise.
IMPATIENT = {
    name: replace(ALL[name], era="defaults") for name in ("openai-agents", "autogen", "google-adk", "agno")
}
Run = Callable[[Client, dict[str, Any]], dict[str, Any]]


@pytest.fixture
def run(environments: Environments, tmp_path: Path) -> Run:
    """Run a client against the server that a plan names; gives what it printed."""

    def started(client: Client, server: dict[str, Any]) -> dict[str, Any]:
        calls = [(step.tool, step.arguments) for step in STEPS]
        plan = {"command": ["false"], "env": {}, "url": "", "era": client.era, "calls": calls, **server}
        program = _program(client, environments, tmp_path)
        done = finished([*program, json.dumps(plan)], PATIENCE_S, cwd=tmp_path)
        assert done.returncode == 0, done.stderr[-4000:]
        return json.loads(done.stdout.splitlines()[-1])  # Agno's warnings come before it

    return started


@pytest.mark.parametrize("client", ALL.values(), ids=ALL)
def test_client_mends_the_sample_over_stdio(client: Client, run: Run) -> None:
    server = {"transport": "stdio", "command": COMMAND, "env": passed()}
    holds(run(client, server), client.protocol)


@pytest.mark.parametrize(("name", "named"), [("llama-index", True), ("langchain", False)])
def test_client_that_starts_a_server_for_each_call_mends_the_sample(name: str, named: bool, run: Run) -> None:
    client = PER_CALL[name]
    server = {"transport": "stdio", "command": [*COMMAND, "--keep-sessions"], "env": passed()}
    if named:
        holds(run(client, server), client.protocol)
        return
    calls = [(step.tool, _without_handle(step.arguments)) for step in STEPS[1:]]
    command = [*server["command"], "--repo", str(SAMPLE)]
    seen = run(client, {**server, "command": command, "calls": calls})
    assert not disagreements([STEPS[0].text, *seen["answers"]])


def test_a_first_change_by_a_client_that_starts_a_server_for_each_call_says_that_it_is_lost(run: Run) -> None:
    server = {"transport": "stdio", "command": [*COMMAND, "--repo", str(SAMPLE)], "env": passed()}
    (change,) = [_without_handle(step.arguments) for step in STEPS if step.tool == "rewrite"]
    seen = run(PER_CALL["langchain"], {**server, "calls": [("rewrite", change), ("diff", {})]})
    changed, after = seen["answers"]
    assert "the change is lost" in changed and "`--keep-sessions`" in changed
    assert "`--keep-sessions`" in after


@pytest.mark.parametrize("client", IMPATIENT.values(), ids=IMPATIENT)
def test_client_gets_the_whole_answer_of_a_call_longer_than_its_own_limit(client: Client, run: Run) -> None:
    if _starting_s() > BUSY_S:
        pytest.skip("this machine is too busy for clients that wait five seconds for anything")
    command = [*COMMAND, "--repo", str(SAMPLE), "--answer-within", "4"]
    printing = {"command": "for i in $(seq 12); do echo line $i; sleep 1; done", "timeout_s": 60}
    calls = [("start_session", {}), ("bash", {**printing, "session_id": SESSION})]
    calls.append(("wait", {"session_id": SESSION}))
    seen = run(client, {"transport": "stdio", "command": command, "env": passed(), "calls": calls})
    _, answered, *waited = seen["answers"]
    assert "running: `bash` has not ended after 4 s" in answered
    whole = "\n".join(f"line {number}" for number in range(1, 13))
    assert whole in waited[-1]


@pytest.mark.parametrize(("transport", "name"), REACHED)
def test_client_mends_the_sample_over_the_network(
    transport: str, name: str, run: Run, served: Served
) -> None:
    client = ON_THE_NETWORK[name]
    # With data besides the text, so that each client sees either form on one of the transports.
    seen = run(client, {"transport": transport, "url": f"{served.url(transport)}?answers=both"})
    holds(seen, client.protocol_over_sse if transport == "sse" else client.protocol)


def holds(seen: dict[str, Any], protocol: str | None) -> None:
    assert seen["tools"] in (list(catalog()), sorted(catalog()))  # Google's sorts them
    assert not disagreements(seen["answers"])
    assert protocol == seen["protocol"]


def passed() -> dict[str, str]:
    """What the server needs of our variables: clients pass on next to none."""
    return {
        name: value for name, value in os.environ.items() if name.startswith(("PDBOX_", "DOCKER_", "XDG_"))
    }


def _starting_s() -> float:
    """Seconds that a Python takes here to import the server: half a second where nothing else runs."""
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", "import mcp_server.server"], check=True)
    return time.monotonic() - began


def _without_handle(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if value != SESSION}


def _program(client: Client, environments: Environments, folder: Path) -> list[str]:
    if client.script.endswith(".py"):
        return [str(environments.python(client.environment)), str(CLIENTS / client.script)]
    # Node looks for packages beside the script.
    (folder / "node_modules").symlink_to(environments[client.environment] / "node_modules")
    for script in (client.script, "steps.mjs"):
        shutil.copy(CLIENTS / script, folder)
    return [str(environments.node()), str(folder / client.script)]
