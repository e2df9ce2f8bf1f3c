"""Iterators that are read again though nothing, or not all, is left in them."""

from __future__ import annotations

import ast
import types

from .. import sites as kinds
from .view import Signal, is_name, own_nodes

_ITERATORS = {id(kind): kind.__name__ for kind in (types.GeneratorType, map, filter, zip, enumerate)}
"""Names of types by their ids: a type may define `==`."""
_CONSUMERS = frozenset(
    "list tuple set frozenset dict sorted sum max min join union update extend Counter deque".split()
)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp)
_LEAVING = (ast.Break, ast.Return)


def find(view):
    """Yield a signal for each variable of which the iterator was read twice by its function, one time after the other.

    Places: where the variable got it, the first read, the second. Its value: the kind of the iterator; its other: "used up", or
    "read in part", by a loop that was left.
    """
    for function in view.functions:
        reads = list(_reads(function.node))
        for name in sorted({name for name, *_ in reads}):
            mine = [(start, end, node) for one, start, end, node in reads if one == name]
            if len(mine) > 1 or mine[0][2] in _inside_of_loops(function.node):
                yield from _find(view, function, name, mine)


def _find(view, function, name, reads):
    events = view.events
    sites = [
        site
        for site in view.sites_of(function.scope)
        if site.kind in (kinds.STORE, kinds.PARAMETER)
        and name in (site.extra or ())
        or name in site.deps
        and any(start <= site.line <= end for start, end, _ in reads)
    ]
    for run in view.events_at(sites).values():
        made, first = None, None
        for event in run:
            site = events.site(event)
            if site.kind in (kinds.STORE, kinds.PARAMETER) and name in (site.extra or ()):
                made, first = (event if id(type(events.value_of[event])) in _ITERATORS else None), None
                continue
            read = next(one for one in reads if one[0] <= site.line <= one[1])
            if (
                made is None
                or first is not None
                and (read is first[1] and not _is_repeated(events, first, event))
            ):
                continue
            if first is None:
                first = event, read
            elif event in view.distances or view.is_suspect(event):
                yield _signal(view, function, name, made, first, event)
                break


def _is_repeated(events, first, event):
    """True for a loop that began again: another event of the site of what it goes through."""
    return events.site_of[first[0]] == events.site_of[event] and events.site(event).kind == kinds.ITERABLE


def _signal(view, function, name, made, first, again):
    kind = _ITERATORS[id(type(view.events.value_of[made]))]
    how = "read in part" if _is_left(first[1][2]) else "used up"
    places = [view.place(event) for event in (made, first[0], again)]
    return Signal("used_up", function.rank, places, name=name, value=kind, other=how)


def _is_left(node):
    return isinstance(node, ast.For) and any(
        isinstance(one, _LEAVING) for statement in node.body for one in [statement, *own_nodes(statement)]
    )


def _reads(function):
    """Yield (name, first line, last line, syntax tree) of what reads a variable's iterator to its end: loops and calls.

    None of a variable that is read item by item, too, or in a loop of its own items.
    """
    found, excluded = [], set()
    for statement in own_nodes(function):
        if isinstance(statement, ast.For) and isinstance(statement.iter, ast.Name):
            found.append((statement.iter.id, statement.lineno, statement.iter.end_lineno, statement))
            excluded.update(_mentioned(statement.body, statement.iter.id))
        elif isinstance(statement, ast.Call) and getattr(statement.func, "id", None) == "next":
            excluded.update(one.id for one in statement.args if isinstance(one, ast.Name))
        if not isinstance(statement, ast.stmt):
            continue
        for node in _expressions(statement):
            for name in _consumed(node):
                found.append((name, statement.lineno, _last_line(statement), node))
    return [one for one in found if one[0] not in excluded]


def _mentioned(body, name):
    """The name, if a loop's own body uses it."""
    return {name} if any(is_name(one, name) for statement in body for one in ast.walk(statement)) else set()


def _expressions(statement):
    """Yield the nodes of a statement without those of statements in it."""
    waiting = [statement]
    while waiting:
        one = waiting.pop()
        yield one
        if not isinstance(one, ast.Lambda):
            waiting += [child for child in ast.iter_child_nodes(one) if not isinstance(child, ast.stmt)]


def _last_line(statement):
    body = getattr(statement, "body", None)
    return max(statement.lineno, body[0].lineno - 1) if body else statement.end_lineno or statement.lineno


def _consumed(node):
    """Yield the variables of which an expression reads the iterator to its end."""
    if isinstance(node, _COMPREHENSIONS):
        if isinstance(node.generators[0].iter, ast.Name):
            yield node.generators[0].iter.id
    elif isinstance(node, ast.Call):
        called = getattr(node.func, "id", None) or getattr(node.func, "attr", None)
        for one in node.args:
            if isinstance(one, ast.Starred) and isinstance(one.value, ast.Name):
                yield one.value.id
            elif isinstance(one, ast.Name) and called in _CONSUMERS and len(node.args) == 1:
                yield one.id


def _inside_of_loops(function):
    """All nodes inside of the loops of a function."""
    loops = (one for one in own_nodes(function) if isinstance(one, (ast.For, ast.While)))
    return {node for loop in loops for statement in loop.body for node in [statement, *own_nodes(statement)]}
