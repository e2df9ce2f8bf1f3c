"""The names that are asked for, and the places that they have in a process: how each is read, and whether it has changed."""

from __future__ import annotations

import itertools
import sys
import types
import weakref

from ...debugger.inspection.fingerprints import difference, fingerprint
from ..events import is_atom, is_container

OPAQUE = (type, types.FunctionType, types.ModuleType, types.BuiltinFunctionType, types.MethodType)
MAX_ITEMS = 200
"""Items of a container whose own items are compared, too."""
NAMESPACE = type.__dict__["__dict__"].__get__
MRO = type.__dict__["__mro__"].__get__
_QUALNAME = type.__dict__["__qualname__"].__get__


class _Nothing:
    """Value of an attribute, item or variable that is not set."""


NOTHING = _Nothing()


class Watch:
    """One name that was asked for."""

    def __init__(self, asked, job):
        self.owner, self.path, self.name = asked["owner"], asked["path"], asked["name"]
        self.owner_name = asked.get("owner_name", "")
        self.first = asked.get("first", 0)
        self.steps = [tuple(step) for step in asked.get("steps") or ()]
        self.text = asked.get("text", "")
        self.label = self.name + "".join(
            [f".{name}" if kind == "attribute" else f"[{name!r}]" for kind, name in self.steps]
        )
        self.places = self.changes = 0
        self._job = job

    def has_class(self, kind):
        """True for the class that was named, and for its subclasses."""
        return any(self._is_named(above) for above in MRO(kind))

    def _is_named(self, kind):
        if _QUALNAME(kind) != self.owner_name and not _QUALNAME(kind).endswith("." + self.owner_name):
            return False
        module = sys.modules.get(NAMESPACE(kind).get("__module__"))
        file = vars(module).get("__file__") if type(module) is types.ModuleType else None
        return type(file) is str and self._job.relative(file) == self.path

    def is_of_module(self, code):
        return self.owner == "module" and self._job.relative(code.co_filename) == self.path

    def is_of_function(self, code):
        return (
            self.owner == "function"
            and code.co_firstlineno == self.first
            and self._job.relative(code.co_filename) == self.path
        )


class Slot:
    """A watched place: `read()` gives its value."""

    def __init__(self, watch, name, read, key=None):
        """`key`: (id of the owner, name) of the place itself."""
        self.watch, self.name, self.read, self.key = watch, name, read, key
        self.value, self.text, self.references = NOTHING, "", 0
        self.can_change = False
        self.ids = self.parts = self.fingerprint = None
        """Identities of the contents of the value, and of the contents of those parts that can change."""
        self.holders = {}
        """(id of an owner, name) -> (name, line at which it was seen first) of others that hold the same object."""

    def remember(self, how):
        """Remember the contents of the value. Returns the parts that a change in place has changed, if they are known."""
        value, before = self.value, self.fingerprint
        self.fingerprint = _fingerprint_of(value)
        self.can_change = value is not NOTHING and not is_atom(value)
        self.ids = _ids(value) if self.can_change else None
        self.parts = [_ids(part) for part in _parts(value)] if self.can_change else None
        if how != "in place" or before is None or self.fingerprint is None:
            return ""
        return difference(value, before, self.fingerprint) or ""

    def is_as_before(self):
        """True if the contents of the value are those that were remembered."""
        if _ids(self.value) != self.ids:
            return False
        return not self.parts or [_ids(part) for part in _parts(self.value)] == self.parts


def attribute_reader(value, name):
    """Return a function that reads an attribute of an instance, without code of its class."""
    own, member = _own_names(value), _slot_names(type(value)).get(name)
    if own is not None and member is None:
        return lambda: own.get(name, NOTHING)
    if member is None:
        return lambda: NOTHING
    kind = type(value)
    try:
        reference = weakref.ref(value)
    except TypeError:
        reference = lambda: value  # noqa: E731

    def read():
        try:
            return member.__get__(reference(), kind)
        except (AttributeError, TypeError):
            return NOTHING

    return read


def _slot_names(kind):
    """Name -> descriptor of the slots of a class."""
    found = {}
    for above in MRO(kind):
        for name, held in NAMESPACE(above).items():
            if type(held) is types.MemberDescriptorType:
                found.setdefault(name, held)
    return found


def follow_steps(read, steps):
    """Return a function that follows attributes and items from what `read` gives."""
    if not steps:
        return read

    def follow():
        value = read()
        for kind, name in steps:
            if value is NOTHING:
                return NOTHING
            value = attribute_reader(value, name)() if kind == "attribute" else _item_of(value, name)
        return value

    return follow


def _item_of(value, key):
    kind = type(value)
    if is_container(value) and issubclass(kind, dict):
        return dict.get(value, key, NOTHING)
    if (kind is list or kind is tuple) and type(key) is int and key < len(value):
        return value[key]
    return NOTHING


def _fingerprint_of(value):
    """The fingerprint of a value; None for one that is hard to look at."""
    try:
        return None if value is NOTHING else fingerprint(value)
    except Exception:
        return None


def _ids(value):
    """Identities of the items or attributes of an object; None if it has none."""
    kind = type(value)
    if kind is list:
        return tuple(map(id, value))
    if is_container(value) or kind is tuple:
        if issubclass(kind, dict):
            return tuple(map(id, value)), tuple(map(id, dict.values(value)))
        return tuple(map(id, value))
    own = None if issubclass(kind, OPAQUE) else _own_names(value)
    return None if own is None else (tuple(own), tuple(map(id, own.values())))


def _parts(value):
    """Items or attributes of an object that can change themselves."""
    kind = type(value)
    if is_container(value) or kind is tuple:
        items = dict.values(value) if issubclass(kind, dict) else value
    else:
        own = None if issubclass(kind, OPAQUE) else _own_names(value)
        items = () if own is None else own.values()
    return [item for item in itertools.islice(items, MAX_ITEMS) if not is_atom(item)]


def _own_names(value):
    try:
        own = object.__getattribute__(value, "__dict__")
    except Exception:  # it has none, or hides it
        return None
    return own if type(own) is dict else None
