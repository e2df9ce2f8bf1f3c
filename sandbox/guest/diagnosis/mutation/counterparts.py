"""Changes of a call to its counterpart: from the other end, with other bounds, for fewer parts, in another order."""

# Nodes with a position are told by their attributes.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import ast

from .mutant import AIMED, LIKELY, POSSIBLE, READ, Mutant, expression, last_name

_PAIRS = (
    ("find", "rfind"), ("index", "rindex"), ("split", "rsplit"), ("partition", "rpartition"), ("startswith", "endswith"),
    ("min", "max"), ("any", "all"), ("lstrip", "rstrip"), ("lstrip", "strip"), ("rstrip", "strip"),
    ("removeprefix", "removesuffix"), ("start", "end"), ("match", "search"), ("match", "fullmatch"), ("floor", "ceil"),
    ("append", "extend"), ("add", "update"), ("removeprefix", "lstrip"), ("removesuffix", "rstrip"),
)  # fmt: skip
_OF_NAMES = "min", "max", "any", "all", "floor", "ceil"
"""Those that are functions, too."""
_PARTS = {"split": 1, "rsplit": 1, "replace": 2}
"""Method -> number of arguments before that which says how often."""
_IN_ORDER = "list", "tuple", "join", "enumerate"
"""Functions for which the order matters."""
_MAX_ITEMS = 40
"""Items of a list that are put at another place."""
_SORTED = "sorted", "range", "enumerate"
"""Functions whose results are in order."""


def counterparts(node, names):
    """Yield changes of a call to what is often mistaken for it."""
    name = last_name(node.func) or ""
    is_method = isinstance(node.func, ast.Attribute)
    is_unlimited = (
        name in ("split", "rsplit") and len(node.args) + len(node.keywords) < 2
    )  # both give the same
    if (is_method or name in _OF_NAMES) and not is_unlimited:
        for other in _counterparts_of(name):
            fields = {"attr" if is_method else "id": other}
            text = "with `" + other + "` for `" + name + "` in {}"
            yield Mutant(node.func, fields, node, LIKELY, text, node)
    if is_method and not node.keywords and len(node.args) == _PARTS.get(name, -1):
        once = {"args": [*node.args, expression("1", node)]}
        yield Mutant(node, once, node, AIMED, "only once in {}", node)
    if is_method and name == "insert" and len(node.args) == 2 and _is_zero(node.args[0]):
        last = {"func": expression("_to.append", node, _to=node.func.value), "args": node.args[1:]}
        yield Mutant(node, last, node, AIMED, "with {} at the end in {}", node.args[1], node)
    if is_method and name == "pop" and not node.args + node.keywords:
        yield Mutant(node, {"args": [expression("0", node)]}, node, AIMED, "with the first one in {}", node)
    if name == "range" and not is_method:
        yield from _other_bounds(node)
    if name in _IN_ORDER and len(node.args) == 1 and _is_set(node.args[0]):
        yield _ordered(node, "args", node.args[0], listed=True)


def other_places(node, names):
    """Yield changes of a list of variables and attributes, often of steps or handlers: with one of them last, first."""
    items = node.elts
    if not 2 < len(items) <= _MAX_ITEMS or not all(isinstance(one, READ) for one in items):
        return
    for index, one in enumerate(items):
        rest = [*items[:index], *items[index + 1 :]]
        if index < len(items) - 1:
            yield Mutant(node, {"elts": [*rest, one]}, one, AIMED, "with {} last in its list", one)
        if index > 0:
            yield Mutant(node, {"elts": [one, *rest]}, one, AIMED, "with {} first in its list", one)


def sorted_loops(node, names):
    """Yield changes of what a loop goes over: in order, in that of what a set was made of."""
    if last_name(getattr(node.iter, "func", None)) not in _SORTED:
        taken = expression("sorted(_it)", node.iter, _it=node.iter)
        yield Mutant(node, {"iter": taken}, node.iter, POSSIBLE, "with {} sorted", node.iter)
    if _is_set(node.iter):
        yield _ordered(node, "iter", node.iter)


def _counterparts_of(name):
    return [other for pair in _PAIRS if name in pair for other in pair if other != name]


def _other_bounds(node):
    """With a range that ends or begins one later, one earlier."""
    for index, bound in enumerate(node.args[:2]):
        for sign in "+-" if isinstance(bound, READ) else "":
            other = expression(f"_it {sign} 1", bound, _it=bound)
            given = {"args": [*node.args[:index], other, *node.args[index + 1 :]]}
            yield Mutant(node, given, node, POSSIBLE, "with `" + sign + " 1` after {} in {}", bound, node)


def _is_zero(node):
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value == 0


def _is_set(node):
    return isinstance(node, ast.Call) and getattr(node.func, "id", None) == "set" and len(node.args) == 1


def _ordered(owner, field, made, listed=False):
    """With the items of a set in the order of what it is made of."""
    ordered = expression("dict.fromkeys(_it)", made, _it=made.args[0])
    return Mutant(
        owner, {field: [ordered] if listed else ordered}, made, AIMED, "with the order kept in {}", made
    )
