"""Locks by name, which take no room while nobody holds them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio


@dataclass
class _Lock:
    lock: anyio.Lock = field(default_factory=lambda: anyio.Lock(fast_acquire=True))
    users: int = 0


class Locks:
    """Any number of locks, each made when it is first asked for."""

    def __init__(self) -> None:
        self._locks: dict[str, _Lock] = {}

    @asynccontextmanager
    async def held(self, name: str) -> AsyncGenerator[None]:
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
