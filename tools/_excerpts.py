"""Source of the functions that a diagnosis names, so that no call is needed to read them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from sandbox.errors import InvalidArgument, NotFound
from sandbox.host_files import in_thread
from sandbox.session.diagnosis import CodeChange, Diagnosis, Helper, Place, Recording, State
from sandbox.session.session import Session
from sandbox.session.workspace import Marks
from tools._diagnosis import Shown, select_shown
from tools._named_places import order_places, places_of_alias, places_of_kept, with_computed
from tools._places import shorten, shorten_value
from tools._source_parts import (
    MAX_FUNCTION,
    MAX_SMALL_FILE,
    VALUE,
    clipped,
    cut_out,
    find_bindings,
    find_block,
    find_headers,
    find_span,
    has_parts,
    lines_of,
    whole_file,
)
from tools._statements import read_statements
from tools._text import number_lines

_MAX_CHANGED, _MAX_BELIEVED = 3000, 2000
"""Characters of the function in which a change makes the test pass; of one that is mostly the cause."""
_MAX_SHARED = 400
"""Characters of a constructor that stores a shared object among others: one of its lines matters."""
_MAX_REST = 1200
"""Characters of the part of a function that is shown after others, or where there is no room for more."""
_LEAST_CHANGED = 700
"""Characters that there are for each further function in which a change makes the test pass, and one that shares an object."""
_LEAST_COMPUTING = 1800
"""Characters that there are for the function whose kept result the best change computes anew."""
_AT_LENGTH = 2
"""Functions that are shown at more length than others."""
_MAX_FILES, _MAX_ALL_FILES = 5, 10
"""Files that are read for the functions that the diagnosis names; for these and for what they call."""
_MAX_SHORT = 800
"""Characters of a function that is shown before longer ones where nothing tells which has the cause."""
_LEAST_SECOND = 600
"""Characters that the first function leaves for others."""
_LITTLE_FILE = 600
"""Characters of a small file that is shown after other functions whatever the length of its function."""
_LITTLE_MORE = 1.5
"""Length of such a file to that of its function up to which it is shown after other functions, too."""
_FEW_LEFT = 300
"""Characters that are not left out of a function of which the rest is shown, even if there is no room for them."""
_LEAST_LINES = 5
"""Lines of a part of a function that is shown after other functions."""
_MAX_HELPERS, _FEW_HELPERS, _MAX_HELPER = 3, 1, 500
"""Short functions that a line shown has called; beside a change that harms no test; characters of one."""
_MAX_CALLED = 900
"""Characters of a function that a line calls whose change makes the test pass."""
_MAX_CALLING = 6
"""Functions of which it is looked up which others they call: any of them may be shown as one of the first."""
_MAX_SOUGHT, _MAX_LINES = 40, 80
"""Functions among which these are sought; lines of one, with its docstring."""
_MAX_STATEMENT = 20
"""Lines of a statement whose calls are looked for."""
_MAX_BOUND = 2
"""Last lines that set the variables of a changed one whose calls are told."""
_MAX_NAMED = 10
"""Lines of a function that are looked at for what they depend on."""
_MAX_USES, _MAX_BESIDE, _MAX_USE = 8, 5, 90
"""Lines that use the state that changes are about, and characters of one."""
_MAX_CALLS = 2
"""Calls of a function with one of the best two changes that are told by a line: their functions are too long to be shown."""
_MAX_VALUE, _MAX_RESULT = 80, 40
_QUOTED, _NAME = re.compile("`([^`]*)`"), re.compile(r"[A-Za-z_]\w*")
_BOUND = re.compile(r"\s*([A-Za-z_]\w*)\s*(?::[^=]+)?=(?!=)")
_IMPORT = re.compile(r"import\s+[\w.]+|from\s+[\w.]+\s+import\b")
_COPY = re.compile(r"\s*(?:import\s+(?:[\w.]+\s*,\s*)*copy\b(?!\.)|from\s+copy\s+import\b)")
_COPYING = re.compile(r"\b(?:copy|copies)\b")
_MAX_SHORT_BLOCK = 12
"""Lines of a block that has not run up to which it is shown in a function in which a change makes the test pass."""


class Excerpt(NamedTuple):
    """The source of a function, parts of it, or a small file (no `function`): numbered lines below its name."""

    path: str
    function: str
    text: str

    def lines(self) -> list[tuple[str, int]]:
        """(path, line) of each line."""
        return [(self.path, line) for line in lines_of(self.text)]


async def read_excerpts(
    session: Session,
    found: Diagnosis,
    shown: Collection[tuple[str, int]],
    room: int,
    callers: Sequence[Place] = (),
    origin: Place | None = None,
) -> list[Excerpt]:
    """Read the functions that matter most in a diagnosis.

    Of a function that refused its arguments, that one alone: nothing else has led to the failure.

    `shown`: paths and lines; functions with one of them are left out. `room`: characters in all, but for the first one, and for
    the short functions on which named lines depend. `callers`: functions that a failure passed, come right after what the
    findings name. `origin`: where the exception behind that of the stop was raised.
    """
    return await _Reader(session, found, shown, room, callers, origin).read()


class _Reader:
    """Reads files and cuts functions out of them, in the order in which a diagnosis wants them."""

    def __init__(
        self,
        session: Session,
        found: Diagnosis,
        shown: Collection[tuple[str, int]],
        room: int,
        callers: Sequence[Place],
        origin: Place | None,
    ) -> None:
        told = select_shown(found)
        recording = told.recording
        is_refused = any(one.refused for one in told.links)
        self._session, self._shown, self._room = session, shown, room
        plain = _plain_functions(told, [*callers, *([origin] if origin else [])])
        wanted = order_places(told, recording, callers, origin)[: 1 if is_refused else None]
        self._wanted = [one for one in wanted if (one[0].path, one[0].function) not in plain] or wanted
        self._changes, self._is_mended = told.changes, told.is_mended
        self._is_unsure = not (told.changes or told.further or told.is_sure)
        """True if nothing tells which of the functions has the cause: rather several short ones are shown than a long one."""
        mutation = found.mutation if told.changes else None
        self._state = mutation.state if mutation else None
        self._beside = mutation.beside if mutation and told.is_mended else []
        self._changed = {(one.path, one.function) for one in with_computed(told.changes)}
        stored = [alias.stored for alias in told.aliases if not alias.places]
        self._shared = {(one.path, one.function) for one in stored if one.function.endswith("__init__")}
        self._storing = {(alias.stored.path, alias.stored.function) for alias in told.aliases} - self._shared
        changed = [*{(one.path, one.function): one for one in told.changes}.values()]
        best = [*changed, *(one for one, *_ in self._wanted)][:1]
        self._callers = [] if is_refused else _callers_of(best, recording)
        self._of_second = [] if is_refused else _callers_of(changed[1:2], recording)
        self._helpers = [] if is_refused else _helpers_of(self._wanted[:_MAX_CALLING], recording)
        self._plain = plain
        self._names: dict[str, list[str]] = {}
        """Path -> functions that are wanted."""
        for place, *_ in self._wanted:
            self._names.setdefault(place.path, []).append(place.function)
        self._values = _values_of_lines(recording)
        self._files: dict[str, tuple[list[str], Marks]] = {}
        self._excerpts: list[Excerpt] = []
        self._seen: set[tuple[str, tuple[int, int]]] = set()
        self._calling: dict[tuple[str, int], list[tuple[int, CodeChange]]] = {}
        """Lines whose calls say what changes do -> these, with 0 for changed lines, more for those before that set their variables."""

    async def read(self) -> list[Excerpt]:
        """Read the wanted functions, short ones around them, and other lines with the state that changes are about."""
        long = list[Sequence[Place]]()
        for number, places in enumerate(self._wanted):
            if not await self._has_file(places[0].path):
                continue
            if self._is_unsure and number and await in_thread(self._is_long, places[0]):
                long.append(places)
            else:
                await in_thread(self._add, places)
        for places in long:
            await in_thread(self._add, places)
        beside = await in_thread(self._order_beside)
        for one in beside:
            await self._has_file(one.path, _MAX_ALL_FILES)
        self._excerpts += await in_thread(lambda: list(self._short_ones(beside)))
        if self._state is not None:
            self._excerpts += _other_uses(self._state, self._lines_told(), _MAX_USES)
        for state in self._beside:
            self._excerpts += _other_uses(state, self._lines_told(), _MAX_BESIDE)
        self._excerpts += await in_thread(self._imports)
        if self._is_mended:
            for callers in (self._callers, self._of_second):
                self._excerpts += _calls_told(callers, self._lines_told().union(self._shown))
        return self._excerpts

    def _imports(self) -> list[Excerpt]:
        """The import of `copy` in the file of a change by which a copy would help, or the last of the imports there."""
        best = self._changes[0] if self._is_mended else None
        if best is None or best.path not in self._files or not _COPYING.search(_QUOTED.sub("", best.change)):
            return []
        lines = self._files[best.path][0]
        copying = next((number for number, line in enumerate(lines, 1) if _COPY.match(line)), 0)
        last = max((number for number, line in enumerate(lines, 1) if _IMPORT.match(line)), default=0)
        number = copying or last
        if not number or (best.path, number) in self._lines_told():
            return []
        head = f"{best.path}, {'' if copying else 'no '}`copy` among its imports"
        line = number_lines(list(clipped(lines, number, number)), number)
        return [Excerpt(best.path, head, f"{head}\n{line}")]

    def _is_long(self, place: Place) -> bool:
        """True for a function that comes after shorter ones where nothing tells which has the cause."""
        lines, marks = self._files[place.path]
        first, last = find_span(place, lines, marks) or (1, 0)
        source = clipped(lines, max(first, 1), min(last, len(lines)))
        return any(size > _MAX_SHORT for size in accumulate(map(len, source)))

    def _lines_told(self) -> set[tuple[str, int]]:
        return {line for one in self._excerpts for line in one.lines()}

    async def _has_file(self, path: str, most: int = _MAX_FILES) -> bool:
        """Read a file if it is one of the first `most`. False if it is not, or can't be read."""
        if path not in self._files and len(self._files) < most:
            beside = [one.function for one in (*self._callers, *self._helpers) if one.path == path]
            try:
                file, marks = await self._session.workspace.read_marked(
                    path, [*self._names.get(path, []), *beside], unexecuted=True
                )
            except (InvalidArgument, NotFound):
                return False
            self._files[path] = file.lines, marks
        return path in self._files

    def _add(self, places: Sequence[Place]) -> None:
        """Add a function, or the small file that it is in, if there is room."""
        place, excerpts = places[0], self._excerpts
        span = find_span(place, *self._files[place.path])
        is_whole = any(one.path == place.path and not one.function for one in excerpts)
        # Frames name a method without its class, so it may be there already.
        if is_whole or span is None or (place.path, span) in self._seen:
            return
        if (place.path, place.function) in self._changed | self._storing:
            is_computing = any(one.computed_by == place for one in self._changes[:1])
            self._room = max(self._room, _LEAST_COMPUTING if is_computing else _LEAST_CHANGED)
        text = self._cut(places)
        if not text or (excerpts and _is_scrap(text)) or self._is_told(place.path, text):
            return
        whole = self._small_file(place.path, len(text))
        if any(VALUE in one.text for one in self._inside(place.path, whole)):
            whole = ""  # it would be without these values
        inside = self._inside(place.path, whole or text)
        more = len(whole or text) - sum(len(one.text) for one in inside)
        if not whole and more > self._room + _FEW_LEFT and excerpts:
            return
        self._seen.add((place.path, span))
        left = self._room - more
        self._room = left if excerpts or whole else max(left, _LEAST_SECOND)
        at = excerpts.index(inside[0]) if inside else len(excerpts)
        excerpts.insert(at, Excerpt(place.path, "" if whole else place.function, whole or text))
        self._excerpts = [one for one in excerpts if one not in inside]

    def _values_inside(self, place: Place) -> dict[int, str]:
        """Line -> values in a function and in those inside of it."""
        first, last = find_span(place, *self._files[place.path]) or (0, -1)
        return {
            line: value
            for (path, _), values in self._values.items()
            if path == place.path
            for line, value in values.items()
            if first <= line <= last
        }

    def _is_told(self, path: str, text: str) -> bool:
        """True for a function inside of one that is shown whole."""
        lines = {*lines_of(text)}
        return any(one.path == path and lines.issubset(lines_of(one.text)) for one in self._excerpts)

    def _inside(self, path: str, text: str) -> list[Excerpt]:
        """The excerpts whose lines are all in a text of the same file: functions inside of another one."""
        lines = {*lines_of(text)}
        return [one for one in self._excerpts if one.path == path and lines.issuperset(lines_of(one.text))]

    def _cut(self, places: Sequence[Place]) -> str:
        """Cut a function out of its file; with fewer of its lines if there is no room for all."""
        place, named = places[0], [one.line for one in places]
        file, shown = self._files[place.path], self._lines_shown(place.path)
        for one in places:
            if isinstance(one, CodeChange) and 0 < one.line <= len(file[0]):
                named += [index + 1 for index in find_block(file[0], one.line - 1)]
        values = self._values_inside(place)
        lines, marks = file
        if (place.path, place.function) in self._changed:
            # A short block that has not run may be where a changed line belongs.
            long = [(first, last) for first, last in marks.unexecuted if last - first >= _MAX_SHORT_BLOCK]
            marks = marks.model_copy(update={"unexecuted": long})
        is_cause = self._is_mended and not self._excerpts
        text = cut_out(place, lines, marks, shown, named, values, self._longest(place), is_cause=is_cause)
        for fewer in (named, named[:1]) if self._excerpts else ():
            if len(text) > self._room:
                text = cut_out(place, lines, marks, shown, fewer, values, min(self._room, _MAX_REST))
        if has_parts(text) and not _is_scrap(text):
            longer = len(text) + _FEW_LEFT
            whole = cut_out(place, lines, marks, shown, named, values, longer, is_cause=is_cause)
            text = text if has_parts(whole) else whole
        return text

    def _longest(self, place: Place) -> int:
        if self._changes and not self._excerpts:
            return _MAX_BELIEVED if self._is_mended else _MAX_CHANGED
        if (place.path, place.function) in self._shared:
            return _MAX_SHARED
        return MAX_FUNCTION if len(self._excerpts) < _AT_LENGTH else _MAX_REST

    def _lines_shown(self, path: str) -> set[int]:
        return {line for each, line in self._shown if each == path}

    def _small_file(self, path: str, size: int) -> str:
        """The text of a file, if it is hardly longer than its function of `size` characters; else ""."""
        if self._lines_shown(path):
            return ""
        whole = whole_file(path, self._files[path][0])
        is_wide = len(self._names[path]) > 1 and not self._excerpts
        longest = MAX_SMALL_FILE if is_wide else min(self._room, max(_LITTLE_FILE, _LITTLE_MORE * size))
        return whole if len(whole) <= longest else ""

    def _order_beside(self) -> list[Helper]:
        """Functions beside those shown: what changed lines call, who calls the best one, what other lines call.

        Of lines on which named ones depend, before the other lines of the first functions shown.
        """
        for one in self._changes:
            for rank, (path, line) in enumerate(self._lines_of_change(one)):
                for each in self._lines_of_statement(path, line):
                    self._calling.setdefault((path, each), []).append((rank, one))
        about = [line for places in self._wanted[:_AT_LENGTH] for line in self._lines_about(places)]
        about += [line for one in self._excerpts[:_AT_LENGTH] for line in one.lines()]
        order = {line: number for number, line in reversed(list(enumerate(about)))}
        called = [one for one in self._helpers if (one.by.path, one.by.line) in order]
        called.sort(key=lambda one: order[one.by.path, one.by.line])
        by_change = [one for one in called if self._is_called_by_change(one)]
        by_change.sort(key=lambda one: self._calling[one.by.path, one.by.line][0][0])
        others = [] if self._is_mended else [one for one in called if one not in by_change]
        return [*by_change, *self._callers, *others]

    def _lines_of_statement(self, path: str, line: int) -> range:
        """The lines of the statement that begins at a line: a call is told by any of them."""
        source = self._files[path][0][line - 1 : line - 1 + _MAX_STATEMENT] if path in self._files else []
        first = next(read_statements(source, line), None)
        return range(line, max(line, first.last if first else line) + 1)

    def _is_called_by_change(self, one: Helper) -> bool:
        """True if a changed line calls it, or one of the last lines before it that set one of its variables."""
        return (one.by.path, one.by.line) in self._calling

    def _lines_of_change(self, change: CodeChange) -> list[tuple[str, int]]:
        """A changed line, and the last lines before it, in its function, that set its variables, the nearest first."""
        lines = [(change.path, change.line)]
        span = find_span(change, *self._files[change.path]) if change.path in self._files else None
        if span is None or not span[0] < change.line <= span[1]:
            return lines
        source, index = list(clipped(self._files[change.path][0], *span)), change.line - span[0]
        before = {one for one in find_bindings(source, index, _MAX_BOUND) if one < index}
        return lines + [(change.path, span[0] + one) for one in sorted(before, reverse=True)[:_MAX_BOUND]]

    def _lines_about(self, places: Sequence[Place]) -> Iterator[tuple[str, int]]:
        """(path, line) of the headers of blocks around the places in a function, of these, and where their names are bound.

        The first name of a line, which may be that of a changed object, comes before what it uses.
        """
        path = places[0].path
        span = find_span(places[0], *self._files[path]) if path in self._files else None
        if span is None:
            return
        first, last = span
        source = list(clipped(self._files[path][0], first, last))
        named = dict.fromkeys(one.line for one in places if first <= one.line <= last)
        for line in list(named)[:_MAX_NAMED]:
            bound = list(find_bindings(source, line - first))
            for index in (*find_headers(source, line - first), *bound[:1], line - first, *bound[1:]):
                yield path, first + index

    def _short_ones(self, beside: Sequence[Helper]) -> Iterator[Excerpt]:
        """The first short ones of which no line is shown; those that a changed line calls may be longer."""
        told = self._lines_told().union(self._shown)
        left = _FEW_HELPERS if self._is_mended else _MAX_HELPERS
        seen = set[tuple[str, tuple[int, int]]]()
        for one in beside:
            span = find_span(one, *self._files[one.path]) if one.path in self._files else None
            is_changed = self._is_called_by_change(one)
            is_long = span is not None and span[1] - span[0] > _MAX_LINES and not is_changed
            if not left or span is None or is_long or (one.path, span) in seen:
                continue
            seen.add((one.path, span))
            if (one.path, one.function) in self._plain and not is_changed:
                continue
            lines = [line for path, line in told if path == one.path]
            longest = _MAX_CALLED if is_changed else _MAX_HELPER
            for values in (self._values.get((one.path, one.function), {}), {}):
                text = cut_out(one, *self._files[one.path], lines, [one.line], values, longest)
                if not has_parts(text):  # else there may be room for all without values
                    break
            if has_parts(text) and is_changed:
                named = self._lines_with_given(one, *span)
                given = dict.fromkeys(named, "")  # no values: only these lines
                text = cut_out(one, *self._files[one.path], lines, named, given, longest) if named else ""
            elif has_parts(text):
                text = ""
            if text and len(text) <= longest:
                yield Excerpt(one.path, one.function, _with_results(text, one))
                left -= 1

    def _lines_with_given(self, called: Helper, first: int, last: int) -> list[int]:
        """The lines of a function that a changed line calls with the names that this change is about, or what is made of them."""
        changes = [one for _, one in self._calling[called.by.path, called.by.line]]
        quoted = [found[1] for one in changes if (found := _QUOTED.search(one.change))]
        names = {name for text in quoted for name in _NAME.findall(text)} - {"self", "cls"}
        lines = list[int]()
        for number, line in enumerate(clipped(self._files[called.path][0], first, last), first):
            if names.intersection(_NAME.findall(line)):
                lines.append(number)
                bound = _BOUND.match(line)
                names.update(bound.groups() if bound else ())
        return lines[:_MAX_NAMED]


def _with_results(text: str, called: Helper) -> str:
    """The source of a function with what it has returned to the line that has called it, unless that is there."""
    if not called.results or (len(called.results) == 1 and VALUE in text):
        return text
    head, _, source = text.partition("\n")
    results = ", ".join(shorten_value(one, _MAX_RESULT) for one in called.results)
    return f"{head}, called at :{called.by.line} → {results}\n{source}"


def _plain_functions(told: Shown, passed: Sequence[Place]) -> set[tuple[str, str]]:
    """Functions that only set or return an attribute, or hand on what they are given, unless a finding names them.

    `passed`: places that the failure has passed.
    """
    named = [*with_computed(told.changes), *passed, *(one for one in told.links if one.refused)]
    named += [place for one in told.recording.signals for place in one.places]
    named += [place for one in told.aliases for place in places_of_alias(one)]
    named += [place for one in told.kept for place in places_of_kept(one)]
    functions = {(one.path, one.function) for one in told.recording.plain}
    return functions - {(one.path, one.function) for one in named}


def _other_uses(state: State, told: Collection[tuple[str, int]], most: int) -> list[Excerpt]:
    """The other lines with a name, by file; of more than `most`, so many of those that write it."""
    found = [one for one in state.uses if (one.path, one.line) not in told]
    found = found if len(found) <= most else [one for one in found if one.is_written]
    return _by_file(f"other lines with `{state.name}`", found[:most])


def _calls_told(callers: Sequence[Helper], told: Collection[tuple[str, int]]) -> list[Excerpt]:
    """The lines that have called a function with a change, but for those that are shown."""
    found = [one for one in callers if (one.path, one.line) not in told][:_MAX_CALLS]
    return _by_file(f"calls of {found[0].by.function}", found) if found else []


def _by_file(what: str, places: Sequence[Place]) -> list[Excerpt]:
    """Single lines, each with the function that it is in."""
    by_path: dict[str, list[Place]] = {}
    for one in places:
        by_path.setdefault(one.path, []).append(one)
    return [
        Excerpt(path, f"{path}, {what}", "\n".join([f"{path}, {what}", *map(_use, of_file)]))
        for path, of_file in by_path.items()
    ]


def _use(one: Place) -> str:
    """A line with its number, and with the function that it is in."""
    function = "" if one.function == "<module>" else f"{one.function.rpartition('.')[2]}(): "
    return f"{one.line}\t{function}{shorten(one.text, _MAX_USE)}"


def _callers_of(places: Sequence[Place], recording: Recording) -> list[Helper]:
    """The functions that have called those of some places."""
    called = {(one.path, one.function) for one in places}
    return [one for one in recording.callers if (one.by.path, one.by.function) in called]


def _helpers_of(wanted: Sequence[Sequence[Place]], recording: Recording) -> list[Helper]:
    """The functions that those of `wanted`, or functions inside of these, have called, but for these."""
    functions = {(one.path, one.function) for one, *_ in wanted}
    within = tuple(f"{path} {function}." for path, function in functions)
    return [
        one
        for one in recording.helpers
        if f"{one.by.path} {one.by.function}.".startswith(within)
        and (one.path, one.function) not in functions
        and not one.function.endswith("__")  # no call of it is to be seen
    ][:_MAX_SOUGHT]


def _is_scrap(text: str) -> bool:
    """True for a few lines of a longer function: it would have to be asked for anyway."""
    return has_parts(text) and text.count("\n") < _LEAST_LINES


def _values_of_lines(recording: Recording) -> dict[tuple[str, str], dict[int, str]]:
    """Values that were set or decided at the lines of the calls that are told, by path and function."""
    return {
        (one.path, one.function): {line: shorten_value(text, _MAX_VALUE) for line, text in one.lines}
        for one in recording.calls
    }
