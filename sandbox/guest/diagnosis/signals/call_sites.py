"""Calls of functions in the source: where a frame was called, and which arguments are given there."""

# Nodes of one kind are told by their attributes.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import ast

from ..safe_values import class_name

UNKNOWN = object()
_MAX_ENDED = 4
"""Calls that had ended without a recorded result before the one that is looked at began, so that they seem to be its callers."""


def parameter_value(events, frame, name):
    """The value that a call began with for a parameter."""
    found = (events.value_of[event] for event in events.parameters(frame) if events.site(event).name == name)
    return next(found, UNKNOWN)


def find_call(view, frame, function):
    """(place, syntax tree, frame) of the call by which a frame began, if it calls the function, or its class, by name."""
    events, name = view.events, function.rpartition(".")[2]
    receiver = view.calls.receiver(frame)
    for outer in [] if name == "__call__" else view.calls.stack(frame)[1:][:_MAX_ENDED]:
        node, names = view.node_of(outer), {name}
        if name == "__init__" and (receiver is None or view.calls.receiver(outer) is not receiver):
            names = {class_name(receiver)[0].rpartition(".")[2], "cls", "__class__"}
        caller = view.last_before(outer, events.entered[frame])
        found = None if node is None else _call_at(view.calls_in(node), events.site(caller).line, names)
        if found is not None:
            scope = events.site(caller).scope
            return (scope.filename, found.lineno, scope.name), found, outer
    return None


def _call_at(calls, line, names):
    """The call of one of `names` in the statement at a line; else the only one after it, of which nothing was recorded before."""
    calls = [one for name in names for one in calls.get(name, ()) if (one.end_lineno or one.lineno) >= line]
    here = [one for one in calls if one.lineno <= line]
    return here[0] if here else calls[0] if len(calls) == 1 else None


def gives(function, call, name):
    """True if a call gives a parameter in so many words, False if it doesn't; None if that is not to be seen."""
    if any(keyword.arg == name for keyword in call.keywords):
        return True
    if any(isinstance(one, ast.Starred) for one in call.args):
        return None
    args = function.node.args
    positional = [one.arg for one in (*args.posonlyargs, *args.args)]
    is_method = "." in function.scope.name and positional[:1] in (["self"], ["cls"])
    if name in positional[is_method:][: len(call.args)]:
        return True
    return None if any(keyword.arg is None for keyword in call.keywords) else False
