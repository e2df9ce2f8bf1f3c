"""Paths such as `self.lines[0]`: where they begin, and the steps from there, without code of the program."""

# Any object can occur.
# pyright: reportOptionalMemberAccess=false, reportAttributeAccessIssue=false
from __future__ import annotations

import ast
import types
import weakref

from .attributes import container_base
from .value_parts import ATOMS, UNDEFINED

_FUNCTION = 0x2  # CO_NEWLOCALS


class Ended(Exception):
    """The expression can't be evaluated any more. The text is the reason."""


class Computed(Exception):
    """The value can't be read without code of the program."""


# -- roots: the place that a path begins at


class InFrame:
    """Name in a function that runs."""

    def __init__(self, frame, name):
        self.frame, self._name = frame, name

    def read(self):
        return self.frame.f_locals.get(self._name, UNDEFINED)

    def scopes(self):
        return self.frame.f_globals, self.frame.f_locals


class InScope:
    """Name of a module."""

    frame = None

    def __init__(self, scope, name):
        self._scope, self._name = scope, name

    def read(self):
        return dict.get(self._scope, self._name, UNDEFINED)

    def scopes(self):
        return self._scope, self._scope


class OnObject:
    """An object, which is not kept alive if its class allows that."""

    frame = None

    def __init__(self, value, scope, name, **others):
        self._scope, self._name, self._others = scope, name, others
        self.get = reference(value)

    def read(self):
        value = self.get()
        if value is None:
            raise Ended("its object is gone")
        return value

    def scopes(self):
        return self._scope, {self._name: self.read(), **self._others}


def reference(value):
    """Return a function that returns `value`, or None once it is gone."""
    if type(value) not in ATOMS and not issubclass(type(value), (type, types.ModuleType)):
        try:
            return weakref.ref(value)
        except TypeError:
            pass
    return lambda: value


# -- parsing


def split(text):
    """Split `EXPRESSION, CONDITION` or `EXPRESSION if CONDITION`; the condition may be None.

    Raises SyntaxError.
    """
    try:
        tree = parse(text)
    except SyntaxError:
        left, _, right = text.partition(" if ")
        if not right:
            raise
        return _source(left, parse(left)), _source(right, parse(right))
    if isinstance(tree, ast.Tuple) and len(tree.elts) == 2 and text[:1] != "(":
        return _source(text, tree.elts[0]), _source(text, tree.elts[1])
    return text.strip(), None


def parse(text):
    """Return the tree of an expression. Raises SyntaxError."""
    try:
        return ast.parse(text.strip(), "<watch>", "eval").body
    except (ValueError, RecursionError, MemoryError) as exc:  # NUL, or nested too deeply
        raise SyntaxError(str(exc)) from None


def _source(text, node):
    return (ast.get_source_segment(text.strip(), node) or text).strip()


def path_of(node):
    """Return (name, [steps]) of a chain of attributes, items and `len`; None for other expressions."""
    if isinstance(node, ast.Name):
        return node.id, []
    if isinstance(node, ast.Attribute):
        return _with_step(node.value, "attribute", node.attr)
    if isinstance(node, ast.Subscript):
        index = node.slice
        if type(index).__name__ == "Index":  # until 3.8
            index = getattr(index, "value", index)
        try:
            key = ast.literal_eval(index)
            hash(key)
        except (ValueError, TypeError, SyntaxError):
            return None
        return _with_step(node.value, "item", key)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len":
        if len(node.args) == 1 and not node.keywords and not isinstance(node.args[0], ast.Starred):
            return _with_step(node.args[0], "len", None)
    return None


def _with_step(node, kind, what):
    path = path_of(node)
    return None if path is None else (path[0], path[1] + [(kind, what)])


# -- steps of a path. None of these functions runs code of the program.


def _attribute(read, name):
    plain = {}  # id of a class -> the class, whose instances have the attribute without code of the program

    def step():
        value = read()
        if id(type(value)) in plain:
            return getattr(value, name, UNDEFINED)
        if value is UNDEFINED:
            return UNDEFINED
        if type(value) is types.ModuleType:
            return vars(value).get(name, UNDEFINED)
        if issubclass(type(value), type):
            return _of_class(value, name)
        if len(plain) > 100 or not is_plain(type(value), name):
            raise Computed
        plain[id(type(value))] = type(value)
        return getattr(value, name, UNDEFINED)

    return step


def _mro(kind):
    return type.__dict__["__mro__"].__get__(kind)


def _scope(kind):
    return type.__dict__["__dict__"].__get__(kind)


def _find(kind, name):
    """Return the attribute of a class or its bases as it is stored."""
    return next((_scope(base)[name] for base in _mro(kind) if name in _scope(base)), UNDEFINED)


def is_plain(kind, name):
    """True if instances of a class have an attribute that is read without code of the program."""
    if _find(kind, "__getattribute__") is not object.__getattribute__:
        return False
    if _find(kind, "__getattr__") is not UNDEFINED:
        return False
    found = _find(kind, name)
    return _find(type(found), "__get__") is UNDEFINED or type(found) in _DESCRIPTORS


_DESCRIPTORS = (types.MemberDescriptorType, staticmethod)
"""Others make a new object each time."""


def _of_class(kind, name):
    found = _find(kind, name)
    own = _find(type(kind), name)
    if own is not UNDEFINED and _find(type(own), "__get__") is not UNDEFINED:
        raise Computed
    if _find(type(found), "__get__") is not UNDEFINED:
        raise Computed
    return found


def _item(read, key):
    def step():
        value = read()
        kind = type(value)
        if kind is dict:
            return value.get(key, UNDEFINED)
        if value is UNDEFINED:
            return UNDEFINED
        base = container_base(kind)
        if base is None or _find(kind, "__getitem__") is not _scope(base).get("__getitem__"):
            raise Computed
        if base is dict:
            return dict.get(value, key, UNDEFINED)  # never `__missing__`, which may change it
        try:
            return base.__getitem__(value, key)
        except (IndexError, TypeError):
            return UNDEFINED

    return step


_SIZED = (list, dict, tuple, set, str, bytes, bytearray, frozenset)


def _len(read, _):
    def step():
        value = read()
        kind = type(value)
        if kind in _SIZED:
            return len(value)
        if value is UNDEFINED:
            return UNDEFINED
        base = container_base(kind)
        if base is None or _find(kind, "__len__") is not _scope(base)["__len__"]:
            raise Computed
        return base.__len__(value)

    return step


STEPS = {"attribute": _attribute, "item": _item, "len": _len}


def local_names(frame):
    """Return the names that are local in a frame, also those without a value."""
    code = frame.f_code
    if not code.co_flags & _FUNCTION:  # the body of a class
        return set(frame.f_locals)
    return set(code.co_varnames + code.co_cellvars + code.co_freevars)
