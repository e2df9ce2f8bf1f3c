"""Attributes and items that had the expected value before something else was set."""

from __future__ import annotations

from .. import sites as kinds
from ..events import is_atom, is_same
from ..safe_values import text_of
from ..values import is_distinctive, wrong_parts
from .view import Signal

_NEAR = 5
"""Distance from the failure up to which an attribute is looked at."""
_MAX_READS = 200
_MAX_STORES = 1000
"""Stores of one attribute, the last ones."""
_MAX_ALL = 50_000
_MAX_PARTS = 50


def find(view):
    """Yield a signal for each attribute or item that had the expected value before it got the wrong one.

    Those read near the failure; if the parts of two containers differ, any that had a distinctive one of them. Not for
    values of a constructor, counters, and what a test sets. Places: the store after that of the expected value, that
    one. Its name: the attribute, or the key of the item; its value: the expected one; its other: what was set then.
    """
    _, actual, expected = view.sides or (None, None, None)
    if is_atom(expected):
        found = _of_reads(view, actual, expected) if expected is not None else ()
    else:
        found = _of_parts(view, actual, expected)
    for rank, name, (store, value), (following, other) in found:
        scopes = [view.events.site(one).scope for one in (store, following)]
        if not any(view.is_test_code(one.filename) or one.name.endswith("__init__") for one in scopes):
            places = [view.place(following), view.place(store)]
            yield Signal("was_expected", rank, places, name, text_of(value), text_of(other), event=following)


def _of_reads(view, actual, expected):
    """Yield (rank, name, store, store after it) of what is read near the failure; a store as (event, value)."""
    events = view.events
    reads = [
        (distance, event)
        for event, distance in view.distances.items()
        if distance <= _NEAR and _is(events.site(event), "load")
    ]
    for distance, event in sorted(reads)[:_MAX_READS]:
        site = events.site(event)
        if site.kind == kinds.BASE:
            found, name = events.attribute_stores(id(events.value_of[event]), site.name, -1), site.name
        else:
            known, key = events.key_of(event)
            changes = events.contents.get(id(events.value_of[event]), ())[-_MAX_STORES:] if known else ()
            found, name = _of_key(events, changes, key), "item " + text_of(key)
        stores = _with_values(events, [one for one in found if one < event])
        yield from _right_then_wrong(stores, [expected], [actual], 1.0 / (1 + distance), name)


def _of_parts(view, actual, expected):
    """Yield the same of all stores, for parts of two values by which they differ."""
    right = [one for one in wrong_parts(expected, actual) if is_distinctive(one)][:_MAX_PARTS]
    wrong = list(wrong_parts(actual, expected))[:_MAX_PARTS]
    if not right or not wrong:
        return
    events, found = view.events, {}
    for event in events.all_stores()[-_MAX_ALL:]:
        site = events.site(event)
        known, key = events.attribute_at(event)
        is_item = site.kind == kinds.ITEM
        if known:
            found.setdefault((is_item, id(events.value_of[event]), type(key), key), []).append(event)
    for (is_item, _, _, key), several in found.items():
        name = "item " + text_of(key) if is_item else key
        if len(several) > 1:
            yield from _right_then_wrong(_with_values(events, several), right, wrong, 0.1, name)


def _right_then_wrong(stores, right, wrong, rank, name):
    """Yield what `_of_reads` does if the last store is of a wrong value, and an earlier one of a right one."""
    if len(stores) < 2 or not any(is_same(stores[-1][1], one) for one in wrong):
        return
    found = [
        number for number, (_, value) in enumerate(stores[:-1]) if any(is_same(value, one) for one in right)
    ]
    if found:
        yield rank, name, stores[found[-1]], stores[found[-1] + 1]


def _with_values(events, stores):
    """(event, value) of stores, in order; none for a counter."""
    stores = [one for one in stores if _is(events.site(one), "store")][-_MAX_STORES:]
    stored = [(one, events.stored_value_event(one)) for one in stores]
    if any(value is None or events.site(value).kind == kinds.AUGMENTED for _, value in stored):
        return []
    return [(one, events.value_of[value]) for one, value in stored]


def _of_key(events, changes, key):
    return [
        one for one in changes if events.site(one).kind == kinds.ITEM and events.key_of(one) == (True, key)
    ]


def _is(site, use):
    """True for an attribute or item that is used so."""
    return site.kind in kinds.SETTING and site.extra[0] == use
