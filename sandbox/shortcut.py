"""The socket of a guest in a container of this very machine, reached without the engine in between.

The engine and its shim hand every byte on, four processes waking one another for each call. Who may look into the container's
file system through `/proc` (root, as a rule) can connect to the socket itself. Everything in there belongs to untrusted code: no
link is followed, and nothing is sent or read before the kernel has said that the listener runs in that container.
"""

from __future__ import annotations

import os
import socket
import stat
import struct
from pathlib import Path, PurePosixPath

_CREDENTIALS = struct.Struct("3i")
"""`struct ucred`: process, user, group."""


def connected(container: str, pid: int, path: PurePosixPath) -> socket.socket | None:
    """A connection to the unix socket `path` in `container`, which has the process `pid`; None where that is not to be had.

    `container` is its full id, which the names of its control groups have.
    """
    if not hasattr(os, "O_PATH") or pid <= 0:
        return None
    try:
        return _connected(container, pid, path)
    except OSError:
        return None


def _connected(container: str, pid: int, path: PurePosixPath) -> socket.socket | None:
    fd = _opened(pid, path)
    try:
        if not stat.S_ISSOCK(os.fstat(fd).st_mode):
            return None
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            # Unix sockets connect at once or, with a full queue, never: nobody can make us wait.
            connection.setblocking(False)
            connection.connect(f"/proc/self/fd/{fd}")
            if _is_in(container, connection):
                return connection
        except BaseException:
            connection.close()
            raise
        connection.close()
        return None
    finally:
        os.close(fd)


def _opened(pid: int, path: PurePosixPath) -> int:
    """`path` as the process sees it, opened as a mere place; no part of it may be a link.

    Raises:
        OSError: it is not there, or we may not look.
    """
    fd = os.open(f"/proc/{pid}/root", os.O_PATH | os.O_CLOEXEC)
    for part in path.relative_to("/").parts:
        try:
            deeper = os.open(part, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=fd)
        finally:
            os.close(fd)
        fd = deeper
    return fd


def _is_in(container: str, connection: socket.socket) -> bool:
    """Whether the process that listens at the other end belongs to the container, as the kernel knows it."""
    size = _CREDENTIALS.size
    peer, _, _ = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return peer > 0 and container in Path(f"/proc/{peer}/cgroup").read_text()
