"""Streams taken out of HTTP, against a small engine of our own on a real socket."""

from __future__ import annotations

import logging
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from anyio.abc import ByteStream
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.docker.attach import AttachedStream, Endpoint, ThreadStream, open_stream
from sandbox.errors import BackendUnavailable, ProtocolViolation, SandboxLost
from sandbox.transport.pushback_stream import PushbackStream
from sandbox.transport.socket_stream import SocketStream

SWITCHED = (
    b"HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\nConnection: Upgrade\r\n\r\n"
)


def part(stream: int, data: bytes) -> bytes:
    """What an engine makes of what a process wrote."""
    return struct.pack(">BxxxL", stream, len(data)) + data


@asynccontextmanager
async def engine(path: Path, answer: Callable[[ByteStream], Awaitable[None]]) -> AsyncIterator[Endpoint]:
    """An engine that takes one request at a time and lets `answer` do the rest."""

    async def handle(client: ByteStream) -> None:
        async with client:
            await answer(client)

    listener = await anyio.create_unix_listener(path)
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, handle)
        yield Endpoint(f"unix://{path}")
        group.cancel_scope.cancel()


async def everything(stream: ByteStream) -> bytes:
    """All that is to be received."""
    data = b""
    try:
        while True:
            data += await stream.receive()
    except anyio.EndOfStream:
        return data


async def test_a_stream_is_asked_for_and_taken_over(tmp_path: Path) -> None:
    requests: list[bytes] = []

    async def answer(client: ByteStream) -> None:
        requests.append(await client.receive())
        await client.send(SWITCHED + part(1, b"early "))
        await client.send(part(1, b"echo: " + await client.receive()))

    async with engine(tmp_path / "s", answer) as endpoint:
        stream = await open_stream(endpoint, "/v1.41/exec/1/start", b"{}")
        await stream.send(b"hello")
        assert await everything(stream) == b"early echo: hello"
        await stream.aclose()
    head, _, body = requests[0].partition(b"\r\n\r\n")
    assert head.splitlines()[0] == b"POST /v1.41/exec/1/start HTTP/1.1"
    assert b"Upgrade: tcp" in head
    assert body == b"{}"


async def test_standard_error_goes_to_the_log_by_lines(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def answer(client: ByteStream) -> None:
        await client.receive()
        await client.send(SWITCHED + part(2, b"bro") + part(1, b"data") + part(2, b"ken\nbadly\n"))

    with caplog.at_level(logging.WARNING):
        async with engine(tmp_path / "s", answer) as endpoint:
            stream = await open_stream(endpoint, "/x")
            assert await everything(stream) == b"data"
            assert list(stream.stderr) == ["broken", "badly"]
            await stream.aclose()
    assert caplog.messages == ["broken", "badly"]


async def test_a_flood_of_standard_error_ends_the_stream(tmp_path: Path) -> None:
    async def answer(client: ByteStream) -> None:
        await client.receive()
        await client.send(SWITCHED)
        with pytest.raises((anyio.BrokenResourceError, anyio.ClosedResourceError)):
            while True:
                await client.send(part(2, b"forged line\n" * 5000))

    async with engine(tmp_path / "s", answer) as endpoint:
        stream = await open_stream(endpoint, "/x")
        with pytest.raises(ProtocolViolation, match="floods the standard error"):
            await stream.receive()
        await stream.aclose()
        assert len(stream.stderr) == 20


async def test_a_refusal_carries_the_engines_words_apart_from_what_clients_are_told(tmp_path: Path) -> None:
    async def answer(client: ByteStream) -> None:
        await client.receive()
        await client.send(
            b'HTTP/1.1 409 Conflict\r\nContent-Length: 30\r\n\r\n{"message":"it is not running"}'
        )

    async with engine(tmp_path / "s", answer) as endpoint:
        with pytest.raises(SandboxLost, match=r"refused a stream to the container \(409\)") as refused:
            await open_stream(endpoint, "/x")
        assert "it is not running" in refused.value.details
        assert "it is not running" not in str(refused.value)


@pytest.mark.parametrize("words", [b"", b"SSH-2.0-OpenSSH\r\n\r\n", b"x" * 100_000])
async def test_what_is_no_engine_is_refused(tmp_path: Path, words: bytes) -> None:
    async def answer(client: ByteStream) -> None:
        await client.receive()
        await client.send(words)

    async with engine(tmp_path / "s", answer) as endpoint:
        with pytest.raises(SandboxLost):
            await open_stream(endpoint, "/x")


async def test_an_engine_that_breaks_off_or_is_gone_is_no_incident(tmp_path: Path) -> None:
    async def reset(client: ByteStream) -> None:
        """Close with what was sent unread: the other side's connection breaks."""

    async with engine(tmp_path / "s", reset) as endpoint:
        with pytest.raises(SandboxLost, match="doesn't answer any more"):
            await open_stream(endpoint, "/x", b"x" * 200_000)
    with pytest.raises(SandboxLost, match="doesn't answer any more"):
        await open_stream(Endpoint(f"unix://{tmp_path / 'nobody'}"), "/x")


async def test_an_unknown_scheme_is_refused() -> None:
    with pytest.raises(BackendUnavailable, match="gopher"):
        await Endpoint("gopher://hole").dial()


class Pieces(ByteStream):
    """Gives what it was given, piece by piece."""

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = pieces

    async def receive(self, max_bytes: int = 65536) -> bytes:
        if not self._pieces:
            raise anyio.EndOfStream
        return self._pieces.pop(0)

    async def send(self, item: bytes) -> None: ...
    async def send_eof(self) -> None: ...
    async def aclose(self) -> None: ...


@settings(max_examples=100, deadline=None)
@given(
    parts=st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(max_size=40)), max_size=8),
    cuts=st.lists(st.integers(1, 30), min_size=1, max_size=60),
    most=st.integers(1, 50),
)
def test_output_is_the_same_however_it_is_cut(
    parts: list[tuple[int, bytes]], cuts: list[int], most: int
) -> None:
    wire = b"".join(part(stream, data) for stream, data in parts)
    pieces: list[bytes] = []
    while wire:
        size = cuts[len(pieces) % len(cuts)]
        pieces.append(wire[:size])
        wire = wire[size:]

    async def read() -> bytes:
        stream, data = AttachedStream(Pieces(pieces)), b""
        try:
            while True:
                piece = await stream.receive(most)
                assert 0 < len(piece) <= most
                data += piece
        except anyio.EndOfStream:
            return data

    assert anyio.run(read) == b"".join(data for stream, data in parts if stream == 1)


async def test_a_cancelled_receive_loses_nothing(tmp_path: Path) -> None:
    head, tail = part(1, b"whole")[:6], part(1, b"whole")[6:]
    half_sent, go_on = anyio.Event(), anyio.Event()

    async def answer(client: ByteStream) -> None:
        await client.receive()
        await client.send(SWITCHED + head)
        half_sent.set()
        await go_on.wait()
        await client.send(tail)

    async with engine(tmp_path / "s", answer) as endpoint:
        stream = await open_stream(endpoint, "/x")
        await half_sent.wait()
        with anyio.move_on_after(0.05):
            await stream.receive()
        go_on.set()
        assert await stream.receive() == b"whole"
        await stream.aclose()


async def test_peeking_takes_nothing_away() -> None:
    stream = PushbackStream(Pieces([b"first", b"second"]))
    assert await stream.wait_readable()
    assert await stream.receive(3) == b"fir"
    assert await everything(stream) == b"stsecond"
    assert not await stream.wait_readable()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("said", [b"", part(2, b"no Python 3\n")])
async def test_a_process_that_ends_without_reading_what_is_sent_is_heard(said: bytes) -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        attached = AttachedStream(await SocketStream.over(ours))
        theirs.sendall(said)
        theirs.shutdown(socket.SHUT_WR)
        stream = PushbackStream(attached)
        assert not await stream.send_first(b"x" * (8 << 20))
        assert list(attached.stderr) == ["no Python 3"] * bool(said)
        await stream.aclose()


@pytest.mark.timeout(60)
async def test_all_is_sent_though_the_answer_comes_first() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        stream = PushbackStream(await SocketStream.over(ours))
        theirs.sendall(b"first")
        read = bytearray()

        def read_all() -> None:
            while len(read) < 8 << 20:
                read.extend(theirs.recv(1 << 20))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.to_thread.run_sync, read_all)
            assert await stream.send_first(b"x" * (8 << 20))
        assert len(read) == 8 << 20
        assert await stream.receive() == b"first"
        await stream.aclose()


async def test_a_flood_while_the_first_bytes_are_sent_is_told_as_such() -> None:
    flood = [part(2, b"x" * (1 << 20))] * 8
    with pytest.raises(ProtocolViolation):
        await PushbackStream(AttachedStream(Pieces(flood))).send_first(b"x")


async def test_a_blocking_pipe_is_read_and_written_in_threads() -> None:
    ours, theirs = socket.socketpair()
    stream = ThreadStream(ours)
    await stream.send(b"ping")
    assert theirs.recv(4) == b"ping"
    theirs.sendall(b"pong")
    assert await stream.receive() == b"pong"
    theirs.close()
    with pytest.raises(anyio.EndOfStream):
        await stream.receive()
    await stream.aclose()
