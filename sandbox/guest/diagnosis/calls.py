"""Calls of the recording: their functions, callers, arguments and ends."""

from __future__ import annotations

from bisect import bisect_left
from itertools import islice

from . import sites as kinds
from .events import is_atom
from .safe_values import text_of

_MAX_DEPTH = 60
_MAX_PARAMETERS = 19
MAX_DIFFERING = 2


def describes(function):
    """True for a method by which a failure is described: it runs because a test has failed."""
    return function.rpartition(".")[2] in ("__repr__", "__str__", "__format__")


def constructs(function):
    """True for a method that makes a new object or sets its first values."""
    return function.rpartition(".")[2] in ("__init__", "__new__")


class Calls:
    """Frames of the recording."""

    def __init__(self, events):
        self._events = events
        self._last = {frame: event for event, frame in enumerate(events.frame_of)}
        self._stacks, self._receivers = {}, {}
        self._entered = sorted((event, frame) for frame, event in events.entered.items())

    def scope_of(self, frame):
        return self._events.site(self._events.entered[frame]).scope

    def between(self, first, last):
        """(first event, frame) of the calls that began between two events, in order."""
        start = bisect_left(self._entered, (first, -1))
        return self._entered[start : bisect_left(self._entered, (last, -1))]

    def receiver(self, frame):
        """The object of a method that was called: its first argument; None for a function without arguments."""
        if frame not in self._receivers:
            events = self._events
            first = next(events.parameters(frame), None)
            is_method = first is not None and events.site(first).name in ("self", "cls")
            self._receivers[frame] = events.value_of[first] if is_method else None
        return self._receivers[frame]

    def has_result(self, frame):
        """True if a call that has ended returned something."""
        last = self._last[frame]
        returned = self._events.site(last).kind in (kinds.RETURN, kinds.YIELD)
        return returned and self._events.value_of[last] is not None

    def last(self, frame):
        """The last event of a frame."""
        return self._last[frame]

    def has_ended(self, frame, event):
        """True if a frame has no events from `event` on."""
        return self._last[frame] < event

    def stack(self, frame):
        """A frame and its callers as far as they are recorded, the innermost first."""
        found = self._stacks.get(frame)
        if found is None:
            found, above = [], frame
            while above in self._events.entered and len(found) < _MAX_DEPTH and above not in found:
                found.append(above)
                caller = self._events.caller_event(above)
                if caller is None:
                    break
                above = self._events.frame_of[caller]
            self._stacks[frame] = found
        return found

    def find_frame(self, event, scope):
        """The innermost call of a function in which an event happened; None if there is none."""
        for frame in self.stack(self._events.frame_of[event]):
            if self.scope_of(frame) is scope:
                return frame
        return None

    def differing_arguments(self, first, second):
        """(name, value in the first call, value in the second) as texts, of arguments that are plain values and differ."""
        if first is None or second is None:
            return []
        here, there = self._arguments(first), self._arguments(second)
        return [
            (name, text_of(value), text_of(there[name]))
            for name, value in here.items()
            if name in there and (type(value) is not type(there[name]) or value != there[name])
        ][:MAX_DIFFERING]

    def _arguments(self, frame):
        """Name -> value of the arguments of a call that are plain values."""
        events = self._events
        return {
            events.site(event).name: events.value_of[event]
            for event in islice(events.parameters(frame), _MAX_PARAMETERS)
            if _is_plain(events.value_of[event])
        }


def _is_plain(value):
    return is_atom(value) or type(value) is tuple and len(value) < 10 and all(map(is_atom, value))
