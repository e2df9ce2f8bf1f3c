"""Containers that are changed after a call was given them: what the call has kept of them changes, too."""

from __future__ import annotations

from bisect import bisect_right

from . import sites as kinds

_MAX_OF_LINE = 20
"""Calls at one line that are looked at."""
_NEAR = 60
"""Events after an argument in which the call begins: those of the arguments after it."""
_MAX_LENT = 60


def find(events, calls, is_test_code):
    """[site of an argument of such a call], of each line one; not of calls in test code, or of functions that are not recorded."""
    found, looked_at = {}, {}
    for event in events.of_kind(kinds.ARGUMENT):
        site = events.site(event)
        place = site.scope.filename, site.line
        changes = events.contents.get(id(events.value_of[event]))
        number = looked_at.get(place, 0)
        if not changes or place in found or number >= _MAX_OF_LINE or is_test_code(site.scope.filename):
            continue
        looked_at[place] = number + 1
        end = _end_of_call(events, calls, event)
        if end is not None and bisect_right(changes, end) < len(changes):
            found[place] = site
            if len(found) >= _MAX_LENT:
                break
    return list(found.values())


def _end_of_call(events, calls, event):
    """The last event of the function that was given an argument; None if it is not recorded."""
    for _, frame in calls.between(event, event + _NEAR):
        caller = events.caller_event(frame)
        is_called = caller is not None and events.frame_of[caller] == events.frame_of[event]
        if is_called and _takes(events, frame, events.value_of[event]):
            return calls.last(frame)
    return None


def _takes(events, frame, value):
    return any(events.value_of[one] is value for one in events.parameters(frame))
