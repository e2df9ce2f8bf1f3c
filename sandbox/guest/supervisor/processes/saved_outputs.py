"""Long texts of answers, saved for a while: the host shows only a part of them at first."""

from __future__ import annotations

import collections
import sys
import threading

from ..errors import GuestError

MAX_KEPT = 4 << 20
"""Bytes of memory for all of them; the newest is always saved."""
SHORT = 500
"""Length of a text that no host cuts."""


class SavedOutputs:
    """Last long texts, by numbers that are never reused."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._texts: collections.OrderedDict = collections.OrderedDict()
        self._size = 0
        self._last = 0

    def keep(self, text: str):
        """Save `text` and return its number; None for a short one, which is not saved."""
        if len(text) <= SHORT:
            return None
        with self._lock:
            self._last += 1
            self._texts[self._last] = text
            self._size += sys.getsizeof(text)
            while self._size > MAX_KEPT and len(self._texts) > 1:
                self._size -= sys.getsizeof(self._texts.popitem(last=False)[1])
            return self._last

    def read(self, number: int, since: int, size: int) -> dict:
        """{text, next, omitted, total} in characters. Raises GuestError (not_found)."""
        with self._lock:
            text = self._texts.get(number)
        if text is None:
            raise GuestError("not_found", "Output %d is not kept (any more)." % number)
        start = min(max(since, 0), len(text))
        piece = text[start : start + size]
        return {"text": piece, "next": start + len(piece), "omitted": 0, "total": len(text)}
