"""Sandboxes that are started ahead of their sessions."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import anyio
from anyio.abc import TaskGroup

from mcp_server.errors import contain
from sandbox.backend import Backend, Sandbox
from sandbox.errors import PdboxError
from sandbox.opening.ready import Ready
from sandbox.spec import SandboxSpec
from sandbox.transport.connection import GuestConnection
from tools._tool import ignore_progress

log = logging.getLogger(__name__)

MIN_LIFETIME_S = 60.0
"""A ready sandbox that ends sooner is not replaced at once: the next one would not last either."""


@dataclass(frozen=True)
class _PooledSandbox(Ready):
    spec: SandboxSpec
    since: float


class Pool:
    """Keeps `size` sandboxes with the same spec ready. They have no owner and no session yet.

    The guest of a pooled sandbox has no expiry and ends by itself when this server ends.
    """

    def __init__(
        self,
        size: int,
        backend: Callable[[], Awaitable[Backend]],
        spec_for: Callable[[Backend], Awaitable[SandboxSpec]],
        tasks: TaskGroup,
    ) -> None:
        """
        Args:
            spec_for: gives the spec of the sandboxes.
            tasks: runs the readers of their connections, even after a sandbox was taken.
        """
        self._size = size
        self._backend = backend
        self._spec_for = spec_for
        self._tasks = tasks
        self._ready: list[_PooledSandbox] = []
        self._refill_wanted = anyio.Event()
        self._scope = anyio.CancelScope()
        self._emptied = anyio.Event()
        self._started = False
        self._making: SandboxSpec | None = None
        self._made = anyio.Event()
        self._awaited = False

    def start(self) -> None:
        """Begin to fill it, in the background. A second time does nothing."""
        if self._size and not self._started and not self._scope.cancel_called:
            self._started = True
            self._tasks.start_soon(self._run)

    async def take(self, spec: SandboxSpec) -> Ready | None:
        """Take a ready sandbox with this `spec`, or wait for one that is starting; None if there is none."""
        one = self._pick(spec)
        if one is None and self._making == spec and not self._awaited:
            self._awaited = True
            try:
                await self._made.wait()
            finally:
                self._awaited = False
            one = self._pick(spec)
        return one

    def _pick(self, spec: SandboxSpec) -> Ready | None:
        for one in self._ready:
            if one.spec == spec and one.connection.lost is None:
                self._ready.remove(one)
                return one
        return None

    def refill(self) -> None:
        """Replace the taken sandboxes, in the background."""
        self._refill_wanted.set()

    async def aclose(self) -> None:
        """Remove all that are ready."""
        self._scope.cancel()
        if self._started:
            await self._emptied.wait()

    async def _run(self) -> None:
        try:
            with self._scope:
                while True:
                    self._refill_wanted = anyio.Event()
                    await contain("the pool", self._fill())
                    await self._refill_wanted.wait()
        finally:
            with anyio.CancelScope(shield=True):
                await _close([one.sandbox for one in self._ready])
            self._emptied.set()

    async def _fill(self) -> None:
        try:
            backend = await self._backend()
            spec = await self._spec_for(backend)
            unusable = [one for one in self._ready if one.spec != spec or one.connection.lost is not None]
            self._ready = [one for one in self._ready if one not in unusable]
            await _close([one.sandbox for one in unusable])
            # One after another: clients that wait for a session need the engine more.
            while len(self._ready) < self._size:
                await self._add(backend, spec)
        except PdboxError as exc:
            log.warning("no sandbox could be made ready: %s %s", exc, exc.details)

    async def _add(self, backend: Backend, spec: SandboxSpec) -> None:
        self._making, self._made = spec, anyio.Event()
        try:
            self._ready.append(await self._start_one(backend, spec))
        finally:
            self._making = None
            self._made.set()

    async def _start_one(self, backend: Backend, spec: SandboxSpec) -> _PooledSandbox:
        sandbox = await backend.start(spec, ignore_progress)
        try:
            connection = await GuestConnection.open(await sandbox.connect(), self._tasks)
            await connection.request("load")
        except BaseException:
            await _close([sandbox])
            raise
        one = _PooledSandbox(sandbox, connection, spec, anyio.current_time())
        self._tasks.start_soon(self._watch, one)
        return one

    async def _watch(self, one: _PooledSandbox) -> None:
        await one.connection.ended.wait()
        if one in self._ready and anyio.current_time() - one.since > MIN_LIFETIME_S:
            self.refill()


async def _close(sandboxes: list[Sandbox]) -> None:
    with anyio.CancelScope(shield=True):
        async with anyio.create_task_group() as tasks:
            for sandbox in sandboxes:
                tasks.start_soon(sandbox.aclose)
