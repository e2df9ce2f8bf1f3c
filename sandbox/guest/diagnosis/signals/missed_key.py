"""Keys that were looked up in vain in a container that holds the same key in another form."""

from __future__ import annotations

import collections
import re
from bisect import bisect_left

from .. import sites as kinds
from ..aliases import change_name
from ..events import is_atom, is_same
from ..safe_values import text_of
from .view import Signal

_MAPPINGS = {
    id(kind) for kind in (dict, collections.OrderedDict, collections.defaultdict, collections.Counter)
}
_RAISING = {id(dict), id(collections.OrderedDict)}
_SEQUENCES = {id(kind) for kind in (list, tuple, set, frozenset, collections.deque)}
_PUTTING_IN = frozenset(("add", "append", "appendleft", "setdefault"))
_TAKING_ONE = frozenset(("remove", "discard", "pop"))
_QUALIFIED = re.compile(r"[^\W\d]\w*([./:][^\W\d]\w*)+")
_LAST_PART = re.compile(r"[./:]")
_MAX_LOOKUPS, _MAX_CONTAINERS, _MAX_ITEMS, _MAX_TEXT = 20_000, 2000, 1000, 200
_MAX_CHANGES = 1000
_MAX_CALLERS = 2
"""Calls around a look-up by which another form of the key may be looked up, too."""


class _Keys:
    """The plain keys of a container at the end of the run, by their forms."""

    def __init__(self, container):
        self.all, self._alike, self._qualified = set(), {}, {}
        for key in list(container):
            if not _is_key(key):
                continue
            self.all.add((type(key), key))
            self._alike.setdefault(_form(key), []).append(key)
            if type(key) is str and _QUALIFIED.fullmatch(key):
                self._qualified.setdefault(_LAST_PART.split(key)[-1], []).append(key)

    def near(self, key):
        """The only key that is the same as another one but for its form; None if there is none, or several."""
        form = _form(key)
        found = self._alike.get(form, [])
        if form and found:
            return found[0] if len(found) == 1 and _may_be_meant(key, found[0], form) else None
        found = self._qualified.get(key, []) if type(key) is str else []
        if type(key) is str and _QUALIFIED.fullmatch(key):
            last = _LAST_PART.split(key)[-1]
            found = [last] if (str, last) in self.all else []
        return found[0] if len(found) == 1 else None


def find(view):
    """Yield a signal for each look-up, on the way to the failure, of a key that its container holds in another form only.

    Places: the look-up, and the change that put the other key in, if it is recorded. Its name: the container; its value:
    the key; its other: the other key.
    """
    events, keys, found = view.events, {}, []
    for event in _suspect_lookups(view):
        container = events.value_of[event]
        if not _is_searchable(events.site(event), container):
            continue
        is_known, key = events.key_of(event)
        if not is_known or not _is_key(key):
            continue
        if id(container) not in keys:
            if len(keys) >= _MAX_CONTAINERS:
                break
            keys[id(container)] = _Keys(container)
        mine = keys[id(container)]
        if (type(key), key) in mine.all or _was_found(events, event):
            continue
        other = mine.near(key)
        if other is not None:
            found.append((event, key, other))
    asked = _lookups_in(view, {id(events.value_of[event]) for event, _, _ in found})
    for event, key, other in found:
        is_there, put_in = _history(events, event, key, other)
        if is_there and not _is_asked_nearby(view, asked, event, other):
            yield _signal(view, event, key, other, put_in)


def _signal(view, event, key, other, put_in):
    scores = [view.score_of_line(view.events.site(one)) for one in (event, put_in) if one is not None]
    distance = view.distances.get(event)
    rank = sum(scores) + (0.0 if distance is None else 1.0 / (1 + distance / 10))
    places = [view.place(one) for one in (event, put_in) if one is not None]
    name = change_name(view.events, event)
    return Signal("missed_key", rank, places, name, text_of(key), text_of(other))


def _suspect_lookups(view):
    """Events of look-ups on the way to the failure or in suspect lines, in order; in tests only the one that failed."""
    events = view.events
    found = [
        event
        for site in events.executed_sites()
        if _is_lookup(site)
        for event in events.of_site(site.number)
        if (
            view.distances.get(event) == 0 and site.kind == kinds.ITEM
            if view.is_test_code(site.scope.filename)
            else view.is_suspect(event)
        )
    ]
    return sorted(found)[-_MAX_LOOKUPS:]


def _is_lookup(site):
    if site.kind == kinds.BASE:
        return len(site.extra) > 3 and (site.name == "get" or site.name == "pop" and len(site.extra) > 4)
    return site.kind == kinds.ASKED or site.kind == kinds.ITEM and site.extra[0] == "load"


def _is_searchable(site, container):
    """True for a small container of a builtin type, in which a look-up as at a site is one of a key."""
    kind = id(type(container))
    is_one = kind in _MAPPINGS
    if site.kind == kinds.ASKED:
        is_one = is_one or kind in _SEQUENCES
    elif site.kind == kinds.ITEM:
        is_one = kind in _RAISING
    return is_one and len(container) <= _MAX_ITEMS


def _is_key(value):
    kind = type(value)
    return kind is int or (kind is str or kind is bytes) and len(value) <= _MAX_TEXT


def _form(key):
    """The text that keys have in common which are the same but for their form."""
    text = str(key) if type(key) is int else key.decode("latin-1") if type(key) is bytes else key
    text = text.strip()
    return text if _is_number(text) else text.strip("/.").replace("-", "_").lower()


def _is_number(text):
    return not text.strip("0123456789.-+")


def _may_be_meant(key, other, form):
    """False for two letters: programs tell 'a' from 'A'."""
    return type(key) is not type(other) or len(form) > 1


def _was_found(events, event):
    """True for a key that `pop` has taken out, as far as its result tells."""
    site = events.site(event)
    if site.kind != kinds.BASE or site.name != "pop":
        return False
    result = events.result_of_method(event)
    return result is None or not is_same(events.value_of[result], site.extra[4])


def _history(events, event, key, other):
    """(True if a container held the other key at a look-up, and never had this one after it; the change that put it in)."""
    container, put_in, is_later = events.value_of[event], None, False
    changes = events.contents.get(id(container), ())
    start = bisect_left(changes, event)
    for change in changes[max(0, start - _MAX_CHANGES) : start + _MAX_CHANGES]:
        is_known, changed, is_added = _change(events, change)
        if change == event:
            continue
        if change < event:
            if is_known and is_added and is_same(changed, other):
                put_in = change
        elif not is_known or is_same(changed, key):
            return False, None
        elif is_added and is_same(changed, other):
            is_later = True
    return put_in is not None or not is_later, put_in


def _change(events, change):
    """(True if it is known, key, True if it was put in) of a change."""
    site = events.site(change)
    is_known, key = events.key_of(change) if site.kind in (kinds.BASE, kinds.ITEM) else (False, None)
    if site.kind == kinds.ITEM:
        return is_known and is_atom(key), key, site.extra[0] == "store"
    if site.name in _PUTTING_IN or site.name in _TAKING_ONE:
        return is_known, key, site.name in _PUTTING_IN
    return site.name in ("sort", "reverse"), None, False


def _lookups_in(view, containers):
    """id of a container -> (event, key) of all look-ups in it, of those that are asked for."""
    events, found = view.events, {}
    for site in events.executed_sites() if containers else ():
        for event in events.of_site(site.number) if _is_lookup(site) else ():
            target = id(events.value_of[event])
            if target in containers and len(found.setdefault(target, [])) < _MAX_LOOKUPS:
                is_known, key = events.key_of(event)
                if is_known:
                    found[target].append((event, key))
    return found


def _is_asked_nearby(view, asked, event, other):
    """True if the container was asked for the other key, too, by the same call or by one of the same caller."""
    around = _around(view, event)
    return any(
        is_same(key, other) and around & _around(view, one)
        for one, key in asked.get(id(view.events.value_of[event]), ())
    )


def _around(view, event):
    frame = view.events.frame_of[event]
    stack = view.calls.stack(frame)[:_MAX_CALLERS]
    return {frame, *(one for one in stack if not view.is_test_code(view.calls.scope_of(one).filename))}
