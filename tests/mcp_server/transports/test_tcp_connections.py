"""Connections of HTTP clients, in a server of this process."""

from __future__ import annotations

import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from mcp_server.settings import Settings
from mcp_server.transports.http import Server, listen
from mcp_server.transports.tcp_connections import Connection, Limits

pytestmark = pytest.mark.anyio

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
HALF = b"GET / HTTP/1.1\r\nHost: x\r\nX-a: "
NO_BODY = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{"
CHUNKED = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
NEVER = 3600.0


class Web:
    """A server that echoes, and its connections."""

    server: Server
    port: int

    def __init__(self) -> None:
        self.ends = anyio.Event()
        """Requests of /held are answered when it is set."""
        self.holds = anyio.Semaphore(0)
        """Released by each of them."""

    async def connect(self, data: bytes = b"", host: str = "127.0.0.1") -> SocketStream:
        """A connection from the address `host` on which `data` was sent, once the server has it."""
        stream = await anyio.connect_tcp("127.0.0.1", self.port, local_host=host)
        if data:
            await stream.send(data)
        own = stream.extra(SocketAttribute.local_port)
        while own not in {one.client[1] for one in self.accepted() if one.client}:  # noqa: ASYNC110 - nothing tells
            await anyio.sleep(0.001)
        return stream

    def accepted(self) -> list[Connection]:
        """The server's side of each connection."""
        return [one for one in self.server.server_state.connections if isinstance(one, Connection)]


@asynccontextmanager
async def serving(total: int = 100, each: int = 100, request_s: float = NEVER) -> AsyncGenerator[Web]:
    """A server with these limits."""
    web = Web()

    async def echo(request: Request) -> Response:
        if request.url.path == "/refused":
            return PlainTextResponse("refused", 401)
        if request.url.path == "/held":
            web.holds.release()
            await web.ends.wait()
        try:
            return PlainTextResponse(await request.body() or b"ok")
        except ClientDisconnect:
            return Response()

    app = Starlette(routes=[Route("/{path:path}", echo, methods=["GET", "POST"])])
    started = anyio.Event()
    listener = listen(Settings(port=0), protected=False)
    web.port = listener.getsockname()[1]
    web.server = server = Server(app, Limits(total, each, request_s), started.set)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve, [listener])
        with anyio.fail_after(120):
            await started.wait()
            yield web
        web.ends.set()
        server.should_exit = True


async def is_closed(stream: SocketStream) -> bool:
    """Wait for the other side's end."""
    try:
        while await stream.receive():
            pass
    except (anyio.EndOfStream, anyio.BrokenResourceError):
        return True
    return False


async def answer(stream: SocketStream, request: bytes = GET) -> bytes:
    """The answer."""
    await stream.send(request)
    return await stream.receive()


async def test_an_accepted_connection_sends_small_answers_at_once() -> None:
    async with serving() as server, await server.connect() as _:
        (accepted,) = server.accepted()
        own: socket.socket = accepted.transport.get_extra_info("socket")
        assert own.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.parametrize("data", [b"", HALF, NO_BODY])
async def test_a_request_that_does_not_arrive_is_given_up(data: bytes) -> None:
    async with serving(request_s=0.2) as server, await server.connect(data) as stream:
        assert await is_closed(stream)


async def test_a_second_request_that_does_not_arrive_is_given_up() -> None:
    async with serving(request_s=3) as server, await server.connect() as stream:
        assert b"200 OK" in await answer(stream)
        await stream.send(HALF)
        assert await is_closed(stream)


async def test_an_answer_may_take_longer_than_its_request() -> None:
    async with serving(request_s=3) as server, await server.connect(GET.replace(b"/ ", b"/held ")) as held:
        async with await server.connect() as other:
            assert await is_closed(other)  # so that time is over for both
        server.ends.set()
        assert b"200 OK" in await held.receive()


@pytest.mark.parametrize("data", [b"", HALF, NO_BODY])
@pytest.mark.parametrize("limits", [{"total": 4}, {"each": 4}])
async def test_connections_without_a_request_make_room_for_new_ones(
    limits: dict[str, int], data: bytes
) -> None:
    async with serving(**limits) as server, await server.connect() as used:
        assert b"200 OK" in await answer(used)
        streams = [await server.connect(data) for _ in range(12)]
        async with await server.connect() as new:
            assert b"200 OK" in await answer(new)
        assert b"200 OK" in await answer(used)
        for stream in streams[:9]:
            assert await is_closed(stream)
        assert len(server.accepted()) <= 4
        for stream in streams:
            await stream.aclose()


async def test_where_all_connections_are_in_use_a_new_one_is_refused() -> None:
    held = GET.replace(b"/ ", b"/held ")
    async with serving(each=2) as server:
        streams = [await server.connect(held) for _ in range(2)]
        for _ in streams:
            await server.holds.acquire()
        async with await anyio.connect_tcp("127.0.0.1", server.port) as refused:
            assert await is_closed(refused)
        async with await server.connect(host="127.0.0.2") as other:
            assert b"200 OK" in await answer(other)
        server.ends.set()
        for stream in streams:
            assert b"200 OK" in await stream.receive()
            await stream.aclose()


async def test_the_address_with_most_connections_makes_room_first() -> None:
    async with serving(total=4) as server, await server.connect(host="127.0.0.2") as alone:
        streams = [await server.connect() for _ in range(6)]
        assert b"200 OK" in await answer(alone)
        for stream in streams:
            await stream.aclose()


@pytest.mark.parametrize("chunk", [b"f" * 20, b"f" * 16, b"200000", b"f" * 21, b"zz"])
@pytest.mark.parametrize("is_late", [False, True])
async def test_a_body_that_is_no_body_or_announces_too_much_is_refused_at_once(
    chunk: bytes, is_late: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving() as server, await server.connect() as stream:
        await stream.send(CHUNKED if is_late else CHUNKED + chunk + b"\r\n")
        if is_late:
            await stream.send(b"1\r\nx\r\n" + chunk + b"\r\n")
        assert b"400 Bad Request" in await stream.receive()
        assert await is_closed(stream)
        async with await server.connect() as other:
            assert b"200 OK" in await answer(other)
    assert not [record for record in caplog.records if record.exc_info]


@pytest.mark.parametrize("chunk", [b"f" * 20, b"zz"])
@pytest.mark.parametrize("is_late", [False, True])
async def test_such_a_body_of_a_request_that_is_refused_without_it_leaves_no_traceback(
    chunk: bytes, is_late: bool, caplog: pytest.LogCaptureFixture
) -> None:
    refused = CHUNKED.replace(b"/ ", b"/refused ")
    async with serving() as server, await server.connect() as stream:
        if is_late:
            assert b"401 Unauthorized" in await answer(stream, refused)
            await stream.send(chunk + b"\r\n")
        else:
            assert b"400 Bad Request" in await answer(stream, refused + chunk + b"\r\n")
        assert await is_closed(stream)
        async with await server.connect() as other:
            assert b"200 OK" in await answer(other)
    assert not [record for record in caplog.records if record.exc_info]
