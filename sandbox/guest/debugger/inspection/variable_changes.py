"""Changes of variables between two stops in a frame."""

from __future__ import annotations

from .attributes import locals_of
from .fingerprints import difference, fingerprint
from .safe_repr import shorten_name, show
from .time_limit import Allowance

_NAMES = 64
_STOP_S = 0.3
"""Limit for all values of a stop. The remaining ones are shown by their type."""
_FRAMES = 64
_PLAIN = (str, bytes, int, float, complex, bool, type(None), tuple, frozenset)


class Memory:
    """Fingerprints of the locals of frames at their last stop. Keeps no value of the program alive."""

    def __init__(self):
        self._frames = {}

    def changes(self, frame):
        """Return [{name, kind, value, old, detail}] since the last stop in this frame.

        At the first all are new.
        """
        key = (id(frame), id(frame.f_code))
        before = self._frames.pop(key, None) or {}
        now, found = {}, []
        allowance = Allowance(_STOP_S)
        for name, value in locals_of(frame):
            try:
                mark = fingerprint(value)
            except BaseException:  # an object made to be hard to look at
                mark = (type(value).__name__, id(value))
            old = before.get(name)
            if old is not None and old[0] == mark:
                now[name] = old
                continue
            text = f"<{type(value).__name__}>" if allowance.is_over() else show(value)
            now[name] = (mark, text)
            kind = (
                "new"
                if old is None
                else "mutated"
                if old[0][:2] == mark[:2] and _is_mutable(value)
                else "changed"
            )
            detail = None
            if old is not None and kind == "mutated" and (text == old[1] or "…" in text):
                detail = None if allowance.is_over() else difference(value, old[0], mark)
            found.append(_change(name, kind, text, old[1] if old else None, detail))
        for name in before:
            if name not in now:
                found.append(_change(name, "gone", None, before[name][1]))
        self._frames[key] = now
        while len(self._frames) > _FRAMES:
            self._frames.pop(next(iter(self._frames)))
        return found[:_NAMES]


def _change(name, kind, value, old, detail=None):
    return {"name": shorten_name(name), "kind": kind, "value": value, "old": old, "detail": detail}


def _is_mutable(value):
    return type(value) not in _PLAIN
