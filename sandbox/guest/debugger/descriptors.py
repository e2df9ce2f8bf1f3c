"""Our file descriptors outlive a program that closes all that it doesn't know, as daemons do.

`os.close` and `os.closerange` pass them over. Who closes them by C code is without a debugger; the supervisor says so.
"""

from __future__ import annotations

import errno
import os
import sys

from .frames import ours

_held = set()


def hold(fd):
    """Keep `fd` open until we close it ourselves."""
    _held.add(fd)


def protect():
    """Take the program's ways to close descriptors over. It sees the same effects, and a function where a builtin was."""
    stock_close, stock_closerange = os.close, os.closerange

    def close(fd):
        """Close a file descriptor."""
        if fd in _held:
            if not ours(sys._getframe(1)):
                raise OSError(errno.EBADF, os.strerror(errno.EBADF))
            _held.discard(fd)
        stock_close(fd)

    def closerange(fd_low, fd_high):
        """Closes all file descriptors in [fd_low, fd_high), ignoring errors."""
        for fd in sorted(_held):
            if fd_low <= fd < fd_high:
                stock_closerange(fd_low, fd)
                fd_low = fd + 1
        stock_closerange(fd_low, fd_high)

    os.close, os.closerange = close, closerange
