"""Methods that return their object itself, or a container that is its attribute, which the caller then changes."""

from __future__ import annotations

import ast
from bisect import bisect_left

from .. import sites as kinds
from ..aliases import change_name
from ..events import is_atom, is_container
from .view import Signal, own_nodes

_MAX_CHANGES = 50
_CONSTRUCTING = ("__init__", "__new__", "__enter__", "__iadd__", "__ior__", "__iter__")


def find(view):
    """Yield a signal for each variable that got the object of a method, or its own container, and by which that was changed.

    Only where the method may also return something else, so that its callers do not count on that. Places: the return,
    the call, the change. Its value: the attribute; empty for the object.
    """
    events, sometimes = view.events, {}
    for event in events.of_kind(kinds.STORE):
        returned, value = event - 1, events.value_of[event]
        if returned < 0 or is_atom(value) or events.site(returned).kind != kinds.RETURN:
            continue
        is_result = events.value_of[returned] is value and events.frame_of[returned] != events.frame_of[event]
        is_product = not view.is_test_code(events.site(event).scope.filename)
        if not is_result or not is_product or view.is_test_code(events.site(returned).scope.filename):
            continue
        own, number = _own(view, returned, value), events.site_of[returned]
        if own is not None and number not in sometimes:
            sometimes[number] = _may_return_another(view, returned, own)
        if own is None or not sometimes[number]:
            continue
        for name in events.site(event).extra or ():
            change = _change(view, event, name, value)
            if change is not None and change in view.distances:
                rank = view.score_of_line(events.site(change)) + 1.0 / (1 + view.distances[change] / 10)
                places = [view.place(each) for each in (returned, event, change)]
                yield Signal("returned", rank, places, name=name, value=own)


def _own(view, returned, value):
    """The attribute that a method has returned, "" if it was its object; None for others."""
    events, frame = view.events, view.events.frame_of[returned]
    receiver = view.calls.receiver(frame) if frame in events.entered else None
    site = events.site(returned)
    if receiver is None or type(receiver) is type or site.scope.name.rpartition(".")[2] in _CONSTRUCTING:
        return None
    if value is receiver:
        return "" if site.deps == ("self",) else None
    if not is_container(value) or len(site.deps) != 1 or type(site.deps[0]) is not int:
        return None
    part = events.sites[site.deps[0]]
    is_attribute = part.kind == kinds.BASE and part.extra[0] == "load" and part.deps == ("self",)
    return f"self.{part.name}" if is_attribute and not site.is_call else None


def _may_return_another(view, returned, own):
    """True if the method has a `return` of something else, other than nothing."""
    node = view.node_of(view.events.frame_of[returned])
    for one in () if node is None else own_nodes(node):
        if isinstance(one, ast.Return) and one.value is not None and not isinstance(one.value, ast.Constant):
            if ast.dump(one.value) != ast.dump(ast.parse(own or "self", mode="eval").body):
                return True
    return False


def _change(view, event, name, value):
    """The first change of an object by a variable, in the function that has it from `event` on; None if there is none."""
    events, frame = view.events, view.events.frame_of[event]
    changes = events.all_changes(id(value))
    start = bisect_left(changes, event)
    for change in changes[start : start + _MAX_CHANGES]:
        if events.frame_of[change] != frame or events.writer(name, change) != event:
            continue
        if change_root(events, change) == name:
            return change
    return None


def change_root(events, change):
    """The variable by which something is changed: `d` in `d[k] = v` and `d.x = v`."""
    site = events.site(change)
    if site.kind == kinds.BASE and site.extra[0] in ("store", "delete"):
        return site.deps[0] if site.deps and type(site.deps[0]) is str else ""
    return change_name(events, change)
