"""The control channel: frames to and from the supervisor."""

from __future__ import annotations

import errno

from ...protocol.frames import BrokenFrame, FrameStream
from ..isolation.descriptors import hold, release
from ..isolation.pristine import os, select, threading


class Closed(Exception):
    """The supervisor is gone, or C code of the program has closed the descriptor (`Channel.cut`)."""


class Channel:
    """Frames to and from the supervisor.

    Any thread may send; an interrupt waits until a frame is complete.
    """

    def __init__(self, fd, gate):
        self._gate = gate
        self._use(fd)
        self._receiving = threading.Lock()
        self._connect = None
        self.open = True
        self.cut = False

    def _use(self, fd):
        self._fd = hold(fd)
        self._frames = FrameStream(self._read, self._write)

    def _read(self, size):
        return os.read(self._fd, size)

    def _write(self, data):
        written = os.write(self._fd, data)
        while written < len(data):
            data = memoryview(data)[written:]
            written = os.write(self._fd, data)

    def send(self, header):
        """Send one frame. Does nothing if the channel is closed, or not yet open in a forked child."""
        if not self.open or self._frames is None:
            return
        with self._gate:
            try:
                self._frames.send(header)
            except OSError as exc:
                self._fail(exc)

    def _fail(self, exc):
        self.open = False
        self.cut = self.cut or exc.errno == errno.EBADF

    def receive(self):
        """Return the next request. Raises Closed if there will be none."""
        if not self.open or self._frames is None:
            raise Closed()
        with self._receiving:
            return self._receive()

    def _receive(self):
        message = None
        try:
            message = self._frames.receive()  # pyright: ignore[reportOptionalMemberAccess] # `receive` has looked
        except BrokenFrame:
            pass
        except OSError as exc:
            self._fail(exc)
        if message is None:
            raise Closed()
        return message[0]

    def waiting_messages(self):
        """Yield the requests that have already arrived. Never waits: it runs in a signal handler."""
        if self._frames is None or not self._receiving.acquire(False):
            return  # another thread is at its prompt and receives them
        try:
            while self._frames.buffered or select.select([self._fd], [], [], 0)[0]:
                yield self._receive()
        except (Closed, OSError, ValueError):
            pass  # the next stop notices
        finally:
            self._receiving.release()

    def drain(self):
        """Drop all requests until the supervisor has closed its end."""
        try:
            while True:
                self.receive()
        except Closed:
            pass

    def forked(self, connect):
        """Release the parent's channel in a forked child.

        `connect` returns a descriptor for a new one, or None.
        """
        if self._frames is not None:
            release(self._fd)
        # A thread of the parent may have been in the middle of a frame.
        self._frames = None
        self._receiving = threading.Lock()
        self._connect = connect
        self.open = connect is not None

    def received(self):
        """Return the bytes that were read beyond the requests that were taken."""
        return self._frames.unread if self._frames is not None else b""

    def take_over(self, received):
        """Go on with the bytes (hexadecimal) that another process had read from this channel."""
        if self._frames is not None:
            self._frames.unread = bytes.fromhex(received)

    def ready(self):
        """True if there is a supervisor to ask. A forked child connects here at the latest."""
        if self._frames is None and self.open:
            fd = self._connect() if self._connect is not None else None
            self.open = fd is not None
            if fd is not None:
                self._use(fd)
        return self.open
