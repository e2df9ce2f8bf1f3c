"""The history of an attribute, item or variable: each assignment and each change in place, and who else holds it.

After each line of the repository the watched places are compared with what they were, so it does not matter through
which name or which function an object is changed. No code of the program is called for that.
"""

from __future__ import annotations

import sys
import types
import weakref

from .engines import CALLS, LINES
from .holders import find_holders
from .listener import Listener
from .value_text import Places, text_of
from .watched_places import MRO, NAMESPACE, NOTHING, Slot, Watch, attribute_reader, follow_steps

_MAX_PLACES = 200
_MAX_ARGUMENTS = 8
_MAX_HOLDERS = 4
_MAX_BACK = 40
_DESCRIPTORS = frozenset(
    map(id, (types.FunctionType, property, classmethod, staticmethod, types.MemberDescriptorType))
)
"""By identity: a class of the program may define `==`."""


class History(Listener):
    """Watches places, and writes down their changes."""

    def __init__(self, job, asked, files, sources, process):
        super().__init__(process)
        self._job, self._files, self._sources, self._process = job, files, sources, process
        self._places = Places(job)
        self.watches = [Watch(one, job) for one in asked if one["kind"] == "history"]
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
        slot = Slot(watch, name, follow_steps(attribute_reader(value, watch.name), watch.steps), key)
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
        for above in MRO(kind):
            scope = NAMESPACE(above)
            held = scope.get(watch.name, NOTHING)
            if held is not NOTHING and id(type(held)) not in _DESCRIPTORS and watch.has_class(above):
                read = follow_steps(lambda scope=scope: scope.get(watch.name, NOTHING), watch.steps)
                slot = Slot(
                    watch, f"{watch.owner_name}.{watch.label} of the class", read, (id(above), watch.name)
                )
                self._add(slot, thread, frame)

    def _watch_module(self, watch, scope, thread, frame):
        self._modules.add(id(watch))
        watch.places += 1
        read = follow_steps(lambda: scope.get(watch.name, NOTHING), watch.steps)
        self._add(Slot(watch, watch.label, read, (id(scope), watch.name)), thread, frame)

    def _watch_local(self, watch, frame):
        def read():
            values = {} if self._frame is None else self._frame.f_locals
            return values[watch.name] if watch.name in values else NOTHING

        watch.places += 1
        name = f"{watch.label} in {watch.owner_name}#{watch.places}"
        self._local_slots.setdefault(id(frame), []).append(Slot(watch, name, follow_steps(read, watch.steps)))

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
        """[((id of owner, name), text)] of other places that hold the same object."""
        if slot.value is NOTHING:
            return []
        found = find_holders(slot.value, frame, self._job)
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
            "p": thread.innermost,
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
