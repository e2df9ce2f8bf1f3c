"""The containers in a value, compared by the identity of their items; and marks of values, compared by contents.

None of these functions runs code of the program.
"""

from __future__ import annotations

import itertools
import operator

from . import arrays, safe_repr
from .attributes import OPAQUE, attributes, container_base, own_attributes, slots_of

DEPTH = 3
_PARTS = 32  # containers that are compared, of one value
_ITEMS = 1000  # of each container; of these ...
_FOLLOWED = 50  # ... are looked into
_MARKS = 500  # of a computed value
_PLACES = 3
_PLACE = 60
ATOMS = frozenset((int, float, complex, bool, str, bytes, type(None), type(...)))
_VALUES = frozenset(
    ("decimal.Decimal", "datetime.datetime", "datetime.date", "datetime.time", "datetime.timedelta")
)
"""Types without parts whose `==` is no code of the program."""


class _Undefined:
    """Value of an expression that raises."""

    def __repr__(self):
        return "<undefined>"


UNDEFINED = _Undefined()


def are_equal(one, other, depth=DEPTH):
    """True for values of the same type without identity that are equal."""
    kind = type(one)
    if kind is not type(other):
        return False
    if kind in ATOMS:
        return one == other or one != one and other != other
    if kind is tuple and depth and len(one) == len(other) <= _ITEMS:
        return all(a is b or are_equal(a, b, depth - 1) for a, b in zip(one, other))
    if f"{kind.__module__}.{kind.__name__}" in _VALUES:
        try:
            return bool(one == other)
        except ArithmeticError:  # a signaling NaN
            return False
    return False


# -- the containers in a value, compared by the identity of their items


def _nothing(value):
    return ()


def collect_parts(value):
    """Return the parts of a value [(measure, iterate, container, measured, items)], and their labels."""
    parts, labels, seen = [], [], set()
    left = [(value, "", DEPTH)]
    while left and len(parts) < _PARTS:
        each, where, depth = left.pop(0)
        kind = type(each)
        if kind in ATOMS or id(each) in seen or issubclass(kind, OPAQUE):
            continue
        seen.add(id(each))
        children = []
        try:
            _add_parts(each, kind, where, parts, labels, children)
        except Exception:  # a library's object, or one made to be hard to look at
            continue
        if depth > 1:
            left += [(child, place, depth - 1) for place, child in children]
    return tuple(parts), tuple(labels)


def _add_parts(value, kind, where, parts, labels, children):
    def add(measure, iterate, container, label):
        items = tuple(itertools.islice(iterate(container), _ITEMS))
        parts.append((measure, iterate, container, measure(container), items))
        labels.append(label)
        return items

    if arrays.library(kind) is not None:
        if arrays.mark(value, kind) is not None:
            add(lambda array: arrays.mark(array, kind), _nothing, value, (where, None))
        return
    if kind is bytearray:
        add(bytearray.__len__, bytearray.__iter__, value, (where, "item"))
        return
    base = container_base(kind)
    if base is dict:
        add(dict.__len__, dict.values, value, (where, "key"))
        keys = add(dict.__len__, dict.__iter__, value, (where, None))
        children += [
            (f"{where}[{safe_repr.show(key, 30)}]", dict.get(value, key)) for key in keys[:_FOLLOWED]
        ]
    elif base in (tuple, frozenset):
        first = itertools.islice(base.__iter__(value), _FOLLOWED)
        children += [(f"{where}[{index}]", item) for index, item in enumerate(first)]
    elif base is not None:
        items = add(base.__len__, base.__iter__, value, (where, "member" if base is set else "item"))
        children += [(f"{where}[{index}]", item) for index, item in enumerate(items[:_FOLLOWED])]
    if kind is base:
        return
    own = own_attributes(value)
    if own or type.__dict__["__dictoffset__"].__get__(kind):
        add(dict.__len__, dict.values, own, (where, "attribute"))
        children += [(f"{where}.{name}", own[name]) for name in list(own)[:_FOLLOWED]]
    slots = slots_of(kind)
    if slots:
        read = _slot_reader(slots)
        add(lambda _: len(slots), read, value, (where, [each.__name__ for each in slots]))
        children += [(f"{where}.{each.__name__}", item) for each, item in zip(slots, read(value))]


def _slot_reader(slots):
    def read(value):
        found = []
        for member in slots:
            try:
                found.append(member.__get__(value, type(value)))
            except AttributeError:
                found.append(UNDEFINED)  # not set
        return found

    return read


def have_changed(parts):
    """True if an item of a part is another one than when it was collected."""
    try:
        for measure, iterate, container, measured, items in parts:
            if measure(container) != measured or not all(map(operator.is_, iterate(container), items)):
                return True
    except Exception:  # another thread changes it, or a library's object fails
        return True
    return False


def changed_places(parts, labels):
    """Return the first changed places as texts such as `[3] = 5 (was 4)`."""
    found = []
    for (measure, iterate, container, measured, items), (where, kind) in zip(parts, labels):
        try:
            now = tuple(itertools.islice(iterate(container), _ITEMS))
            if kind is None or measure(container) == measured and all(map(operator.is_, now, items)):
                continue
            found += _differences(container, where, kind, items, now)
        except Exception:  # as above
            continue
        if len(found) > _PLACES:
            return found[:_PLACES] + ["…"]
    return found


def _differences(container, where, kind, items, now):
    if kind == "member":
        before, after = {id(each) for each in items}, {id(each) for each in now}
        gone = [each for each in items if id(each) not in after]
        new = [each for each in now if id(each) not in before]
        prefix = f"{where}: " if where else ""
        return [f"{prefix}{_short(each)} added" for each in new] + [
            f"{prefix}{_short(each)} removed" for each in gone
        ]
    names = list(itertools.islice(container, _ITEMS)) if kind in ("key", "attribute") else kind
    if len(now) < len(items) and kind in ("key", "attribute", "item"):
        kept = {id(each) for each in now}
        gone = [
            f"{where}: {_short(each)} removed" if where else f"{_short(each)} removed"
            for each in items
            if id(each) not in kept
        ]
        return gone or [f"{where}: {len(now)} items, were {len(items)}"]
    texts = []
    for index, item in enumerate(now):
        if index < len(items) and items[index] is item:
            continue
        if kind == "item":
            place = f"{where}[{index}]"
        elif kind == "key":
            place = f"{where}[{_short(names[index])}]"
        else:
            place = f"{where}.{names[index]}"
        was = f" (was {_short(items[index])})" if index < len(items) else ""
        texts.append(f"{place} = {_short(item)}{was}")
    return texts


def _short(value):
    return str(value) if value is UNDEFINED else safe_repr.show(value, _PLACE)


# -- values that are computed anew each time, compared by their contents


def mark(value):
    """Return a mark that is the same for values with the same contents."""
    return _mark(value, DEPTH, [_MARKS])


def _mark(value, depth, left):
    kind = type(value)
    if kind in ATOMS:
        return id(kind), value if value == value else "nan"
    left[0] -= 1
    if f"{kind.__module__}.{kind.__name__}" in _VALUES:
        return id(kind), str(value)
    if issubclass(kind, OPAQUE) or value is UNDEFINED:
        return id(kind), id(value)
    if arrays.library(kind) is not None:
        try:
            return id(kind), arrays.mark(value, kind)
        except Exception:  # code of a library
            return (id(kind),)
    if not depth or left[0] < 0:
        return (id(kind),)
    base = container_base(kind)
    found: list = [id(kind)]
    if base is dict:
        pairs = itertools.islice(dict.items(value), _ITEMS)
        found += [dict.__len__(value)] + [_mark(each, depth - 1, left) for pair in pairs for each in pair]
    elif base is not None:
        found.append(base.__len__(value))
        found += [_mark(each, depth - 1, left) for each in itertools.islice(base.__iter__(value), _ITEMS)]
    elif kind is bytearray:
        found.append(bytes(value[:_ITEMS]))
    if kind is not base:
        found += [_mark(each, depth - 1, left) for _, each in attributes(value)[:_FOLLOWED]]
    return tuple(found)
