"""Attributes without a value where the failure reads them, and the line that would have set them."""

from __future__ import annotations

from .. import sites as kinds
from ..events import is_container, is_of_class
from ..safe_values import text_of
from .view import Signal

_NEAR = 5
"""Distance from the failure up to which an attribute is looked at."""
_MAX_STORES = 3
"""Places that set an attribute; it is a common name if there are more."""
_MAX_READS = 200


def find(view):
    """Yield a signal for each attribute that was read unset near the failure, and whose only other store did not run.

    The function of that store did. Places: the read, the store that did not run, and the last one if there was one. Its
    name: the attribute; its value: what was read.
    """
    events, skipped = view.events, _skipped_stores(view)
    reads = [
        (distance, event)
        for event, distance in view.distances.items()
        if distance <= _NEAR and _is_read(events.site(event)) and events.site(event).name in skipped
    ]
    for distance, event in sorted(reads)[:_MAX_READS]:
        target, name = events.value_of[event], events.site(event).name
        written = events.attribute_writer(target, name, event)
        is_empty, value = _unset(events, written)
        if not is_empty or written is None and events.class_attribute_writer(target, name, event) is None:
            continue
        found = [site for site in skipped[name] if _may_set(site, target)]
        if not 1 <= len(found) <= _MAX_STORES:
            continue
        store = found[0]
        places = [view.place(event), (store.scope.filename, store.line, store.scope.name)]
        places += [] if written is None else [view.place(written)]
        yield Signal("not_set", 1.0 / (1 + distance), places, name, text_of(value))


def _is_read(site):
    return site.kind == kinds.BASE and site.extra[0] == "load"


def _skipped_stores(view):
    """Name of an attribute -> the sites that would set it, did not run, and are of functions that ran."""
    events, found = view.events, {}
    ran = {events.site(event).scope for event in events.entered.values()}
    for site in events.sites:
        if site.kind != kinds.BASE or site.extra[0] != "store" or events.of_site(site.number):
            continue
        if site.scope in ran and not view.is_test_code(site.scope.filename):
            found.setdefault(site.name, []).append(site)
    return found


def _unset(events, written):
    """(True, value) if the last store of an attribute gave it no value to speak of, or there was none."""
    if written is None:
        return True, None
    stored = events.stored_value_event(written)
    if stored is None:
        return False, None
    value = events.value_of[stored]
    is_plain = is_container(value) or type(value) in (bool, int, str)
    return value is None or is_plain and not value, value


def _may_set(site, target):
    """True if a store may be one of the attribute of `target`: of `self` only in a method of its class."""
    return site.deps != ("self",) or is_of_class(target, site.scope.name.rpartition(".")[0])
