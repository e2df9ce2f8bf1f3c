"""Values that a function computes once and keeps, and that were used again after what they come from had changed."""

from __future__ import annotations

from bisect import bisect_right

from .. import sites as kinds
from ..events import is_atom, is_container
from .view import Signal

_MAX_STORES = 500
_FAR = 60


def find(view):
    """Yield a signal for each attribute that one call of a function reads and then sets, and a later one reads alone.

    If between them, outside of tests, a container or an attribute was changed that the first call had used. Only for plain
    values and new containers: another object may follow what it was made from. Places: where it was set, the change, the
    later read.
    """
    stores = list(_stores(view))
    first = view.events.first_seen({id(view.events.value_of[stored]) for _, stored, _ in stores})
    for store, stored, loads in stores:
        value, entered = view.events.value_of[stored], view.events.entered.get(view.events.frame_of[store], 0)
        if is_atom(value) or first[id(value)] >= entered:
            found = _of_store(view, store, stored, loads)
            if found is not None:
                yield found


def _stores(view):
    """Yield (store, event of its value, loads) of attributes that the same function reads, the last stores."""
    events, loaded = view.events, {}
    for site in events.executed_sites():
        if site.kind == kinds.BASE and site.extra[0] == "load":
            loaded.setdefault((site.scope, site.name), []).append(site)
    for store in events.all_stores()[-_MAX_STORES:]:
        site = events.site(store)
        if site.kind != kinds.BASE or (site.scope, site.name) not in loaded:
            continue
        stored = events.stored_value_event(store)
        if (
            stored is None
            or events.site(stored).kind == kinds.AUGMENTED
            or not _is_value(events.value_of[stored])
        ):
            continue
        if not view.is_test_code(site.scope.filename) and not site.scope.name.endswith("__init__"):
            yield store, stored, loaded[site.scope, site.name]


def _is_value(value):
    """True for what can be computed from something: no flag."""
    is_flag = value is None or type(value) is bool
    return not is_flag and (is_atom(value) or is_container(value) or type(value) in (tuple, frozenset))


def _of_store(view, store, stored, loads):
    events = view.events
    frame, name, owner = events.frame_of[store], events.site(store).name, events.value_of[store]
    mine = [event for one in loads for event in events.of_site(one.number) if events.value_of[event] is owner]
    if not any(event < store and events.frame_of[event] == frame for event in mine):
        return None
    following = events.attribute_stores(id(owner), name, store)
    setting = {events.frame_of[one] for one in following[:1]}
    later = [
        event
        for event in mine
        if event > store
        and not (following and event > following[0])
        and events.frame_of[event] != frame
        and events.frame_of[event] not in setting
    ]
    read = max(later, default=None)
    change = None if read is None else _change(view, store, stored, read)
    if change is None:
        return None
    rank = view.score_of_line(events.site(change)) + 1.0 / (1 + view.distances.get(read, _FAR) / 10)
    places = [view.place(one) for one in (store, change, read)]
    return Signal("stale", rank, places, name=events.site(stored).name, event=change)


def _change(view, store, stored, read):
    """The last change, between a store and a read, of what the storing call had used; None if there is none."""
    events, used, attributes = view.events, set(), set()
    frame, owner, name = events.frame_of[store], id(events.value_of[store]), events.site(store).name
    for event in view.events_of(frame):
        if event > store:
            break
        site, value = events.site(event), events.value_of[event]
        if site.kind == kinds.BASE and site.extra[0] == "load":
            attributes.add((id(value), site.name))
        if is_container(value):
            used.add(id(value))
    attributes.discard((owner, name))
    used.discard(id(events.value_of[stored]))
    found = [event for one in used for event in _between(events.contents.get(one, ()), store, read)]
    for target, other in attributes:
        found += _between(events.attribute_stores(target, other, store), store, read)
    found = [
        one
        for one in found
        if events.frame_of[one] != frame and not view.is_test_code(events.site(one).scope.filename)
    ]
    return max(found, default=None)


def _between(found, first, last):
    return [event for event in found[bisect_right(found, first) :] if event < last]
