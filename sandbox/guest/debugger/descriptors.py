"""Our file descriptors outlive a program that closes all that it doesn't know, as daemons do.

`os.close` and `os.closerange` pass them over. C code of the program may close them all the same, and get their numbers for files of its
own: so a descriptor is looked at before it is used.
"""

from __future__ import annotations

import errno
import os as program_os
import sys

from .frames import ours
from .own import os

_held = {}


class Descriptor:
    """One of our descriptors, moved out of the program's way and closed on exec. `fd` is its former number, given up."""

    def __init__(self, fd):
        self.number = _lifted(fd)
        self._identity = _identity(self.number)
        self._sure = False
        _held[self.number] = self

    def intact(self):
        """Whether the number still stands for what is ours."""
        try:
            return _identity(self.number) == self._identity
        except OSError:
            return False

    def read(self, size):
        """Up to `size` bytes. Raises OSError, also where the descriptor is not ours any more."""
        # What comes is mostly the answer to what was written just now.
        if not self._sure and os.fstat(self.number)[1:3] != self._identity:
            raise _lost()
        self._sure = False
        return os.read(self.number, size)

    def write(self, data):
        """All of `data`. Raises OSError, also where the descriptor is not ours any more."""
        if os.fstat(self.number)[1:3] != self._identity:
            raise _lost()
        written = os.write(self.number, data)
        while written < len(data):
            data = memoryview(data)[written:]
            written = os.write(self.number, data)
        self._sure = True

    def close(self):
        """Give it up; what the number may stand for now is left alone."""
        if _held.get(self.number) is self:
            del _held[self.number]
            if self.intact():
                os.close(self.number)


def _identity(number):
    """Inode and device: no other file or socket has both while this one is open."""
    return os.fstat(number)[1:3]


def _lost():
    return OSError(errno.EBADF, os.strerror(errno.EBADF))


def _lifted(fd):
    import fcntl

    for lowest in (500, 200, 100):
        try:
            lifted = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, lowest)
        except OSError:  # above the limit of open files
            continue
        os.close(fd)
        return lifted
    os.set_inheritable(fd, False)
    return fd


def protect():
    """Take the program's ways to close descriptors over. It sees the same effects, and a function where a builtin was."""
    stock_close, stock_closerange = os.close, os.closerange

    def close(fd):
        """Close a file descriptor."""
        if fd in _held and not ours(sys._getframe(1)) and _held[fd].intact():
            raise _lost()
        stock_close(fd)

    def closerange(fd_low, fd_high):
        """Closes all file descriptors in [fd_low, fd_high), ignoring errors."""
        for fd in sorted(_held):
            if fd_low <= fd < fd_high and _held[fd].intact():
                stock_closerange(fd_low, fd)
                fd_low = fd + 1
        stock_closerange(fd_low, fd_high)

    program_os.close, program_os.closerange = close, closerange
