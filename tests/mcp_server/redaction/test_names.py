"""Secrets that a client sends as names of tools and arguments."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator

import pytest
from mcp.types import TextContent

from mcp_server.observability.logs import JsonLines, LimitedHandler, Lines
from mcp_server.redaction.redactor import Redactor
from tests.mcp_server.conftest import Connect

pytestmark = pytest.mark.anyio
SECRET = "hunter2Zq9vXk"


@pytest.fixture(params=[Lines, JsonLines])
def written(request: pytest.FixtureRequest) -> Iterator[io.StringIO]:
    """What the server writes into its log."""
    stream, root = io.StringIO(), logging.getLogger()
    handler, level = LimitedHandler(stream), root.level
    handler.setFormatter(request.param(Redactor()))
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield stream
    root.removeHandler(handler)
    root.setLevel(level)


@pytest.mark.parametrize("before", ["", "x" * 90, "x" * 95, "x" * 200])
async def test_a_secret_as_a_name_is_in_no_error_and_in_no_log(
    connect: Connect, written: io.StringIO, before: str
) -> None:
    name = before + SECRET
    async with connect() as client:
        opened = await client.call_tool("start_session", {"env": {"API_TOKEN": SECRET}})
        assert not opened.is_error
        answers = [
            await client.call_tool(name, {}),
            await client.call_tool("bash", {name: 1}),
            await client.call_tool("bash", {"command": "true", name: 1}),
            await client.call_tool("bash", {"command": "true", "timeout_s": name}),
        ]
    texts = [block.text for answer in answers for block in answer.content if isinstance(block, TextContent)]
    assert all(answer.is_error for answer in answers) and len(texts) == len(answers)
    assert "no tool" in texts[0] and "Unknown argument" in texts[1]
    assert "unknown tool" in written.getvalue()
    for text in (*texts, written.getvalue()):
        assert SECRET[:5] not in text
    if not before:
        assert all("redacted $API_TOKEN" in text for text in texts)
