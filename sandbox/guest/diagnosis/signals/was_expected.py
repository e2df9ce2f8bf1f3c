"""Attributes and items that had the expected value before something else was set."""

from __future__ import annotations

from .. import sites as kinds
from ..events import is_atom, is_same
from ..safe_values import text_of
from .view import Signal

_NEAR = 5
"""Distance from the failure up to which an attribute is looked at."""
_MAX_READS = 200
_MAX_STORES = 1000
"""Stores of one attribute, the last ones."""


def find(view):
    """Yield a signal for each attribute or item read near the failure that had the expected value before it got the wrong one.

    Not for values of a constructor, counters, and what a test sets. Places: the store after that of the expected value, that one.
    Its name: the attribute, or the key of the item; its value: the expected one; its other: what was set then.
    """
    _, actual, expected = view.sides or (None, None, None)
    if expected is None or not is_atom(expected):
        return
    reads = [
        (distance, event)
        for event, distance in view.distances.items()
        if distance <= _NEAR and _is(view.events.site(event), "load")
    ]
    for distance, event in sorted(reads)[:_MAX_READS]:
        stores = _stores(view.events, event)
        right = [number for number, (_, value) in enumerate(stores[:-1]) if is_same(value, expected)]
        if not right or not is_same(stores[-1][1], actual):
            continue
        (store, _), (following, other) = stores[right[-1] : right[-1] + 2]
        scopes = [view.events.site(one).scope for one in (store, following)]
        if not any(view.is_test_code(one.filename) or one.name.endswith("__init__") for one in scopes):
            places = [view.place(following), view.place(store)]
            name = _name(view.events, event)
            yield Signal(
                "was_expected",
                1.0 / (1 + distance),
                places,
                name,
                text_of(expected),
                text_of(other),
                event=following,
            )


def _stores(events, read):
    """(event, value) of the stores of an attribute or item before it is read, in order; none for a counter."""
    target, site = id(events.value_of[read]), events.site(read)
    if site.kind == kinds.BASE:
        found = events.attribute_stores(target, site.name, -1)
    else:
        known, key = events.key_of(read)
        of_kind = [one for one in events.contents.get(target, ()) if events.site(one).kind == kinds.ITEM]
        found = [one for one in of_kind[-_MAX_STORES:] if known and events.key_of(one) == (True, key)]
    found = [one for one in found if one < read and _is(events.site(one), "store")][-_MAX_STORES:]
    stored = [(one, events.stored_value_event(one)) for one in found]
    if any(value is None or events.site(value).kind == kinds.AUGMENTED for _, value in stored):
        return []
    return [(one, events.value_of[value]) for one, value in stored]


def _name(events, read):
    site = events.site(read)
    return site.name if site.kind == kinds.BASE else "item %s" % text_of(events.key_of(read)[1])


def _is(site, use):
    """True for an attribute or item that is used so."""
    return site.kind in (kinds.BASE, kinds.ITEM) and site.extra[0] == use
