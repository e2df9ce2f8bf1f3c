"""All signals of a recording, the most suspect of each kind."""

from __future__ import annotations

from ..job import guarded
from . import (
    arguments,
    changed_input,
    derived,
    kept_otherwise,
    left_behind,
    missed_key,
    not_set,
    other_order,
    overwritten,
    returned_itself,
    stale,
    used_up,
    was_expected,
)
from .view import View

_KINDS = (
    (arguments.find_unused, 2),
    (arguments.find_not_handed_on, 1),
    (returned_itself.find, 1),
    (overwritten.find, 1),
    (was_expected.find, 1),
    (used_up.find, 1),
    (left_behind.find, 1),
    (missed_key.find, 1),
    (kept_otherwise.find, 1),
    (not_set.find, 1),
    (other_order.find, 1),
    (derived.find, 1),
    (stale.find, 1),
    (changed_input.find, 1),
)


def find(events, calls, sources, is_test_code, score_of_line, distances, sides):
    """Signals of all kinds, of each the most suspect ones. `sides`: (operator, actual, expected) of the failing comparison."""
    view, found = View(events, calls, sources, is_test_code, score_of_line, distances, sides), []
    for search, most in _KINDS:
        found += _without_repeats(_most_suspect(search, view) or [])[:most]
    unused = {one.name for one in found if one.kind == "unused"}  # by which it is not handed on either
    told = {place for one in found if one.kind != "changed_input" for place in one.places}
    return [
        one
        for one in found
        if not (one.kind == "not_handed_on" and one.name in unused)
        and not (one.kind == "changed_input" and one.places[0] in told)
    ]


@guarded
def _most_suspect(search, view):
    return sorted(search(view), key=lambda one: -one.rank)


def _without_repeats(signals):
    first = {}
    for one in signals:
        first.setdefault((one.name, *one.places[:1]), one)
    return list(first.values())
