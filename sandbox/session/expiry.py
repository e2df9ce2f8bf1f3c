"""Idle and age deadlines of a session."""

from __future__ import annotations

import math
import time
from collections.abc import Generator
from contextlib import contextmanager

import anyio


class Expiry:
    """Idle and age deadlines of a session, measured by the host's clocks and not by the guest's."""

    def __init__(self, idle_s: float = math.inf, ends: float = math.inf) -> None:
        """`ends`: time of its maximum age, in seconds since the epoch."""
        self._idle_s = idle_s
        self._ends = ends
        self._users = 0
        self._used = time.monotonic()
        self._quiet: anyio.Event | None = None
        self.over = False
        """True once the session was found to be expired."""

    def touch(self, left_s: float = math.inf) -> None:
        """Record a use now, or one so long ago that `left_s` of the idle time are left."""
        self._used = time.monotonic() - max(0.0, self._idle_s - left_s)

    @contextmanager
    def running(self) -> Generator[None]:
        """Count the session as in use, and so not idle, during the body."""
        self._users += 1
        try:
            yield
        finally:
            self._users -= 1
            self._used = time.monotonic()
            if not self._users and self._quiet is not None:
                self._quiet.set()
                self._quiet = None

    async def quiet(self) -> None:
        """Wait until no call uses the session."""
        if self._users:
            self._quiet = self._quiet or anyio.Event()
            await self._quiet.wait()

    @property
    def is_in_use(self) -> bool:
        """True while a call uses the session."""
        return self._users > 0

    @property
    def idle_left_s(self) -> float:
        """Seconds until the idle limit, if the session is not used."""
        return self._idle_s if self._users else self._used + self._idle_s - time.monotonic()

    @property
    def age_left_s(self) -> float:
        """Seconds until its maximum age."""
        return self._ends - time.time()
