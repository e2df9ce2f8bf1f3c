"""Limits how much one sandbox may send: one event loop reads the streams of all of them."""

from __future__ import annotations

import time


class Allowance:
    """A token bucket: `burst` at once, and `per_s` a second."""

    def __init__(self, burst: float, per_s: float) -> None:
        self._burst = burst
        self._per_s = per_s
        self._left = burst
        self._updated = time.monotonic()

    def take(self, cost: float) -> float:
        """Take `cost`. Returns the seconds until it is covered; 0 if it is."""
        now = time.monotonic()
        self._left = min(self._burst, self._left + (now - self._updated) * self._per_s) - cost
        self._updated = now
        return max(0.0, -self._left / self._per_s)
