"""Aligns the events of two runs: frames by function and order of calls, events within frames by their sites."""

from __future__ import annotations

import bisect

from .. import sites as kinds

_WINDOW = 600
_MAX_DEPTH = 6
_ENDED = (kinds.RETURN, kinds.YIELD)


class Frame:
    """One call: its own events, and the calls that it made with the number of own events before them."""

    __slots__ = ("children", "events", "function", "is_test", "parent")

    def __init__(self, function, parent, is_test):
        self.function, self.parent, self.is_test = function, parent, is_test
        self.events, self.children = [], []


class Parting:
    """A place in two aligned frames after which they run different lines."""

    def __init__(self, here, there, before, after_here, after_there):
        self.here, self.there, self.before = here, there, before
        """`before`: (event, event) that both ran last; None at the beginning of a frame."""
        self.after_here, self.after_there = after_here, after_there
        """The next event of each; None at the end of a frame."""


def frames_of(stream, is_test_code):
    """Frames in the order of their beginning. (path, function) names a function."""
    frames: dict = {}
    for event, number in enumerate(stream.frames):
        if not number:  # began before the recording
            continue
        frame = frames.get(number)
        if frame is None:
            place = stream.place(event)
            parent = _caller(frames, stream, event - 1) if event else None
            frame = frames[number] = Frame((place.path, place.function), parent, is_test_code(place.path))
            if parent is not None:
                parent.children.append((len(parent.events), frame))
        frame.events.append(event)
    return list(frames.values())


def _caller(frames, stream, before):
    """The frame that runs after an event: its own, or the one that it returned to."""
    frame = frames.get(stream.frames[before])
    if frame is not None and frame.parent is not None and stream.place(before).kind in _ENDED:
        return frame.parent
    return frame


class Alignment:
    """`pairs`: event here -> event there; `partings` in no order; `matched`: number of frames."""

    def __init__(self, here, there, frames_here, frames_there):
        self._here, self._there = here, there
        self.pairs, self.partings, self.matched = {}, [], 0
        self._waiting = []
        self._match_roots(
            [frame for frame in frames_here if frame.parent is None],
            [frame for frame in frames_there if frame.parent is None],
        )
        while self._waiting:
            self._align(*self._waiting.pop())

    def _match_roots(self, here, there):
        """Match what the tests call; two different tests are no functions that could be matched."""
        for _ in range(_MAX_DEPTH):
            left_here, left_there = self._match([(0, one) for one in here], [(0, one) for one in there])
            here = [child for one in left_here if one.is_test for _, child in one.children]
            there = [child for one in left_there if one.is_test for _, child in one.children]

    def _match(self, here, there):
        """Match (region, frame) by region and function, in their order. Returns frames without a match."""
        groups: dict = {}
        for region, frame in there:
            groups.setdefault((region, frame.function), []).append(frame)
        groups = {key: found[::-1] for key, found in groups.items()}
        left = []
        for region, frame in here:
            found = groups.get((region, frame.function))
            if found:
                self._waiting.append((frame, found.pop()))
            else:
                left.append(frame)
        return left, [frame for found in groups.values() for frame in reversed(found)]

    def _align(self, here, there):
        self.matched += 1
        keys_here = [self._here.keys[event] for event in here.events]
        keys_there = [self._there.keys[event] for event in there.events]
        paired = list(self._walk(here, there, keys_here, keys_there))
        for first, second in paired:
            self.pairs[here.events[first]] = there.events[second]
        left_here, left_there = self._match(
            _by_region(here, [first for first, _ in paired]),
            _by_region(there, [second for _, second in paired]),
        )
        self._match([(0, one) for one in left_here], [(0, one) for one in left_there])

    def _walk(self, here, there, keys_here, keys_there):
        """Yield (index, index) of the same events; note where the paths part."""
        first = second = 0
        last = None
        while first < len(keys_here) and second < len(keys_there):
            if keys_here[first] == keys_there[second]:
                yield first, second
                last = (here.events[first], there.events[second])
                first, second = first + 1, second + 1
                continue
            self._part(here, there, first, second, last)
            skipped = _meet_again(keys_here, first, keys_there, second)
            if skipped is None:
                return
            first, second = first + skipped[0], second + skipped[1]
        if first < len(keys_here) or second < len(keys_there):
            self._part(here, there, first, second, last)

    def _part(self, here, there, first, second, before):
        after_here = here.events[first] if first < len(here.events) else None
        after_there = there.events[second] if second < len(there.events) else None
        self.partings.append(Parting(here, there, before, after_here, after_there))


def _by_region(frame, paired):
    """(number of paired events before it, child) of each call that a frame made."""
    return [(bisect.bisect_left(paired, position), child) for position, child in frame.children]


def _meet_again(here, first, there, second):
    """Numbers of events of each to skip until both run the same line again; None if they don't."""
    places: dict = {}
    for skipped, key in enumerate(there[second : second + _WINDOW]):
        places.setdefault(key, skipped)
    best = None
    for skipped, key in enumerate(here[first : first + _WINDOW]):
        if best is not None and skipped >= sum(best):
            break
        other = places.get(key)
        if other is not None and (best is None or skipped + other < sum(best)):
            best = (skipped, other)
    return best
