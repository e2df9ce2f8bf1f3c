"""Raw streams over a Docker engine's HTTP API (`attach` and `exec`), without a thread for each."""

from __future__ import annotations

import logging
import ssl
import struct
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
from anyio.abc import ByteStream

from sandbox.errors import BackendUnavailable, ProtocolViolation, SandboxError, SandboxLost
from sandbox.transport.allowance import Allowance
from sandbox.transport.socket_stream import Immediate, SocketStream

log = logging.getLogger("pdbox.guest")

_HEAD_LIMIT = 64 * 1024
_STDERR = 2
_LOG_LINES = 1000
_LOG_WIDTH = 500
_STDERR_BYTES = (4 << 20, 64 << 10)
"""Burst, and rate a second, of standard error. A guest says little there; programs can write to it, too."""


class BlockingPipe(Protocol):
    """A connection that only has blocking calls: a Windows named pipe."""

    def recv(self, bufsize: int, /) -> bytes: ...
    def sendall(self, data: bytes, /) -> object: ...
    def close(self) -> None: ...


@dataclass(frozen=True)
class Endpoint:
    """Address of an engine."""

    url: str
    """`unix://`, `tcp://`, `ssh://` or `npipe://`."""
    tls: ssl.SSLContext | None = None
    pipe: Callable[[], BlockingPipe] | None = None
    """Function that connects to a Windows named pipe; blocks."""

    async def dial(self) -> ByteStream:
        """Open a connection to the engine.

        Raises:
            OSError: no answer.
        """
        parts = urlsplit(self.url)
        match parts.scheme:
            case "unix" | "http+unix":
                return await SocketStream.connect(parts.path or parts.netloc)
            case "tcp" | "http" | "https":
                return await self._tcp(parts.hostname or "localhost", parts.port)
            case "ssh":
                return await _SshStream.open(parts.hostname or "", parts.username, parts.port)
            case "npipe" if self.pipe is not None:
                return ThreadStream(await anyio.to_thread.run_sync(self.pipe))
            case other:
                raise BackendUnavailable(
                    f"No way to reach an engine by {other!r}.", "DOCKER_HOST takes unix, tcp, ssh or npipe."
                )

    async def _tcp(self, host: str, port: int | None) -> ByteStream:
        if self.tls is None:
            return await anyio.connect_tcp(host, port or 2375)
        return await anyio.connect_tcp(
            host, port or 2376, ssl_context=self.tls, tls_standard_compatible=False
        )


async def open_stream(endpoint: Endpoint, path: str, body: bytes = b"") -> AttachedStream:
    """POST `path` and take over the connection as the standard streams of a container or exec.

    Raises:
        SandboxLost: the engine refused, or does not answer.
    """
    try:
        raw = await endpoint.dial()
        try:
            await raw.send(_request(path, body))
            status, rest = await _response(raw)
        except BaseException:
            await anyio.aclose_forcefully(raw)
            raise
    except SandboxError:
        raise
    except (OSError, anyio.BrokenResourceError) as exc:
        raise SandboxLost("The Docker engine doesn't answer any more.", "`pdbox doctor` checks it.") from exc
    if status not in (101, 200):
        await anyio.aclose_forcefully(raw)
        raise SandboxLost(
            f"The engine refused a stream to the container ({status}).",
            "start_session opens a new one.",
            rest.decode(errors="replace")[:2000],
        )
    return AttachedStream(raw, rest)


async def attach(endpoint: Endpoint, api: str, container: str) -> AttachedStream:
    """Open the standard streams of a container before its start.

    Raises:
        SandboxLost: as `open_stream`.
    """
    return await open_stream(
        endpoint, f"/v{api}/containers/{container}/attach?stream=1&stdin=1&stdout=1&stderr=1"
    )


def _request(path: str, body: bytes) -> bytes:
    lines = [
        f"POST {path} HTTP/1.1",
        "Host: docker",
        "Connection: Upgrade",
        "Upgrade: tcp",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


async def _response(raw: ByteStream) -> tuple[int, bytes]:
    """Read the status and the bytes after the headers: stream data, or the text of a refusal."""
    head = bytearray()
    while b"\r\n\r\n" not in head:
        if len(head) > _HEAD_LIMIT:
            raise SandboxLost("The engine answered with something that is not HTTP.")
        try:
            head += await raw.receive()
        except anyio.EndOfStream:
            raise SandboxLost("The engine closed the connection without an answer.") from None
    lines, _, rest = bytes(head).partition(b"\r\n\r\n")
    words = lines.split(b"\r\n", 1)[0].split()
    if len(words) < 2 or not words[1].isdigit():
        raise SandboxLost("The engine answered with something that is not HTTP.")
    return int(words[1]), rest


class AttachedStream(ByteStream, Immediate):
    """Standard input and output of a process in a container. Its standard error goes to the log."""

    def __init__(self, raw: ByteStream, received: bytes = b"") -> None:
        self._raw = raw
        self._buffer = bytearray(received)
        self._left = 0
        self._is_stderr = False
        self.stderr: deque[str] = deque(maxlen=20)
        """Last lines of standard error."""
        self._line = b""
        self._logged = 0
        self._allowance = Allowance(*_STDERR_BYTES)

    async def receive(self, max_bytes: int = 65536) -> bytes:
        """Receive the next bytes of standard output.

        Raises:
            ProtocolViolation: a flood of standard error.
        """
        # Cancellation at an await loses nothing: all received bytes are in the buffer.
        while True:
            while not self._left:
                await self._next_part()
            if not self._buffer:
                await self._fill()
            if not self._is_stderr:
                return self._take(max_bytes)
            self._note(self._take(self._left))

    async def send(self, item: bytes) -> None:
        """Write to standard input."""
        await self._raw.send(item)

    def send_nowait(self, item: bytes) -> bool:
        return isinstance(self._raw, Immediate) and self._raw.send_nowait(item)

    async def send_eof(self) -> None:
        """End standard input."""
        await self._raw.send_eof()

    async def aclose(self) -> None:
        """Close the connection to the engine."""
        await self._raw.aclose()

    @property
    def extra_attributes(self) -> Mapping[Any, Any]:
        """Attributes of the connection."""
        return cast(Mapping[Any, Any], self._raw.extra_attributes)  # pyright: ignore[reportUnknownMemberType]

    async def _next_part(self) -> None:
        # 1 byte stream, 3 zero, 4 length, big-endian (Docker API, ContainerAttach, "Stream format").
        while len(self._buffer) < 8:
            await self._fill()
        stream, self._left = struct.unpack(">BxxxL", self._buffer[:8])
        self._is_stderr = stream == _STDERR
        del self._buffer[:8]

    async def _fill(self) -> None:
        self._buffer += await self._raw.receive()

    def _take(self, most: int) -> bytes:
        size = min(self._left, len(self._buffer), most)
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        self._left -= size
        return data

    def _note(self, data: bytes) -> None:
        if self._allowance.take(len(data)):
            raise ProtocolViolation("The sandbox floods the standard error of its supervisor.")
        *lines, self._line = (self._line + data).split(b"\n")
        self._line = self._line[:_LOG_WIDTH]
        for line in lines:
            text = line[:_LOG_WIDTH].decode("utf-8", "replace")
            self.stderr.append(text)
            self._logged += 1
            if self._logged <= _LOG_LINES:
                log.warning("%s", text)


class _SshStream(ByteStream):
    """Stream over `docker system dial-stdio` on another machine, as in the Docker command."""

    def __init__(self, process: anyio.abc.Process) -> None:
        self._process = process
        assert process.stdin is not None and process.stdout is not None
        self._stdin, self._stdout = process.stdin, process.stdout

    @classmethod
    async def open(cls, host: str, user: str | None, port: int | None) -> _SshStream:
        where = [*(["-l", user] if user else []), *(["-p", str(port)] if port else []), "--", host]
        return cls(
            await anyio.open_process(["ssh", "-o", "BatchMode=yes", *where, "docker", "system", "dial-stdio"])
        )

    async def receive(self, max_bytes: int = 65536) -> bytes:
        return await self._stdout.receive(max_bytes)

    async def send(self, item: bytes) -> None:
        await self._stdin.send(item)

    async def send_eof(self) -> None:
        await self._stdin.aclose()

    async def aclose(self) -> None:
        await self._stdin.aclose()
        self._process.terminate()
        await self._process.aclose()


class ThreadStream(ByteStream):
    """Stream over a blocking pipe: calls run in threads. Used only if there is no other way."""

    def __init__(self, pipe: BlockingPipe) -> None:
        self._pipe = pipe
        # A read may wait for long, so it must not use the shared threads.
        self._limit = anyio.CapacityLimiter(2)

    async def receive(self, max_bytes: int = 65536) -> bytes:
        """Receive the next bytes."""
        data = await anyio.to_thread.run_sync(
            self._pipe.recv, max_bytes, limiter=self._limit, abandon_on_cancel=True
        )
        if not data:
            raise anyio.EndOfStream
        return data

    async def send(self, item: bytes) -> None:
        """Send all bytes."""
        await anyio.to_thread.run_sync(self._pipe.sendall, item, limiter=self._limit)

    async def send_eof(self) -> None:
        """Do nothing: such a pipe can't be closed in one direction."""

    async def aclose(self) -> None:
        """Close the pipe; a waiting read ends."""
        await anyio.to_thread.run_sync(self._pipe.close)
