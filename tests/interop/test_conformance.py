"""The official conformance suite, for both eras: on our server with the suite's fixtures added, and as it is shipped."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Generator, Mapping
from pathlib import Path

import anyio
import pytest
from mcp import Client
from mcp.types import ServerCapabilities

from tests.interop.conftest import Served, serving
from tests.interop.environments import Environments
from tests.interop.program import finished

pytestmark = pytest.mark.docker
OLD, NEW = "2025-11-25", "2026-07-28"
PATIENCE_S = 900

Failures = Mapping[str, set[str]]
"""What failed of each scenario that was run; nothing, if it passed."""

# What fails with all fixtures there. None of it is required by its revision.
UNMET = {
    # Streams can't be resumed: that needs a store of events. Calls are found again by their session_id.
    OLD: {"server-sse-polling"},
    # The SDK doesn't implement the tasks extension.
    NEW: {
        "tasks-lifecycle",
        "tasks-capability-negotiation",
        "tasks-wire-fields",
        "tasks-request-state-removal",
        "tasks-mrtr-input",
        "tasks-request-headers",
        "tasks-dispatch-and-envelope",
        "tasks-required-task-error",
        "tasks-mrtr-composition",
    },
}

# What any server can be asked, without fixtures.
GENERIC = {
    OLD: {
        "server-initialize",
        "ping",
        "server-session-lifecycle",
        "tools-list",
        "resources-list",
        "prompts-list",
        "completion-complete",
        "resources-subscribe",
        "resources-unsubscribe",
        "server-sse-multiple-streams",
        "dns-rebinding-protection",
    },
    NEW: {
        "server-stateless",
        "tools-list",
        "resources-list",
        "prompts-list",
        "completion-complete",
        "sep-2164-resource-not-found",
        "caching",
        "http-header-validation",
        "dns-rebinding-protection",
        "server-sse-multiple-streams",
    },
}
# Of those, what asks for a fixture after all: a tool that wants a client with sampling.
UNASKED = {
    "server-stateless": {
        "sep-2575-server-rejects-undeclared-capability",
        "sep-2575-missing-capability-http-400",
    }
}


@pytest.fixture(scope="module")
def with_fixtures() -> Generator[str]:
    """The address of our server with the suite's fixtures. It needs no sandboxes for them."""
    flags = ["--transport", "http", "--port", "0", "--backend", "process", "--unsafe-no-isolation"]
    with serving(sys.executable, "-m", "tests.interop.fixtures_server", "serve", *flags) as base:
        yield f"{base}/mcp"


@pytest.mark.parametrize("revision", [OLD, NEW])
def test_all_that_a_revision_requires_holds_with_the_fixtures(
    revision: str, with_fixtures: str, environments: Environments, tmp_path: Path
) -> None:
    code, failures = _suite(environments, with_fixtures, revision, tmp_path)
    print(
        *map(_message, tmp_path.glob("*/checks.json")), sep="\n"
    )  # of the library's own checks, if this fails
    assert {scenario for scenario, failed in failures.items() if failed} == UNMET[revision], failures
    assert code == 0  # by the suite's own count, of required scenarios only
    assert len(failures) >= len(GENERIC[revision])


@pytest.mark.parametrize("revision", [OLD, NEW])
def test_all_that_needs_no_fixture_holds_as_shipped(
    revision: str, served: Served, environments: Environments, tmp_path: Path
) -> None:
    url = served.url("http")
    _, failures = _suite(environments, url, revision, tmp_path)
    asked = GENERIC[revision] - _not_offered(anyio.run(_capabilities, url))
    assert asked <= failures.keys()
    assert {scenario: failures[scenario] for scenario in asked if failures[scenario]} == {
        scenario: checks for scenario, checks in UNASKED.items() if scenario in asked
    }


async def _capabilities(url: str) -> ServerCapabilities:
    async with Client(url, mode="legacy") as client:
        return client.server_capabilities


def _not_offered(capabilities: ServerCapabilities) -> set[str]:
    """Scenarios of an option that the server does not say it has."""
    subscribed = capabilities.resources is not None and capabilities.resources.subscribe
    return set() if subscribed else {"resources-subscribe", "resources-unsubscribe"}


def _suite(environments: Environments, url: str, revision: str, folder: Path) -> tuple[int, Failures]:
    """Run what there is for a revision; the suite's exit code, and what failed."""
    program = environments["conformance"] / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
    asked = ["server", "--url", url, "--requirements", revision, "-o", folder]
    done = finished([environments.node(), program, *asked], PATIENCE_S)
    failures = {_scenario(found): _failed(found) for found in folder.glob("*/checks.json")}
    assert failures, (done.stdout + done.stderr)[-4000:]
    return done.returncode, failures


def _scenario(checks: Path) -> str:
    found = re.fullmatch(r"server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z", checks.parent.name)
    assert found is not None, checks
    return found[1]


def _message(checks: Path) -> str:
    found = json.loads(checks.read_text(encoding="utf-8"))
    return "".join(
        f"{check['id']}: {check['errorMessage']}\n" for check in found if check.get("errorMessage")
    )


def _failed(checks: Path) -> set[str]:
    return {
        check["id"]
        for check in json.loads(checks.read_text(encoding="utf-8"))
        if check["status"] in ("FAILURE", "WARNING")
    }
