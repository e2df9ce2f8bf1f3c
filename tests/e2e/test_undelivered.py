"""Calls whose answer is lost on its way, and that the client repeats on a new connection."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from mcp import Client
from mcp.types import TextContent, TextResourceContents

from tests.bubblewrap import LOCAL
from tests.e2e.breaking_proxy import When, breaking
from tests.e2e.served import OVER_HTTP, Server, Way, serving

pytestmark = pytest.mark.anyio
AGAIN = "note: this call was carried out before, and its answer did not arrive"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    repo = tmp_path_factory.mktemp("undelivered")
    (repo / "app.py").write_text("n = 0\nn += 1\nn += 1\nn += 1\nn += 1\n")
    with serving("--repo", str(repo), "--entrypoint", "python app.py", *LOCAL) as running:
        yield running


async def say(url: str, mode: str, tool: str, meta: Any = None, **arguments: object) -> str:
    """One call on a connection of its own."""
    async with Client(url, mode=mode) as client:
        (block,) = (await client.call_tool(tool, arguments, meta=meta)).content
    assert isinstance(block, TextContent)
    return block.text


@pytest.mark.parametrize("way", OVER_HTTP, ids=str)
async def test_a_call_that_was_answered_is_in_the_trajectory(server: Server, way: Way) -> None:
    async with server.client(way, query=f"?session=calls-{way}") as client:
        for number in range(20):
            await client.call_tool("bash", {"command": f"echo {number}"})
            (found,) = (
                await client.read_resource(f"pdbox://session/{await handle(client)}/trajectory")
            ).contents
            assert isinstance(found, TextResourceContents)
            assert f"echo {number}" in found.text.splitlines()[-1]


async def handle(client: Client) -> str:
    """The handle of the connection's own session."""
    (one, *_) = (await client.list_resources()).resources
    return str(one.uri).split("/")[3]


CALLS = {
    "pdb": ({"command": "n"}, rb'"command":\s*"n"', "app.py:3"),
    "bash": ({"command": "echo x >> lines; wc -l < lines"}, rb"wc -l", "\n1\n"),
    "rewrite": ({"path": "app.py", "old_code": "n = 0", "new_code": "n = 0\nm = n = 0"}, rb"m = n", "+m = n"),
}


# What is written of an event stream, as of the older protocol, counts as delivered: of one that breaks off, nothing is written.
@pytest.mark.parametrize(("mode", "when"), [("auto", "asked"), ("auto", "answered"), ("legacy", "asked")])
@pytest.mark.parametrize("tool", CALLS)
async def test_a_repeated_call_gets_the_answer_that_was_lost(
    server: Server, tool: str, mode: str, when: When
) -> None:
    arguments, pattern, expected = CALLS[tool]
    name = f"?session={tool}-{mode}-{when}"
    # The sandbox and the program begin before: that may take longer than a call has that lost its connection.
    await say(f"{server.url}{name}", mode, "pdb", command="n")
    with breaking(server.url, pattern, when) as proxy:
        with pytest.raises(Exception):  # noqa: B017 - of whichever library
            await say(f"{proxy.url}{name}", mode, tool, **arguments)
        again = await say(f"{proxy.url}{name}", mode, tool, **arguments)
        assert proxy.broken == 1
    assert again.startswith(AGAIN) and expected in again, again
    once_more = await say(f"{server.url}{name}", mode, tool, **arguments)
    assert AGAIN not in once_more and (tool == "rewrite" or expected not in once_more)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_equal_calls_that_were_answered_are_carried_out_each(server: Server, mode: str) -> None:
    url = f"{server.url}?session=on-purpose-{mode}"
    for line in (2, 3, 4):
        answer = await say(url, mode, "pdb", command="n")
        assert f"app.py:{line}" in answer and AGAIN not in answer


async def test_calls_with_one_key_are_one_call(server: Server) -> None:
    url, first, second = (
        f"{server.url}?session=keys",
        {"pdbox/call_key": "call 1"},
        {"pdbox/call_key": "call 2"},
    )
    assert "app.py:2" in await say(url, "auto", "pdb", first, command="n")
    again = await say(url, "auto", "pdb", first, command="n")
    assert again.startswith(AGAIN) and "app.py:2" in again
    assert "app.py:3" in await say(url, "auto", "pdb", second, command="n")
