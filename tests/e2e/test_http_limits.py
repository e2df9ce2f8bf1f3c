"""Clients of an HTTP server that keep others from nothing: connections, protocol sessions, requests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
import httpx2
import pytest

from tests.bubblewrap import LOCAL
from tests.e2e.client import PDBOX
from tests.e2e.served import OVER_HTTP, STREAMABLE, Server, initialize, serving

pytestmark = pytest.mark.anyio

ALICE, BOB = "a" * 32, "b" * 32
HALF = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nX-a: "
NO_BODY = (
    b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"
)
PING = {"jsonrpc": "2.0", "id": 2, "method": "ping"}


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("tokens") / "tokens"
    file.touch(mode=0o600)
    file.write_text(f"alice {ALICE}\nbob {BOB}\n")
    return file


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, tokens: Path) -> Iterator[Server]:
    repo = tmp_path_factory.mktemp("repo")
    (repo / "app.py").write_text("n = 42\n")
    limits = [
        "--max-protocol-sessions",
        "3",
        "--max-connections",
        "40",
        "--max-connections-per-address",
        "20",
    ]
    with serving("--repo", str(repo), "--token-file", str(tokens), *limits, *LOCAL) as server:
        yield server


@pytest.mark.parametrize("data", [b"", HALF, NO_BODY], ids=["nothing", "half a head", "no body"])
async def test_idle_connections_in_any_number_leave_the_server_to_others(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "app.py").write_text("n = 42\n")
    few = ["/bin/sh", "-c", 'ulimit -n 256; exec "$0" "$@"', str(PDBOX)]
    with serving("--repo", str(tmp_path), *LOCAL, program=few) as server:
        async with server.connected(OVER_HTTP[0]) as client, AsyncExitStack() as stack:
            handle = (await client.call("start_session"))["session_id"]
            for _ in range(300):
                stream = await anyio.connect_tcp("127.0.0.1", int(server.base.rpartition(":")[2]))
                await stack.enter_async_context(stream)
                if data:
                    await stream.send(data)
            async with server.http() as http:
                assert (await http.get("/health")).status_code == 200
            assert "42" in await client.text("view", path="app.py", session_id=handle)
            assert (await client.call("start_session"))["session_id"]
        assert "Too many open files" not in "".join(server.said)


async def open_session(http: httpx2.AsyncClient) -> dict[str, str]:
    """The header that names a new protocol session."""
    opened = await http.post("/mcp", json=initialize())
    assert opened.status_code == 200
    return {"Mcp-Session-Id": opened.headers["mcp-session-id"]}


async def status(http: httpx2.AsyncClient, session: dict[str, str]) -> int:
    """The answer to a ping in that session."""
    return (await http.post("/mcp", json=PING, headers=session)).status_code


async def test_the_session_idle_longest_makes_room_for_a_new_one_of_its_principal(server: Server) -> None:
    async with server.http(ALICE, **STREAMABLE) as alice, server.http(BOB, **STREAMABLE) as bob:
        foreign = await open_session(bob)
        first, second, third = [await open_session(alice) for _ in range(3)]
        assert await status(alice, first) == 200  # now the second one is idle longest
        fourth = await open_session(alice)
        assert [await status(alice, one) for one in (first, second, third, fourth)] == [200, 404, 200, 200]
        for _ in range(50):
            await open_session(alice)
        assert await status(alice, fourth) == 404
        assert await status(bob, foreign) == 200


async def test_a_session_with_an_open_stream_is_not_ended(server: Server) -> None:
    async with server.http(ALICE, **STREAMABLE) as alice:
        used = await open_session(alice)
        async with alice.stream("GET", "/mcp", headers=used) as stream:
            assert stream.status_code == 200
            for _ in range(6):
                await open_session(alice)
            assert await status(alice, used) == 200


async def test_a_session_that_its_client_ended_takes_no_place(server: Server) -> None:
    async with server.http(ALICE, **STREAMABLE) as alice:
        kept = [await open_session(alice) for _ in range(2)]
        for _ in range(6):
            assert (await alice.delete("/mcp", headers=await open_session(alice))).status_code == 200
        assert [await status(alice, one) for one in kept] == [200, 200]


async def test_streams_of_one_principal_leave_connections_to_others(server: Server) -> None:
    async with server.http(ALICE) as alice, server.http(BOB, **STREAMABLE) as bob, AsyncExitStack() as stack:
        found: list[int] = []
        for _ in range(12):
            stream = await stack.enter_async_context(alice.stream("GET", "/sse"))
            found.append(stream.status_code)
        assert found == [200] * 10 + [503] * 2
        await open_session(bob)
    async with server.http(ALICE, **STREAMABLE) as alice:
        await open_session(alice)
