"""Queue of calls that wait for a place: sessions are limited in number, and a new one may have to wait for another's end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import anyio

from sandbox.errors import Conflict, PdboxError
from tools._tool import Report

REFRESH_S = 2.0
"""Interval in which sessions of other servers are looked at: nobody tells when they end."""


@dataclass(frozen=True)
class Refusal:
    """Reason why there is no place now."""

    error: Conflict
    is_own: bool = False
    """True if the caller has as many sessions as it may have: it does not wait for others, and others not for it."""


@dataclass(eq=False)
class _Waiter:
    owner: str
    take: Callable[[], Refusal | None]
    report: Report
    refusal: Refusal
    done: anyio.Event = field(default_factory=anyio.Event)
    failure: PdboxError | None = None


class PlaceQueue:
    """Gives places in the order in which they were asked for."""

    def __init__(self) -> None:
        self._waiters: list[_Waiter] = []

    async def take(
        self,
        owner: str,
        take: Callable[[], Refusal | None],
        *,
        within_s: float,
        report: Report,
        refresh: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Take a place, or wait for one.

        Args:
            take: takes a place, or returns why there is none.
            refresh: asks what may have changed without `wake`.

        Raises:
            Conflict: there was none within that time.
        """
        refusal = take() if within_s <= 0 else Refusal(Conflict("Others wait for a place."))
        if refusal is None:
            return
        if within_s <= 0:
            raise refusal.error
        waiter = _Waiter(owner, take, report, refusal)
        self._waiters.append(waiter)
        try:
            self.wake()
            with anyio.move_on_after(within_s):
                await self._wait(waiter, refresh)
        finally:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
        if waiter.failure is not None:
            raise waiter.failure
        if not waiter.done.is_set():
            error = waiter.refusal.error
            raise Conflict(f"{error.message} None ended within {within_s:g} s.", error.hint)

    def wake(self) -> None:
        """Give the places that are free, in order; a caller that may have no more is passed over."""
        waiting: list[_Waiter] = []
        for waiter in self._waiters:
            refusal = waiter.take()
            if refusal is None:
                waiter.done.set()
                continue
            waiter.refusal = refusal
            waiting.append(waiter)
        self._waiters = waiting
        for waiter in waiting:
            open_ones = waiter.refusal.error.message
            waiter.report(f"waiting for a place, number {self._position(waiter)} in the queue: {open_ones}")

    def refuse_all(self, failure: PdboxError) -> None:
        """Have all calls that wait fail."""
        for waiter in self._waiters:
            waiter.failure = failure
            waiter.done.set()
        self._waiters = []

    def _position(self, waiter: _Waiter) -> int:
        """Count the calls that are served before this one if all places are equal, and itself."""
        ahead = self._waiters[: self._waiters.index(waiter)]
        if waiter.refusal.is_own:
            return 1 + sum(one.owner == waiter.owner for one in ahead)
        return 1 + sum(not one.refusal.is_own for one in ahead)

    async def _wait(self, waiter: _Waiter, refresh: Callable[[], Awaitable[None]] | None) -> None:
        while not waiter.done.is_set():
            with anyio.move_on_after(REFRESH_S if refresh else None):
                await waiter.done.wait()
                return
            if refresh is not None:
                await refresh()
                self.wake()
