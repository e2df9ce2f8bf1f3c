"""Objects that a test gives to a call, that were changed by it, and that the test uses again."""

from __future__ import annotations

from bisect import bisect_right

from .. import sites as kinds
from ..events import is_atom, is_container
from .view import Signal

_SUSPECT = 0.5
"""Suspicion of a change that no passing test relies on."""
_MAX_ARGUMENTS, _MAX_EVENTS = 500, 1000


def find(view):
    """Yield a signal for each variable of the failing test whose object was changed by a call that got it as an argument.

    Not by a method of the object that the test calls itself. Places: the change, the call, the next use.
    """
    events, frame = view.events, view.events.outermost
    if frame not in events.entered:
        return
    own = view.events_of(frame)
    names = {}
    for event in own:
        site, value = events.site(event), events.value_of[event]
        is_bound = (
            site.kind in (kinds.STORE, kinds.PARAMETER)
            and site.extra
            and site.extra[0] not in ("self", "cls")
        )
        if is_bound and not is_atom(value):
            names.setdefault(id(value), site.extra[0])
    given = [
        event
        for event in own
        if events.site(event).kind == kinds.ARGUMENT and id(events.value_of[event]) in names
    ]
    for event in given[:_MAX_ARGUMENTS]:
        value = events.value_of[event]
        following = own[bisect_right(own, event) :]
        end = next(
            (one for one in following if one > event + 1 and not _is_argument(events, one)), len(events)
        )
        again = next((one for one in following if one > end and events.value_of[one] is value), None)
        change = (
            None
            if again is None or not _computes(view, value, event, end)
            else _change(view, value, event, end)
        )
        if change is not None:
            rank = view.score_of_line(events.site(change))
            places = [view.place(change), view.place(event), view.place(again)]
            yield Signal("changed_input", rank, places, name=names[id(value)])


def _computes(view, value, after, before):
    """True if the call between two events has another result than nothing and the object: it is not there to change that."""
    frame = next((frame for _, frame in view.calls.between(after, before)), None)
    return (
        frame is not None
        and view.calls.has_result(frame)
        and view.events.value_of[view.calls.last(frame)] is not value
    )


def _is_argument(events, event):
    return events.site(event).kind in (kinds.ARGUMENT, kinds.BASE, kinds.ITEM, kinds.KEY)


def _change(view, value, after, before):
    """The first suspect change, by the product, of an object or of a container in its attributes; None if there is none."""
    events = view.events
    changes = [*events.all_changes(id(value)), *_changes_of_parts(events, value, after)]
    for change in sorted(changes):
        site = events.site(change)
        is_inside = after < change < before and not view.is_test_code(site.scope.filename)
        if is_inside and _is_rare(view, change):
            return change
    return None


def _is_rare(view, change):
    """True if few passing tests run a line on the way to a change: of a function that led there, before it."""
    events = view.events
    for frame in view.calls.stack(events.frame_of[change]):
        for event in view.events_of(frame)[:_MAX_EVENTS]:
            if event > change:
                break
            if view.score_of_line(events.site(event)) >= _SUSPECT:
                return True
    return False


def _changes_of_parts(events, value, before):
    """Events that change the containers which an object had in its attributes before an event."""
    found = []
    for event in events.all_changes(id(value)):
        if event > before:
            break
        site = events.site(event)
        stored = events.stored_value_event(event) if site.kind == kinds.BASE else None
        if stored is not None and is_container(events.value_of[stored]):
            found += events.contents.get(id(events.value_of[stored]), ())
    return found
