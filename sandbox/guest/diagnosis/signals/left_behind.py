"""Keys that a method has put into several containers of its object, and that another has taken from some of them only."""

from __future__ import annotations

from .. import sites as kinds
from ..aliases import change_name
from ..events import is_atom
from ..safe_values import text_of
from ..slicing import arguments_of
from .view import Signal

_ADDING = frozenset(("add", "append", "appendleft", "setdefault"))
_REMOVING = frozenset(("remove", "discard", "pop"))
_MAX_CHANGES = 20_000
_MAX_NAMES = 3


class _Change:
    """A key that went into a container of an object, or out of it."""

    __slots__ = ("container", "event", "frame", "is_added", "key", "name", "owner")

    def __init__(self, event, frame, owner, name, container, key, is_added):
        self.event, self.frame, self.owner, self.name = event, frame, owner, name
        self.container, self.key, self.is_added = container, key, is_added


def find(view):
    """Yield a signal for each key that a call has left in one container, and taken from others that it had come into by one call.

    Places: the removal, the addition that it left. Its name: the container with the key; its value: the key; its other: those
    without.
    """
    added, gone, removed = {}, {}, {}
    for change in _changes(view):
        if change.is_added:
            added.setdefault((id(change.owner), change.key), {})[change.name] = change
        else:
            gone.setdefault((change.frame, id(change.owner), change.key), []).append(change)
            removed.setdefault((id(change.container), change.key), []).append(change.event)
    for (_, owner, key), removals in gone.items():
        left = _left(added.get((owner, key), {}), removals)
        if left is not None and _matters(
            view, left, removals[-1], removed.get((id(left.container), key), ())
        ):
            names = sorted({one.name for one in removals})[:_MAX_NAMES]
            rank = view.score_of_line(view.events.site(left.event)) + 1.0
            places = [view.place(removals[-1].event), view.place(left.event)]
            yield Signal("left_behind", rank, places, left.name, text_of(key[1]), ", ".join(names))


def _left(together, removals):
    """The one addition of a key that was not undone, of those by a call of which another one was; None if there is none."""
    names = {one.name for one in removals}
    added = [one for one in together.values() if one.event < removals[0].event]
    frames = {one.frame for one in added if one.name in names}
    left = [one for one in added if one.name not in names and one.frame in frames]
    return left[0] if len(left) == 1 else None


def _matters(view, left, removal, removed):
    """True if the key stays in the container, and may be read there later on."""
    events, end = view.events, view.calls.last(removal.frame)
    if not view.is_suspect(removal.event) or any(event > left.event for event in removed):
        return False
    if any(
        event > left.event and _is_removal(events.site(event))
        for event in events.all_changes(id(left.container))
    ):
        return False
    return any(
        value is left.container and _may_read(events, event, left.key)
        for event, value in enumerate(events.value_of[end + 1 :], end + 1)
    )


def _may_read(events, event, key):
    """True if a key may be read from a container at an event: not if it is changed there, or asked for another one."""
    site = events.site(event)
    if site.kind in (kinds.BASE, kinds.ITEM) and site.extra[0] in ("store", "mutate", "delete"):
        return False
    is_known, other = (
        events.key_of(event) if site.kind in (kinds.BASE, kinds.ITEM, kinds.ASKED) else (False, None)
    )
    is_of_mapping = type(events.value_of[event]) is dict
    return not (is_known and is_of_mapping) or (type(other), other) == key


def _is_removal(site):
    if site.kind == kinds.BASE:
        return site.name in kinds.SHRINKING
    return site.kind == kinds.ITEM and site.extra[0] == "delete"


def _changes(view):
    """Yield the changes of containers that are attributes of the object whose method changes them, in order."""
    events = view.events
    sites = [
        site
        for site in events.executed_sites()
        if not view.is_test_code(site.scope.filename) and _direction(site) is not None
    ]
    found = sorted(event for site in sites for event in events.of_site(site.number))
    for event in found[:_MAX_CHANGES]:
        name, frame = change_name(events, event), events.frame_of[event]
        owner = view.calls.receiver(frame) if frame in events.entered else None
        key = _key(events, event)
        if owner is not None and key is not None and name.startswith("self."):
            yield _Change(
                event, frame, owner, name, events.value_of[event], key, _direction(events.site(event))
            )


def _direction(site):
    """True for a site that adds to a container, False for one that removes from it, None for others."""
    if site.kind == kinds.BASE and site.extra[0] == "mutate":
        return True if site.name in _ADDING else False if site.name in _REMOVING else None
    if site.kind == kinds.ITEM and site.extra[0] in ("store", "delete"):
        return site.extra[0] == "store"
    return None


def _key(events, event):
    """(type, value) of the plain key that a change adds or removes; None if it has none."""
    if events.site(event).kind == kinds.ITEM:
        is_known, key = events.key_of(event)
        return (type(key), key) if is_known and is_atom(key) and key is not None else None
    arguments = [events.value_of[argument] for argument in arguments_of(events, event)]
    is_known = bool(arguments) and is_atom(arguments[0]) and arguments[0] is not None
    return (type(arguments[0]), arguments[0]) if is_known else None
