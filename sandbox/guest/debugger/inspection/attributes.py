"""Attributes, items and variables as the program has them, read without running any code of it."""

from __future__ import annotations

import collections
import itertools
import types
import weakref

OPAQUE = (type, types.ModuleType)
MAX_CHILDREN = 20
"""Attributes, slots or items of one value that are compared."""
MAX_VARIABLES = 256
_CONTAINERS = (dict, list, tuple, set, frozenset, collections.deque)
_BASES = {base: base for base in _CONTAINERS}
_CODE = (types.ModuleType, types.FunctionType, types.BuiltinFunctionType)


def attributes(value):
    """Return [(name, value)] of the dict and the slots of an instance. Runs no property."""
    pairs = list(own_attributes(value).items())
    found = [(str.__str__(name), item) for name, item in pairs if issubclass(type(name), str)]
    for member in _slots(type(value)):
        try:
            found.append((member.__name__, member.__get__(value, type(value))))
        except AttributeError:
            pass  # not set
    return found


def own_attributes(value):
    """Return the dict of an instance, empty where it has none."""
    try:
        own = object.__getattribute__(value, "__dict__")
    except Exception:  # no dict, or a class that hides it
        return {}
    return own if type(own) is dict else {}


def attribute_values(value, kind):
    """Return the values of the first attributes of an instance, from its dict and its slots."""
    found = list(itertools.islice(own_attributes(value).values(), MAX_CHILDREN))
    for member in slots_of(kind):
        try:
            found.append(member.__get__(value, kind))
        except AttributeError:
            found.append(None)  # not set
    return found


_known_members = {}  # id of a class -> (reference to it, its slots)


def slots_of(kind):
    """Return the descriptors of the first slots of a class, remembered."""
    known = _known_members.get(id(kind))
    if known is None or known[0]() is not kind:
        if len(_known_members) > 1000:
            _known_members.clear()
        known = _known_members[id(kind)] = (weakref.ref(kind), _slots(kind)[:MAX_CHILDREN])
    return known[1]


def _slots(kind):
    """Return the descriptors of the slots of a class and its bases. Runs no code of its metaclass."""
    found = []
    for base in type.__dict__["__mro__"].__get__(kind):
        scope = type.__dict__["__dict__"].__get__(base)
        if "__slots__" in scope:
            members = [each for each in scope.values() if type(each) is types.MemberDescriptorType]
            order = _slot_order(base, scope["__slots__"])
            found += sorted(members, key=lambda member: order.get(member.__name__, len(order)))
    return found


def _slot_order(kind, slots):
    """Return the place of each slot as the class lists them; Python sorts them by name."""
    private = "_" + type.__dict__["__name__"].__get__(kind).lstrip("_")
    names = [name for name in slots if type(name) is str] if type(slots) in (tuple, list) else []
    return {each: place for place, name in enumerate(names) for each in (name, private + name)}


def container_base(kind):
    """Return the builtin container that a class is derived from, or None."""
    base = _BASES.get(kind)
    return base or next((each for each in _CONTAINERS if issubclass(kind, each)), None)


def locals_of(frame):
    """Return the variables of a frame. For a module without its modules, functions, classes and dunders."""
    scope = frame.f_locals
    of_module = scope is frame.f_globals
    names = list(scope)
    found = []
    for name in names:
        # `@py_assert1` are pytest's, `.0` is a comprehension's iterator, `__return__` is pdb's.
        if not isinstance(name, str) or name[:1] in "@." or (name[:2] == "__" and name[-2:] == "__"):
            continue
        if name == "__pdb_convenience_variables":
            continue
        try:
            value = scope[name]
        except KeyError:
            continue
        if of_module and is_code(value):
            continue
        found.append((name, value))
    return found[:MAX_VARIABLES]


def is_code(value):
    """True for modules, functions and classes."""
    kind = type(value)
    return kind in _CODE or issubclass(kind, type)
