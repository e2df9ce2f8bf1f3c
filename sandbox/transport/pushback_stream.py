"""A stream that can wait for its first bytes without taking them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, cast

import anyio
from anyio.abc import ByteStream

from sandbox.errors import SandboxError
from sandbox.transport.socket_stream import Immediate


class PushbackStream(ByteStream, Immediate):
    """Wraps a stream and returns bytes that were read ahead first."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._early = b""

    @property
    def early(self) -> bytes:
        """Bytes that were read ahead."""
        return self._early

    async def wait_readable(self) -> bool:
        """Wait until there are bytes to receive. False if the stream ended instead."""
        try:
            self._early += await self._stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return False
        return True

    async def send_first(self, data: bytes) -> bool:
        """Send `data` while waiting for the answer: a peer that ends without reading it would block the sender.

        False if the stream ended instead of an answer.

        Raises:
            SandboxError: as receiving does.
        """
        failure: SandboxError | None = None
        is_answered = False
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._send_until_broken, data)
            try:
                is_answered = await self.wait_readable()
            except SandboxError as exc:
                failure = exc  # raised below: the task group would wrap it
            if not is_answered:
                tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure
        return is_answered

    async def _send_until_broken(self, data: bytes) -> None:
        with suppress(anyio.BrokenResourceError):  # receiving tells why
            await self._stream.send(data)

    async def receive(self, max_bytes: int = 65536) -> bytes:
        """Receive the next bytes."""
        if not self._early:
            return await self._stream.receive(max_bytes)
        data, self._early = self._early[:max_bytes], self._early[max_bytes:]
        return data

    async def send(self, item: bytes) -> None:
        """Send all bytes."""
        await self._stream.send(item)

    def send_nowait(self, item: bytes) -> bool:
        return isinstance(self._stream, Immediate) and self._stream.send_nowait(item)

    async def send_eof(self) -> None:
        """End the sending direction."""
        await self._stream.send_eof()

    async def aclose(self) -> None:
        """Close the stream."""
        await self._stream.aclose()

    @property
    def extra_attributes(self) -> Mapping[Any, Any]:
        """Attributes of the wrapped stream."""
        return cast(Mapping[Any, Any], self._stream.extra_attributes)  # pyright: ignore[reportUnknownMemberType]
