"""Tells values that differ for a recorded reason from those that differ though their inputs are the same."""

from __future__ import annotations

import re

from .. import sites as kinds
from ..events import is_atom
from ..slicing import arguments_of, causes
from .snapshots import parts_of

_HIDDEN = re.compile(r"…|<\w+>|^class |^function |^\?$")
_DATA = 3
"""Weight of a cause from which on it is no part of the value."""


class Origins:
    """Reasons for the differing values of the failing run."""

    def __init__(self, events, here, pairs, differing, is_test):
        self._events, self._here, self._pairs, self._differing = events, here, pairs, differing
        self._changed: dict = {}
        """id of an object -> the first event by which it got other content than in the passing run."""
        for event in range(len(events)):
            value = events.value_of[event]
            if not is_atom(value) and self._changes(event, is_test):
                for part in parts_of(value) if is_test(here.place(event).path) else [id(value)]:
                    self._changed.setdefault(part, event)

    def has_reason(self, event):
        """True if something that a value was made of differs, or ran in one run only."""
        if self._is_changed(event):
            return True
        for cause, weight in causes(self._events, event):
            if cause is None or weight >= _DATA or not self._here.frames[cause]:
                continue
            if (
                self._is_hidden(cause)
                or self._differs(cause)
                or self._is_changed(cause)
                or self._differs(self._stored(cause))
            ):
                return True
        return False

    def _is_hidden(self, event):
        """True for an object of which not all is shown: more of it may differ."""
        if is_atom(self._events.value_of[event]):
            return False
        return _HIDDEN.search(self._here.texts[event]) is not None

    def _is_changed(self, event):
        value = self._events.value_of[event]
        return not is_atom(value) and any(self._changed.get(part, event) < event for part in parts_of(value))

    def _differs(self, event):
        return event is not None and (event in self._differing or event not in self._pairs)

    def _stored(self, event):
        site = self._events.site(event)
        stores = site.kind in (kinds.BASE, kinds.ITEM) and site.extra[0] == "store"
        return self._events.stored_value_event(event) if stores else None

    def _changes(self, event, is_test):
        """True if an event changes an object otherwise than in the passing run, or a test made it otherwise."""
        if is_test(self._here.place(event).path):
            return self._differs(event)
        site = self._events.site(event)
        if site.kind not in (kinds.BASE, kinds.ITEM) or site.extra[0] in ("load", "method"):
            return False
        if event not in self._pairs or self._differs(self._stored(event)):
            return True
        return any(self._differs(argument) for argument in arguments_of(self._events, event))
