"""Containers that two names hold, and that were changed through one of them."""

from __future__ import annotations

from . import sites as kinds
from .events import is_container
from .slicing import arguments_of

_MAX_NAME = 100
_MAX_OBJECTS = 20_000
_MAX_PAIRS = 200
_SUSPECT = 0.6
_WRONG = 2.0
"""Suspicion of a change that has put in a wrong value."""
_OF_PEERS = 2.0
"""Suspicion of a container that several objects hold as the same attribute."""
MAX_ALIASES = 6
MAX_PARTED = 2
_MAX_HOLDERS = 12


class Holder:
    """An attribute, item or variable that holds an object from an event on."""

    def __init__(self, event, owner, name):
        self.event, self.owner, self.name = event, owner, name

    @property
    def last_name(self):
        return _last_name(self.name)


def find(events, holders, is_test_code, score_of_line, distances, wrong_changes):
    """Suspect (score, stored event, name, changed event, name, of peers), the best first.

    "Of peers": several objects hold it as the same attribute, and it is changed as that. `wrong_changes` are changes that
    have put in a wrong value.
    """
    best, wrong = {}, frozenset(wrong_changes)
    changed = {target for target in holders if events.contents.get(target)}
    first, returns = events.first_seen(changed), _returns_of(events, changed)
    for target in sorted(changed, key=first.__getitem__):
        held, changes = holders[target], events.contents[target]
        seen = first[target], returns.get(target, ())
        for score, holder, change, through, of_peers in _pairs(events, held, changes[-_MAX_PAIRS:], seen):
            stored, changed = events.site(holder.event), events.site(change)
            if is_test_code(stored.scope.filename) and is_test_code(changed.scope.filename):
                continue
            suspicion = max(score_of_line(stored), score_of_line(changed))
            if change not in distances and suspicion < _SUSPECT:
                continue
            score += 3 * suspicion
            score += (holder.event in distances) + (change in distances) + _WRONG * (change in wrong)
            key = (stored.scope.filename, stored.line, changed.scope.filename, changed.line)
            if key not in best or best[key][0] <= score:
                best[key] = (score, holder.event, holder.name, change, through, of_peers)
    return sorted(best.values(), key=lambda found: (-found[0], found[1]))[:MAX_ALIASES]


def find_parted(events, holders, is_test_code, score_of_line):
    """Containers that two attributes held until one of them was set to another: (score, stored event, name, event, name), the best first.

    The attribute that was set later keeps the old object, and is read after that. A function that does both at once
    means it.
    """
    candidates = list(_parted(events, holders, is_test_code))
    loads = _last_loads(events, {_attribute(events, second) for _, second, _, _ in candidates})
    best = {}
    for first, second, parted, again in candidates:
        last_load = loads.get(_attribute(events, second), -1)
        if not parted < last_load or (again is not None and again < last_load):
            continue
        place, stored = events.site(parted), events.site(second.event)
        score = 2.0 + 3 * max(score_of_line(place), score_of_line(stored))
        key = (stored.scope.filename, stored.line, place.scope.filename, place.line)
        if key not in best or best[key][0] < score:
            best[key] = (score, second.event, second.name, parted, first.name)
    return sorted(best.values(), key=lambda found: (-found[0], found[1]))[:MAX_PARTED]


def _parted(events, holders, is_test_code):
    """Yield (first, second, event that set the first to another object, event that set the second so or None)."""
    for target, held in holders.items():
        for first, second in _pairs_of_attributes(events, target, held):
            parted = _next_store(events, first, second.event, target)
            if parted is None:
                continue
            place, stored = events.site(parted).scope, events.site(second.event).scope
            if place is stored or is_test_code(place.filename) or is_test_code(stored.filename):
                continue
            yield first, second, parted, _next_store(events, second, second.event, target)


def _pairs_of_attributes(events, target, held):
    """Pairs of attributes that hold the container with the id `target`, the one that was set earlier first."""
    attributes = [one for one in held if _is_attribute_of(events, one, target)][:_MAX_HOLDERS]
    for number, first in enumerate(attributes):
        for second in attributes[number + 1 :]:
            if _attribute(events, first) != _attribute(events, second):
                yield first, second


def _is_attribute_of(events, holder, target):
    is_attribute = (
        events.site(holder.event).kind == kinds.BASE and events.site(holder.event).extra[0] == "store"
    )
    return is_attribute and id(events.value_of[events.stored_value_event(holder.event)]) == target


def _attribute(events, holder):
    """(id of the object, name) of an attribute that holds something."""
    return holder.owner, events.site(holder.event).name


def _next_store(events, holder, after, target):
    """The next event after `after` that sets a holder's attribute to another object than that with the id `target`."""
    for event in events.attribute_stores(*_attribute(events, holder), after):
        stored = events.stored_value_event(event)
        if stored is not None and id(events.value_of[stored]) != target:
            return event
    return None


def _last_loads(events, attributes):
    """(id of object, attribute) -> last event that read it, for those of `attributes` that are read."""
    found = {}
    for event in range(len(events)) if attributes else ():
        site = events.site(event)
        if site.kind == kinds.BASE and site.extra[0] != "store":
            key = (id(events.value_of[event]), site.name)
            if key in attributes:
                found[key] = event
    return found


def _returns_of(events, targets):
    """id of an object, of the ids `targets` -> the events that return it."""
    found = {}
    for kind in (kinds.RETURN, kinds.YIELD):
        for event in events.of_kind(kind):
            if id(events.value_of[event]) in targets:
                found.setdefault(id(events.value_of[event]), []).append(event)
    return found


def _is_own(events, holder, change, seen):
    """True if the function that stores an object has made it, or had it made, and nothing has returned it since, up to a change.

    Not if an attribute is changed by a local name for it: `options = self.options` may have meant a copy. `seen`: the event
    at which it was seen first, and those that return it.
    """
    first, returns = seen
    site = events.site(holder.event)
    if site.kind == kinds.PARAMETER or site.scope.parent is None or site.scope.is_class:
        return False
    writer = events.writer(change_name(events, change), change) if site.kind == kinds.BASE else None
    if writer is not None and events.site(writer).kind == kinds.STORE:
        return False
    is_made = events.is_made_around(first, holder.event)
    return is_made and not any(holder.event < event < change for event in returns)


def _pairs(events, held, changes, seen):
    """(score, holder, change, name, of peers) of changes through another name than the holder's.

    Not of what one holder alone has, for which it was made.
    """
    for change in changes:
        through = change_name(events, change)
        earlier = [holder for holder in held if holder.event < change]
        for holder in earlier[-4:]:
            others = [other for other in earlier if (other.owner, other.name) != (holder.owner, holder.name)]
            is_given_on = not others and _is_given_on(events, held, holder, change)
            if not others and not is_given_on and _is_own(events, holder, change, seen):
                continue
            other_name = holder.last_name != _last_name(through)
            other_owner = is_given_on or any(other.owner != holder.owner for other in others)
            if not other_name and not other_owner:
                continue
            score = 3.0 if _shrinks(events, change) else 1.0
            score += 2.0 * (is_given_on or bool(others)) + 1.0 * other_name
            score += events.site(holder.event).scope is not events.site(change).scope
            of_peers = _is_of_peers(events, holder, others, change)
            yield score + _OF_PEERS * of_peers, holder, change, through, of_peers or is_given_on


def _is_given_on(events, held, holder, change):
    """True if another object gets a container as the same attribute when it has been changed as that of the first one."""
    later = [one for one in held if one.event > change]
    return bool(later) and _is_of_peers(events, holder, later, change)


def _is_of_peers(events, holder, others, change):
    """True if several objects hold a container as the same attribute, and it is changed as that: each takes it for its own."""
    name = change_name(events, change)
    if events.site(change).kind != kinds.BASE or holder.last_name != _last_name(name) or "." not in name:
        return False
    return any(other.owner != holder.owner and other.last_name == holder.last_name for other in others)


def change_name(events, change):
    """Name through which a container is changed at an event, or an attribute is set by its name: `order.lines`."""
    site = events.site(change)
    if site.kind == kinds.SETATTR:
        _, name = events.attribute_at(change)
        return "{}.{}".format(site.name.rpartition(".")[0], name[:_MAX_NAME] if type(name) is str else "…")
    if site.kind == kinds.BASE:
        return site.extra[1] if type(site.extra[1]) is str else site.name
    return site.name


def name_of(events, write):
    """The written state: `self.charset`, `options`, `self.cache[…]`."""
    site = events.site(write)
    if site.kind == kinds.ITEM:
        return f"{site.name}[…]"
    stored = events.stored_value_event(write) if site.kind == kinds.BASE else None
    return change_name(events, write) if stored is None else events.site(stored).name


def change_text(events, change):
    """The change as text: `order.lines.pop`, `order.lines[…] =`."""
    site = events.site(change)
    name = change_name(events, change)
    if site.kind == kinds.BASE:
        return f"{name}.{site.name}"
    if site.kind == kinds.ITEM:
        return f"del {name}[…]" if site.extra[0] == "delete" else f"{name}[…] ="
    return f"{name} +="


def _shrinks(events, change):
    site = events.site(change)
    if site.kind == kinds.BASE:
        return site.name in kinds.SHRINKING
    return site.kind == kinds.ITEM and site.extra[0] == "delete"


def _last_name(text):
    return text.split("[")[0].rpartition(".")[2]


def find_holders(events):
    """id of a container -> its holders in the order of their events."""
    found = {}

    def add(value, event, owner, name):
        if is_container(value) and (id(value) in found or len(found) < _MAX_OBJECTS):
            held = found.setdefault(id(value), [])
            if len(held) < 50:
                held.append(Holder(event, owner, name))

    for event in events.of_sites(_may_hold):
        site = events.site(event)
        kind = site.kind
        if kind in kinds.SETTING and site.extra[0] == "store":
            _add_stored(events, event, add)
        elif kind == kinds.BASE:
            if is_container(events.value_of[event]):
                for argument in arguments_of(events, event):
                    name = f"{site.extra[1]}[…]"
                    add(events.value_of[argument], event, id(events.value_of[event]), name)
        elif kind == kinds.STORE:
            for name in site.extra or ():
                add(events.value_of[event], event, id(site.scope), name)
        elif is_container(events.value_of[event]) and events.argument_of(event) is None:
            add(events.value_of[event], event, id(site.scope), site.name + " (the default)")
    return found


def _may_hold(site):
    """True if an event of a site may give a container a holder: it stores, adds, or takes a default."""
    if site.kind in kinds.SETTING:
        is_adding = site.kind == kinds.BASE and site.extra[0] == "mutate" and site.name in _ADDING
        return site.extra[0] == "store" or is_adding
    if site.kind == kinds.STORE:
        return site.scope.parent is None
    return site.kind == kinds.PARAMETER and site.name in site.scope.defaults


_ADDING = frozenset(("append", "add", "insert", "appendleft", "setdefault"))


def _add_stored(events, event, add):
    stored = events.stored_value_event(event)
    if stored is None:
        return
    value, owner = events.value_of[stored], id(events.value_of[event])
    name = name_of(events, event)
    add(value, event, owner, name)
    if type(value) is tuple:
        for item in value[:8]:
            add(item, event, owner, name)
