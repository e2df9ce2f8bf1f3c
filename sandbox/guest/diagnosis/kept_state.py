"""State that one call of a function leaves and a later call of it reads: caches, options, flags."""

from __future__ import annotations

from . import sites as kinds
from .aliases import name_of
from .events import is_atom, is_container, is_same
from .safe_values import text_of
from .slicing import arguments_of

_MAX_PAIRS = 200_000
_MAX_CHANGES = 40
_NEAR = 10
_DEPTH = 0.5
"""Suspicion that a further call between the function and the read of its state must outweigh."""
MAX_KEPT = 6
MAX_WRITERS = 3
_MAX_WEIGHED = 15
_MAX_LOOKS = 300
"""Pairs for which all calls between them are looked at."""
_MAX_REPEATED = 20
_MAX_BETWEEN = 2
_MAX_INSIDE = 2000
_CONSTRUCTING = ("__init__", "__setattr__", "__delattr__")
_OTHER_ARGUMENTS, _MEMOIZED, _PASSED_BY, _COUNTED = 1.0, -0.5, 0.75, -1.0
"""Suspicion of an item written for other arguments, of one that is only looked up again, of state that calls left, and of a
count of the objects of a class, which names them."""


def find(events, calls, is_test_code, score_of_line, distances, wrong_at):
    """Suspect (score, event of the write, event of the read, scope of the function, arguments, passed by), the best first.

    The scope is that of a function of which one call wrote and a later call reads; None for a global, which different
    functions may write and read. `wrong_at`: event at which the wrong value appears first, or None. State that the
    same call has read before it is more suspect. `arguments`: (name, then, now) of those that differ between the call
    that wrote and the one that read. `passed by`: first events of calls of methods of the same object between the two,
    which changed something, but not this. What a container keeps inside comes after what its users keep in it.
    """
    best, looks = {}, 0
    wrong_frame = None if wrong_at is None else events.frame_of[wrong_at]
    for read, write in _pairs(events):
        write = _first_of_same(events, write)
        written, seen = events.site(write), events.site(read)
        if is_test_code(written.scope.filename) or is_test_code(seen.scope.filename):
            continue
        if written.scope.name.endswith("__init__") or (written.scope, written.line) == (
            seen.scope,
            seen.line,
        ):
            continue
        function, depth = _called_again(events, calls, write, read, is_test_code)
        if function is None:
            if read not in distances or not _has_ended(events, calls, write, read, is_test_code):
                continue
            if not is_global(events, write):
                looks += 1
                if looks > _MAX_LOOKS or not _passed_by(events, calls, write, read, None, is_test_code):
                    continue
        if _is_restored(events, write):
            continue
        score = score_of_line(written) + score_of_line(seen) - _DEPTH * depth
        score += 2.0 / (1 + distances[read] / _NEAR) if read in distances else 0.0
        if wrong_at is not None and read < wrong_at and events.frame_of[read] == wrong_frame:
            score += 1.5
        state = name_of(events, write), id(_owner(events, write)), function is None
        if state not in best or best[state][0] < score:
            best[state] = (score, write, read, function)
    made = _made_by_writers(events, [one[1] for one in best.values()])
    found = [
        (score + (type_before(events, write) is not None), write, *rest)
        for score, write, *rest in best.values()
        if write not in made
    ]
    found = sorted(_raise_above_their_insides(events, found), key=lambda found: (-found[0], found[1]))
    weighed = [_weigh(events, calls, is_test_code, *one) for one in found[:_MAX_WEIGHED]]
    told = {}
    for one in sorted(weighed, key=lambda found: (-found[0], found[1])):
        told.setdefault(name_of(events, one[1]), one)
    return list(told.values())[:MAX_KEPT]


def _weigh(events, calls, is_test_code, score, write, read, scope):
    """Add what tells more of a finding, and let it count."""
    arguments = calls.differing_arguments(calls.find_frame(write, scope), calls.find_frame(read, scope))
    between = _passed_by(events, calls, write, read, scope, is_test_code)
    if "[…]" not in full_name_of(events, write, read) and events.site(write).kind == kinds.ITEM:
        score += (
            _OTHER_ARGUMENTS
            if arguments or _is_of_another(events, calls, write, read, scope)
            else 0.0
            if between
            else _MEMOIZED
        )
    if _is_augmented(events, write) and issubclass(type(events.value_of[write]), type):
        score += _COUNTED
    return score + _PASSED_BY * bool(between), write, read, scope, arguments, between


def _made_by_writers(events, writes):
    """Those of some writes that set an attribute of an object which the function that writes has made."""
    stores = [
        write for write in writes if events.attribute_set(write) is not None and not is_global(events, write)
    ]
    first = events.first_seen({id(events.value_of[write]) for write in stores})
    return {write for write in stores if events.is_made_around(first[id(events.value_of[write])], write)}


def _is_of_another(events, calls, write, read, scope):
    """True if the method that wrote and the later call of it were of different objects, which share the state by a class."""
    frames = [calls.find_frame(event, scope) for event in (write, read)]
    first, second = (None if frame is None else calls.receiver(frame) for frame in frames)
    if first is None or second is None or first is second:
        return False
    return is_global(events, write) or issubclass(type(_owner(events, write)), type)


def _first_of_same(events, write):
    """The write of an attribute that gave it the value that later ones, up to `write`, only repeated."""
    for _ in range(_MAX_REPEATED):
        before = _stored_before(events, write)
        if before is None:
            break
        stored = events.stored_value_event(write)
        if _is_augmented(events, write) or not is_same(events.value_of[stored], events.value_of[before]):
            break
        write = events.attribute_writer(events.value_of[write], events.attribute_set(write), write)
    return write


def _is_restored(events, write):
    """True if a function that has set an attribute sets it back to the value that it had before."""
    name = events.attribute_set(write)
    stored = None if name is None else events.stored_value_event(write)
    if stored is None or _is_augmented(events, write):
        return False
    target, began = events.value_of[write], events.entered.get(events.frame_of[write], 0)
    changed, before = (events.attribute_writer(target, name, event) for event in (write, began))
    old = None if before is None or changed == before else events.stored_value_event(before)
    if old is None:
        return False
    return is_same(events.value_of[stored], events.value_of[old])


def _passed_by(events, calls, write, read, scope, is_test_code):
    """First events of calls between a write and a read of the state of an object, by which it was not changed.

    Calls by the test of the object's methods that changed something and returned nothing: after the call of the function
    `scope` that wrote and before the one that reads; without one, between two calls by the test. The last one first, one of
    each function.
    """
    owner = _owner(events, write)
    writing, reading = (_call_of(events, calls, event, scope, is_test_code) for event in (write, read))
    if owner is None or writing is None or reading is None:
        return []
    scopes = {events.site(write).scope, events.site(read).scope, scope}
    found, end = {}, calls.last(writing)
    for entered, frame in calls.between(end, events.entered[reading]):
        called = events.site(entered).scope
        if (
            entered < end
            or called in scopes
            or is_test_code(called.filename)
            or calls.receiver(frame) is not owner
        ):
            continue
        if called.name.rpartition(".")[2] in _CONSTRUCTING or not _is_by_test(calls, frame, is_test_code):
            continue
        if calls.has_ended(frame, read):
            end = calls.last(frame)
            is_changing = not calls.has_result(frame) and events.has_changes(
                entered, min(end, entered + _MAX_INSIDE)
            )
            if is_changing and not _is_changed_inside(events, write, entered, end):
                found[called] = entered
    return sorted(found.values(), reverse=True)[:_MAX_BETWEEN]


def _is_changed_inside(events, write, first, last):
    """True if the container that was written, or written to, was changed from event `first` to `last`."""
    is_store = events.attribute_set(write) is not None
    stored = events.stored_value_event(write) if is_store else write
    target = None if stored is None else events.value_of[stored]
    changes = events.changes(target, last + 1, 1) if is_container(target) else ()
    return any(change >= first for change in changes)


def _call_of(events, calls, event, scope, is_test_code):
    """The frame of a function around an event, without one that which the test has called; None if it constructs something."""
    if scope is not None:
        return calls.find_frame(event, scope)
    found = None
    for frame in calls.stack(events.frame_of[event]):
        if is_test_code(calls.scope_of(frame).filename):
            break
        found = frame
    is_wanted = found is not None and calls.scope_of(found).name.rpartition(".")[2] not in _CONSTRUCTING
    return found if is_wanted else None


def _is_by_test(calls, frame, is_test_code):
    """True for a call of which the caller is a test."""
    callers = calls.stack(frame)[1:]
    return not callers or is_test_code(calls.scope_of(callers[0]).filename)


def _raise_above_their_insides(events, found):
    """Put state that was set in an object by `[…]` above what that object wrote into itself, which comes far behind."""
    inside = {}
    objects = {id(events.value_of[write]) for _, write, *_ in found if events.site(write).kind == kinds.ITEM}
    for score, write, *_ in found:
        owner = id(_owner(events, write))
        inside[owner] = max(score, inside.get(owner, score))
    for score, write, *rest in found:
        target = id(events.value_of[write])
        if events.site(write).kind == kinds.ITEM and target in inside:
            yield (max(score, inside[target]), write, *rest)
        else:
            yield (score - (id(_owner(events, write)) in objects), write, *rest)


def full_name_of(events, write, read):
    """The written state, with the key of an item if it was also read by it: `self.cache['page']`."""
    name = name_of(events, write)
    if events.site(write).kind != kinds.ITEM or events.site(read).kind != kinds.ITEM:
        return name
    is_known, key = events.key_of(write)
    return f"{name[:-3]}[{text_of(key)}]" if is_known and events.key_of(read)[0] else name


def value_text(events, write):
    """Text of the plain value that was written, and of that before it: `78, before it 66`; of a change its arguments."""
    site = events.site(write)
    if site.kind == kinds.BASE and site.extra[0] == "mutate":
        return ", ".join(text_of(events.value_of[argument], 1) for argument in arguments_of(events, write))
    stored, before = events.stored_value_event(write), _stored_before(events, write)
    value = None if stored is None else events.value_of[stored]
    if stored is None or not is_atom(value) or _is_augmented(events, write):
        return ""
    is_plain = before is not None and is_atom(events.value_of[before])
    return text_of(value) + (f", before it {text_of(events.value_of[before])}" if is_plain else "")


def _is_augmented(events, write):
    """True for `self.count += 1`, of which the recorded value is what was added."""
    stored = events.stored_value_event(write) if events.site(write).kind == kinds.BASE else None
    return stored is not None and events.site(stored).kind == kinds.AUGMENTED


def _stored_before(events, write):
    """The event of the value that the written attribute had before; None if it is not known."""
    name = events.attribute_set(write)
    stored = None if name is None else events.stored_value_event(write)
    before = events.attribute_writer(events.value_of[write], name, write) if stored is not None else None
    return None if before is None else events.stored_value_event(before)


def type_before(events, write):
    """A value of another type that the written attribute had before; None if there is none."""
    stored, stored_before = events.stored_value_event(write), _stored_before(events, write)
    if stored_before is None:
        return None
    value, old = events.value_of[stored], events.value_of[stored_before]
    is_other = value is not None and old is not None and type(value) is not type(old)
    return old if is_other and not (is_atom(value) and is_atom(old)) else None


def is_global(events, write):
    """True if what was written is a global of a module."""
    scope = events.site(write).scope
    return scope.owner_of(_root(events, write)).parent is None


def _root(events, write):
    return name_of(events, write).partition(".")[0].partition("[")[0]


def holders(events, pairs, is_test_code):
    """For each (write, read) its object's first holder that outlives calls: (event, name) of a global or an item, or None."""
    owners = [_owner(events, write) for write, _ in pairs]
    latest = max((read for _, read in pairs), default=0)
    wanted, found = {id(owner) for owner in owners if owner is not None}, {}
    for event in events.of_sites(_may_last) if wanted else ():
        if event >= latest:
            break
        for value, name in _lasting(events, event):
            is_first = id(value) in wanted and id(value) not in found
            if is_first and not is_test_code(events.site(event).scope.filename):
                found[id(value)] = (event, name)
    return [_before(found.get(id(owner)), read) for owner, (_, read) in zip(owners, pairs)]


def _before(holder, read):
    return holder if holder is not None and holder[0] < read else None


def writers(events, write, read, caller_of):
    """Calls that changed a global before `read`, the last first, one of each function: (event, the event of its caller or None).

    `caller_of`: gives the event of the caller of an event's function; None if it is a test or not known.
    """
    found, seen = [], set()
    for change in events.changes(events.value_of[write], read, _MAX_CHANGES):
        caller = caller_of(change)
        scope = events.site(change if caller is None else caller).scope
        if scope not in seen and scope.parent is not None:
            seen.add(scope)
            found.append((change, caller))
    return found[:MAX_WRITERS]


def _owner(events, write):
    """The object in whose attribute was written: that of `self` in `self.cache[…]`; None if it is not known."""
    writer = None if is_global(events, write) else events.writer(_root(events, write), write)
    value = None if writer is None else events.value_of[writer]
    return None if is_atom(value) else value


def _may_last(site):
    """True if `_lasting` yields something for events of a site."""
    if site.kind == kinds.STORE:
        return any(site.scope.owner_of(name).parent is None for name in site.extra or ())
    return site.kind == kinds.ITEM and site.extra[0] == "store"


def _lasting(events, event):
    """Yield (value, name) of what an event, of a site that `_may_last` takes, binds to a global, or puts into an item."""
    site = events.site(event)
    if site.kind == kinds.STORE:
        for name in site.extra or ():
            if site.scope.owner_of(name).parent is None:
                yield events.value_of[event], name
        return
    stored = events.stored_value_event(event)
    if stored is not None:
        yield events.value_of[stored], f"{site.name}[…]"


def _has_ended(events, calls, write, read, is_test_code):
    """True if the write was in a call by a test that had ended before the read."""
    stack = [
        frame
        for frame in calls.stack(events.frame_of[write])
        if not is_test_code(calls.scope_of(frame).filename)
    ]
    return bool(stack) and calls.has_ended(stack[-1], read)


def _pairs(events):
    """(read, last write before it) of attributes and of contents of containers, the last read first."""
    count = 0
    for event in reversed(events.of_sites(_may_read)):
        for write in _writes(events, event):
            if write is not None:
                yield event, write
                count += 1
        if count > _MAX_PAIRS:
            return


def _may_read(site):
    """True if `_writes` yields something for events of a site."""
    if site.kind in (kinds.BASE, kinds.ITEM):
        return site.extra[0] in ("load", "method")
    return site.kind in (kinds.ITERABLE, kinds.PARAMETER, kinds.ARGUMENT) or bool(site.global_names())


def _writes(events, event):
    """Yield what was written last of what is read at an event."""
    site, value = events.site(event), events.value_of[event]
    kind = site.kind
    if kind == kinds.BASE and site.extra[0] == "load":
        writer = events.attribute_writer(value, site.name, event)
        yield writer
        stored = None if writer is None else events.stored_value_event(writer)
        if stored is not None:
            yield from events.changes(events.value_of[stored], event, 1)
    elif kind == kinds.ITEM and site.extra[0] == "load":
        yield _item_write(events, event)
    elif is_container(value) and (
        kind in (kinds.ITERABLE, kinds.PARAMETER, kinds.ARGUMENT)
        or (kind == kinds.BASE and site.extra[0] == "method")
    ):
        yield from events.changes(value, event, 1)
    is_change = kind in (kinds.BASE, kinds.ITEM) and site.extra[0] != "load"
    for name in () if is_change else site.global_names():
        writer = events.writer(name, event)
        if writer is not None and is_container(events.value_of[writer]):
            yield from events.changes(events.value_of[writer], event, 1)


def _item_write(events, read):
    known, key = events.key_of(read)
    for change in events.changes(events.value_of[read], read, _MAX_CHANGES):
        if known and events.site(change).kind == kinds.ITEM:
            has_key, other = events.key_of(change)
            if has_key and (type(key) is not type(other) or key != other):
                continue
        return change
    return None


def _called_again(events, calls, write, read, is_test_code):
    """(the innermost function of which one call wrote and ended, and a later call reads; calls from there to the read).

    (None, 0) if there is none.
    """
    later = [frame for frame in calls.stack(events.frame_of[read]) if events.entered[frame] > write]
    depths = {id(calls.scope_of(frame)): depth for depth, frame in reversed(list(enumerate(later)))}
    for frame in calls.stack(events.frame_of[write]) if later else ():
        scope = calls.scope_of(frame)
        if id(scope) in depths and calls.has_ended(frame, read) and not is_test_code(scope.filename):
            return scope, depths[id(scope)]
    return None, 0
