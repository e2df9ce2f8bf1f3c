"""Attaches the debugger to children of the program, forked or started.

A fork already contains the debugger and only needs its own channel. `hooks/_pdbox_spawn.py` directs started
Pythons to `hooks/_pdbox_attach.py`, which asks if the process shall be debugged. Without breakpoints it
directs them to `hooks/_pdbox_breakpoint.py`, which joins the debugger at a `breakpoint()`.
"""

from __future__ import annotations

import _socket
import bdb
import struct
import sys

from ...hooks._pdbox_spawn import DEBUG, JOIN, Watch
from ...protocol import attach_question
from ..isolation.pristine import os

_CONNECT_S = 2


def install(session, address, started=None):
    """Watch for children. `address` is the supervisor's unix socket for them, None if they can't reach it.

    `started` is an already installed `Watch`.
    """
    os.register_at_fork(after_in_child=lambda: _on_fork(session, address))
    if address is None:
        return
    _watch_spawns(session, address, started)


# -- forks


def _on_fork(session, address):
    if session.checkpoints.forking:
        return
    session.gate.forked()
    with session.gate:
        session.forked(None if address is None else lambda: _connect(address))
        if session.table:
            session.channel.ready()
        if session.is_fork_of_evaluation and address is not None:
            _trace_processes()


def _connect(address):
    """Connect a forked child to the supervisor. Returns the descriptor, None without a supervisor."""
    points = [point for point in bdb.Breakpoint.bpbynumber if point]
    fields = (attach_question.FORK, str(os.getpid()), attach_question.pack_counts(points))
    question = "\0".join(fields).encode("ascii")
    channel = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    channel.setblocking(True)  # the program may have set a default timeout
    try:
        # Never longer: the parent may wait for us.
        _send_timeout(channel, _CONNECT_S)
        channel.connect(address)
        channel.sendall(attach_question.pack(question))
        _send_timeout(channel, 0)
        return channel.detach()
    except OSError:
        channel.close()
        return None


def _send_timeout(channel, seconds):
    channel.setsockopt(_socket.SOL_SOCKET, _socket.SO_SNDTIMEO, struct.pack("ll", seconds, 0))


def _trace_processes():
    """Restore trace events for `multiprocessing` in a fork inside an evaluation, which has none."""
    module = sys.modules.get("multiprocessing.process")
    if module is None:
        return
    bootstrap = module.BaseProcess._bootstrap

    def _bootstrap(self, *args, **kwargs):
        return sys.call_tracing(lambda: bootstrap(self, *args, **kwargs), ())

    module.BaseProcess._bootstrap = _bootstrap


# -- other programs


def _watch_spawns(session, address, started):
    """Direct started programs to us.

    `started` is the `Watch` that already does so for `breakpoint()` only.
    """
    if started is None:
        Watch(address, lambda: _spawn_variable(session), session.notices.tell).install()
    else:
        started.way, started.tell = lambda: _spawn_variable(session), session.notices.tell


def _spawn_variable(session):
    if not session.channel.open:
        return None
    return DEBUG if any(bdb.Breakpoint.bpbynumber[1:]) else JOIN
