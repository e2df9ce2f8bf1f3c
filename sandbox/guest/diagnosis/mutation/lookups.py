"""Changes of what is looked up in a dict, or taken over from one: a missing key, an entry that is made, a value of all keys."""

# Nodes with a position are told by their attributes.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import ast

from ..syntax_trees import index_of
from .conditions import is_compared_with_none
from .mutant import AIMED, FIRST, Mutant, expression, last_name, parsed

_FOR_KEY = "with a test for the key {} in {} for {}"
_MAKES_ENTRIES = "defaultdict"
_DICTS = "dict", "OrderedDict"
_CONTAINERS = *_DICTS, "list", "set"
_DISPLAYS = (ast.List, ast.Dict, ast.Set)


def asked_for_key(node, names):
    """With a test for the key where the value is tested for None: an entry may be None."""
    if not is_compared_with_none(node):
        return
    found = looked_up(node.left) or names.looked_up.get(getattr(node.left, "id", None))
    if found is not None:
        of, key = found
        kind = ast.In if isinstance(node.ops[0], ast.IsNot) else ast.NotIn
        fields = {"left": key, "ops": [kind()], "comparators": [of]}
        yield Mutant(node, fields, node, AIMED, _FOR_KEY, key, of, node)


def asked_for_entry(node, names):
    """With a test for the key where a condition is the value itself: an entry may be empty."""
    found = looked_up(node.test) or names.looked_up.get(getattr(node.test, "id", None))
    if found is not None:
        of, key = found
        fields = {"test": expression("_key in _of", node.test, _key=key, _of=of)}
        yield Mutant(node, fields, node.test, AIMED, _FOR_KEY, key, of, node.test)


def without_entry(node, names):
    """Without the entry that a look-up in a `defaultdict` makes."""
    is_made = last_name(node.value) in names.definitions.making_entries
    if is_made and isinstance(node.ctx, ast.Load) and is_key(index_of(node)):
        got = expression("[_of.get(_key)]", node, _of=node.value, _key=index_of(node))
        fields = {"value": got, "slice": parsed("_[0]", node)[0].value.slice}
        yield Mutant(node, fields, node, AIMED, "if {} made no entry where there is none", node)


def own_values(node, names):
    """With a value of its own for each key of `dict.fromkeys`."""
    of = last_name(getattr(node.func, "value", None))
    if getattr(node.func, "attr", None) == "fromkeys" and of in _DICTS and len(node.args) == 2:
        keys, value = node.args
        is_new = isinstance(value, _DISPLAYS) or (isinstance(value, ast.Call) and not value.args)
        if is_new and not isinstance(keys, ast.Starred):
            each = expression("{_it: _value for _it in _keys}.copy", node, _keys=keys, _value=value)
            text = "with {} of its own for each key in {}"
            yield Mutant(node, {"func": each, "args": []}, node, FIRST, text, value, node)


def without_members(node, names):
    """Yield changes of a copy of an attribute's container: with an empty one, which has nothing of what others put in."""
    of, is_method = getattr(node.func, "value", None), getattr(node.func, "attr", None) == "copy"
    if isinstance(of, ast.Attribute) and is_method and not node.args + node.keywords:
        empty = {"func": expression("type(_of)", node, _of=of)}
        yield Mutant(node, empty, node, AIMED, "with an empty one for {}", node)
    elif getattr(node.func, "id", None) in _CONTAINERS and len(node.args) == 1 and not node.keywords:
        if isinstance(node.args[0], ast.Attribute):
            yield Mutant(node, {"args": []}, node, AIMED, "with an empty one for {}", node)


def looked_up(value):
    """(dict, key) of `dict.get(key)`, also with None as its default; else None."""
    if not isinstance(value, ast.Call) or getattr(value.func, "attr", None) != "get" or value.keywords:
        return None
    if any(isinstance(one, ast.Starred) for one in value.args):
        return None
    is_plain = len(value.args) == 1 or (len(value.args) == 2 and getattr(value.args[1], "value", 0) is None)
    return (value.func.value, value.args[0]) if is_plain else None


def is_key(index):
    """True for what stands in brackets if it is no slice, and none of several."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return isinstance(index, ast.expr) and not any(isinstance(one, ast.Slice) for one in parts)


def makes_entries(value):
    """True for `defaultdict(…)`."""
    return isinstance(value, ast.Call) and last_name(value.func) == _MAKES_ENTRIES
