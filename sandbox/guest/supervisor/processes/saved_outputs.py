"""Long texts of answers, saved for a while: the host shows only a part of them at first."""

from __future__ import annotations

import collections
import os
import sys
import threading

from ..errors import GuestError

MAX_KEPT = 4 << 20
"""Bytes of memory for all of them, and of their files; the newest is always saved."""
SHORT = 500
"""Length of a text that no host cuts."""


class SavedOutputs:
    """Last long texts, by numbers that are never reused. Those that commands shall read are in files of `folder`, too."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
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
                oldest, old = self._texts.popitem(last=False)
                self._size -= sys.getsizeof(old)
                self._remove(oldest)
            return self._last

    def write(self, number: int):
        """Write the text to a file for as long as it is saved. Returns its path; None if that is not possible."""
        with self._lock:
            text = self._texts.get(number)
            if text is None:
                return None
            try:
                os.makedirs(self._folder, 0o700, exist_ok=True)
                descriptor = os.open(
                    self._path(number), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600
                )
                with os.fdopen(
                    descriptor, "w", encoding="utf-8", errors="backslashreplace", newline=""
                ) as file:
                    file.write(text)
            except OSError:  # no space, or a program has changed the folder
                self._remove(number)
                return None
        return self._path(number)

    def _path(self, number: int) -> str:
        return os.path.join(self._folder, str(number))

    def _remove(self, number: int) -> None:
        try:
            os.unlink(self._path(number))
        except OSError:
            pass  # most have no file

    def read(self, number: int, since: int, size: int) -> dict:
        """{text, next, omitted, total} in characters. Raises GuestError (not_found)."""
        with self._lock:
            text = self._texts.get(number)
        if text is None:
            raise GuestError("not_found", "Output %d is not kept (any more)." % number)
        start = min(max(since, 0), len(text))
        piece = text[start : start + size]
        return {"text": piece, "next": start + len(piece), "omitted": 0, "total": len(text)}
