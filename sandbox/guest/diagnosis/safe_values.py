"""Short texts of values, without calling code of the program: exact builtin types only."""

from __future__ import annotations

import types

from .events import is_atom

_MAX = 80
_ITEMS = 4
_TYPE_NAME = type.__dict__["__name__"].__get__
_TYPE_QUALNAME = type.__dict__["__qualname__"].__get__
_TYPE_DICT = type.__dict__["__dict__"].__get__
_TYPE_MRO = type.__dict__["__mro__"].__get__
_IDENTITIES = tuple(
    prefix + name
    for name in "name key id tag title label code type kind value text path".split()
    for prefix in ("", "_")
)
"""Attributes that tell one object of a class from another, the best first; they may begin with an underscore."""
_MAX_IDENTITY = 30


def text_of(value, depth=2):
    """Short text of a value; of an object of another type its class, and an attribute that tells it from others."""
    kind = type(value)
    if kind is str:
        return repr(value[: _MAX * 2])[:_MAX]
    if kind is bytes:
        return repr(value[:_MAX])[:_MAX]
    if kind is int:
        return repr(value) if value.bit_length() < 500 else "int of %d bits" % value.bit_length()
    if is_atom(value):
        return repr(value)
    if kind is list or kind is tuple or kind is set or kind is frozenset:
        return _sequence(value, kind, depth)
    if kind is dict:
        return _mapping(value, depth)
    return _object(value) if depth > 0 else type_name(value)


def type_name(value):
    """`<Order>` for an object of class Order; the name of a function, class or module."""
    kind = type(value)
    if kind is type:
        return f"class {_TYPE_NAME(value)[:_MAX]}"
    if kind is types.FunctionType:
        return f"function {value.__name__[:_MAX]}"
    return f"<{_TYPE_NAME(kind)[:_MAX]}>"


def _object(value):
    """`<Order name='a'>`."""
    name = type_name(value)
    held = _identities_of(value) if name[:1] == "<" else {}
    for attribute in _IDENTITIES:
        found = held.get(attribute)
        if (type(found) is str and found) or type(found) is int:
            return f"{name[:-1]} {attribute}={text_of(found)[:_MAX_IDENTITY]}>"
    return name


def _identities_of(value):
    """{name: value} of such attributes. Looked up one by one: an object may have a million others."""
    slots, found = {}, {}
    for name, held in _held_by(value):
        if name is None:
            found = {each: held.get(each) for each in _IDENTITIES}
        elif name in _IDENTITIES:
            slots.setdefault(name, held)
    found.update(slots)
    return found


def class_name(value):
    """(qualified name, module) of the class of an object, or of a class itself."""
    kind = value if type(value) is type else type(value)
    module = _TYPE_DICT(kind).get("__module__")
    return _TYPE_QUALNAME(kind), module if type(module) is str else ""


def _sequence(value, kind, depth):
    opening, closing = {list: "[]", tuple: "()", set: "{}"}.get(kind, ("frozenset({", "})"))
    if kind is set and not value:
        return "set()"
    if depth <= 0 and value:
        return "%s… %s%s" % (opening, _count(value), closing)
    parts = []
    for item in list(value)[:_ITEMS]:
        parts.append(text_of(item, depth - 1))
    more = ["… %d more" % (len(value) - _ITEMS)] if len(value) > _ITEMS else []
    comma = "," if kind is tuple and len(value) == 1 else ""
    return (opening + ", ".join(parts + more) + comma + closing)[: 2 * _MAX]


def _count(value):
    return "%d item%s" % (len(value), "s" * (len(value) > 1))


def _mapping(value, depth):
    if depth <= 0 and value:
        return "{… %s}" % _count(value)
    # Not `value[key]`: that would compare keys.
    items = list(value.items())[:_ITEMS]
    parts = [f"{text_of(key, 0)}: {text_of(item, depth - 1)}" for key, item in items]
    more = ["… %d more" % (len(value) - _ITEMS)] if len(value) > _ITEMS else []
    return ("{" + ", ".join(parts + more) + "}")[: 2 * _MAX]


def attributes_of(value):
    """(name, value) of the attributes that an object itself has."""
    found = []
    for name, held in _held_by(value):
        found += list(held.items()) if name is None else [(name, held)]
    return [(name, held) for name, held in found if type(name) is str]


def _held_by(value):
    """Yield (name of a slot, what it holds), and (None, the dict of the other attributes)."""
    for name, get in _getters(type(value)):
        try:
            held = get(value)
        except AttributeError:  # a slot that is not set
            continue
        if name is not None or type(held) is dict:
            yield name, held


def _getters(kind):
    """(name of a slot or None for `__dict__`, its getter): never a property of the program."""
    known = _known.get(id(kind))
    if known is not None:
        return known[1]
    found = []
    for above in _TYPE_MRO(kind)[:-1]:
        scope = _TYPE_DICT(above)
        if scope.get("__module__") == "builtins":
            continue
        for name, held in list(scope.items()):
            if type(held) is types.MemberDescriptorType:
                found.append((name, held.__get__))
            elif name == "__dict__" and type(held) is types.GetSetDescriptorType:
                found.append((None, held.__get__))
    _known[id(kind)] = kind, found
    return found


_known: dict = {}
"""id of a class -> (the class, its getters)."""
