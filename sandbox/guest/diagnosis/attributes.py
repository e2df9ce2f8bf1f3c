"""Writes of the attributes that the functions of a failure have read."""

from __future__ import annotations

from . import sites as kinds
from .calls import constructs

_MAX_READ = 10
_MAX_CONSTRUCTORS = 5
"""Constructors that have called each other."""


def find(events, frames, is_test_code):
    """(event of a read, event of the write, event of the line that made the object if its constructor wrote; else None).

    The last writes, but for those by tests, by constructors that a test calls, and by one of the `frames`; of the first of
    these first.
    """
    order, reads, found = {frame: index for index, frame in enumerate(frames)}, {}, {}
    for event, frame in enumerate(events.frame_of):
        site = events.site(event) if frame in order else None
        if site is not None and site.kind == kinds.BASE and site.extra[0] == "load":
            if not is_test_code(site.scope.filename):
                reads[order[frame], site.name] = event
    for _, event in sorted(reads.items()):
        write = events.attribute_writer(events.value_of[event], events.site(event).name, event)
        if write is None or events.site(write).extra[0] != "store" or events.frame_of[write] in order:
            continue
        maker = _maker(events, write)
        by = [events.site(one).scope.filename for one in (write, maker) if one is not None]
        if not any(map(is_test_code, by)):
            found.setdefault((events.site_of[write], events.attribute_set(write)), (event, write, maker))
    return list(found.values())[:_MAX_READ]


def written(events, line, is_test_code):
    """[(name of an attribute, event of its last write)] of those that events of a line read, but for writes by constructors and tests."""
    found = {}
    for event in line:
        site, target = events.site(event), events.value_of[event]
        if site.kind != kinds.BASE or site.extra[0] != "load":
            continue
        write = events.attribute_writer(target, site.name, event)
        by = None if write is None else events.site(write)
        if by is None or by.extra[0] != "store" or constructs(by.scope.name):
            continue
        if not is_test_code(by.scope.filename):
            found.setdefault((id(target), site.name), (site.name, write))
    return list(found.values())


def _maker(events, write):
    """The event in the function that made the object whose constructor is at `write`; None for another write."""
    event, maker = write, None
    for _ in range(_MAX_CONSTRUCTORS):
        if event is None or not constructs(events.site(event).scope.name):
            break
        event = maker = events.caller_event(events.frame_of[event])
    return maker
