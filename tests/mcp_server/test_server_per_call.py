"""Clients that start a server for each call, and name no session: what earlier calls did is not there, and that is said."""

from __future__ import annotations

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
    ("rewrite", {"path": "app.py", "old_code": "n * 2", "new_code": "n + n"}),
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
