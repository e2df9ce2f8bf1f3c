"""Exceptions that the program caught: what was raised where, and where it ended."""

from __future__ import annotations

from . import sites as kinds
from .safe_values import text_of

_MAX_STEPS = 200
_MAX_EVENTS = 2000
_MAX_MESSAGE = 200
MAX_CAUGHT = 2
_LEAST = 0.3
"""Suspicion of a handler below which it is not told: many programs catch what they expect."""
_FAR = 60
"""Distance from the failure beyond which a call is not looked at."""
_EXPECTED = ("StopIteration", "StopAsyncIteration", "GeneratorExit")
"""Exceptions by which iteration ends."""
_NAME = type.__dict__["__name__"].__get__
_ARGS = BaseException.__dict__["args"].__get__
_TRACEBACK = BaseException.__dict__["__traceback__"].__get__


class Caught:
    """Type, message and places of an exception. Not the exception itself, which would keep all frames alive."""

    __slots__ = ("message", "places", "type")

    def __init__(self, exc):
        self.type = _NAME(type(exc))
        args = _ARGS(exc)
        # Its text may be made by code of the program.
        first = args[0] if args else ""
        self.message = (
            first[:_MAX_MESSAGE] if type(first) is str else text_of(first) if type(first) is int else ""
        )
        self.places = []
        """(file, line), the outermost first."""
        step = _TRACEBACK(exc)
        while step is not None and len(self.places) < _MAX_STEPS:
            self.places.append((step.tb_frame.f_code.co_filename, step.tb_lineno))
            step = step.tb_next


def find(events, is_test_code, score_of_line, distances, has_file):
    """(event, file, line) of exceptions that were caught by calls on the way to the failure, the most suspect first.

    File and line are those of the innermost code of the repository that the exception has passed. `has_file`: true for
    files of the repository.
    """
    nearest, best = {}, {}
    for event, distance in distances.items():
        frame = events.frame_of[event]
        nearest[frame] = min(distance, nearest.get(frame, distance))
    for event in events.of_kind(kinds.CAUGHT)[-_MAX_EVENTS:]:
        site, distance = events.site(event), nearest.get(events.frame_of[event], _FAR + 1)
        if distance > _FAR or site.scope.parent is None or is_test_code(site.scope.filename):
            continue
        if events.value_of[event].type in _EXPECTED:
            continue
        inside = [place for place in events.value_of[event].places if has_file(place[0])]
        if inside and score_of_line(site) >= _LEAST:
            key = (-score_of_line(site), distance, -event, *inside[-1])
            best[site.number] = min(key, best.get(site.number, key))
    return [(-event, *place) for _, _, event, *place in sorted(best.values())[:MAX_CAUGHT]]
