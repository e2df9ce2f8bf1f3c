"""Variables that a loop looks for, and that more than one of its passes has set."""

from __future__ import annotations

import ast
import re

from .. import sites as kinds
from ..events import is_same
from ..safe_values import text_of
from .view import Signal, own_nodes, reads

_MEANT = re.compile(r"last|latest|prev|cur|best|max|min|final|end", re.IGNORECASE)
"""Names of variables for which the last one is wanted."""


def find(view):
    """Yield a signal for each variable that passes of a loop set to different values, the last of them on the way to the failure.

    It is set under a condition, not read in the loop, and has a constant before it. Places: the first store, the last.
    Its value and other: "number (=value)" of the two passes.
    """
    for function in view.functions:
        for loop, name, lines in _searches(function.node):
            stores = _stores(view, function, loop, name, lines)
            if stores is not None:
                values = [f"{number} (={text_of(view.events.value_of[event])})" for event, number in stores]
                places = [view.place(event) for event, _ in stores]
                yield Signal("overwritten", function.rank, places, name, values[0], values[1])


def _searches(function):
    """Yield (loop, name, lines) of the variables that `for` loops of a function look for, with the lines that set them."""
    nodes = list(own_nodes(function))
    for loop in nodes:
        if not isinstance(loop, ast.For) or any(isinstance(one, ast.Break) for one in own_nodes(loop)):
            continue
        lines = {}
        for condition in own_nodes(loop):
            for statement in condition.body if isinstance(condition, ast.If) else ():
                for name in _assigned(statement):
                    lines.setdefault(name, []).append(statement.lineno)
        for name, where in lines.items():
            if not _MEANT.search(name) and _is_looked_for(nodes, loop, name):
                yield loop, name, where


def _assigned(statement):
    """Yield the variables that a statement sets."""
    for target in statement.targets if isinstance(statement, ast.Assign) else ():
        for one in target.elts if isinstance(target, ast.Tuple) else [target]:
            if isinstance(one, ast.Name):
                yield one.id


def _is_looked_for(nodes, loop, name):
    """True for a variable that has a constant before a loop, is not read in it, and is read after it."""
    end = loop.end_lineno or loop.lineno
    before = any(
        isinstance(one, ast.Assign) and one.lineno < loop.lineno and name in _assigned(one) and _is_empty(one.value)
        for one in nodes
    )  # fmt: skip
    after = any(
        isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load) and one.lineno > end
        for one in nodes
    )
    return before and after and not reads(loop, name)


def _is_empty(value):
    parts = value.elts if isinstance(value, ast.Tuple) else [value]
    return all(isinstance(one, ast.Constant) for one in parts)


def _stores(view, function, loop, name, lines):
    """((event, pass), (event, pass)) of the first and the last store of a variable in one run of a loop; None without two.

    Only if their values differ and the last one is on the way to the failure.
    """
    events = view.events
    sites = [one for one in view.sites_of(function.scope) if _is_of_loop(one, loop, name, lines)]
    for run in view.events_at(sites).values():
        found, passes = [], 0
        for event in [*run, None]:
            site = None if event is None else events.site(event)
            if site is None or site.kind == kinds.ITERABLE:
                if _is_overwritten(view, found):
                    return found[0], found[-1]
                found, passes = [], 0
            elif name in site.extra:
                found.append((event, passes))
            else:
                passes += 1
    return None


def _is_of_loop(site, loop, name, lines):
    """True for a site of a loop's iterable, of its first target, or of a store of the variable that it looks for."""
    if site.kind == kinds.ITERABLE:
        return site.line == loop.iter.lineno
    if site.kind != kinds.STORE or not site.extra:
        return False
    targets = [one.id for one in ast.walk(loop.target) if isinstance(one, ast.Name)]
    is_target = site.line == loop.lineno and targets[:1] == [site.extra[0]]
    return is_target or name in site.extra and site.line in lines


def _is_overwritten(view, found):
    if not found or found[0][1] == found[-1][1] or found[-1][0] not in view.distances:
        return False
    values = view.events.value_of
    return not is_same(values[found[0][0]], values[found[-1][0]])
