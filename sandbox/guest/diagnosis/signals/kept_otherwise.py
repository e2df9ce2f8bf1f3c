"""Arguments that a call gives, and that the function keeps under their name with another value."""

# Nodes of one kind are told by their attributes.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import ast

from .. import sites as kinds
from ..safe_values import text_of
from .call_sites import UNKNOWN, find_call, gives, parameter_value
from .view import Signal, is_name, own_nodes, reads

_PLAIN = (ast.Name, ast.Attribute, ast.Constant, ast.BoolOp, ast.IfExp, ast.boolop, ast.expr_context)
"""Parts of an expression that chooses between a number and another one."""


def find(view):
    """Yield a signal for each plain argument of which a function stores another value under the parameter's name.

    Places: the call, the store. Its value: the argument; its other: what is kept; its holder: where.
    """
    for function in view.functions:
        for name, lines, is_choice in _stored(function.node):
            for frame in function.frames:
                given = parameter_value(view.events, frame, name)
                if given is UNKNOWN or not _is_of_kind(given, is_choice):
                    continue
                store = _store(view, frame, name, lines, given)
                call = None if store is None else find_call(view, frame, function.scope.name)
                if call is None or not gives(function, call[1], name):
                    continue
                kept = view.events.value_of[view.events.stored_value_event(store)]
                places, holder = [call[0], view.place(store)], _holder(view.events.site(store))
                yield Signal(
                    "kept_otherwise", function.rank, places, name, text_of(given), text_of(kept), holder
                )
                break


def _stored(function):
    """Yield (parameter, lines, is a choice) of the parameters that a function stores under their own names.

    By expressions that read them; as they were given, without another value for the variable before. A choice may give
    one number for another; other expressions change a unit, or keep it in limits.
    """
    args = function.args
    names = {one.arg for one in (*args.posonlyargs, *args.args, *args.kwonlyargs)}
    bound = {
        one.id for one in own_nodes(function) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
    }
    found = {}
    for one in own_nodes(function):
        targets = (
            one.targets
            if isinstance(one, ast.Assign)
            else [one.target]
            if isinstance(one, ast.AnnAssign)
            else []
        )
        for name in map(_name_of, targets):
            if name in names and name not in bound and one.value is not None and reads(one.value, name):
                found.setdefault(name, []).append(one)
    for name, statements in found.items():
        is_choice = all(isinstance(part, _PLAIN) for one in statements for part in ast.walk(one.value))
        yield name, {one.lineno for one in statements}, is_choice


def _name_of(target):
    """The name of an attribute of `self`, or the constant key of an item, that is set; None for other targets."""
    if isinstance(target, ast.Attribute) and is_name(target.value, "self"):
        return target.attr
    if isinstance(target, ast.Subscript):
        key = getattr(target.slice, "value", target.slice)  # before 3.9 it is in an `Index`
        return getattr(key, "value", key) if isinstance(key, (ast.Constant, str)) else None
    return None


def _is_of_kind(value, is_choice):
    return type(value) is bool or is_choice and (type(value) is int or type(value) is float)


def _store(view, frame, name, lines, given):
    """The first store of a parameter in a call, if it and all others differ from the argument, and it matters; else None."""
    events = view.events
    stores = [event for event in view.events_of(frame) if _is_store(events.site(event), name)]
    if not stores or events.site(stores[0]).line not in lines:
        return None
    owner = events.value_of[stores[0]]
    for store in stores:
        stored = events.stored_value_event(store)
        value = None if stored is None else events.value_of[stored]
        if events.value_of[store] is owner and not _differs(value, given):
            return None
    return stores[0] if view.is_suspect(stores[0]) or _is_read(view, owner, name) else None


def _is_store(site, name):
    if site.kind == kinds.BASE:
        return site.extra[0] == "store" and site.name == name
    return site.kind == kinds.ITEM and site.extra[0] == "store" and site.extra[3] == name


def _differs(value, given):
    """True for another value of the same kind."""
    if type(given) is bool:
        return type(value) is bool and value is not given
    return (type(value) is int or type(value) is float) and value != given


def _is_read(view, owner, name):
    """True if the attribute of an object is read on the way to the failure."""
    return any(
        view.events.value_of[event] is owner
        for site in view.events.executed_sites()
        if site.kind == kinds.BASE and site.extra[0] == "load" and site.name == name
        for event in view.events.of_site(site.number)
        if event in view.distances
    )


def _holder(site):
    return f"self.{site.name}" if site.kind == kinds.BASE else f"{site.name}[{site.extra[3]!r}]"
