"""The first lines where a failing run parts from a passing one."""

from __future__ import annotations

from .. import sites as kinds
from ..job import guarded
from .alignment import Alignment, frames_of
from .origins import Origins

_MAX_PARTINGS = 3
_MAX_VALUES = 2
_MAX_CALLS = 4
_MAX_EXAMINED = 5000
"""Differing values whose origin is examined."""
_SHOWN = 70
_CONTEXT = 25


def compare(events, here, there, job, sources):
    """Compare the stream of the failing run (`events` are its values) with that of a passing one."""
    return _Comparison(events, here, there, job, sources).result()


class _Comparison:
    def __init__(self, events, here, there, job, sources):
        self._events, self._here, self._there = events, here, there
        self._job, self._sources = job, sources
        self._frames_here = frames_of(here, self._is_test)
        self._frames_there = frames_of(there, self._is_test)
        self._aligned = Alignment(here, there, self._frames_here, self._frames_there)
        self._pairs = self._aligned.pairs
        self._differing = {
            event for event, other in self._pairs.items() if here.texts[event] != there.texts[other]
        }

    def result(self):
        """The findings, without those of which the search has failed."""
        return {
            "functions": len(
                {frame.function for frame in self._frames_here if not frame.is_test}
                & {frame.function for frame in self._frames_there if not frame.is_test}
            ),
            "paths": self._paths() or [],
            "values": self._values() or [],
            "inputs": self._inputs() or [],
            "only_here": self._only(self._frames_here, self._frames_there, self._here) or [],
            "only_there": self._only(self._frames_there, self._frames_here, self._there) or [],
        }

    def _is_test(self, path):
        return self._job.is_test_code(self._job.root + path)

    # Paths

    @guarded
    def _paths(self):
        """Places where the paths part, in the order of the failing run; in tests if they part nowhere else."""
        ordered = sorted(self._aligned.partings, key=lambda one: (one.here.is_test, self._position(one)))
        # Frames that an exception leaves end early too: the innermost is told, if there is nothing else.
        ended = [one for one in ordered if one.after_here is None and self._condition(one) is None]
        left = set(map(id, ended))
        ordered = [one for one in ordered if id(one) not in left] or ended[-1:]
        ordered = [one for one in ordered if not self._says_nothing(one)]
        found: dict = {}
        for parting in ordered:
            if found and parting.here.is_test:
                break
            described = self._describe(parting)
            found.setdefault((described["path"], described["line"]), described)
            if len(found) == _MAX_PARTINGS:
                break
        return list(found.values())

    def _says_nothing(self, parting):
        """True for parts of one line without a condition, and for a generator that one run did not resume."""
        if self._condition(parting) is not None:
            return False
        if parting.after_here is None or parting.after_there is None:
            return parting.before is not None and self._here.place(parting.before[0]).kind == kinds.YIELD
        return self._line(self._here, parting.after_here) == self._line(self._there, parting.after_there)

    @staticmethod
    def _position(parting):
        return parting.before[0] if parting.before else parting.here.events[0]

    def _describe(self, parting):
        condition = self._condition(parting)
        at = condition or parting.before
        found = self._place(self._here, at[0] if at else parting.here.events[0])
        found["next_here"] = self._line(self._here, parting.after_here)
        found["next_there"] = self._line(self._there, parting.after_there)
        if condition is not None:
            found["name"] = self._here.place(condition[0]).name
            found["here"], found["there"] = _both(
                self._here.texts[condition[0]], self._there.texts[condition[1]]
            )
        return found

    def _condition(self, parting):
        """(event, event) of the condition or loop that decided; None if there is none, or it is alike."""
        if parting.before is None:
            return None
        last = self._here.place(parting.before[0])
        if last.kind == kinds.TEST and parting.before[0] in self._differing:
            return parting.before
        controls = [
            stream.place(event).control
            for stream, event in ((self._here, parting.after_here), (self._there, parting.after_there))
            if event is not None
        ]
        before = [event for event in parting.here.events if event <= parting.before[0]]
        for control in controls:
            for event in reversed(before):
                if control is not None and self._here.keys[event] == control and event in self._differing:
                    return event, self._pairs[event]
        return None

    @staticmethod
    def _line(stream, event):
        return 0 if event is None else stream.place(event).line

    # Values

    @guarded
    def _values(self):
        """The first values that differ although nothing that they were made of is seen to differ."""
        found: dict = {}
        origins = Origins(self._events, self._here, self._pairs, self._differing, self._is_test)
        for event in sorted(self._differing)[:_MAX_EXAMINED]:
            place = self._here.place(event)
            if self._is_test(place.path) or place.kind == kinds.PARAMETER or origins.has_reason(event):
                continue
            found.setdefault((place.path, place.line), self._value(event))
            if len(found) == _MAX_VALUES:
                break
        return list(found.values())

    @guarded
    def _inputs(self):
        """The first parameter that differs where a test calls the repository's code."""
        for event in sorted(self._differing):
            place = self._here.place(event)
            if place.kind == kinds.PARAMETER and not self._is_test(place.path):
                return [self._value(event)]
        return []

    def _value(self, event):
        found = self._place(self._here, event)
        found["name"] = self._here.place(event).name
        found["here"], found["there"] = _both(self._here.texts[event], self._there.texts[self._pairs[event]])
        return found

    # Calls

    @guarded
    def _only(self, frames, others, stream):
        """Functions that only one run called, without those that only they called."""
        known = {frame.function for frame in others}
        found: dict = {}
        for frame in frames:
            path, name = frame.function
            if frame.is_test or name == "<module>" or frame.function in known or frame.function in found:
                continue
            above = frame.parent
            if above is not None and not above.is_test and above.function not in known:
                continue
            found[frame.function] = self._call(frame, stream)
        return list(found.values())[:_MAX_CALLS]

    def _call(self, frame, stream):
        """A call: its function, and the line that made it."""
        found = {"called": self._place(stream, frame.events[0])}
        above = frame.parent
        if above is not None and not above.is_test:
            position = next(position for position, child in above.children if child is frame)
            near = above.events[min(position, len(above.events) - 1)]
            found.update(self._place(stream, near))
        return found

    def _place(self, stream, event):
        place = stream.place(event)
        return {
            "path": place.path,
            "line": place.line,
            "function": place.function,
            "text": self._sources.line(self._job.root + place.path, place.line),
        }


def _both(here, there):
    """Two texts, short enough and with the part where they differ."""
    same = 0
    while same < min(len(here), len(there)) and here[same] == there[same]:
        same += 1
    start = max(0, same - _CONTEXT) if max(len(here), len(there)) > _SHOWN else 0
    return tuple(
        ("…" if start else "") + text[start : start + _SHOWN] + ("…" if len(text) > start + _SHOWN else "")
        for text in (here, there)
    )
