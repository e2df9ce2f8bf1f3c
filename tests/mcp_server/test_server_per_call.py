"""Clients that start a server for each call, and name no session: what earlier calls did is not there, and that is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from tests.mcp_server.conftest import Connect

pytestmark = pytest.mark.anyio

CONTINUES = [
    ("diff", {}),
    ("wait", {}),
    ("inspect", {"expression": "result"}),
    ("close_session", {}),
    ("pdb", {"command": "p result"}),
    ("pdb", {"command": "\n  n;;w"}),
]
BEGINS = [
    ("bash", {"command": "true"}),
    ("view", {"path": "app.py"}),
    ("pdb", {"command": "b app.py:3\nc\np result"}),
    ("pdb", {"command": "n", "entrypoint": "python app.py"}),
]


async def said(client: Client, tool: str, arguments: dict[str, Any]) -> str:
    result = await client.call_tool(tool, arguments)
    return "\n".join(block.text for block in result.content if block.type == "text")


@pytest.mark.parametrize(("tool", "arguments"), CONTINUES)
async def test_a_first_call_that_goes_on_from_others_names_the_option(
    tool: str, arguments: dict[str, Any], connect: Connect
) -> None:
    async with connect() as client:
        first = await said(client, tool, arguments)
        assert "This call opened a new session" in first
        assert first.count("`--keep-sessions`") == 1
        if tool != "close_session":
            assert "`--keep-sessions`" not in await said(client, tool, arguments)


@pytest.mark.parametrize(("tool", "arguments"), BEGINS)
async def test_a_first_call_that_needs_no_other_says_nothing(
    tool: str, arguments: dict[str, Any], connect: Connect
) -> None:
    async with connect() as client:
        assert "`--keep-sessions`" not in await said(client, tool, arguments)
        assert "`--keep-sessions`" not in await said(client, "diff", {})


async def test_nothing_is_said_of_a_session_that_was_started_or_may_be_kept(connect: Connect) -> None:
    async with connect() as client:
        await client.call_tool("start_session", {})
        assert "`--keep-sessions`" not in await said(client, "diff", {})
    async with connect(keep_sessions=True) as client:
        assert "`--keep-sessions`" not in await said(client, "diff", {})
        await client.call_tool("close_session", {})


CHANGE = {"path": "app.py", "old_code": "n * 2", "new_code": "n + n"}


async def test_a_first_change_says_that_it_ends_with_its_server(connect: Connect) -> None:
    async with connect() as client:
        changed = await said(client, "rewrite", CHANGE)
        assert changed.startswith("note: This call opened a new session")
        assert "the change is lost" in changed
        assert changed.count("`--keep-sessions`") == 1
        assert "+" in changed and "n + n" in changed
        again = {"path": "app.py", "old_code": "n + n", "new_code": "n * 2"}
        assert "`--keep-sessions`" not in await said(client, "rewrite", again)
    async with connect() as client:  # the next call of such a client
        assert "`--keep-sessions`" in await said(client, "diff", {})


async def test_a_first_change_that_was_refused_has_nothing_to_lose(connect: Connect) -> None:
    async with connect() as client:
        refused = await said(client, "rewrite", {**CHANGE, "old_code": "nowhere"})
        assert "`--keep-sessions`" not in refused


async def test_a_change_that_is_not_the_first_call_or_stays_says_nothing(
    connect: Connect, repo: Path
) -> None:
    async with connect() as client:
        await said(client, "view", {"path": "app.py"})
        assert "`--keep-sessions`" not in await said(client, "rewrite", CHANGE)
    async with connect(keep_sessions=True) as client:
        assert "`--keep-sessions`" not in await said(client, "rewrite", CHANGE)
        await client.call_tool("close_session", {})
    async with connect(in_place=True, unsafe_no_isolation=False, backend="auto") as client:
        assert "`--keep-sessions`" not in await said(client, "rewrite", CHANGE)
    assert "n + n" in (repo / "app.py").read_text("utf-8")
