"""Tasks next to a block, and locks by name."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
from anyio.abc import TaskGroup

from sandbox.errors import PdboxError


@asynccontextmanager
async def run_alongside(work: Callable[[], Awaitable[None]]) -> AsyncGenerator[None]:
    """Run `work` in a task next to the body. Both are done when the block ends.

    An error in either cancels the other and is raised unwrapped. A task group would wrap it in an exception
    group.
    """
    failures: list[PdboxError] = []
    async with anyio.create_task_group() as tasks:

        async def run_guarded() -> None:
            try:
                await work()
            except PdboxError as exc:
                failures.append(exc)
                tasks.cancel_scope.cancel()

        tasks.start_soon(run_guarded)
        try:
            yield
        except PdboxError as exc:
            failures.append(exc)
            tasks.cancel_scope.cancel()
    if failures:
        raise failures[0]


@asynccontextmanager
async def open_task_group() -> AsyncGenerator[TaskGroup]:
    """Open a task group that is cancelled when the block ends. A `PdboxError` of the block is raised unwrapped."""
    failure: PdboxError | None = None
    async with anyio.create_task_group() as tasks:
        try:
            yield tasks
        except PdboxError as exc:
            failure = exc  # raised outside of the group, which would wrap it
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


@dataclass
class _Lock:
    lock: anyio.Lock = field(default_factory=lambda: anyio.Lock(fast_acquire=True))
    users: int = 0


class KeyedLocks:
    """Locks by key, each created on first use."""

    def __init__(self) -> None:
        self._locks: dict[str, _Lock] = {}

    @asynccontextmanager
    async def hold(self, name: str) -> AsyncGenerator[None]:
        """Hold the lock of that name."""
        entry = self._locks.setdefault(name, _Lock())
        entry.users += 1
        try:
            async with entry.lock:
                yield
        finally:
            entry.users -= 1
            if not entry.users:
                del self._locks[name]
