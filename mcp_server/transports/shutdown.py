"""End of the server's process for every transport: all sandboxes are removed, in time.

The SDK's `run()` dies on SIGTERM without cleaning up, hangs on SIGINT because a thread waits on stdin, and never ends while
a client keeps a stream open. Here the end of the work, SIGTERM, SIGINT and SIGHUP each end the process within 2 s.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import NoReturn

import anyio

from mcp_server.observability import tracing

log = logging.getLogger(__name__)

Close = Callable[[], Awaitable[None]]
"""Releases everything, within a bound of its own."""


async def run_until_shutdown(work: Callable[[anyio.Event], Awaitable[None]], close: Close) -> NoReturn:
    """Do `work` until it is done, sets its event, or a signal comes; then `close`, and end the process.

    Nothing else is waited for: no task, no thread and no `async with` around this can hold the process.
    """
    code = 0
    try:
        async with anyio.create_task_group() as tasks:
            # Windows has no signals to wait for: there, clients close our stdin, and Ctrl-C cancels this task.
            if sys.platform != "win32":
                tasks.start_soon(_end_on_signal, close)
            eof = anyio.Event()
            tasks.start_soon(_end_when, eof, close)
            await work(eof)
            tasks.cancel_scope.cancel()
    except* (BrokenPipeError, ConnectionError, anyio.BrokenResourceError):
        log.warning("the client closed our stdout")
        code = 1
    await _end(close, code)


async def _end_when(eof: anyio.Event, close: Close) -> None:
    await eof.wait()
    await _end(close, 0)


async def _end_on_signal(close: Close) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
        async for number in signals:
            await _end(close, 128 + number)


async def _end(close: Close, code: int) -> NoReturn:
    with anyio.CancelScope(shield=True):
        await close()
    # Not `sys.exit`: it would wait for threads, and one may be stuck on stdin or in an engine that doesn't answer.
    tracing.flush()
    sys.stderr.flush()
    os._exit(code)
