"""Changes of what counts as the same: objects that are equal, keys that things are kept by."""

# Nodes with a position are told by their attributes.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import ast

from ..syntax_trees import own_attribute
from .definitions import assigned_in
from .mutant import AIMED, FIRST, Mutant, expression, has_run, last_name, parsed

_MAX_ATTRIBUTES, _MAX_PARTS = 6, 6
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


def _keys_in(node):
    """Tuples that a statement or a call makes keys: `cache_key = a, b`, `hash((a, b))`."""
    found = [value for target, value in assigned_in(node) if _KEY in (last_name(target) or "").lower()]
    if isinstance(node, ast.Call) and last_name(node.func) == "hash":
        found = node.args
    return [one for one in found if isinstance(one, ast.Tuple) and len(one.elts) > 1]
