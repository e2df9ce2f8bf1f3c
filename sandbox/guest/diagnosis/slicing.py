"""The way back: events that an event depends on, nearest first."""

from __future__ import annotations

import heapq
from collections import Counter

from . import sites as kinds
from .events import is_atom

_WEAK, _CONTROL = 3, 5
_MAX_CHANGES = 40
_MAX_ARGUMENTS = 200
"""Events after that of a method's receiver among which the arguments of its call are looked for."""
_READING = frozenset("get items values keys copy pop popitem popleft index count setdefault".split())


class Slice:
    """A backward slice: the distance of each event, and the event through which it was reached."""

    def __init__(self, events, starts, limit):
        self.distance, self.through = {}, {}
        self._events = events
        self._grow(starts, limit)

    def _grow(self, starts, limit):
        waiting = [(distance, -start, start, -1) for distance, start in starts]
        heapq.heapify(waiting)
        while waiting:
            distance, _, event, through = heapq.heappop(waiting)
            if event in self.distance:
                continue
            if len(self.distance) >= limit:
                return
            self.distance[event] = distance
            self.through[event] = None if through < 0 else through
            for cause, weight in causes(self._events, event):
                if cause is not None and cause not in self.distance:
                    heapq.heappush(waiting, (distance + weight, -cause, cause, event))

    def path(self, event):
        """Events from the failure to `event`."""
        found = []
        while event is not None:
            found.append(event)
            event = self.through.get(event)
        return found[::-1]


def causes(events, event):
    """(event, weight) of all that `event` depends on directly."""
    site, frame, value = events.site(event), events.frame_of[event], events.value_of[event]
    kind = site.kind
    if kind == kinds.PARAMETER:
        argument = events.argument_of(event)
        yield argument, 1
        if argument is None:
            yield events.caller_event(frame), _CONTROL
        yield from _contents(events, value, event)
        return
    if kind == kinds.ENTER:
        yield events.caller_event(frame), _CONTROL
        return
    returned = events.returned_by(event) if site.is_call else None
    code = site.extra if kind == kinds.ARGUMENT else None
    if code is not None:  # a namespace is what the code makes it
        yield events.last_of_site(code, frame, event), 1
        yield from ((cause, max(weight, _WEAK)) for cause, weight in _parts(events, event))
    elif returned is not None:
        yield returned, 1
        # Which arguments matter is seen inside of the call.
        yield from ((cause, max(weight, _WEAK)) for cause, weight in _parts(events, event))
    else:
        if site.is_call:
            yield events.unreturned(event), 2
        yield from _parts(events, event)
    if kind == kinds.STORE and site.deps:
        yield _yielded(events, event), 1
    if kind == kinds.BASE and site.extra[0] == "store":
        stored = events.stored_value_event(event)
        yield stored, 1
        if stored is not None and events.site(stored).kind == kinds.AUGMENTED:
            yield events.attribute_writer(value, site.name, event), 2
    elif kind == kinds.SETATTR or kind == kinds.ITEM and site.extra[0] == "store":
        yield events.stored_value_event(event), 1
    if kind in (kinds.BASE, kinds.ITEM) and site.extra[0] == "mutate":
        yield from ((argument, 1) for argument in arguments_of(events, event))
    if site.control is not None:
        yield events.last_of_site(site.control, frame, event), _CONTROL
    else:
        yield events.entered.get(frame), _CONTROL


def _parts(events, event):
    """Yield what the names and the parts of the expression at an event depend on."""
    site = events.site(event)
    rejected = Counter(_rejected(events, event, site.choices)) if site.choices else ()
    times = Counter(site.deps) if rejected else {}
    for dep in site.deps:
        found = _part_or_name(events, dep, event)
        if rejected and rejected[dep] >= times[dep]:
            found = ((cause, max(weight, _WEAK)) for cause, weight in found)
        yield from found


def _rejected(events, event, choices):
    """Yield the deps of the operands of `and` and `or` that did not decide a value, and of a default that was not taken.

    The operand that was evaluated last decides; if it did not end a condition, or a value of booleans, all of them do.
    """
    for is_or, operands in choices:
        if is_or is None:
            deciding = _taken(events, event, operands[0][0])
        else:
            deciding = _deciding(events, event, is_or, operands)
        for index, (_, deps, inner) in enumerate(operands):
            yield from _rejected(events, event, inner) if index in deciding else deps


def _deciding(events, event, is_or, operands):
    """Indexes of the operands of an `and` or `or` that decided its value."""
    frame = events.frame_of[event]
    last = [events.last_of_site(number, frame, event) for number, *_ in operands]
    ran = [at for at in last if at is not None and last[0] is not None and at >= last[0]]
    if not ran:
        return range(len(operands))
    values = [events.value_of[at] for at in ran]
    is_ended = len(ran) < len(operands) or (is_atom(values[-1]) and bool(values[-1]) is is_or)
    is_condition = events.site(event).kind == kinds.TEST or all(type(value) is bool for value in values)
    return range(len(ran)) if is_condition and not is_ended else (len(ran) - 1,)


def _taken(events, event, base):
    """Indexes of what gave the result of a `getattr`: 0 for the attribute, 1 for the default. Both if it is not known."""
    found = events.last_of_site(base, events.frame_of[event], event)
    known, name = (False, None) if found is None else events.attribute_at(found)
    is_set = known and events.attribute_writer(events.value_of[found], name, event) is not None
    return (0,) if is_set else (0, 1)


def _part_or_name(events, dep, event):
    """Yield what a part of the expression at an event, or a name that is read there, depends on."""
    if type(dep) is int:
        yield from _part(events, dep, events.frame_of[event], event)
        return
    writer = events.writer(dep, event)
    yield writer, 1
    if writer is not None and events.site(event).kind != kinds.ITEM:  # what set one item is found by its key
        yield from _contents(events, events.value_of[writer], event)
        yield from ((test, _WEAK) for test in events.skipped_changes(dep, writer, event))


def _part(events, number, frame, event):
    """A part of the expression: its own event, and what wrote the attribute or item that was read there."""
    found = events.last_of_site(number, frame, event)
    if found is None:
        return
    part, value = events.sites[number], events.value_of[found]
    if part.kind == kinds.TEST:  # of a conditional expression
        yield found, _CONTROL
        return
    if part.kind == kinds.BRANCH and found < (events.last_of_site(part.extra, frame, event) or 0):
        return  # the other one was taken
    if part.kind == kinds.GETATTR or part.kind == kinds.BASE and part.extra[0] == "load":
        known, name = events.attribute_at(found)
        yield from _attribute(events, found, name, event) if known else ((found, 1),)
        return
    if part.kind == kinds.ITEM and part.extra[0] == "load":
        setters = list(_item(events, found, event))
        yield from setters
        yield found, (_WEAK if any(weight == 1 for _, weight in setters) else 1)
        return
    yield found, (_WEAK if part.kind in (kinds.KEY, kinds.ASKED) else 1)
    if part.kind == kinds.BASE and (part.name in _READING or part.extra[0] == "mutate"):
        yield from _contents(events, value, found)
    elif part.kind in (kinds.ITERABLE, kinds.ARGUMENT, kinds.CALL):
        yield from _contents(events, value, event)


def _attribute(events, base, name, event):
    """Yield what set the attribute that is read at `base`, or the result of the property."""
    target = events.value_of[base]
    writer = events.attribute_writer(target, name, event)
    result = events.property_result(base, name) if writer is None else None
    if writer is None and result is None:
        of_class = events.class_attribute_writer(target, name, event)
        if of_class is not None:
            yield of_class, 1
            yield from _contents(events, events.value_of[of_class], event)
            return
    yield base, (1 if writer is None and result is None else 3)
    yield result, 1
    if writer is not None:
        yield writer, 1
        stored = events.stored_value_event(writer)
        if stored is not None:
            yield from _contents(events, events.value_of[stored], event)


def _item(events, base, event):
    """Yield what set the item that is read at `base`."""
    known, key = events.key_of(base)
    wanted = events.value_of[event]
    for change in events.changes(events.value_of[base], event, _MAX_CHANGES):
        if change == base:
            continue
        site = events.site(change)
        if site.kind == kinds.ITEM:
            has_key, other = events.key_of(change)
            if known and has_key and (type(key) is not type(other) or key != other):
                continue
            yield change, 1
            return
        added = any(events.value_of[argument] is wanted for argument in arguments_of(events, change))
        yield change, (1 if added else 2)
    executed = events.execution(events.value_of[base], event)
    if executed is not None:
        yield executed, 1


def _contents(events, value, event):
    """Yield what changed a container before it was read."""
    if is_atom(value):
        return
    for number, change in enumerate(events.changes(value, event, _MAX_CHANGES)):
        yield change, 1 + number // 8
    yield events.execution(value, event), 1


def arguments_of(events, event):
    """Arguments of the method call whose receiver is recorded at `event`, without those of calls among them."""
    frame, receiver = events.frame_of[event], events.site(event)
    found, inner = [], set()
    for later in range(event + 1, min(event + _MAX_ARGUMENTS, len(events))):
        if events.frame_of[later] != frame:
            continue
        site = events.site(later)
        if site.kind == kinds.ARGUMENT and site.line >= receiver.line:
            found.append(later)
            inner.update(site.deps)
        elif site.kind == kinds.CALL and receiver.number not in site.deps:
            inner.update(site.deps)
        elif site.kind not in (kinds.BASE, kinds.ITEM, kinds.KEY, *kinds.ASIDES):
            break
    return [one for one in found if events.site(one).number not in inner]


def _yielded(events, event):
    """The `yield` that gave a loop its value."""
    value = events.value_of[event]
    if event and events.site(event - 1).kind == kinds.YIELD and events.value_of[event - 1] is value:
        return event - 1
    return None
