"""The backend of this server: opened at its first use, looked after until the server ends."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup, TaskStatus

from mcp_server.errors import contain
from mcp_server.sessions.slot import CLOSE_S
from sandbox.backend import Backend
from sandbox.errors import PdboxError
from sandbox.server_files import BEAT_S
from sandbox.spec import SandboxInfo

log = logging.getLogger(__name__)

SWEEP_EVERY_S = 3600.0
"""Interval at which sandboxes that other servers left behind are looked for."""


class LazyBackend:
    """A backend that is opened when somebody needs it. While it is open, what other servers left is removed."""

    def __init__(
        self,
        open_backend: Callable[[], AbstractAsyncContextManager[Backend]],
        user: str,
        tasks: TaskGroup,
        *,
        sweep_edits: Callable[[], Awaitable[None]],
        wait_until_gone: Callable[[], Awaitable[None]],
    ) -> None:
        """
        Args:
            user: of the server, whose sandboxes are listed and swept.
            sweep_edits: removes kept edits that nobody came back for.
            wait_until_gone: waits until no session needs the backend any more.
        """
        self._open = open_backend
        self._user = user
        self._tasks = tasks
        self._sweep_edits = sweep_edits
        self._wait_until_gone = wait_until_gone
        self._opening = anyio.Lock(fast_acquire=True)
        self._backend: Backend | None = None
        self._closed = anyio.Event()

    async def get(self) -> Backend:
        """The backend, opened at its first use."""
        if self._backend is not None:
            return self._backend
        async with self._opening:
            backend = self._backend or await self._tasks.start(self._serve)
            self._backend = backend
            return backend

    async def list_running(self) -> Sequence[SandboxInfo]:
        """List all sessions of this server's user, held by any server."""
        found = await (await self.get()).of_user(self._user)
        return [one for one in found if not one.pooled and one.left_s > 0]

    async def open_if_needed(self, has_leftovers: Callable[[], bool]) -> None:
        """Open it if other servers may have left sandboxes, for opening looks for them."""
        try:
            if await anyio.to_thread.run_sync(has_leftovers):
                await self.get()
        except PdboxError as exc:
            log.info("what earlier servers left was not looked for: %s", exc)

    async def aclose(self) -> None:
        """Close it, if it was opened."""
        if self._backend is not None:
            self._scope.cancel()
            await self._closed.wait()

    async def _serve(self, *, task_status: TaskStatus[Backend]) -> None:
        with anyio.CancelScope() as self._scope:
            async with self._open() as backend:
                task_status.started(backend)
                try:
                    await self._look_after(backend)
                finally:
                    # Whatever ends the server: sessions need their backend to be removed.
                    with anyio.move_on_after(CLOSE_S, shield=True):
                        await self._wait_until_gone()
        self._closed.set()

    async def _look_after(self, backend: Backend) -> None:
        """Remove what other servers left, now and at intervals, and show that this one lives."""
        while True:
            await contain("the sweep", self._sweep(backend))
            await contain("the sweep of edits", self._sweep_edits())
            until = anyio.current_time() + SWEEP_EVERY_S
            while (left_s := until - anyio.current_time()) > 0:
                await anyio.sleep(min(BEAT_S, left_s))
                await contain("the sign of life", backend.beat())

    async def _sweep(self, backend: Backend) -> None:
        try:
            await backend.sweep(self._user)
        except PdboxError as exc:
            log.warning("what earlier servers left was not looked for: %s %s", exc, exc.details)
