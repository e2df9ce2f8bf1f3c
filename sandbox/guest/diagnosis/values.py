"""First appearance of the wrong value."""

from __future__ import annotations

from . import sites as kinds
from .events import is_atom
from .slicing import arguments_of

_MIN_TEXT = 3
_MAX_COMPARED = 4000
_MAX_DEPTH = 5
_MAX_WANTED = 4
_FEW_CHANGES = 3
"""Changes that put in a value, up to which it is not one of a kind that is everywhere."""
_MAX_CHANGES = 50_000
BEFORE = (kinds.STORE, kinds.RETURN, kinds.YIELD, kinds.ARGUMENT, kinds.PARAMETER, kinds.CALL, kinds.ELEMENT)
"""Kinds of events at which a value may appear first."""


def wrong_parts(actual, expected, depth=0):
    """Distinctive atoms in `actual` that are not in `expected` at the same place."""
    if depth > _MAX_DEPTH:
        return
    kind = type(actual)
    if is_atom(actual):
        if not (type(expected) is kind and actual == expected):
            yield actual
    elif kind is not type(expected):
        return
    elif kind is list or kind is tuple:
        for index, item in enumerate(actual[:1000]):
            other = expected[index] if index < len(expected) else _NOTHING
            yield from wrong_parts(item, other, depth + 1)
    elif kind is dict:
        others = {key: item for key, item in list(expected.items())[:1000] if is_atom(key)}
        for key, item in list(actual.items())[:1000]:
            if is_atom(key):
                yield from wrong_parts(item, others.get(key, _NOTHING), depth + 1)


_NOTHING = object()


def is_distinctive(value):
    """True if a value is unlikely to appear by chance."""
    kind = type(value)
    if kind is str or kind is bytes:
        return len(value.strip()) >= _MIN_TEXT
    if kind is int:
        return not -5 <= value <= 256
    return kind is float or kind is complex


def first_appearances(events, wanted, is_test_code):
    """(event, value) of the first appearance outside of tests of each wanted value that has one."""
    found = [(_first(events, value, is_test_code), value) for value in wanted[:_MAX_WANTED]]
    return [(event, value) for event, value in found if event is not None]


def changes_with(events, wanted, is_test_code):
    """Changes of objects, outside of tests, that put in a wanted value: event -> value.

    None if there are many: it is a common value then.
    """
    keys = {(type(value), value) for value in wanted[:_MAX_WANTED]}
    changes = sorted(
        event
        for site in (events.executed_sites() if keys else ())
        if site.kind in (kinds.BASE, kinds.ITEM) and site.extra[0] in ("store", "mutate")
        if not is_test_code(site.scope.filename)
        for event in events.of_site(site.number)
    )
    found = {
        event: value
        for event in changes[-_MAX_CHANGES:]
        for value in _atoms_put_in(events, event)
        if (type(value), value) in keys
    }
    return found if len(found) <= _FEW_CHANGES else {}


def _atoms_put_in(events, change):
    """The plain values that a change puts into an object."""
    if events.site(change).extra[0] == "store":
        stored = events.stored_value_event(change)
        given = [] if stored is None else [stored]
    else:
        given = arguments_of(events, change)
    return [value for value in map(events.value_of.__getitem__, given) if is_atom(value)]


def name_at(site):
    """Name of what has a value at a site."""
    if site.kind in (kinds.STORE, kinds.PARAMETER, kinds.ARGUMENT):
        return site.name[:100]
    return {kinds.RETURN: "its result", kinds.CALL: f"the result of {site.name[:80]}"}.get(
        site.kind, site.kind
    )


def _first(events, wanted, is_test_code):
    """The first event with a value; of a text that nothing has as a whole, the first with a text that it is a part of."""
    kind, partly = type(wanted), None
    for event, value in enumerate(events.value_of):
        if type(value) is not kind or events.site(event).kind not in BEFORE:
            continue
        is_whole = value == wanted
        is_part = kind is str and partly is None and len(value) <= _MAX_COMPARED and wanted in value
        if (is_whole or is_part) and not is_test_code(events.site(event).scope.filename):
            if is_whole:
                return event
            partly = event
    return partly
