"""Serving over stdin and stdout, with a lifecycle of our own.

The SDK's `run()` dies on SIGTERM without cleaning up, and hangs on SIGINT because a thread waits on stdin. Here EOF, SIGTERM,
SIGINT and SIGHUP each end the process within 2 s, with every sandbox removed.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from typing import NoReturn

import anyio

from mcp_server.server import build_server
from mcp_server.sessions import SessionStore

log = logging.getLogger(__name__)


async def serve(store: SessionStore) -> NoReturn:
    """Serve one client until it closes our stdin or a signal comes, then end the process."""
    code = 0
    async with store:
        try:
            async with anyio.create_task_group() as tasks:
                if sys.platform != "win32":  # there, clients only close stdin
                    tasks.start_soon(_end_on_signal, store)
                await build_server(store).run_stdio_async()
                tasks.cancel_scope.cancel()
        except* (BrokenPipeError, ConnectionError):
            log.info("the client closed our stdout")
            code = 1
    _leave(code)


async def _end_on_signal(store: SessionStore) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
        async for number in signals:
            with anyio.CancelScope(shield=True):
                await store.aclose()
            _leave(128 + number)


def _leave(code: int) -> NoReturn:
    # Not `sys.exit`: it would wait for threads, and one may be stuck on stdin or in an engine that doesn't answer.
    sys.stderr.flush()
    os._exit(code)
