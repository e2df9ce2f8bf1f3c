"""Findings from the recording of a failing test."""

from __future__ import annotations

import re
import sys

from ..debugger.isolation.pristine import os
from . import (
    aliases,
    attributes,
    call_tree,
    caught,
    chain,
    failure,
    kept_state,
    lent,
    plain_functions,
    repeated,
    values,
)
from . import sites as kinds
from .calls import Calls
from .events import Events, frame_number, is_atom, method_codes
from .job import guarded
from .safe_values import class_name, text_of, type_name
from .sides import actual_first, describe_difference, of_unittest
from .signals import finding
from .slicing import Slice
from .sources import Sources

_MAX_SLICE = 30_000
_APPEARED = 6
"""Distance of the first appearance of a wrong value."""
FAR = 10_000
"""Distance of what is not on the way to the failure."""
_NEAR = 30
_MAX_HANDED_ON = 5
_MAX_OTHERS = 3
_MAX_WRITTEN = 2
_TEXT = re.compile(r"(['\"])(.*?)\1")
_MIN_TEXT = 6
"""Characters of a text in source below which it may appear anywhere."""
_MAX_RAN = 40
"""Functions that are named, of those that have run."""
_COMPARING = ("__eq__", "__hash__")
"""Those that are not named: a test calls them to compare."""
_MAX_ALIKE = 2
"""Functions with the same code as another one; more of them are a pattern of the program."""
_COUNTING = ("len", "count", "sum", "index", "find")
_TELLING = 1.2
"""Suspicion from which on kept state is told."""
_FARNESS = 0.03
"""Suspicion that one step further from the failure must outweigh."""


def analyse(log, rewriter, exc, sides, job):
    """Aliases, the way back, first appearances, and the suspects of the spectrum in a better order."""
    return _Analysis(Events(log, rewriter), exc, sides, job).result()


class _Analysis:
    def __init__(self, events, exc, sides, job):
        self._events, self._job = events, job
        self._exc, self._frames = failure.origin_of(exc, job)
        self._sources = Sources()
        self._spectrum = job.read("spectrum.json")
        self._scores = {(path, line): score for path, line, score, _ in self._spectrum.get("lines") or ()}
        self._frame_numbers = [frame_number(frame, events.modules) for frame, _ in self._frames]
        if self._frames:
            events.outermost = self._frame_numbers[0]
        self._starts = self._find_starts()
        self._statement = self._failing_statement()
        sides = sides or of_unittest(self._exc)
        self._sides = self._in_order(sides) or sides
        self._appeared = self._appearances() or []
        self._wrong_changes = self._changes_with_wrong_parts() or {}
        appeared = {event for event, _ in self._appeared}
        also = [(_APPEARED, event) for event in appeared.union(self._wrong_changes)]
        self._slice = Slice(events, self._starts + also, _MAX_SLICE)
        self._recorded = Calls(events)
        self._found_in = {}
        """Function -> frame of the call in which a finding happened."""

    @guarded
    def _in_order(self, sides):
        """(operator, actual, expected) of the failing comparison; None if there is none."""
        return sides if sides is None else actual_first(sides, self._statement)

    @guarded
    def _failing_statement(self):
        """The syntax tree of the failing statement; None if there is none."""
        if not self._frames:
            return None
        frame, line = self._frames[-1]
        return self._sources.statement(frame.f_code.co_filename, line)

    def result(self):
        found = {
            "aliases": self._aliases() or [],
            "kept": self._kept() or [],
            "difference": self._difference(),
            "values": self._values() or [],
            "caught": self._caught() or [],
            "signals": self._signals() or [],
            "written": self._written() or [],
            "attributes": self._attributes() or [],
            "suspects": self._suspects() or [],
            "lines": self._lines(),
            "lent": self._lent() or [],
        }
        found.update(self._chain() or {})
        found.update(self._calls() or {})
        found["alike"] = self._alike(found) or []
        return found

    @guarded
    def _difference(self):
        """The first difference of the compared values; None if there are none or it is not to be told."""
        return None if self._sides is None else describe_difference(self._sides, self._statement)

    def _find_starts(self):
        """(distance, event) of the failing line in each frame that the exception has passed."""
        found = []
        inwards = zip(reversed(self._frame_numbers), reversed(self._frames))
        for outwards, (number, (_, line)) in enumerate(inwards):
            if number is not None:
                found += [(2 * outwards, event) for event in self._events.last_of_frame(number, line)]
        return found

    @guarded
    def _appearances(self):
        """The first appearances of wrong values: how they came to the failure may not be recorded."""
        return values.first_appearances(self._events, self._wanted(), self._job.is_test_code)

    @guarded
    def _changes_with_wrong_parts(self):
        """Changes that put a wrong part of the compared values, which need not be distinctive, into an object.

        None if the failing line has counted to get it.
        """
        counted = {
            self._events.value_of[event]
            for distance, event in self._starts
            if distance == 0 and self._events.site(event).is_call
            if self._events.site(event).name.partition("(")[0].rpartition(".")[2] in _COUNTING
            if type(self._events.value_of[event]) is int
        }
        parts = [part for part in self._wrong_parts() if type(part) is not int or part not in counted]
        return values.changes_with(self._events, parts, self._job.is_test_code)

    @guarded
    def _written(self):
        """The last writes of the attributes that the failing line reads, but for those by constructors and tests."""
        line = [event for distance, event in self._starts if not distance]
        return [
            {**self._place(write), "name": name[:100], "value": self._stored_text(write)}
            for name, write in attributes.written(self._events, line, self._job.is_test_code)[:_MAX_WRITTEN]
        ]

    @guarded
    def _attributes(self):
        """The last writes of attributes that functions of the failure have read, and what made their objects."""
        frames, test = self._frame_numbers[::-1], self._job.is_test_code
        return [
            {
                **self._place(write),
                "name": self._events.site(read).name[:100],
                "value": self._stored_text(write),
                "read": self._place(read),
                "maker": None if maker is None else self._place(maker),
            }
            for read, write, maker in attributes.find(self._events, frames, test)
        ]

    def _stored_text(self, write):
        """Text of a plain value that was stored; "" for others, which may have changed since or have several names."""
        stored = self._events.stored_value_event(write)
        if stored is None or self._events.site(stored).kind == kinds.AUGMENTED:
            return ""
        value = self._events.value_of[stored]
        return text_of(value)[:100] if is_atom(value) else ""

    @guarded
    def _aliases(self):
        """Objects changed through another name, in several places of a container, or that parted; the most suspect first."""
        test = self._job.is_test_code
        holders = aliases.find_holders(self._events)
        changed = aliases.find(
            self._events, holders, test, self._score, self._slice.distance, self._wrong_changes
        )
        parted = aliases.find_parted(self._events, holders, test, self._score)
        found = [
            (score, {**self._alias(*one, is_parted=False), "of_peers": of_peers})
            for score, *one, of_peers in changed
        ]
        found += [(one[0], self._alias(*one[1:], is_parted=True)) for one in parted]
        for _, stored, _, change, *_ in sorted(changed, key=lambda each: -each[0])[:1]:
            self._note_calls(change, stored)
        lines = self._sources.lines_that_repeat
        several = repeated.find(self._events, lines, test, self._score, self._slice.distance)
        found += [(one[0], self._repeated(*one[1:])) for one in several]
        return [
            dict(alias, score=round(score, 3)) for score, alias in sorted(found, key=lambda each: -each[0])
        ]

    def _repeated(self, made, places, change):
        return {**self._alias(made, "", change, "", is_parted=False), "places": places}

    def _alias(self, stored, name, change, through, is_parted):
        held = self._events.stored_value_event(stored) if is_parted else change
        return {
            "stored": self._place(stored),
            "given": self._given(stored),
            "name": name[:100],
            "changed": self._place(change),
            "through": (through if is_parted else aliases.change_text(self._events, change))[:100],
            "kind": text_of(self._events.value_of[held], 0)[:50],
            "parted": is_parted,
        }

    def _given(self, stored):
        """Place at which an object that a function stores was given to it, or to its callers that handed it on; else None."""
        events, given = self._events, None
        site = events.site(stored)
        is_store = site.kind in (kinds.BASE, kinds.ITEM) and site.extra[0] == "store"
        event = events.stored_value_event(stored) if is_store else None
        target = None if event is None else events.value_of[event]
        for _ in range(_MAX_HANDED_ON if event is not None else 0):
            names = [dep for dep in events.site(event).deps if type(dep) is str]
            writers = [events.writer(name, event) for name in names]
            found = [one for one in writers if one is not None and events.value_of[one] is target]
            event = events.argument_of(found[0]) if found and self._is_parameter(found[0]) else None
            if event is None:
                break
            given = event
        if given is None or self._job.is_test_code(events.site(given).scope.filename):
            return None
        return self._place(given)

    def _is_parameter(self, event):
        return self._events.site(event).kind == kinds.PARAMETER

    @guarded
    def _kept(self):
        wrong_at = min((event for event, _ in self._appeared), default=None)
        test = self._job.is_test_code
        found = kept_state.find(
            self._events, self._recorded, test, self._score, self._slice.distance, wrong_at
        )
        for score, write, read, *_ in found[:1]:
            if score >= _TELLING:
                self._note_calls(read, write)
        holders = kept_state.holders(self._events, [(write, read) for _, write, read, *_ in found], test)
        return [
            {
                "written": self._place(write),
                "read": self._place(read),
                "name": kept_state.full_name_of(self._events, write, read)[:100],
                "function": "" if scope is None else scope.name[:100],
                "value": kept_state.value_text(self._events, write)[:200],
                "shared_at": self._line_of_class_attribute(write),
                "writers": self._writers(write, read)
                if scope is None and kept_state.is_global(self._events, write)
                else [],
                "others": self._other_writers(write, read),
                "held": self._place(holder[0]) if holder else None,
                "holder": holder[1][:100] if holder else "",
                "was": self._type_before(write),
                "arguments": [{"name": name[:50], "then": then, "now": now} for name, then, now in arguments],
                "passed_by": [self._place(entered) for entered in between],
                "score": round(score, 3),
            }
            for (score, write, read, scope, arguments, between), holder in zip(found, holders)
        ]

    def _note_calls(self, *happened):
        """Note the calls in which the events of a finding happened: their values tell more than those of other calls."""
        for event in happened:
            self._found_in.setdefault(self._events.site(event).scope, self._events.frame_of[event])

    def _type_before(self, write):
        """Type of the value that a written attribute had before, if the new one has another; else empty."""
        before = kept_state.type_before(self._events, write)
        return "" if before is None else type_name(before)[:100]

    def _writers(self, write, read):
        """Functions that changed a global: those that called for it, if they are known."""
        found = kept_state.writers(self._events, write, read, self._caller)
        return [self._place(change if caller is None else caller) for change, caller in found]

    def _other_writers(self, write, read):
        """Further functions of the file that set or change the same global or attribute."""
        written, name = self._events.site(write), aliases.name_of(self._events, write).partition("[")[0]
        owner, dot, rest = name.rpartition(".")
        if not (owner or kept_state.is_global(self._events, write)):
            return []  # local, though its object is kept elsewhere
        wanted = dot + rest if owner else name
        told = {written.scope.name, self._events.site(read).scope.name}
        return [
            self._place_at(written.scope.filename, line, function)
            for function, line in self._sources.writers_of(written.scope.filename, wanted)
            if function not in told and not function.endswith("__init__")
        ][:_MAX_OTHERS]

    def _caller(self, event):
        """An event of the function that called the one of an event; None for a test, and if its source doesn't call it."""
        events = self._events
        caller = events.caller_event(events.frame_of[event])
        if caller is None:
            return None
        names, scope = set(events.site(event).scope.name.split(".")[-2:]), events.site(caller).scope
        is_test = self._job.is_test_code(scope.filename) or scope.parent is None
        is_sure = self._sources.mentions(scope.filename, events.site(caller).line, names)
        return caller if is_sure and not is_test else None

    @guarded
    def _alike(self, found):
        """Functions with the same code as the most suspect ones, so perhaps with the same fault."""
        told = [
            *(one["changed"] for one in found["aliases"][:1]),
            *(one["written"] for one in found["kept"][:1]),
            *(found["suspects"][:2] + found.get("chain", [])[:1]),
        ]
        alike = {}
        for place in told:
            filename = os.path.join(self._job.root, place["path"])
            if self._job.is_test_code(filename) or place["function"].endswith("__init__"):
                continue
            others = self._sources.alike(filename, place["line"])
            for function, line in others if len(others) <= _MAX_ALIKE else ():
                one = self._place_at(filename, line, function)
                alike.setdefault((filename, line), {**one, "of": place["function"]})
        return list(alike.values())[:_MAX_ALIKE]

    def _line_of_class_attribute(self, write):
        """Line at which a class sets the written attribute for all its instances; 0 if it doesn't."""
        owner, _, rest = aliases.name_of(self._events, write).partition(".")
        scope = self._events.site(write).scope
        if owner not in ("self", "cls"):
            return 0
        return self._sources.class_attribute(scope.filename, scope.name, rest.partition("[")[0])

    @guarded
    def _values(self):
        """Places where wrong values appeared first; of common ones but None, the changes that put them into an object."""
        changes = [(event, value) for event, value in self._wrong_changes.items() if value is not None]
        found = self._appeared or changes
        return [self._value_at(event, value, not self._appeared) for event, value in found[:2]]

    def _value_at(self, event, value, is_change):
        if is_change:
            name = aliases.change_name(self._events, event)[:100]
        else:
            name = values.name_at(self._events.site(event))
        return {**self._place(event), "value": text_of(value), "name": name, "is_change": is_change}

    @guarded
    def _caught(self):
        test, project = self._job.is_test_code, self._job.project
        found = caught.find(self._events, test, self._score, self._slice.distance, project.has)
        return [self._caught_at(*one) for one in found]

    def _caught_at(self, event, filename, line):
        exc = self._events.value_of[event]
        raised = self._place_at(filename, line, self._sources.function_at(filename, line)[0])
        return {**self._place(event), "type": exc.type[:100], "message": exc.message, "raised": raised}

    @guarded
    def _calls(self):
        told = set(self._frame_numbers)
        calls, functions, order, helpers, callers = call_tree.select_calls(
            self._events,
            self._recorded,
            self._job.is_test_code,
            self._score,
            self._slice.distance,
            told,
            self._found_in,
        )
        plain = guarded(plain_functions.among)(order, self._events, self._sources) or []
        ran = [one for one in order if one not in plain and not self._compares(one)]
        return {
            "calls": [{**self._place(one.pop("entered")), **one} for one in calls],
            "functions": functions,
            "helpers": [
                {**self._place(entered), "by": self._place(caller), "results": results}
                for entered, caller, results in helpers
            ],
            "callers": [{**self._place(caller), "by": self._place(entered)} for caller, entered in callers],
            "ran": [self._place(entered) for entered in ran[:_MAX_RAN]],
            "plain": [self._place(entered) for entered in plain],
            "ranking": [
                [self._job.relative(site.scope.filename), site.line] for site in map(self._events.site, order)
            ],
        }

    def _compares(self, entered):
        return self._events.site(entered).scope.name.rpartition(".")[2] in _COMPARING

    @guarded
    def _lines(self):
        """path -> numbers of the lines of functions that have run."""
        found = {
            self._job.relative(filename): lines for filename, lines in self._events.executed_lines().items()
        }
        for path, line in self._scores:
            if path in found:
                found[path].add(line)
        return {path: sorted(lines) for path, lines in found.items()}

    @guarded
    def _lent(self):
        """[path, line] of arguments that are changed after the call that was given them."""
        found = lent.find(self._events, self._recorded, self._job.is_test_code)
        return [[self._job.relative(site.scope.filename), site.line] for site in found]

    @guarded
    def _signals(self):
        test = self._job.is_test_code
        found = finding.find(
            self._events, self._recorded, self._sources, test, self._score, self._slice.distance, self._sides
        )
        self._note_calls(*(one.event for one in found if one.event is not None))
        return [
            {
                "kind": one.kind,
                "name": one.name[:100],
                "value": one.value[:200],
                "other": one.other[:200],
                "holder": one.holder[:100],
                "places": [self._place_at(*place) for place in one.places],
            }
            for one in found
        ]

    def _wanted(self):
        """Distinctive wrong values: of the failing comparison, or in the exception."""
        if self._sides is not None:
            parts = self._wrong_parts()
        else:
            parts = [arg for arg in failure.args_of(self._exc) if is_atom(arg)]
            if isinstance(self._exc, AssertionError):
                parts = self._texts_of_line()
        return [part for part in parts if values.is_distinctive(part)]

    def _wrong_parts(self):
        """Plain parts of the value that differ from what was expected; of the latter if it has all. None without a comparison."""
        if self._sides is None:
            return []
        _, actual, expected = self._sides
        return list(values.wrong_parts(actual, expected)) or list(values.wrong_parts(expected, actual))

    def _texts_of_line(self):
        """Texts in the source of a failing assertion that compares nothing: what it looks for or misses."""
        if not self._frames:
            return []
        frame, line = self._frames[-1]
        source = self._sources.line(frame.f_code.co_filename, line)
        return [text for _, text in _TEXT.findall(source) if len(text) >= _MIN_TEXT]

    @guarded
    def _suspects(self):
        """The spectrum's suspects; of equal ones those on the way to the failure first."""
        nearest = self._nearest_lines()
        suspects = list(self._spectrum.get("suspects") or [])
        for one in suspects:
            self._move(one, nearest.get((one["path"], one["function"], one["score"])))
        describing = {
            (self._job.relative(scope.filename), scope.name)
            for scope in call_tree.only_describing(self._events)
        }
        suspects = [
            one
            for one in suspects
            if one["distance"] < FAR or (one["path"], one["function"]) not in describing
        ]
        suspects.sort(key=lambda one: (-one["score"], one["distance"]))
        return suspects[:10]

    def _nearest_lines(self):
        """(path, function, score of the line) -> (distance, site) of the event nearest to the failure."""
        nearest = {}
        for event, distance in self._slice.distance.items():
            site = self._events.site(event)
            if site.kind in (kinds.ENTER, kinds.PARAMETER):
                continue
            key = (self._job.relative(site.scope.filename), site.scope.name, self._score(site))
            if key not in nearest or distance < nearest[key][0]:
                nearest[key] = (distance, site)
        return nearest

    def _move(self, suspect, nearest):
        """Of lines with the same score, take the one nearest to the failure."""
        suspect["distance"] = FAR
        if nearest is not None:
            suspect["distance"], site = nearest
            same = [suspect["line"]] + suspect["more"]
            suspect["line"], suspect["text"] = site.line, self._sources.line(site.scope.filename, site.line)
            suspect["more"] = [line for line in same if line != site.line][:4]

    @guarded
    def _chain(self):
        called = self._refused_call()
        if called is not None:  # where its object came from tells nothing of its parameters
            return {"chain": [called]}
        path, is_value = self._path()
        if not path:
            return {}
        links, end, last = chain.build(self._events, path, self._place, self._score)
        found = {"chain": links, "chain_end": end, "chain_of_value": is_value}
        if end == chain.OBJECT_ITSELF:
            found["chain_class"] = self._class_of(self._events.value_of[last])
        return found

    @guarded
    def _class_of(self, value):
        """The class of an object; None if it is not one of the program's own files."""
        name, module = class_name(value)
        filename = getattr(sys.modules.get(module), "__file__", None) or ""
        if not self._job.project.has(filename) or self._job.is_test_code(filename):
            return None
        first, last = self._sources.class_head(filename, name)
        if not first:
            return None
        return {**self._place_at(filename, first, name), "last": last}

    def _path(self):
        """(events from the failure to the most suspect one, True if they lead by way of a wrong part of what was compared)."""
        nothing = self._unexpected_none()
        wrong = self._wrong_part() if nothing is None else nothing
        if wrong is not None:
            made = wrong if nothing is not None else self._made(wrong)
            narrowed = Slice(self._events, [(0, made)], _MAX_SLICE)
            target = self._target(narrowed)
            if target is not None:
                before = self._slice.path(wrong)
                return (before[:-1] if made == wrong else before) + narrowed.path(target), True
        target = self._target(self._slice)
        return self._slice.path(self._nearest() if target is None else target), False

    def _unexpected_none(self):
        """The last event of the failing line with the value None, if that is what was compared or failed; else None."""
        if self._sides is not None and (self._sides[1] is None) != (self._sides[2] is None):
            is_wrong = True
        else:
            is_wrong = type(self._exc) in (TypeError, AttributeError) and "NoneType" in failure.message_of(
                self._exc
            )
        found = [
            event
            for distance, event in (self._starts if is_wrong else ())
            if distance == 0
            and self._events.value_of[event] is None
            and self._events.site(event).kind in _MAY_BE_NONE
        ]
        return max(found, default=None)

    def _wrong_part(self):
        """The event nearest to the failure, outside of tests if there is one, with a wrong part of the compared values."""
        if self._sides is None:
            return None
        wanted = [(type(part), part) for part in self._wanted()]
        found = [
            (self._job.is_test_code(self._events.site(event).scope.filename), distance, -event)
            for event, distance in self._slice.distance.items()
            if is_atom(value := self._events.value_of[event])
            and any(type(value) is kind and value == part for kind, part in wanted)
        ]
        return -min(found)[2] if found else None

    def _made(self, wrong):
        """The first event, outside of tests, with the very text or number of an event, where it was made; else that event.

        What a test gave was not made there.
        """
        value, events = self._events.value_of[wrong], self._events
        for event in range(wrong) if values.is_distinctive(value) else ():
            site = events.site(event)
            is_it = events.value_of[event] is value and site.kind in values.BEFORE
            if is_it and not self._job.is_test_code(site.scope.filename):
                return wrong if site.kind == kinds.PARAMETER else event
        return wrong

    def _refused_call(self):
        """The definition of a method whose call failed before it began: its arguments do not fit."""
        last = len(self._events) - 1
        if type(self._exc) is not TypeError:
            return None
        message = failure.message_of(self._exc)
        for event in range(last, max(-1, last - _NEAR), -1):
            site = self._events.site(event)
            if site.kind == kinds.BASE and site.name + "()" in message:
                code = next(method_codes(self._events.value_of[event], site.name), None)
                if code is None or not self._job.project.has(code.co_filename):
                    continue
                function, _ = self._sources.function_at(code.co_filename, code.co_firstlineno)
                place = self._place_at(code.co_filename, code.co_firstlineno, function)
                return {**place, "name": "refused the arguments", "refused": True}
        return None

    def _target(self, way):
        """The event that the chain leads to: on the way to the failure, and the most suspect there; None if in tests."""
        best, best_key = None, None
        for event, distance in way.distance.items():
            site = self._events.site(event)
            if self._job.is_test_code(site.scope.filename) or site.kind not in _TARGETS:
                continue
            if site.kind == kinds.PARAMETER and site.name in ("self", "cls"):
                continue
            key = _FARNESS * distance - round(self._score(site), 1)
            if best_key is None or key < best_key:
                best, best_key = event, key
        return best

    def _nearest(self):
        return min(self._slice.distance, key=lambda event: self._slice.distance[event], default=None)

    def _score(self, site):
        """Score of the line of a site; none in tests."""
        filename = site.scope.filename
        if self._job.is_test_code(filename):
            return 0.0
        return self._scores.get((self._job.relative(filename), site.line), 0.0)

    def _place(self, event):
        site = self._events.site(event)
        return self._place_at(site.scope.filename, site.line, site.scope.name)

    def _place_at(self, filename, line, function):
        """A line as the result tells it."""
        text = self._sources.line(filename, line)
        return {"path": self._job.relative(filename), "line": line, "function": function, "text": text}


_MAY_BE_NONE = (kinds.CALL, kinds.ARGUMENT, kinds.STORE, kinds.RETURN, kinds.BASE, kinds.ITEM, kinds.ITERABLE)
_TARGETS = (kinds.STORE, kinds.RETURN, kinds.YIELD, kinds.PARAMETER, kinds.BASE, kinds.ITEM, kinds.ELEMENT)
