"""Frames between the host and the guest.

    4 bytes header length, 4 bytes payload length (big-endian), header (a JSON object in UTF-8), payload

The guest reads and writes them in `guest/protocol/frames.py`, from threads. The guest runs next to untrusted
code, so sizes are checked before anything is read.
"""

from __future__ import annotations

import json
import re
import struct
from typing import Any, cast

import anyio
from anyio import EndOfStream, IncompleteRead
from anyio.abc import ByteReceiveStream
from anyio.streams.buffered import BufferedByteReceiveStream

from sandbox.errors import ProtocolViolation, SandboxLost
from sandbox.guest.protocol.frames import MAX_HEADER, MAX_PAYLOAD
from sandbox.transport.json_values import has_more_values

MAX_VALUES = 100_000
"""Most values in a header: the results of 20,000 tests fit. While it is decoded, no other session is served."""
_LENGTHS = struct.Struct(">II")
_TEXT_S = 1.0
_MAX_TEXT = 2000

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")

Header = dict[str, Any]


class FrameReader:
    """Reads frames from a byte stream."""

    def __init__(self, stream: ByteReceiveStream) -> None:
        self._bytes = BufferedByteReceiveStream(stream)
        self._is_first = True
        self.header_size = self.payload_size = 0
        """Sizes of the last frame."""

    async def receive(self) -> tuple[Header, bytes] | None:
        """Receive the next frame, or None at a clean end of the stream.

        Raises:
            ProtocolViolation: too large, cut off, or not a JSON object.
            SandboxLost: the stream begins with text, of an engine that failed to open it.
        """
        try:
            lengths = await self._bytes.receive_exactly(_LENGTHS.size)
        except (EndOfStream, IncompleteRead):
            return None
        header_size, payload_size = self.header_size, self.payload_size = _LENGTHS.unpack(lengths)
        # No frame begins with letters: its header would be 500 MB.
        if self._is_first and lengths.isascii() and lengths.decode().isprintable():
            raise SandboxLost(
                "The engine opened no way into the sandbox.",
                "Call again; if it is gone, start_session opens a new one.",
                await self._read_text(lengths),
            )
        self._is_first = False
        if header_size > MAX_HEADER or payload_size > MAX_PAYLOAD:
            raise ProtocolViolation(f"The sandbox sent a frame of {header_size} + {payload_size} bytes.")
        try:
            text = await self._bytes.receive_exactly(header_size)
            payload = await self._bytes.receive_exactly(payload_size) if payload_size else b""
        except (EndOfStream, IncompleteRead) as exc:
            raise ProtocolViolation("The sandbox's stream ended inside a frame.") from exc
        return _parse(text), payload

    async def _read_text(self, text: bytes) -> str:
        """Read the rest of a message that began with `text`."""
        with anyio.move_on_after(_TEXT_S):
            try:
                while len(text) < _MAX_TEXT:
                    text += await self._bytes.receive(_MAX_TEXT)
            except (EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
                pass  # that was all of it
        return text[:_MAX_TEXT].decode("utf-8", "replace").strip()


def _parse(text: bytes) -> Header:
    if has_more_values(text, MAX_VALUES):
        raise ProtocolViolation(f"The sandbox sent a frame with more than {MAX_VALUES:,} values.")
    try:
        header = _DECODER.decode(text.decode())
        # JSON can contain lone surrogates, which can't be encoded again.
        if _SURROGATE.search(text):
            header = _whole(header)
    except (ValueError, RecursionError) as exc:
        raise ProtocolViolation("The sandbox sent a frame that is not JSON.") from exc
    if not isinstance(header, dict):
        raise ProtocolViolation("The sandbox sent a frame that is not a JSON object.")
    return cast(Header, header)


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def _whole(value: Any) -> Any:
    kind = cast(Any, type(value))  # `match` takes twice as long
    if kind is str:
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    if kind is list:
        return [_whole(item) for item in value]
    if kind is dict:
        return {_whole(key): _whole(item) for key, item in value.items()}
    return value
