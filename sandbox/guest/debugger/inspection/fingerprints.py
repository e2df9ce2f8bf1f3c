"""Fingerprints of values, and the changed places in a value that was changed in place, by two of its fingerprints."""

from __future__ import annotations

import itertools

from . import arrays
from .attributes import (
    MAX_CHILDREN,
    OPAQUE,
    attribute_values,
    container_base,
    own_attributes,
    slots_of,
)
from .safe_repr import show

_DEPTH = 3
_MARKS = 250  # of one value
_OTHERS = 1000  # items behind the first ones that are compared by identity
_PLACES = 3
_PLACE = 60  # characters of each
_NUMBERS = frozenset((int, float, complex, bool, type(None)))
_LEAVES = _NUMBERS | {str, bytes, bytearray}


def fingerprint(value):
    """Return a mark that differs when the value does, to the depth that is shown. May raise for odd objects."""
    return _mark(value, _DEPTH, [_MARKS])


def _mark(value, depth, left):
    """Return a mark that stays the same as long as the value does, to the depth that is shown.

    Runs no code of the program. `left` holds the number of marks that may still be made.
    """
    kind = type(value)
    if kind in _NUMBERS:
        return kind.__name__, 0, value if value == value else "nan"
    if kind is str or kind is bytes:
        return kind.__name__, id(value), hash(value)
    left[0] -= 1
    if arrays.library(kind) is not None:
        try:
            mark = arrays.mark(value, kind)
        except Exception:  # code of a library
            mark = None
        if mark is not None:
            return kind.__name__, id(value), mark
    if not depth or left[0] < 0 or issubclass(kind, OPAQUE):  # isinstance would ask `__class__`
        return kind.__name__, id(value)
    if kind is bytearray:
        return kind.__name__, id(value), len(value), bytes(value[:_OTHERS])
    base = container_base(kind)
    parts = () if base is None else _items(value, base, depth - 1, left)
    if kind is not base:
        parts += tuple([_mark(each, depth - 1, left) for each in attribute_values(value, kind)])
    return (kind.__name__, id(value)) + parts


def _items(value, base, depth, left):
    """Return marks of the first items of a container, and identities of some more.

    Calls none of its own methods.
    """
    values = iter(dict.values(value)) if base is dict else base.__iter__(value)
    first = [_mark(item, depth, left) for item in itertools.islice(values, MAX_CHILDREN)]
    size = base.__len__(value)
    if base is dict:
        first += [_mark(key, depth, left) for key in itertools.islice(dict.__iter__(value), MAX_CHILDREN)]
    if size > MAX_CHILDREN and base not in (set, frozenset):
        first.append(_identity(values, _OTHERS))
    return (size, tuple(first))


def _identity(values, count):
    return hash(tuple(map(id, itertools.islice(values, count))))


def difference(value, old, new):
    """Return the first changed places in `value`, between two fingerprints, as text; None if they are not known."""
    found = []
    try:
        _differ(value, old, new, "", found)
    except BaseException:  # it changes while it is looked at, or is hard to look at
        return None
    return ", ".join(found[:_PLACES] + ["…"] * (len(found) > _PLACES)) or None


def _differ(value, old, new, where, found):
    kind = type(value)
    if len(old) == 2 or len(new) == 2 or kind in _LEAVES or arrays.library(kind) is not None:
        return
    base = container_base(kind)
    held = 2 if base is None else 4
    if base is not None and old[2:4] != new[2:4]:
        _differ_in_items(value, base, old[2:4], new[2:4], where, found)
    if len(old) > len(new):
        return  # an attribute is gone: the marks don't say which one
    names = list(own_attributes(value))[:MAX_CHILDREN] + [each.__name__ for each in slots_of(kind)]
    added = len(new) - len(old)
    of_dict = len(names) - len(slots_of(kind)) - added
    before = old[held : held + of_dict] + (None,) * added + old[held + of_dict :]
    for name, item, was, now in zip(names, attribute_values(value, kind), before, new[held:]):
        _tell(item, was, now, f"{where}.{name}", found)


def _tell(item, was, now, where, found):
    """Add the changed places in `item` to `found`, or `item` as a whole."""
    if was == now or len(found) > _PLACES:
        return
    if was is not None and was[:2] == now[:2]:
        count = len(found)
        _differ(item, was, now, where, found)
        if len(found) > count or len(was) == 2 or len(now) == 2:
            return
    if was is not None and type(item) in (str, bytes) and was[::2] == now[::2]:
        return  # an equal one
    found.append(f"{where} = {show(item, _PLACE)}")


def _differ_in_items(value, base, old, new, where, found):
    (old_size, was), (size, now) = old, new
    count, label = len(found), where + ": " if where else ""
    if base is dict:
        _differ_in_pairs(value, old, new, where, found)
    elif base not in (set, frozenset):
        _differ_in_sequence(value, base, old, new, where, found)
    elif old_size <= MAX_CHILDREN:
        items = itertools.islice(base.__iter__(value), MAX_CHILDREN)
        found += [label + show(item, _PLACE) + " added" for item, mark in zip(items, now) if mark not in was]
    if len(found) > count:
        return
    other = f"an item behind the first {MAX_CHILDREN}"
    found.append(label + (other if size == old_size else f"{size} items, were {old_size}"))


def _differ_in_sequence(value, base, old, new, where, found):
    (old_size, was), (size, now) = old, new
    known, seen = was[: min(old_size, MAX_CHILDREN)], now[: min(size, MAX_CHILDREN)]
    both = min(len(known), len(seen))
    moved = size != old_size and known[:both] != seen[:both]
    for index, (item, mark) in enumerate(zip(base.__iter__(value), seen)):
        place = f"{where}[{index}]"
        if moved:
            if size > old_size and mark not in known:
                _tell(item, None, mark, place, found)
        else:
            _tell(item, known[index] if index < both else None, mark, place, found)
    if not moved and _has_grown_at_its_end(base.__iter__(value), old, size):
        start = max(old_size, MAX_CHILDREN)
        behind = itertools.islice(base.__iter__(value), start, start + _PLACES + 1)
        for index, item in enumerate(behind, start):
            _tell(item, None, (), f"{where}[{index}]", found)


def _differ_in_pairs(value, old, new, where, found):
    (old_size, was), (size, now) = old, new
    known, seen = min(old_size, MAX_CHILDREN), min(size, MAX_CHILDREN)
    before = dict(zip(was[known : 2 * known], was[:known]))  # the mark of a key -> that of its value
    for (key, item), mark, its in zip(dict.items(value), now[:seen], now[seen : 2 * seen]):
        if its in before or old_size <= MAX_CHILDREN:
            _tell(item, before.get(its), mark, f"{where}[{show(key, _PLACE)}]", found)
    if before and list(before) == list(now[seen : seen + known]):
        if _has_grown_at_its_end(iter(dict.values(value)), old, size):
            start = max(old_size, MAX_CHILDREN)
            for key, item in itertools.islice(dict.items(value), start, start + _PLACES + 1):
                _tell(item, None, (), f"{where}[{show(key, _PLACE)}]", found)


def _has_grown_at_its_end(values, old, size):
    """True if the items after the marked ones are the same as before, with more appended."""
    old_size, was = old
    if size <= max(old_size, MAX_CHILDREN):
        return False
    if old_size <= MAX_CHILDREN:
        return True
    return _identity(itertools.islice(values, MAX_CHILDREN, old_size), _OTHERS) == was[-1]
