"""Byte stream over a unix socket, based on an asyncio protocol: no extra cycle of the event loop for each reply.

anyio's stream for unix sockets registers with the selector and yields to the event loop at each receive. This
is a third of the server's cost of a round trip to the guest.
"""

from __future__ import annotations

import asyncio
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, cast

import anyio
from anyio.abc import ByteStream

HIGH = 1 << 20
"""Maximum unread bytes before the other side has to wait."""


class Immediate(ABC):
    """A stream that can send without waiting."""

    @abstractmethod
    def send_nowait(self, item: bytes) -> bool:
        """Send `item` now. False, with nothing sent, if that would block or the other side is gone."""


class SocketStream(ByteStream, Immediate):
    """A connection. At most one task may receive and one may send at a time."""

    def __init__(self, protocol: StreamProtocol) -> None:
        self._protocol = protocol
        self._closed = False

    @classmethod
    async def connect(cls, path: str) -> SocketStream:
        """Connect to the unix socket `path`.

        Raises:
            OSError: nobody listens there.
        """
        _, protocol = await asyncio.get_running_loop().create_unix_connection(StreamProtocol, path)
        return cls(protocol)

    @classmethod
    async def over(cls, connection: socket.socket) -> SocketStream:
        """Wrap an existing connection; it is closed on failure."""
        loop = asyncio.get_running_loop()
        try:
            _, protocol = await loop.create_unix_connection(StreamProtocol, sock=connection)
        except BaseException:
            connection.close()
            raise
        return cls(protocol)

    async def receive(self, max_bytes: int = 65536) -> bytes:
        """Receive the next bytes."""
        protocol = self._protocol
        while not protocol.buffer:
            if self._closed:
                raise anyio.ClosedResourceError
            if protocol.error is not None:
                raise anyio.BrokenResourceError from protocol.error
            if protocol.ended:
                raise anyio.EndOfStream
            await protocol.news()
        return protocol.take(max_bytes)

    async def send(self, item: bytes) -> None:
        """Send all bytes; waits while the other side does not read."""
        if self._closed:
            raise anyio.ClosedResourceError
        self._protocol.write(item)
        while self._protocol.full:
            await self._protocol.room()
        if self._protocol.lost:
            raise anyio.BrokenResourceError

    def send_nowait(self, item: bytes) -> bool:
        if self._closed or self._protocol.full or self._protocol.lost:
            return False
        self._protocol.write(item)
        return True

    async def send_eof(self) -> None:
        """End the sending direction."""
        self._protocol.write_eof()

    async def aclose(self) -> None:
        """Close the connection; a waiting receive ends."""
        self._closed = True
        self._protocol.close()
        with anyio.CancelScope(shield=True):
            await anyio.lowlevel.checkpoint()
            # Data that the other side does not take would keep the connection open.
            self._protocol.abort()
            await anyio.lowlevel.checkpoint()

    @property
    def extra_attributes(self) -> Mapping[Any, Callable[[], Any]]:
        """No attributes."""
        return {}


class StreamProtocol(asyncio.Protocol):
    """Receives events of a connection or pipe end. At most one task may wait in `news` and one in `room`."""

    def __init__(self) -> None:
        self.buffer = bytearray()
        self.ended = False
        self.lost = False
        self.full = False
        self.error: Exception | None = None
        self._transport: asyncio.Transport | None = None
        self._paused = False
        self._reader: asyncio.Future[None] | None = None
        self._writer: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # A pipe's transport has only half of the methods; the other half is not called.
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        if len(self.buffer) > HIGH and not self._paused:
            self._paused = True
            self._open().pause_reading()
        self._wake()

    def eof_received(self) -> bool:
        self.ended = True
        self._wake()
        return True  # the other side may still read

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended = self.lost = True
        self.error = exc
        self.resume_writing()
        self._wake()

    def pause_writing(self) -> None:
        self.full = True

    def resume_writing(self) -> None:
        self.full = False
        if self._writer is not None and not self._writer.done():
            self._writer.set_result(None)

    def take(self, most: int) -> bytes:
        """Remove and return the first received bytes."""
        data = bytes(self.buffer[:most])
        del self.buffer[:most]
        if len(self.buffer) < HIGH // 2:
            self._go_on()
        return data

    def write(self, data: bytes) -> None:
        if self.lost:
            raise anyio.BrokenResourceError
        # As a view: asyncio takes slices of what the other side does not take at once.
        self._open().write(memoryview(data))

    def write_eof(self) -> None:
        if not self.lost:
            self._open().write_eof()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()
        self._wake()

    def abort(self) -> None:
        if self._transport is not None and not self.lost:
            self._transport.abort()

    async def news(self) -> None:
        """Wait for more data or the end."""
        self._go_on()
        self._reader = asyncio.get_running_loop().create_future()
        await self._reader

    async def room(self) -> None:
        """Wait until more can be written, or the connection ended."""
        self._writer = asyncio.get_running_loop().create_future()
        await self._writer

    def _go_on(self) -> None:
        if self._paused and not self.lost:
            self._paused = False
            self._open().resume_reading()

    def _open(self) -> asyncio.Transport:
        assert self._transport is not None
        return self._transport

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)
