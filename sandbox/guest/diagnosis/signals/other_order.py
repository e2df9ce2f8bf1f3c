"""Lines that sorted the items of a failing comparison, if only their order is wrong."""

from __future__ import annotations

import collections

from ..events import is_atom
from .view import Signal

_MAX_ITEMS = 2000
_MAX_LISTS = 100
_SORTING = ("sorted", "sort")
_FEW = 2
"""Places of sorting that are told."""


def find(view):
    """Yield a signal for the places that sorted last, if the compared values have the same items in another order.

    Places: those that sorted most of the items first, then the last ones. Its name: what kind of items.
    """
    compared = None if view.sides is None else _same_items(*view.sides[1:])
    if compared is None:
        return
    what, items = compared
    found = [
        (max(_count(view.events, site, items) for site in ran), _last(view.events, ran), place)
        for place, ran in _sorts(view)
    ]
    places = [place for *_, place in sorted(found, reverse=True)[:_FEW]]
    if places:
        yield Signal("other_order", 1.0, places, what)


def _sorts(view):
    """Yield (place, its sites that ran) of each line that sorts."""
    for function in view.functions:
        calls = view.calls_in(function.node)
        for line in {one.lineno for name in _SORTING for one in calls.get(name, ())}:
            sites = [site for site in view.sites_of(function.scope) if site.line == line]
            ran = [site for site in sites if view.events.of_site(site.number)]
            if ran:
                yield (function.scope.filename, line, function.scope.name), ran


def _last(events, sites):
    return max(events.of_site(site.number)[-1] for site in sites)


def _same_items(actual, expected):
    """The kind and the set of the items of two sequences of plain values, or texts of several lines, that differ in order alone."""
    what = "items"
    if type(actual) is str and type(expected) is str:
        actual, expected, what = actual.splitlines(), expected.splitlines(), "lines"
    if type(actual) not in (list, tuple) or type(expected) not in (list, tuple):
        return None
    if len(actual) != len(expected) or not 2 <= len(actual) <= _MAX_ITEMS:
        return None
    if not all(map(is_atom, actual)) or not all(map(is_atom, expected)):
        return None
    if list(actual) == list(expected) or collections.Counter(actual) != collections.Counter(expected):
        return None
    return what, frozenset(actual)


def _count(events, site, items):
    """Number of the items in the lists of a site, at most."""
    lists = (events.value_of[event] for event in events.of_site(site.number)[-_MAX_LISTS:])
    return max((len(items.intersection(_atoms(value))) for value in lists), default=0)


def _atoms(value):
    return [item for item in value[:_MAX_ITEMS] if is_atom(item)] if type(value) is list else []
