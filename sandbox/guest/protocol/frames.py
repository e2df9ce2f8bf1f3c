"""Frames of bytes, exchanged by host, supervisor and debugger.

    4 bytes header length, 4 bytes payload length (both big-endian), header (a JSON object in UTF-8), payload (raw bytes)

The host reads and writes them in `sandbox/transport/frames.py`, for asynchronous streams.
"""

from __future__ import annotations

import io
import json
import os
import struct
import threading

MAX_HEADER = 4 << 20
MAX_PAYLOAD = 8 << 20
_LENGTHS = struct.Struct(">II")
_CHUNK = 1 << 16
# ensure_ascii: a lone surrogate of the program must not break the frame.
_ENCODE = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode
_DECODE = json.JSONDecoder().decode  # not `json.loads`, which the program may replace


class BrokenFrame(ValueError):
    """Invalid frame: too large, cut off, or not a JSON object. The stream can't be used any more."""


class CutFrame(BrokenFrame):
    """The stream ended inside a frame."""


def pack(header: dict[str, object], payload: bytes = b"") -> bytes:
    """One frame as bytes.

    Raises ValueError when it is larger than a frame may be, TypeError when `header` is not JSON data.
    """
    return pack_head(header, len(payload)) + payload


def pack_head(header: dict[str, object], payload_size: int) -> bytes:
    """The part of a frame that comes before its payload. For large payloads, which `pack` copies. Raises like `pack`."""
    text = _ENCODE(header).encode("ascii")
    if len(text) > MAX_HEADER or payload_size > MAX_PAYLOAD:
        raise ValueError(f"frame of {len(text)} + {payload_size} bytes is too large")
    return _LENGTHS.pack(len(text), payload_size) + text


def _parse(text):
    try:
        header = _DECODE(text.decode("utf-8"))
    except (ValueError, RecursionError):
        raise BrokenFrame("the header is not JSON") from None
    if not isinstance(header, dict):
        raise BrokenFrame("the header is not a JSON object")
    return header


def _growing(data) -> bytearray:
    return data if isinstance(data, bytearray) else bytearray(data)


class _LargeFrame:
    """A frame whose payload is being received. `missing`: number of bytes at the end of `content` that are still to come."""

    __slots__ = ("header", "content", "missing")

    def __init__(self, header: dict, size: int, begin) -> None:
        self.header = header
        # Unlike a bytearray it gives its content as bytes without a copy.
        self.content = io.BytesIO()
        self.content.write(begin)
        self.content.seek(size - 1)
        self.content.write(b"\0")
        self.missing = size - len(begin)

    def fill(self, receive_into) -> None:
        """Receive the rest of the payload straight to its place. Raises CutFrame, OSError."""
        while self.missing:
            with self.content.getbuffer() as whole, whole[-self.missing :] as rest:
                size = receive_into(rest)
            if not size:
                raise CutFrame("the stream ended inside a frame")
            self.missing -= size


class FrameStream:
    """Frames over two callables: `receive_some(n)` gives 1..n bytes or b"" at the end, `send_all(data)`
    writes all of it.

    `receive_into(view)`, if there is one, writes 1..n bytes into a buffer and gives their number, or 0 at the end.

    Any thread may send; one thread at a time may receive.
    """

    def __init__(self, receive_some, send_all, receive_into=None):
        self._receive_some = receive_some
        self._send_all = send_all
        self._receive_into = receive_into
        self._sending = threading.Lock()
        self._buffer = b""
        self._large: _LargeFrame | None = None
        """The frame that is being received, if it has a large payload."""

    def send(self, header: dict, payload: bytes = b"") -> None:
        """Send one whole frame.

        Raises OSError when the other side is gone, ValueError when the frame is too large.
        """
        frame = pack(header, payload)
        with self._sending:
            self._send_all(frame)

    def receive(self) -> tuple[dict, bytes] | None:
        """The next frame as (header, payload), or None at the end of the stream. Raises BrokenFrame, OSError."""
        while True:
            frame = self._whole() if self._large is None else self._finish(self._large)
            if frame is not None:
                return frame
            if self._large is None:
                data = self._receive_some(_CHUNK if len(self._buffer) < _CHUNK else 1 << 20)
                if not self._take_in(data):
                    return None

    def _whole(self) -> tuple[dict, bytes] | None:
        """The next frame as (header, payload) if all of it has been read; else None. Raises BrokenFrame.

        If only a large payload is missing, the frame becomes `_large`.
        """
        buffer = self._buffer
        if len(buffer) < _LENGTHS.size:
            return None
        header_size, payload_size = _LENGTHS.unpack_from(buffer)
        if header_size > MAX_HEADER or payload_size > MAX_PAYLOAD:
            raise BrokenFrame(f"frame of {header_size} + {payload_size} bytes is too large")
        start = _LENGTHS.size + header_size
        end = start + payload_size
        if len(buffer) < end:
            if payload_size > _CHUNK and len(buffer) >= start and self._receive_into is not None:
                self._large = _LargeFrame(_parse(buffer[_LENGTHS.size : start]), payload_size, buffer[start:])
                self._buffer = b""
            return None
        header, payload = _parse(buffer[_LENGTHS.size : start]), bytes(memoryview(buffer)[start:end])
        if len(buffer) == end:
            self._buffer = b""
        else:
            self._buffer = _growing(buffer)
            del self._buffer[:end]
        return header, payload

    def _finish(self, frame: _LargeFrame) -> tuple[dict, bytes]:
        """Receive the rest of a frame. Raises CutFrame, OSError."""
        frame.fill(self._receive_into)
        self._large = None
        return frame.header, frame.content.getvalue()

    @property
    def buffered(self) -> bool:
        """True if more has been read than the frames that were received."""
        return bool(self._buffer)

    @property
    def unread(self) -> bytes:
        """Bytes that have been read beyond the frames that were received."""
        return bytes(self._buffer)

    @unread.setter
    def unread(self, data: bytes) -> None:
        self._buffer = data

    def close(self) -> None:
        """End the stream. Does nothing for a stream that doesn't own its descriptor."""

    def _take_in(self, data) -> bool:
        """False at the end of the stream. Raises BrokenFrame when that is inside of a frame."""
        if not data and self._buffer:
            raise CutFrame("the stream ended inside a frame")
        # Usually one whole frame arrives. Otherwise the data so far must not be copied for each piece.
        if self._buffer:
            self._buffer = _growing(self._buffer)
            self._buffer += data
        else:
            self._buffer = data
        return bool(data)


class FrameSocket(FrameStream):
    """Frames over a connected stream socket."""

    def __init__(self, sock):
        super().__init__(sock.recv, sock.sendall, sock.recv_into)
        self.sock = sock

    def hang_up(self) -> None:
        """Shut the connection down but keep the socket: a thread that receives or sends on it returns."""
        import socket

        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # not connected any more

    def close(self) -> None:
        """Close the socket; a thread that receives or sends on it returns."""
        self.hang_up()
        self.sock.close()


class FramePipe(FrameStream):
    """Frames over a pair of file descriptors, such as stdin and stdout."""

    def __init__(self, read_fd, write_fd):
        super().__init__(
            lambda size: os.read(read_fd, size), self._write, lambda view: os.readv(read_fd, [view])
        )
        self.read_fd = read_fd
        self._write_fd = write_fd

    def _write(self, data):
        view = memoryview(data)
        while view:
            view = view[os.write(self._write_fd, view) :]

    def close(self) -> None:
        """Close our sending side. Data from the other side ends when it closes its own."""
        with self._sending:
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, self._write_fd, inheritable=False)
            os.close(null)
