"""Attributes that a constructor computes from an argument, and that stay when the attribute with that argument is set anew."""

from __future__ import annotations

import ast
from bisect import bisect_right

from .. import sites as kinds
from ..calls import constructs
from ..events import is_atom
from ..safe_values import text_of
from .view import Signal, is_name, own_nodes, reads

_MAX_STORES = 500
_MAX_LOADS = 5000
"""Loads of attributes of one name that are looked at, the last ones."""


def find(view):
    """Yield a signal for each plain value that a constructor computes from a parameter which it stores as another attribute, too.

    If that was set to another value later, outside of tests, and the computed one was read after that. Places: where it was
    computed, the change, the read; its name, its value; its other: the name of the attribute that was changed.
    """
    events, loading, loads, made = view.events, {}, {}, {}
    for site in events.executed_sites():
        if site.kind == kinds.BASE and site.extra[0] == "load":
            loading.setdefault(site.name, []).append(site.number)
    for change in [one for one in events.all_stores() if _is_change(view, one)][-_MAX_STORES:]:
        owner, name = events.value_of[change], events.site(change).name
        first = next(iter(events.attribute_stores(id(owner), name, -1)), change)
        if not constructs(events.site(first).scope.name) or not _differ(events, first, change):
            continue
        frame = events.frame_of[first]
        node = view.node_of(frame)
        if node is not None and id(node) not in made:
            made[id(node)] = _computed(node)
        for computed in made[id(node)].get(name, ()) if node is not None else ():
            if computed not in loads:
                of_name = (event for number in loading.get(computed, ()) for event in events.of_site(number))
                loads[computed] = sorted(of_name)[-_MAX_LOADS:]
            found = _of(view, owner, computed, frame, change, loads[computed])
            if found is not None:
                yield found


def _is_change(view, store):
    site = view.events.site(store)
    return (
        site.kind == kinds.BASE
        and not constructs(site.scope.name)
        and not view.is_test_code(site.scope.filename)
    )


def _differ(events, first, second):
    """True if two stores set different plain values."""
    stored = [events.stored_value_event(one) for one in (first, second)]
    if None in stored:
        return False
    one, other = (events.value_of[event] for event in stored)
    return is_atom(one) and is_atom(other) and (type(one) is not type(other) or one != other)


def _computed(constructor):
    """{attribute that is a parameter: attributes that are computed from this}, by the assignments of a constructor."""
    kept, computed = {}, []
    for one in own_nodes(constructor):
        targets = one.targets if isinstance(one, ast.Assign) else [getattr(one, "target", None)]
        target = targets[0] if len(targets) == 1 else None
        value = one.value if isinstance(one, (ast.Assign, ast.AnnAssign)) else None
        if value is None or not isinstance(target, ast.Attribute) or not is_name(target.value, "self"):
            continue
        if isinstance(value, ast.Name):
            kept.setdefault(value.id, target.attr)
        else:
            computed.append((target.attr, value))
    return {
        attribute: [name for name, value in computed if name != attribute and reads(value, parameter)]
        for parameter, attribute in kept.items()
    }


def _of(view, owner, name, frame, change, loads):
    """The signal of a computed attribute that was read after a change; None if it was set again, or not read.

    `loads`: events at which attributes of its name were read, in order.
    """
    events = view.events
    stores = events.attribute_stores(id(owner), name, events.entered.get(frame, -1))
    if not stores or events.frame_of[stores[-1]] != frame:
        return None
    stored = events.stored_value_event(stores[-1])
    if stored is None or not is_atom(events.value_of[stored]) or events.value_of[stored] is None:
        return None
    later = loads[bisect_right(loads, change) :]
    read = next((one for one in later if events.value_of[one] is owner and view.is_suspect(one)), None)
    if read is None:
        return None
    rank = view.score_of_line(events.site(change)) + view.score_of_line(events.site(read))
    places = [view.place(one) for one in (stores[-1], change, read)]
    changed = events.site(change).name
    return Signal("derived", rank, places, name, text_of(events.value_of[stored]), changed, event=change)
