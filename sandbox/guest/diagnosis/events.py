"""The recorded log with its indexes: what wrote a name, an attribute, a container, before an event."""

from __future__ import annotations

import collections
import itertools
import types
from bisect import bisect_left

from . import sites as kinds
from .rewriting import FRAME

_ATOMS = frozenset(map(id, (str, int, float, complex, bool, bytes, type(None))))
_CONTAINERS = frozenset(
    map(
        id,
        (
            list,
            dict,
            set,
            bytearray,
            collections.deque,
            collections.OrderedDict,
            collections.defaultdict,
            collections.Counter,
        ),
    )
)
_NEAR = 60
_FAR = 400
_LONG = 5000
_STATEMENT = 30
_STARTS = 12
_RETURNED = 200
"""Calls that had returned before another began."""


def is_atom(value):
    """True for a value that can't change and holds no others. By identity: a type may define `==`."""
    return id(type(value)) in _ATOMS


def is_same(value, other):
    """True for one object, and for equal values that can't change, of one type."""
    return value is other or (is_atom(value) and type(value) is type(other) and value == other)


def is_of_class(value, name):
    """True if the class of a value, or one above it, has this qualified name. Calls no code of the program."""
    return any(_QUALNAME(above) == name for above in _MRO(type(value)))


def is_container(value):
    """True for a builtin container that can change."""
    return id(type(value)) in _CONTAINERS


_MRO = type.__dict__["__mro__"].__get__
_NAMESPACE = type.__dict__["__dict__"].__get__
_QUALNAME = type.__dict__["__qualname__"].__get__


def _extends_container(value):
    """True for a builtin container, and for an object of a class made from one."""
    return is_container(value) or any(id(kind) in _CONTAINERS for kind in _MRO(type(value)))


class Events:
    """Events by number, oldest first."""

    def __init__(self, log, rewriter):
        self.site_of = log[0::3]
        self.frame_of = log[1::3]
        self.value_of = log[2::3]
        self.sites = rewriter.sites
        self.modules = {scope.filename: frame for frame, scope in rewriter.module_scopes.items()}
        """The frame of each module."""
        self._classes = rewriter.classes
        self._names = {}
        """(frame, name) or (scope, name) -> events that bind it."""
        self._attributes = {}
        """(id of object, attribute) -> events that set it."""
        self._changed = None
        """id of an object -> events that change it; made when it is asked for."""
        self._conditions = None
        """Of `_tests_of_changes`; made when it is asked for."""
        self.contents = {}
        """id of a container -> events that change it."""
        self._executed = {}
        """id of a namespace -> arguments of `exec` that give it."""
        self._by_site = {}
        self._wholes, self._callers = {}, {}
        self.entered = {}
        """frame -> the event of its start."""
        self.outermost = None
        """The frame that code which is not recorded has called: that of the failing test."""
        self._index()

    def __len__(self):
        return len(self.site_of)

    def site(self, event):
        return self.sites[self.site_of[event]]

    def _index(self):
        by_site = collections.defaultdict(list)
        for event, number in enumerate(self.site_of):
            by_site[number].append(event)
        self._by_site = dict(by_site)
        for number, found in self._by_site.items():
            self._index_site(self.sites[number], found)
        for index in (self._names, self._attributes, self.contents, self._executed):
            for found in index.values():
                found.sort()  # those of one site after those of another

    def _index_site(self, site, found):
        kind, values, frames = site.kind, self.value_of, self.frame_of
        if kind == kinds.STORE or kind == kinds.PARAMETER:
            for name in site.extra or ():
                self._names.setdefault((id(site.scope.owner_of(name)), name), []).extend(found)
                for event in found:
                    self._names.setdefault((frames[event], name), []).append(event)
            if site.augments:
                self._add_containers(self.contents, found)
        elif kind == kinds.BASE:
            if site.extra[0] in ("store", "delete"):
                for event in found:
                    self._attributes.setdefault((id(values[event]), site.name), []).append(event)
            elif site.extra[0] == "mutate":
                self._add_containers(self.contents, found)
        elif kind == kinds.SETATTR:
            for event in found:
                known, name = self.attribute_at(event)
                if known:
                    self._attributes.setdefault((id(values[event]), name), []).append(event)
        elif kind == kinds.ITEM:
            for event in found if site.extra[0] != "load" else ():
                self.contents.setdefault(id(values[event]), []).append(event)
        elif kind == kinds.ARGUMENT and site.extra is not None:
            self._add_containers(self._executed, found)
        elif kind == kinds.ENTER:
            self.entered.update((frames[event], event) for event in found)

    def _add_containers(self, index, found):
        """Add the events at which the value is a container, by its id."""
        for event in found:
            if is_container(self.value_of[event]):
                index.setdefault(id(self.value_of[event]), []).append(event)

    def last_of_site(self, number, frame, before):
        """Last event of a site in a frame before an event; None if there is none."""
        found = self._by_site.get(number, ())
        position = bisect_left(found, before) - 1
        for back in range(position, max(-1, position - _FAR), -1):
            if self.frame_of[found[back]] == frame:
                return found[back]
        return None

    def _first_of_site(self, number, frame, after):
        found = self._by_site.get(number, ())
        for position in range(bisect_left(found, after), min(len(found), bisect_left(found, after) + _FAR)):
            if self.frame_of[found[position]] == frame:
                return found[position]
        return None

    def last_of_frame(self, frame, line):
        """The last events of a frame that belong to its statement at `line`; else the very last one."""
        found, last = [], None
        for event in range(len(self) - 1, -1, -1):
            if self.frame_of[event] != frame or self.site(event).kind in kinds.ASIDES:
                continue
            last = event if last is None else last
            if not line <= self.site(event).line < line + _STATEMENT or len(found) >= _STARTS:
                break
            found.append(event)
        return found or ([] if last is None else [last])

    def writer(self, name, event):
        """Last event before `event` that bound a name as its frame sees it; None if none was recorded."""
        scope = self.site(event).scope
        owner = scope.owner_of(name)
        if owner is scope:
            return _last(self._names.get((self.frame_of[event], name), ()), event)
        return _last(self._names.get((id(owner), name), ()), event) if name in owner.bound else None

    def first_seen(self, targets):
        """id of an object, of the ids `targets` -> the event at which it was seen first."""
        found = {}
        for event, value in enumerate(self.value_of):
            if id(value) in targets:
                found.setdefault(id(value), event)
        return found

    def is_made_around(self, first, event):
        """True if an object that was seen first at an event was made by the call that another event is in, or below it."""
        return first >= self.entered.get(self.frame_of[event], 0)

    def attribute_writer(self, target, name, event):
        """Last event before `event` that set an attribute of an object."""
        return _last(self._attributes.get((id(target), name), ()), event)

    def all_changes(self, target):
        """Events that change the contents or an attribute of the object with the id `target`, in order."""
        if self._changed is None:
            self._changed = {}
            for event in self.of_sites(_may_change):
                if self._is_change(event):
                    self._changed.setdefault(id(self.value_of[event]), []).append(event)
        return self._changed.get(target, ())

    def _is_change(self, event):
        site = self.site(event)
        is_method = site.kind == kinds.BASE and site.extra[0] == "mutate"
        return _may_change(site) and (not is_method or _extends_container(self.value_of[event]))

    def skipped_changes(self, name, writer, event):
        """Conditions by which a local container was not changed from its `writer` to an event: the last of each.

        Of statements that would have changed it, in the same function, if none did.
        """
        value, frame = self.value_of[writer], self.frame_of[event]
        if not is_container(value) or self.frame_of[writer] != frame or self.changes(value, event, 1):
            return []
        tests = self._tests_of_changes().get((id(self.site(event).scope), name), ())
        found = {self._last_asked(test, frame, writer, event) for test in tests}
        return [test for test in found if test is not None]

    def _last_asked(self, test, frame, writer, event):
        """Event of a condition, or of the nearest one around it that was evaluated between two events; None if none was."""
        while test is not None:
            found = self.last_of_site(test, frame, event)
            if found is not None and found > writer:
                return found
            test = self.sites[test].control
        return None

    def _tests_of_changes(self):
        """(id of the scope, name) -> sites of the conditions under which something is put into the container."""
        if self._conditions is None:
            self._conditions = {}
            for site in self.sites:
                is_change = site.kind == kinds.BASE and site.extra[0] == "mutate"
                for name in site.deps if is_change and site.control is not None else ():
                    if type(name) is str:
                        self._conditions.setdefault((id(site.scope), name), set()).add(site.control)
        return self._conditions

    def of_kind(self, kind):
        """Events of the sites of one kind, in order."""
        return self.of_sites(lambda site: site.kind == kind)

    def of_sites(self, is_wanted):
        """Events, in order, of the sites for which `is_wanted(site)` is true."""
        found = [events for number, events in self._by_site.items() if is_wanted(self.sites[number])]
        return sorted(itertools.chain.from_iterable(found))

    def parameters(self, frame):
        """Yield the events of the parameters of a call."""
        sites, site_of, frame_of = self.sites, self.site_of, self.frame_of
        for event in range(self.entered[frame] + 1, len(self)):
            if frame_of[event] != frame or sites[site_of[event]].kind != kinds.PARAMETER:
                return
            yield event

    def executed_sites(self):
        """All sites with an event."""
        return [self.sites[number] for number in self._by_site]

    def executed_lines(self):
        """filename -> numbers of the lines of functions with an event."""
        found = {}
        for site in self.executed_sites():
            if site.scope.parent is not None and not site.scope.is_class:
                found.setdefault(site.scope.filename, set()).add(site.line)
        return found

    def of_site(self, number):
        """Events of a site, in order."""
        return self._by_site.get(number, ())

    def has_changes(self, first, last):
        """True if something was changed from event `first` to `last`."""
        return any(self._is_change(event) for event in range(first, last + 1))

    def attribute_stores(self, owner, name, after):
        """Events after `after` that set an attribute of the object with the id `owner`."""
        found = self._attributes.get((owner, name), ())
        return found[bisect_left(found, after + 1) :]

    def all_stores(self):
        """Events that set an attribute or an item, in order."""
        return self.of_sites(lambda site: site.kind in kinds.SETTING and site.extra[0] == "store")

    def class_attribute_writer(self, target, name, event):
        """Last event before `event` that set a name in the body of the class of `target`, or of one above it."""
        kind = target if type(target) is type else type(target)
        for above in _MRO(kind):
            for scope in self._classes.get(_QUALNAME(above), ()):
                if name in scope.bound:
                    found = _last(self._names.get((id(scope), name), ()), event)
                    if found is not None:
                        return found
        return None

    def unreturned(self, event):
        """The last event inside of a call that returned nothing; None if it is not recorded."""
        before = event - 1
        if before < 0 or self.value_of[event] is not None:
            return None
        frame = self.frame_of[before]
        inside = self.entered.get(frame, -1) > self.entered.get(self.frame_of[event], -1)
        return before if inside and frame != self.frame_of[event] else None

    def changes(self, target, event, most):
        """The last events before `event` that changed a container, the last one first."""
        found = self.contents.get(id(target), ())
        position = bisect_left(found, event)
        return found[max(0, position - most) : position][::-1]

    def execution(self, target, event):
        """Last event before `event` that gave a namespace to `exec`; None if there is none."""
        return _last(self._executed.get(id(target), ()), event)

    def attribute_at(self, event):
        """(True, name) of the attribute that is read or set of the object recorded at an event; (False, None) if it is not known."""
        site = self.site(event)
        return (True, site.name) if site.kind == kinds.BASE else self.key_of(event)

    def attribute_set(self, event):
        """The name of the attribute that is set of the object recorded at an event; None if none is, or it is not known."""
        site = self.site(event)
        is_set = site.kind in (kinds.BASE, kinds.SETATTR) and site.extra[0] == "store"
        return self.attribute_at(event)[1] if is_set else None

    def key_of(self, event):
        """(True, key) of an item that is read or set, or of what a container is asked for or given by a method.

        (False, None) if the key is not known.
        """
        site = self.site(event)
        key_site, constant = site.extra[2:4] if len(site.extra) > 3 else (None, None)
        if key_site is None:
            return (constant is not None), constant
        if site.kind == kinds.ASKED:
            found = self.last_of_site(key_site, self.frame_of[event], event)
            key = None if found is None else self.value_of[found]
            return found is not None and is_atom(key), key
        for later in range(event + 1, min(event + _FAR, len(self))):
            if self.site_of[later] == key_site and self.frame_of[later] == self.frame_of[event]:
                key = self.value_of[later]
                return is_atom(key), key
        return False, None

    def result_of_method(self, event):
        """The event of the result of the method whose receiver is recorded at `event`; None if it has none."""
        number = self._whole_of(self.site(event))
        return None if number is None else self._first_of_site(number, self.frame_of[event], event)

    def stored_value_event(self, event):
        """The event of the value that is set at the base event of a store."""
        site = self.site(event)
        number = site.extra[1]
        if site.extra[0] != "store" or number is None:
            return None
        # `a.b += c` and `setattr(a, "b", c)` evaluate `a` first
        if self.sites[number].kind == kinds.AUGMENTED or site.kind == kinds.SETATTR:
            return self._first_of_site(number, self.frame_of[event], event)
        return self.last_of_site(number, self.frame_of[event], event + 1)

    def returned_by(self, event):
        """The event of the `return` or `yield` that gave the value of a call; None if it is not recorded."""
        value = self.value_of[event]
        kind = type(value)  # compared by identity: a class of the program may define `==`
        plain = value is None or kind is bool or kind is int
        for back in range(event - 1, max(-1, event - (4 if plain else _NEAR)), -1):
            kind = self.site(back).kind
            if kind in (kinds.RETURN, kinds.YIELD):
                if self.value_of[back] is value and self.frame_of[back] != self.frame_of[event]:
                    return back
                if plain:
                    return None
        return None

    def property_result(self, event, name):
        """The event of the `return` of a property or `__getattr__` that gave the attribute of a name read at `event`."""
        following = event + 1
        while following < len(self) and self.site(following).kind == kinds.KEY:
            following += 1
        if following >= len(self) or self.site(following).kind != kinds.ENTER:
            return None
        called = self.site(following).name
        if called not in (name, "__getattr__", "__getattribute__", "__get__"):
            return None
        frame = self.frame_of[following]
        for later in range(following, min(following + _LONG, len(self))):
            if self.frame_of[later] == frame and self.site(later).kind == kinds.RETURN:
                return later
        return None

    def argument_of(self, event):
        """The event of the argument that became a parameter; None if it is not recorded.

        What every program has many of, None and the booleans, is looked for in the call itself alone.
        """
        value, name = self.value_of[event], self.site(event).name
        entered = self.entered.get(self.frame_of[event], event)
        caller = self.caller_event(self.frame_of[event]) if value is None or type(value) is bool else None
        same, seen = None, set()
        for back in range(entered - 1, max(-1, entered - _NEAR), -1):
            site, frame = self.site(back), self.frame_of[back]
            seen.add((frame, site.number))
            if (frame, self._whole_of(site)) in seen:
                continue  # of a call that is over
            if site.kind == kinds.ARGUMENT and self.value_of[back] is value:
                if site.name == name:
                    return back
                same = back if same is None else same
            elif site.kind == kinds.ENTER:
                if same is not None or caller is not None and frame == self.frame_of[caller]:
                    break
        return same

    def _whole_of(self, site):
        """Number of the site of the expression that a site is a part of; None if there is none."""
        if not self._wholes:
            self._wholes = {
                dep: whole.number for whole in self.sites for dep in whole.deps if type(dep) is int
            }
        return self._wholes.get(site.number)

    def caller_event(self, frame):
        """The last event of the frame that was running when a frame began, as far as the recording tells.

        None for the outermost frame of the failure: what ran before it is over.
        """
        if frame == self.outermost:
            return None
        if frame not in self._callers:
            self._callers[frame] = self._find_caller(frame)
        return self._callers[frame]

    def _find_caller(self, frame):
        entered = self.entered.get(frame)
        for _ in range(_RETURNED):
            if not entered or self.site(entered - 1).kind != kinds.RETURN:
                break
            ended = self.frame_of[entered - 1]
            if ended not in self.entered or self.entered[ended] >= entered:
                break
            entered = self.entered[ended]
        return entered - 1 if entered else None


def _may_change(site):
    """True if the events of a site are changes, those of a method if its object is a container."""
    if site.kind == kinds.BASE:
        return site.extra[0] in ("store", "delete", "mutate")
    if site.kind == kinds.SETATTR:
        return True
    return site.augments if site.kind == kinds.STORE else site.kind == kinds.ITEM and site.extra[0] != "load"


def _last(found, event):
    position = bisect_left(found, event) - 1
    return found[position] if position >= 0 else None


def frame_number(frame, modules):
    """Number of a frame of rewritten code; None for another one."""
    number = frame.f_locals.get(FRAME)
    if number is None and frame.f_code.co_name == "<module>":
        number = modules.get(frame.f_code.co_filename)
    return number if type(number) is int else None


def method_codes(target, name):
    """Yield the code of a method in each class of an object that defines it in Python, the nearest first."""
    kind = target if type(target) is type else type(target)
    for above in _MRO(kind):
        found = _NAMESPACE(above).get(name)
        if type(found) is types.FunctionType:
            yield found.__code__
