"""Signals of a diagnosis as text, a line for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sandbox.session.diagnosis import Place, Signal
from tools._places import format_place, shorten, shorten_value

_MAX_TEXT = 60
HINT, OVERWRITTEN = "other_order", "was_expected"
"""Kinds of a signal that tells where to look, but not what is wrong; and of one beside which a shared object tells why."""
COMMON = "unused", "stale"
"""Kinds of signals that programs without a fault have, too."""
WEAK = (HINT, *COMMON)
"""Kinds that are no finding by themselves."""


def signal_lines(found: Sequence[Signal]) -> list[str]:
    """Format signals; those of an unknown kind, of another build's guest, and without their places are left out."""
    return [
        _LINES[one.kind](one)
        for one in found
        if one.kind in _LINES and len(one.places) >= _PLACES.get(one.kind, 2)
    ]


def _unused(one: Signal) -> str:
    function, call = one.places[:2]
    given = f"{one.name}={shorten_value(one.value, _MAX_TEXT)}"
    return f"argument never used: {given} in {format_place(function)}, passed at {format_place(call)}"


def _not_handed_on(one: Signal) -> str:
    function, call = one.places[:2]
    return (
        f"{one.name}={shorten_value(one.other, _MAX_TEXT)} by default in {format_place(function)}; its caller {format_place(call)} "
        f"has {one.holder}={shorten_value(one.value, _MAX_TEXT)} (not handed on): {shorten(call.text, _MAX_TEXT)}"
    )


def _returned(one: Signal) -> str:
    returned, called, changed = one.places[:3]
    own = f"its own {one.value}" if one.value else "the object itself"
    return (
        f"{returned.function}() returned {own} at {format_place(returned)}: {shorten(called.text, _MAX_TEXT)}; "
        f"changed at {format_place(changed)} as {one.name}: {shorten(changed.text, _MAX_TEXT)}"
    )


def _overwritten(one: Signal) -> str:
    first, again = one.places[:2]
    return (
        f"{one.name} set at {format_place(first)} by pass {shorten_value(one.value, _MAX_TEXT)} "
        f"and again{'' if again.line == first.line else f' at :{again.line}'} by pass {shorten_value(one.other, _MAX_TEXT)}"
    )


def _was_expected(one: Signal) -> str:
    following, store = one.places[:2]
    return (
        f"{one.name} had the expected {shorten_value(one.value, _MAX_TEXT)}, set at {format_place(store)}, until "
        f"{shorten_value(one.other, _MAX_TEXT)} was set at {format_place(following)}: {shorten(following.text, _MAX_TEXT)}"
    )


def _used_up(one: Signal) -> str:
    made, used, again = one.places[:3]
    return (
        f"the {one.value} {one.name} of {format_place(made)} was {one.other} at {_at(used, made)}: {shorten(used.text, _MAX_TEXT)}; "
        f"read again at {_at(again, made)}: {shorten(again.text, _MAX_TEXT)}"
    )


def _left_behind(one: Signal) -> str:
    removal, addition = one.places[:2]
    return (
        f"{shorten_value(one.value, _MAX_TEXT)} was removed from {one.other} at {format_place(removal)}, but not from {one.name}, "
        f"where it had been put at {format_place(addition)}"
    )


def _missed_key(one: Signal) -> str:
    asked, *put_in = one.places[:2]
    where = "".join(f", put in at {format_place(each)}" for each in put_in)
    return (
        f"{shorten_value(one.value, _MAX_TEXT)} was not found in {shorten(one.name, _MAX_TEXT)} at {format_place(asked)}: "
        f"{shorten(asked.text, _MAX_TEXT)}; it holds {shorten_value(one.other, _MAX_TEXT)}{where}"
    )


def _kept_otherwise(one: Signal) -> str:
    given, kept = one.places[:2]
    return (
        f"{one.name}={one.value} was given at {format_place(given)}, but {one.holder} = {one.other} "
        f"at {format_place(kept)}: {shorten(kept.text, _MAX_TEXT)}"
    )


def _not_set(one: Signal) -> str:
    read, skipped, *written = one.places[:3]
    since = "".join(f" since {format_place(each)}" for each in written)
    return (
        f"{one.name}, read at {format_place(read)}, is {shorten_value(one.value, _MAX_TEXT)}{since}; {format_place(skipped)} "
        f"ran, but not its line that sets it: {shorten(skipped.text, _MAX_TEXT)}"
    )


def _other_order(one: Signal) -> str:
    sorts = "; ".join(f"{format_place(each)}: {shorten(each.text, _MAX_TEXT)}" for each in one.places[:2])
    return f"the same {one.name} in another order; sorted at {sorts}"


def _changed_input(one: Signal) -> str:
    change, given, again = one.places[:3]
    return (
        f"{one.name}, given at :{given.line}, was changed at {format_place(change)}: {shorten(change.text, _MAX_TEXT)}; "
        f"used again at :{again.line}"
    )


def _stale(one: Signal) -> str:
    kept, change, read = one.places[:3]
    return (
        f"{one.name}, computed at {format_place(kept)}: {shorten(kept.text, _MAX_TEXT)}, was read again at "
        f"{_at(read, kept)} as it was, after {format_place(change)} had changed what it comes from: {shorten(change.text, _MAX_TEXT)}"
    )


def _derived(one: Signal) -> str:
    computed, change, read = one.places[:3]
    return (
        f".{one.name}={shorten_value(one.value, _MAX_TEXT)}, computed at {format_place(computed)}: {shorten(computed.text, _MAX_TEXT)}, "
        f"was not computed again when .{one.other} was set at {format_place(change)}: {shorten(change.text, _MAX_TEXT)}; "
        f"read at {_at(read, change)}"
    )


_LINES: dict[str, Callable[[Signal], str]] = {
    "unused": _unused,
    "not_handed_on": _not_handed_on,
    "returned": _returned,
    "overwritten": _overwritten,
    OVERWRITTEN: _was_expected,
    "used_up": _used_up,
    "left_behind": _left_behind,
    "missed_key": _missed_key,
    "kept_otherwise": _kept_otherwise,
    "not_set": _not_set,
    HINT: _other_order,
    "stale": _stale,
    "derived": _derived,
    "changed_input": _changed_input,
}


_PLACES = {
    "returned": 3,
    "used_up": 3,
    "stale": 3,
    "derived": 3,
    "changed_input": 3,
    "missed_key": 1,
    HINT: 1,
}
"""Number of places of the kinds that don't have two."""


def _at(place: Place, near: Place) -> str:
    """A place; only its line if it is in the same function as another one."""
    is_near = (place.path, place.function) == (near.path, near.function)
    return f":{place.line}" if is_near else format_place(place)
