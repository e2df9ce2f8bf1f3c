"""Changes of the order that things are brought into, and of positions in them."""

# Nodes with a position are told by their attributes.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import ast

from ..syntax_trees import index_of
from .definitions import assigned_in
from .mutant import AIMED, LIKELY, POSSIBLE, READ, Mutant, expression, last_name

_MAX_PARTS = 4
_POSITIONS = {
    "column", "cursor", "end", "first", "i", "idx", "index", "j", "k", "last", "length", "line", "lineno", "n", "offset", "pos",
    "position", "start", "stop",
}  # fmt: skip
"""Last words of the names of positions."""


def other_orders(node, names):
    """Yield changes of a call that sorts: in descending order, by the parts of its key in another one."""
    name, keywords = last_name(node.func), {one.arg: one.value for one in node.keywords}
    if name not in ("sorted", "sort") or None in keywords:
        return
    if "reverse" not in keywords:
        turned = ast.keyword(arg="reverse", value=expression("True", node))
        given = [*node.keywords, ast.copy_location(turned, node)]
        yield Mutant(node, {"keywords": given}, node, AIMED, "with `reverse=True` in {}", node)
    key = getattr(keywords.get("key"), "body", None)
    if isinstance(key, ast.Tuple) and len(key.elts) > 1:
        yield Mutant(
            key, {"elts": key.elts[::-1]}, node, AIMED, "with the parts of the key {} in reverse", key
        )
        for index, one in enumerate(key.elts[:_MAX_PARTS]):
            parts = [*key.elts[:index], expression("-_it", one, _it=one), *key.elts[index + 1 :]]
            yield Mutant(key, {"elts": parts}, node, AIMED, "with `-` before {} in the key {}", one, key)


def without_sign(node, names):
    """Yield a change of a negative value: without its sign."""
    if isinstance(node.op, ast.USub):
        yield Mutant(node, {"op": ast.UAdd()}, node, LIKELY, "without `-` in {}", node)


def other_positions(node, names):
    """Yield changes of the bounds of a slice and of an index, by one."""
    if not isinstance(node.ctx, ast.Load):
        return
    place = index_of(node)
    if isinstance(place, ast.Slice):
        for field in ("lower", "upper"):
            yield from _by_one(place, field, getattr(place, field))
    elif _is_position(place) and place is node.slice:
        yield from _by_one(node, "slice", place)


def other_kept_positions(node, names):
    """Yield changes of a position that is kept in an attribute or an item, by one."""
    kept = [target for target, _ in assigned_in(node) if isinstance(target, (ast.Attribute, ast.Subscript))]
    if kept and any(_is_position(one) for one in (node.value, *kept)):
        yield from _by_one(node, "value", node.value)


def _is_position(node):
    """True for a name, an attribute or a key that is called like a position, and for a call of a method that is."""
    if isinstance(node, ast.Subscript):
        name = getattr(index_of(node), "value", None)
    else:
        name = last_name(node.func if isinstance(node, ast.Call) else node)
    return type(name) is str and name.rpartition("_")[2] in _POSITIONS


def _by_one(owner, field, value):
    """With a value of an `owner`'s field that is one more, one less."""
    if isinstance(value, (*READ, ast.Call)):
        for sign in "+-":
            other = expression(f"_it {sign} 1", value, _it=value)
            yield Mutant(owner, {field: other}, value, POSSIBLE, "with `" + sign + " 1` after {}", value)
