"""Values that a function computes once and keeps, and that were used again after what they come from had changed."""

from __future__ import annotations

from bisect import bisect_right

from .. import sites as kinds
from ..calls import constructs
from ..events import is_atom, is_container
from .view import Signal

_MAX_STORES = 500
_MAX_LOADS = 50
"""Loads of an attribute before and after a store that are looked at."""
_MAX_USED = 500
"""Events of the call that stores which are looked at."""
_MAX_CHANGES = 20
"""Changes of each object that it used, the last ones."""
_FAR = 60


def find(view):
    """Yield a signal for each attribute that one call of a function reads and then sets, and a later one reads alone.

    If between them, outside of tests, a container or an attribute was changed that the first call had used. Only for plain
    values and new containers: another object may follow what it was made from. Places: where it was set, the change, the
    later read.
    """
    stores, events = list(_stores(view)), view.events
    first = events.first_seen({id(events.value_of[stored]) for _, stored, _ in stores})
    for store, stored, loads in stores:
        value = events.value_of[stored]
        if is_atom(value) or events.is_made_around(first[id(value)], store):
            found = _of_store(view, store, stored, loads)
            if found is not None:
                yield found


def _stores(view):
    """Yield (store, event of its value, loads) of attributes that the same function reads, the last stores.

    The loads are those of the same object by that function, in order.
    """
    events, loaded = view.events, {}
    for site in events.executed_sites():
        if site.kind == kinds.BASE and site.extra[0] == "load" and not view.is_test_code(site.scope.filename):
            loaded.setdefault((site.scope, site.name), []).append(site)
    loads = {}
    sites = {
        number
        for number, site in enumerate(events.sites)
        if _keeps(site) and (site.scope, site.name) in loaded
    }
    for store in [one for one in events.all_stores() if events.site_of[one] in sites][-_MAX_STORES:]:
        key = events.site(store).scope, events.site(store).name
        stored = events.stored_value_event(store)
        if (
            stored is None
            or events.site(stored).kind == kinds.AUGMENTED
            or not _is_value(events.value_of[stored])
        ):
            continue
        if key not in loads:
            loads[key] = _by_object(events, loaded[key])
        yield store, stored, loads[key].get(id(events.value_of[store]), [])


def _keeps(site):
    return site.kind == kinds.BASE and site.extra[0] == "store" and not constructs(site.scope.name)


def _by_object(events, sites):
    """id of an object -> the events of some sites with it, in order."""
    found = {}
    for event in sorted(event for site in sites for event in events.of_site(site.number)):
        found.setdefault(id(events.value_of[event]), []).append(event)
    return found


def _is_value(value):
    """True for what can be computed from something: no flag."""
    is_flag = value is None or type(value) is bool
    return not is_flag and (is_atom(value) or is_container(value) or type(value) in (tuple, frozenset))


def _of_store(view, store, stored, loads):
    events = view.events
    frame, name, owner = events.frame_of[store], events.site(store).name, id(events.value_of[store])
    start = bisect_right(loads, store)
    if not any(events.frame_of[event] == frame for event in loads[max(0, start - _MAX_LOADS) : start]):
        return None
    following = next(iter(events.attribute_stores(owner, name, store)), len(events))
    setting = frame, events.frame_of[following] if following < len(events) else None
    later = loads[start : bisect_right(loads, following)][-_MAX_LOADS:]
    read = next((event for event in reversed(later) if events.frame_of[event] not in setting), None)
    change = None if read is None else _change(view, store, stored, read)
    if change is None:
        return None
    rank = view.score_of_line(events.site(change)) + 1.0 / (1 + view.distances.get(read, _FAR) / 10)
    places = [view.place(one) for one in (store, change, read)]
    return Signal("stale", rank, places, name=events.site(stored).name, event=change)


def _change(view, store, stored, read):
    """The last change, between a store and a read, of what the storing call had used; None if there is none."""
    events, used, attributes = view.events, set(), set()
    frame, own = events.frame_of[store], (id(events.value_of[store]), events.site(store).name)
    before = view.events_of(frame)
    end = bisect_right(before, store)
    for event in before[max(0, end - _MAX_USED) : end]:
        site, value = events.site(event), events.value_of[event]
        if site.kind == kinds.BASE and site.extra[0] == "load":
            attributes.add((id(value), site.name))
        if is_container(value):
            used.add(id(value))
    changes = [events.contents.get(one, ()) for one in used - {id(events.value_of[stored])}]
    changes += [events.attribute_stores(*one, store) for one in attributes - {own}]
    found = [
        event
        for one in changes
        for event in one[
            max(bisect_right(one, store), bisect_right(one, read) - _MAX_CHANGES) : bisect_right(one, read)
        ]
        if events.frame_of[event] != frame and not view.is_test_code(events.site(event).scope.filename)
    ]
    return max(found, default=None)
