"""Changes of what counts as the same: objects that are equal, keys that things are kept by."""

# Nodes with a position are told by their attributes.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import ast
import copy

from ..syntax_trees import index_of, own_attribute
from .definitions import assigned_in
from .lookups import is_key
from .mutant import (
    AIMED,
    FIRST,
    Mutant,
    braced,
    expression,
    has_run,
    last_name,
    local_names,
    parsed,
    path_of,
)

_MAX_ATTRIBUTES, _MAX_PARTS, _MAX_ADDED = 6, 6, 6
_BY_KEY = "get", "setdefault", "pop"
"""Methods whose first argument is a key."""
_READ, _WRITTEN, _ASKED = "read", "written", "asked for"
_KEY = "key"
"""Part of the name of a variable that things are kept by."""


def other_equality(changed, definitions):
    """Yield changes of an `__eq__` method: with one more attribute compared, with only the same object equal."""
    function = changed.node
    names = [one.arg for one in function.args.args]
    if function.name != "__eq__" or changed.owner is None or len(names) != 2:
        return
    compared = {node.attr for node in ast.walk(function) if own_attribute(node)}
    left_out = [one for one in definitions.state(changed.owner).assigned if one not in compared]
    for node in ast.walk(function):
        if isinstance(node, ast.Return) and isinstance(node.value, (ast.Compare, ast.BoolOp)):
            for name in left_out[:_MAX_ATTRIBUTES]:
                more = f"self.{name} == {names[1]}.{name}"
                both = expression(f"_it and {more}", node.value, _it=node.value)
                yield Mutant(
                    node, {"value": both}, node, FIRST, "with `and " + more + "` after {}", node.value
                )
    at = function.body[-1]
    made = parsed(f"return self is {names[1]}", at)
    yield Mutant(function, {"body": made}, at, AIMED, "if only the same object were equal")


def other_keys(function, executed):
    """Yield changes of tuples that are keys: without one of their parts."""
    for node in ast.walk(function):
        for key in _keys_in(node) if has_run(node, executed) else ():
            for index, one in enumerate(key.elts[:_MAX_PARTS]):
                rest = [*key.elts[:index], *key.elts[index + 1 :]]
                yield Mutant(key, {"elts": rest}, key, FIRST, "without {} in the key {}", one, key)


def wider_keys(function, executed):
    """Yield changes of the key by which a function both looks something up and keeps it: with one more thing in it that it reads.

    That is a variable, or an attribute of its object. Not where the container is a variable of its own, which knows no other call.
    """
    names = [one for one in local_names(function) if one not in ("self", "cls")]
    called = {node.func for node in ast.walk(function) if isinstance(node, ast.Call)}
    own = (node for node in ast.walk(function) if own_attribute(node) and node not in called)
    attributes = list(dict.fromkeys(map(path_of, own)))
    found, elsewhere, is_tried = {}, set(), False
    for node in ast.walk(function):
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            elsewhere.update(node.names)
        is_tried |= isinstance(node, ast.Try)
        for of, key, use in _uses_of_keys(node):
            path = path_of(of)
            if path and is_key(key) and not isinstance(key, ast.Constant):
                keys, uses = found.setdefault((path, ast.dump(key)), ([], set()))
                keys.append(key)
                uses.add(use)
    for (path, dump), (keys, uses) in found.items():
        key = next((one for one in keys if has_run(one, executed)), None)
        is_kept = _WRITTEN in uses and (_ASKED in uses or (is_tried and _READ in uses))
        if key is None or not is_kept or path in names and path not in elsewhere:
            continue
        known = {path_of(one) for one in ast.walk(key)} | {path}
        others = [[one for one in each if one not in known][:_MAX_ADDED] for each in (names, attributes)]
        for name in [*others[0], *others[1]]:
            body = [_Keyed(path, dump, name).visit(copy.deepcopy(one)) for one in function.body]
            told = "with `" + name + "` in the key {} of `" + braced(path) + "`"
            yield Mutant(function, {"body": body}, key, FIRST, told, key)


def _uses_of_keys(node):
    """Yield (container, key, what is done with it)."""
    if isinstance(node, ast.Subscript):
        use = {ast.Store: _WRITTEN, ast.Load: _READ}.get(type(node.ctx))
        yield node.value, index_of(node), use
    elif isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)):
        yield node.comparators[0], node.left, _ASKED
    elif isinstance(node, ast.Call) and getattr(node.func, "attr", None) in _BY_KEY and node.args:
        yield node.func.value, node.args[0], _ASKED
        if node.func.attr == "setdefault":
            yield node.func.value, node.args[0], _WRITTEN


class _Keyed(ast.NodeTransformer):
    """Adds a variable to a key of a container, but for an object that equals none but itself: nothing would be found again."""

    def __init__(self, path, dump, name):
        self._path, self._dump, self._name = path, dump, name

    def visit(self, node):
        for of, key, _ in _uses_of_keys(node):
            if path_of(of) == self._path and ast.dump(key) == self._dump:
                self._widen(node, key)
                break
        return self.generic_visit(node)

    def _widen(self, node, key):
        added = f"{self._name} if type({self._name}).__eq__ is not object.__eq__ else None"
        wider = expression("(_key, _added)", key, _key=key, _added=expression(added, key))
        if isinstance(node, ast.Subscript):
            node.slice = expression("_[_key]", key, _key=wider).slice
        elif isinstance(node, ast.Compare):
            node.left = wider
        else:
            node.args[0] = wider


def _keys_in(node):
    """Tuples that a statement or a call makes keys: `cache_key = a, b`, `hash((a, b))`."""
    found = [value for target, value in assigned_in(node) if _KEY in (last_name(target) or "").lower()]
    if isinstance(node, ast.Call) and last_name(node.func) == "hash":
        found = node.args
    return [one for one in found if isinstance(one, ast.Tuple) and len(one.elts) > 1]
