"""The history of an attribute, item or variable: each assignment and each change in place, and who else holds it.

After each line of the repository the watched places are compared with what they were, so it does not matter through
which name or which function an object is changed. No code of the program is called for that.
"""

from __future__ import annotations

import itertools
import sys
import types
import weakref

from ...debugger.inspection.safe_repr import attributes, difference, fingerprint
from ..events import is_atom, is_container
from .engines import CALLS, LINES
from .listener import Listener
from .value_text import Places, text_of

_MAX_PLACES = 200
_MAX_ITEMS = 200
"""Items of a container whose own items are compared, too."""
_MAX_ATTRIBUTES = 50
_MAX_STEPS = 1
_MAX_ARGUMENTS = 8
_MAX_HOLDERS = 4
_MAX_LOOKED_AT = 300
_MAX_FRAMES = 3
_MAX_BACK = 40
_NAMESPACE = type.__dict__["__dict__"].__get__
_MRO = type.__dict__["__mro__"].__get__
_QUALNAME = type.__dict__["__qualname__"].__get__
_DESCRIPTORS = frozenset(
    map(id, (types.FunctionType, property, classmethod, staticmethod, types.MemberDescriptorType))
)
"""By identity: a class of the program may define `==`."""
_OPAQUE = (type, types.FunctionType, types.ModuleType, types.BuiltinFunctionType, types.MethodType)
_NAME = type.__dict__["__name__"].__get__


class _Nothing:
    """Value of an attribute, item or variable that is not set."""


NOTHING = _Nothing()


class _Watch:
    """One name that was asked for."""

    def __init__(self, asked, job):
        self.owner, self.path, self.name = asked["owner"], asked["path"], asked["name"]
        self.owner_name = asked.get("owner_name", "")
        self.first = asked.get("first", 0)
        self.steps = [tuple(step) for step in asked.get("steps") or ()]
        self.text = asked.get("text", "")
        self.label = self.name + "".join(
            [f".{name}" if kind == "attribute" else f"[{name!r}]" for kind, name in self.steps]
        )
        self.places = self.changes = 0
        self._job = job

    def has_class(self, kind):
        """True for the class that was named, and for its subclasses."""
        return any(self._is_named(above) for above in _MRO(kind))

    def _is_named(self, kind):
        if _QUALNAME(kind) != self.owner_name and not _QUALNAME(kind).endswith("." + self.owner_name):
            return False
        module = sys.modules.get(_NAMESPACE(kind).get("__module__"))
        file = vars(module).get("__file__") if type(module) is types.ModuleType else None
        return type(file) is str and self._job.relative(file) == self.path

    def is_of_module(self, code):
        return self.owner == "module" and self._job.relative(code.co_filename) == self.path

    def is_of_function(self, code):
        return (
            self.owner == "function"
            and code.co_firstlineno == self.first
            and self._job.relative(code.co_filename) == self.path
        )


class _Slot:
    """A watched place: `read()` gives its value."""

    def __init__(self, watch, name, read, key=None):
        """`key`: (id of the owner, name) of the place itself."""
        self.watch, self.name, self.read, self.key = watch, name, read, key
        self.value, self.text, self.references = NOTHING, "", 0
        self.can_change = False
        self.ids = self.parts = self.fingerprint = None
        """Identities of the contents of the value, and of the contents of those parts that can change."""
        self.holders = {}
        """(id of an owner, name) -> (name, line at which it was seen first) of others that hold the same object."""

    def remember(self, how):
        """Remember the contents of the value. Returns the parts that a change in place has changed, if they are known."""
        value, before = self.value, self.fingerprint
        self.fingerprint = _fingerprint_of(value)
        self.can_change = value is not NOTHING and not is_atom(value)
        self.ids = _ids(value) if self.can_change else None
        self.parts = [_ids(part) for part in _parts(value)] if self.can_change else None
        if how != "in place" or before is None or self.fingerprint is None:
            return ""
        return difference(value, before, self.fingerprint) or ""

    def is_as_before(self):
        """True if the contents of the value are those that were remembered."""
        if _ids(self.value) != self.ids:
            return False
        return not self.parts or [_ids(part) for part in _parts(self.value)] == self.parts


class History(Listener):
    """Watches places, and writes down their changes."""

    def __init__(self, job, asked, files, sources, process):
        super().__init__(process)
        self._job, self._files, self._sources, self._process = job, files, sources, process
        self._places = Places(job)
        self.watches = [_Watch(one, job) for one in asked if one["kind"] == "history"]
        self._slots, self._local_slots = [], {}
        self._owners, self._kinds, self._modules = {}, {}, set()
        self._frame = None
        """The frame whose variables are compared."""
        self._told = set()
        """Objects of which a change has been told at this line."""
        self._count = 0

    def wanted(self, code):
        """Events that are wanted of a code object: all of the repository, and the start of generated ones."""
        if self._job.project.has(code.co_filename):
            return CALLS | LINES
        return CALLS if code.co_name == "__init__" and code.co_filename[:1] == "<" else 0

    # Events

    def _begin(self, thread, frame, _):
        self._check(thread, frame)
        code = frame.f_code
        names = code.co_varnames[: min(code.co_argcount + code.co_kwonlyargcount, _MAX_ARGUMENTS)]
        values = frame.f_locals if names else {}
        for name in names:
            if name in values:
                self._meet(values[name], thread, frame)
        if not self._job.project.contains(frame):
            return  # a generated `__init__`: its changes are those of the line that calls it
        thread.place = (code, frame.f_lineno)
        for watch in self.watches:
            if watch.owner == "module" and id(watch) not in self._modules and watch.is_of_module(code):
                self._watch_module(watch, frame.f_globals, thread, frame)
            elif watch.is_of_function(code):
                self._watch_local(watch, frame)

    def _line(self, thread, frame, line):
        self._check(thread, frame)
        thread.place = (frame.f_code, line)

    def _go_on(self, thread, frame, _):
        self._check(thread, frame)
        thread.place = (frame.f_code, frame.f_lineno)

    def _pause(self, thread, frame, value):
        self._check(thread, frame)
        self._back(thread, frame)

    def _return(self, thread, frame, value):
        self._check(thread, frame)
        self._local_slots.pop(id(frame), None)
        self._back(thread, frame)
        self._meet(value, thread, frame)

    def _raise(self, thread, frame, exc):
        self._return(thread, frame, None)

    def _back(self, thread, frame):
        """Go back to the nearest line of the repository among the callers."""
        above = frame.f_back
        for _ in range(_MAX_BACK):
            if above is None:
                return
            if self._job.project.contains(above):
                thread.place = (above.f_code, above.f_lineno)
                return
            above = above.f_back

    # Places

    def _meet(self, value, thread, frame):
        """Watch an object, if it is of a class that was asked for."""
        kind = type(value)
        known = self._kinds.get(id(kind))
        if known is None:
            watches = [one for one in self.watches if one.owner == "class" and one.has_class(kind)]
            known = self._kinds[id(kind)] = (kind, watches)
            for watch in watches:
                self._watch_class(watch, kind, thread, frame)
        for watch in known[1]:
            if (id(value), id(watch)) not in self._owners and len(self._slots) < _MAX_PLACES:
                self._watch_object(watch, value, thread, frame)

    def _watch_object(self, watch, value, thread, frame):
        watch.places += 1
        name = "%s#%d.%s" % (watch.owner_name.rpartition(".")[2], watch.places, watch.label)
        key = (id(value), watch.name)
        slot = _Slot(watch, name, _reader(_attribute_of(value, watch.name), watch.steps), key)
        owner, slots, owners = (id(value), id(watch)), self._slots, self._owners

        def forget(reference):
            owners.pop(owner, None)
            if slot in slots:
                slots.remove(slot)

        try:
            owners[owner] = weakref.ref(value, forget)
        except TypeError:
            owners[owner] = value
        self._add(slot, thread, frame)

    def _watch_class(self, watch, kind, thread, frame):
        """Watch the attribute of the class itself, if it has one with that name."""
        for above in _MRO(kind):
            scope = _NAMESPACE(above)
            held = scope.get(watch.name, NOTHING)
            if held is not NOTHING and id(type(held)) not in _DESCRIPTORS and watch.has_class(above):
                read = _reader(lambda scope=scope: scope.get(watch.name, NOTHING), watch.steps)
                slot = _Slot(
                    watch, f"{watch.owner_name}.{watch.label} of the class", read, (id(above), watch.name)
                )
                self._add(slot, thread, frame)

    def _watch_module(self, watch, scope, thread, frame):
        self._modules.add(id(watch))
        watch.places += 1
        read = _reader(lambda: scope.get(watch.name, NOTHING), watch.steps)
        self._add(_Slot(watch, watch.label, read, (id(scope), watch.name)), thread, frame)

    def _watch_local(self, watch, frame):
        def read():
            values = {} if self._frame is None else self._frame.f_locals
            return values[watch.name] if watch.name in values else NOTHING

        watch.places += 1
        name = f"{watch.label} in {watch.owner_name}#{watch.places}"
        self._local_slots.setdefault(id(frame), []).append(_Slot(watch, name, _reader(read, watch.steps)))

    def _add(self, slot, thread, frame):
        """Watch a place. It may have a value already."""
        self._slots.append(slot)
        if slot.read() is not NOTHING:
            self._compare(slot, thread, frame, "first seen")

    # Changes

    def _check(self, thread, frame):
        """Compare all places with what they were before the line that the thread was at."""
        if self._process.cut:
            return
        self._told.clear()
        for slot in self._slots[:]:
            self._compare(slot, thread, frame)
        if self._local_slots:
            self._frame = frame
            for slot in self._local_slots.get(id(frame), ()):
                self._compare(slot, thread, frame)
            self._frame = None

    def _compare(self, slot, thread, frame, how="set"):
        value = slot.read()
        if value is slot.value:
            if not slot.can_change:
                return
            references = sys.getrefcount(value)
            if slot.is_as_before():
                if references > slot.references:
                    self._tell_holders(slot, thread, frame)
                slot.references = references
                return
            how = "in place"
        else:
            how = "deleted" if value is NOTHING else how
            slot.value, slot.holders = value, {}
            references = sys.getrefcount(value)
        slot.references = references
        detail = slot.remember(how)
        for key, name in self._find_holders(slot, frame):
            slot.holders.setdefault(key, (name, None))
        before, slot.text = slot.text, "" if value is NOTHING else text_of(value)
        if how == "in place" and id(value) in self._told:
            return  # told already, under another watched name
        self._told.add(id(value))
        self._tell(slot, thread, frame, how, before, detail)

    def _tell_holders(self, slot, thread, frame):
        """Tell names under which an object is held from now on."""
        for key, name in self._find_holders(slot, frame):
            if key not in slot.holders:
                slot.holders[key] = (name, self._place(thread))
                self._tell(slot, thread, frame, "shared", name)

    def _find_holders(self, slot, frame):
        """[((id of owner, name), text)] of other attributes, items and globals that hold the same object.

        They are looked for among all that the innermost functions reach in two steps.
        """
        target = slot.value
        if is_atom(target) or target is NOTHING or type(target) is tuple or issubclass(type(target), _OPAQUE):
            return []
        found, waiting, seen = {}, [], set()
        for _ in range(_MAX_FRAMES):
            if frame is None or not self._job.project.contains(frame):
                break
            waiting += [(value, 0) for value in list(frame.f_locals.values())[:_MAX_ATTRIBUTES]]
            function = _function_of(frame)
            if function is not None and _is_default(function, target):
                found[(id(function), "")] = f"a default of {function.__name__}()"
            for name, held in list(frame.f_globals.items()):
                if held is target:
                    found[(id(frame.f_globals), name)] = (
                        f"{name} of {self._job.relative(frame.f_code.co_filename)}"
                    )
            frame = frame.f_back
        for value, depth in waiting:
            if (
                id(value) in seen
                or is_atom(value)
                or len(seen) > _MAX_LOOKED_AT
                or issubclass(type(value), _OPAQUE)
            ):
                continue
            seen.add(id(value))
            for name, text, held in _parts_of(value):
                if held is target:
                    found[(id(value), name)] = text
                elif depth < _MAX_STEPS:
                    waiting.append((held, depth + 1))
        found.pop(slot.key, None)
        names = {one.key: one.name for one in self._slots if not one.watch.steps}
        return [(key, names.get(key, text)) for key, text in found.items()][:_MAX_HOLDERS]

    def _place(self, thread):
        if thread.place is None:
            return None
        code, line = thread.place
        return [self._job.relative(code.co_filename), line]

    def _tell(self, slot, thread, frame, how, before, detail=""):
        slot.watch.changes += how != "shared"
        self._count += 1
        holders = [name + (", set at %s:%d" % tuple(at) if at else "") for name, at in slot.holders.values()]
        number = self._files.new_number()
        event = {
            "e": "change",
            "n": number,
            "i": self._count,
            "t": thread.number,
            "name": slot.name[:200],
            "how": how,
            "before": before,
            "detail": detail[:400],
            "v": [slot.text, 0],
            "same": holders[:_MAX_HOLDERS] if how != "shared" else [],
            "at": self._place(thread),
        }
        if thread.place is not None:
            code, line = thread.place
            event["in"] = self._sources.function_at(code.co_filename, line)[0]
            event["s"] = self._sources.line(code.co_filename, line)[:80]
            event["by"] = self._caller_of(code, frame)
        self._files.begin(number, event)

    def _caller_of(self, code, frame):
        """The place that the function at which a change was made was called from."""
        for _ in range(_MAX_BACK):
            if frame is None:
                return None
            if frame.f_code is code:
                return self._places.caller(frame)
            frame = frame.f_back
        return None


def _attribute_of(value, name):
    """A function that reads an attribute of an instance, without code of its class."""
    own, member = _own_names(value), _slot_names(type(value)).get(name)
    if own is not None and member is None:
        return lambda: own.get(name, NOTHING)
    if member is None:
        return lambda: NOTHING
    kind = type(value)
    try:
        reference = weakref.ref(value)
    except TypeError:
        reference = lambda: value  # noqa: E731

    def read():
        try:
            return member.__get__(reference(), kind)
        except (AttributeError, TypeError):
            return NOTHING

    return read


def _slot_names(kind):
    """Name -> descriptor of the slots of a class."""
    found = {}
    for above in _MRO(kind):
        for name, held in _NAMESPACE(above).items():
            if type(held) is types.MemberDescriptorType:
                found.setdefault(name, held)
    return found


def _reader(read, steps):
    """A function that follows attributes and items from what `read` gives."""
    if not steps:
        return read

    def follow():
        value = read()
        for kind, name in steps:
            if value is NOTHING:
                return NOTHING
            value = _attribute_of(value, name)() if kind == "attribute" else _item_of(value, name)
        return value

    return follow


def _item_of(value, key):
    kind = type(value)
    if is_container(value) and issubclass(kind, dict):
        return dict.get(value, key, NOTHING)
    if (kind is list or kind is tuple) and type(key) is int and key < len(value):
        return value[key]
    return NOTHING


def _fingerprint_of(value):
    """The fingerprint of a value; None for one that is hard to look at."""
    try:
        return None if value is NOTHING else fingerprint(value)
    except Exception:
        return None


def _ids(value):
    """Identities of the items or attributes of an object; None if it has none."""
    kind = type(value)
    if kind is list:
        return tuple(map(id, value))
    if is_container(value) or kind is tuple:
        if issubclass(kind, dict):
            return tuple(map(id, value)), tuple(map(id, dict.values(value)))
        return tuple(map(id, value))
    own = None if issubclass(kind, _OPAQUE) else _own_names(value)
    return None if own is None else (tuple(own), tuple(map(id, own.values())))


def _parts(value):
    """Items or attributes of an object that can change themselves."""
    kind = type(value)
    if is_container(value) or kind is tuple:
        items = dict.values(value) if issubclass(kind, dict) else value
    else:
        own = None if issubclass(kind, _OPAQUE) else _own_names(value)
        items = () if own is None else own.values()
    return [item for item in itertools.islice(items, _MAX_ITEMS) if not is_atom(item)]


def _function_of(frame):
    """The function that a frame runs, if it is a global, or a method of its first argument."""
    code, found = frame.f_code, frame.f_globals.get(frame.f_code.co_name)
    if code.co_argcount:
        first = frame.f_locals.get(code.co_varnames[0])
        kind = first if type(first) is type else type(first)
        held = [_NAMESPACE(above).get(code.co_name) for above in _MRO(kind)]
        found = next((one for one in held if type(one) is types.FunctionType and one.__code__ is code), found)
    return found if type(found) is types.FunctionType and found.__code__ is code else None


def _is_default(function, target):
    defaults = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    return any(default is target for default in defaults)


def _own_names(value):
    try:
        own = object.__getattribute__(value, "__dict__")
    except Exception:  # it has none, or hides it
        return None
    return own if type(own) is dict else None


def _parts_of(value):
    """(name, text, part) of the attributes or items of an object."""
    kind = type(value)
    if is_container(value) and issubclass(kind, dict):
        for key, held in list(dict.items(value))[:_MAX_ITEMS]:
            yield id(key), f"an item of a dict, {text_of(key, 30)}", held
    elif is_container(value) or kind is tuple:
        for index, held in enumerate(list(value)[:_MAX_ITEMS]):
            yield index, f"an item of a {kind.__name__}, [{index}]", held
    elif not issubclass(kind, _OPAQUE):
        name_of_kind = _NAME(kind)
        for name, held in attributes(value)[:_MAX_ATTRIBUTES]:
            yield name, f"{name_of_kind}.{name}", held
