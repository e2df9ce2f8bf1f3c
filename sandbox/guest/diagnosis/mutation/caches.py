"""Changes of code that reads what a cache keeps: with the value as it is now."""

# Nodes with a position are told by their attributes.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import ast

from .mutant import FIRST, Mutant, expression, holding, last_name

_COMPUTED = """(lambda it: (lambda kept: next(
    one for one in [getattr(kept, "fget", None), *vars(kept).values()] if hasattr(one, "__code__")
)(it))(__import__("inspect").getattr_static(type(it), {name!r})))(_of)"""
"""The result of the first function in the descriptor of an attribute, whatever that keeps."""


def is_cache(decorator):
    """True for `lru_cache`, `functools.cache`, `memoize()` and the like; a property has no call."""
    name = _name_of(decorator)
    return ("cache" in name or "memo" in name) and not _is_attribute(name)


def is_cached_attribute(decorator):
    """True for `cached_property`, `lazy_property`, `memoized_attribute`, `reify` and the like."""
    name = _name_of(decorator)
    return name == "reify" or (_is_attribute(name) and any(one in name for one in ("cache", "memo", "lazy")))


def _name_of(decorator):
    return (last_name(decorator.func if isinstance(decorator, ast.Call) else decorator) or "").lower()


def _is_attribute(name):
    return "property" in name or "attr" in name


def without_cache(node, function, line):
    """Without a cache around the called function, a decorator at `line`: as `functools` and others wrap it."""
    own = expression("[_f.__self__] if hasattr(_f, '__self__') else []", node, _f=node.func)
    given = [ast.copy_location(ast.Starred(value=own, ctx=ast.Load()), node), *node.args]
    plain = {"func": expression("_f.__wrapped__", node, _f=node.func), "args": given}
    text = "without the cache around {}, line " + str(line)
    yield Mutant(node, plain, node, FIRST, text, node.func, computed_by=function)


def computed_anew(node, function, line):
    """With the value of a cached attribute as it is now. `function` computes it, a decorator at `line` keeps it."""
    value = expression(_COMPUTED.format(name=node.attr), node, _of=node.value)
    fields = {"value": holding(node, value)}
    text = "if {} were computed anew, line " + str(line)
    yield Mutant(node, fields, node, FIRST, text, node, computed_by=function)
