"""Texts of values at the moment of an event, which two runs can compare. Calls no code of the program."""

from __future__ import annotations

import zlib

from ..events import is_atom
from ..safe_values import attributes_of, text_of, type_name

_DEPTH = 2
_NODES = 30
"""Values in one text."""
_ITEMS = 8
_MAX_TEXT = 100
_MAX_WHOLE = 400


def snapshot(value):
    """Text of a value as it is now: containers with their items, objects with their attributes."""
    try:
        return _text(value, _DEPTH, [_NODES])[:_MAX_WHOLE]
    except Exception:  # at the limit of the stack, or another thread changes it
        return "?"


def parts_of(value):
    """Ids of the objects and containers that the text of a value shows, its own first."""
    found, waiting = [], [(value, _DEPTH)]
    while waiting and len(found) < _NODES:
        part, depth = waiting.pop(0)
        if is_atom(part):
            continue
        found.append(id(part))
        if depth > 0:
            waiting += [(inner, depth - 1) for inner in _inner(part)]
    return found


def _inner(value):
    kind = type(value)
    if kind is list or kind is tuple:
        return value[:_ITEMS]
    if kind is set or kind is frozenset:
        return list(value)[:_ITEMS]
    if kind is dict:
        return list(value.values())[:_ITEMS]
    if type_name(value)[:1] != "<":
        return []
    return [held for _, held in attributes_of(value)[:_ITEMS]]


def atom_text(value):
    """Text of a value that can't change. One that is long has a checksum instead of its end."""
    kind = type(value)
    if (kind is str or kind is bytes) and len(value) > _MAX_TEXT:
        data = value.encode("utf-8", "surrogatepass") if kind is str else value
        return "%s… (%d long, checksum %08x)" % (repr(value[:60])[:70], len(value), zlib.crc32(data))
    return text_of(value)


def _text(value, depth, left):
    left[0] -= 1
    if is_atom(value):
        return atom_text(value)
    if left[0] <= 0:
        return "…"
    kind = type(value)
    if kind is list or kind is tuple or kind is set or kind is frozenset:
        return _sequence(value, kind, depth, left)
    if kind is dict:
        return _mapping(value, depth, left)
    return _object(value, kind, depth, left)


def _sequence(value, kind, depth, left):
    opening, closing = {list: "[]", tuple: "()"}.get(kind, "{}")
    if depth <= 0:
        return "%s… %d items%s" % (opening, len(value), closing)
    parts = []
    for item in list(value) if kind is set or kind is frozenset else value[:_ITEMS]:
        parts.append(_text(item, depth - 1, left))
    if kind is set or kind is frozenset:
        parts = sorted(parts)[:_ITEMS]  # the order of objects in a set is that of their addresses
    if len(value) > _ITEMS:
        parts.append("… %d items" % len(value))
    return opening + ", ".join(parts) + closing


def _mapping(value, depth, left):
    if depth <= 0:
        return "{… %d items}" % len(value)
    # Not `value[key]`: that would compare keys.
    items = list(value.items())
    parts = [f"{_text(key, 0, left)}: {_text(item, depth - 1, left)}" for key, item in items[:_ITEMS]]
    if len(items) > _ITEMS:
        parts.append("… %d items" % len(items))
    return "{" + ", ".join(parts) + "}"


def _object(value, kind, depth, left):
    name = type_name(value)
    if depth <= 0 or name[:1] != "<":
        return name
    parts = []
    for attribute, held in attributes_of(value)[:_ITEMS]:
        parts.append(f"{attribute}={_text(held, depth - 1, left)}")
    return f"{name[:-1]} {', '.join(parts)}>" if parts else name
