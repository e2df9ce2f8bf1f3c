"""Source of the functions that a diagnosis names, so that no call is needed to read them."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from sandbox.errors import InvalidArgument, NotFound
from sandbox.host_files import in_thread
from sandbox.session.diagnosis import (
    Alias,
    Alike,
    CodeChange,
    Diagnosis,
    Helper,
    Kept,
    Link,
    ObjectClass,
    Place,
    Recording,
)
from sandbox.session.session import Session
from sandbox.session.workspace import Marks
from tools._diagnosis import Shown, select_shown
from tools._places import shorten
from tools._signals import HINT
from tools._state_uses import find_state, function_around, lines_with, writes
from tools._text import (
    fold_unexecuted,
    function_docstring,
    has_run,
    number_folded,
    number_lines,
    number_without_docstring,
)

_MAX_FUNCTION, _MAX_CHANGED = 1800, 3000
"""Characters of a function that is shown whole; of the one in which a change makes the test pass."""
_MAX_SHARED = 400
"""Characters of a constructor that stores a shared object among others: one of its lines matters."""
_AHEAD = 4
"""Functions of calls that are shown before those of a finding that is not sure."""
_MAX_REST = 1200
"""Characters of the part of a function that is shown after others, or where there is no room for more."""
_LEAST_CHANGED = 700
"""Characters that there are for each further function in which a change makes the test pass."""
_AT_LENGTH = 2
"""Functions that are shown at more length than others."""
_MAX_FILES = 5
_AROUND = 6
"""Lines shown before and after the named one of a function that is too long."""
_NEAR = 12
"""Lines between two named ones of such a function that are shown together."""
_BESIDE = 2
"""Lines shown before and after a named one that is farther away."""
_STRETCH = 20
"""Lines between where a name is bound and where it is used, all of which are shown."""
_MAX_PIECES = 4
_NO_HEADER = "#", ")", "]", "}"
_GAP = 3
_MAX_ABOVE = 300
"""Lines above a named one that are searched for where its names are bound."""
_MAX_DOCSTRING = 5000
"""Characters of a docstring that is left out for the rest of a function to be shown whole."""
_MAX_LINE = 160
_LEAST_SECOND = 600
"""Characters that the first function leaves for others."""
_MAX_CLASS = 25
"""Lines of a class that is shown in place of its name."""
_MAX_SMALL_FILE = 2400
"""Characters of a file that is shown whole where a function of it would be: it would be asked for next."""

_LITTLE_FILE = 600
"""Characters of such a file that is shown after other functions whatever the length of its function."""
_LITTLE_MORE = 1.5
"""Length of such a file to that of its function up to which it is shown after other functions, too."""

_MAX_HELPERS, _MAX_HELPER = 3, 500
"""Short functions that a line shown has called, and characters of one."""
_MAX_CALLED = 900
"""Characters of a function that a line calls whose change makes the test pass."""
_MAX_CALLING = 6
"""Functions of which it is looked up which others they call: any of them may be shown as one of the first."""
_MAX_SOUGHT, _MAX_LINES = 40, 80
"""Functions among which these are sought; lines of one, with its docstring."""
_MAX_USES, _MAX_USE = 8, 90
"""Lines that use the state that changes are about, and characters of one."""
_MAX_NAMED = 10
"""Lines of a function that are looked at for what they depend on."""
_PARTS = ", parts"
_LEAST_LINES = 5
"""Lines of a part of a function that is shown after other functions."""
_MAX_VALUE = 80
VALUE = "◂"
"""Before the value of a line, which is no source."""
_RESULT = "→ "
"""Before the value that a function has returned."""
_OBJECT = re.compile(r"(?:→ )?<\w+>")
_NUMBER = re.compile(r"^B?>?(\d+)\t", re.MULTILINE)
_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*")


class Excerpt(NamedTuple):
    """The source of a function, parts of it, or a small file (no `function`): numbered lines below its name."""

    path: str
    function: str
    text: str


async def read_excerpts(
    session: Session,
    found: Diagnosis,
    shown: Collection[tuple[str, int]],
    room: int,
    callers: Sequence[Place] = (),
) -> list[Excerpt]:
    """Read the functions that matter most in a diagnosis.

    Of a function that refused its arguments, that one alone: nothing else has led to the failure.

    `shown`: paths and lines; functions with one of them are left out. `room`: characters in all, but for the first one, and for
    the short functions on which named lines depend. `callers`: functions that a failure passed, come right after what the
    findings name.
    """
    files: dict[str, tuple[list[str], Marks]] = {}
    values = _values_of_lines(found)
    told_of = select_shown(found)
    stored = [alias.stored for alias in told_of.aliases if not alias.places]
    shared = {(one.path, one.function) for one in stored if one.function.endswith("__init__")}
    wanted = _best_first(told_of, found.recording or Recording(), callers)
    changed = {(one.path, one.function) for one in told_of.changes}
    lines_changed = {(one.path, one.line) for one in told_of.changes}
    is_refused = any(one.refused for one in told_of.links)
    if is_refused:
        wanted = wanted[:1]
    names: dict[str, list[str]] = {}
    for place, *_ in wanted:
        names.setdefault(place.path, []).append(place.function)
    callers_of = [] if is_refused else _callers_of(told_of.changes, found.recording)
    helpers = [] if is_refused else _helpers_of(wanted[:_MAX_CALLING], found.recording)
    excerpts: list[Excerpt] = []
    seen: set[tuple[str, tuple[int, int]]] = set()
    for place, *others in wanted:
        if place.path not in files:
            if len(files) == _MAX_FILES:
                continue
            try:
                called = [one.function for one in (*callers_of, *helpers) if one.path == place.path]
                file, marks = await session.workspace.read_marked(
                    place.path, [*names[place.path], *called], unexecuted=True
                )
            except (InvalidArgument, NotFound):
                continue
            files[place.path] = file.lines, marks
        lines = {line for path, line in shown if path == place.path}
        span = _find_span(place, *files[place.path])
        is_whole = any(one.path == place.path and not one.function for one in excerpts)
        # Frames name a method without its class, so it may be there already.
        if is_whole or span is None or (place.path, span) in seen:
            continue
        named = [one.line for one in (place, *others)]
        told = values.get((place.path, place.function), {})
        is_shared = (place.path, place.function) in shared
        source, marks = files[place.path]
        longest = _MAX_SHARED if is_shared else _MAX_FUNCTION if len(excerpts) < _AT_LENGTH else _MAX_REST
        if told_of.changes and not excerpts:
            longest = _MAX_CHANGED
        text = _excerpt(place, source, marks, lines, named, told, longest)
        if (place.path, place.function) in changed:
            room = max(room, _LEAST_CHANGED)
        for fewer in (named, named[:1]) if excerpts else ():
            if len(text) > room:
                text = _excerpt(place, source, marks, lines, fewer, told, min(room, _MAX_REST))
        if not text or (excerpts and _is_scrap(text)):
            continue
        whole = "" if lines else _whole_file(place.path, source)
        is_wide = len(names[place.path]) > 1 and not excerpts
        longest = _MAX_SMALL_FILE if is_wide else min(room, max(_LITTLE_FILE, _LITTLE_MORE * len(text)))
        if whole and len(whole) <= longest:
            excerpts.append(Excerpt(place.path, "", whole))
            room -= len(whole)
        elif len(text) <= room or not excerpts:
            seen.add((place.path, span))
            room = room - len(text) if excerpts else max(room - len(text), _LEAST_SECOND)
            excerpts.append(Excerpt(place.path, place.function, text))
    about = list(
        dict.fromkeys(line for places in wanted[:_AT_LENGTH] for line in _lines_about(places, files))
    )
    told_lines = [_lines_in(one) for one in excerpts]
    about = list(dict.fromkeys([*about, *(line for lines in told_lines[:_AT_LENGTH] for line in lines)]))
    helpers = [one for one in helpers if (one.by.path, one.by.line) in about]
    helpers.sort(key=lambda one: about.index((one.by.path, one.by.line)))
    by_change = [one for one in helpers if (one.by.path, one.by.line) in lines_changed]
    sought = [*by_change, *callers_of, *(one for one in helpers if one not in by_change)]
    await _read_files(session, sought, files)
    told = {line for lines in told_lines for line in lines}
    more = list(_short_helpers(sought, told.union(shown), files, values, lines_changed))
    told.update(line for one in more for line in _lines_in(one))
    name = find_state([one.change for one in told_of.changes])
    path = told_of.changes[0].path if name else ""
    uses = await in_thread(_other_uses, name, path, files[path][0], told) if path in files else []
    return [*excerpts, *more, *uses]


def _lines_in(one: Excerpt) -> list[tuple[str, int]]:
    """(path, line) of each line of an excerpt."""
    return [(one.path, int(line[1])) for line in _NUMBER.finditer(one.text)]


async def _read_files(
    session: Session, sought: Sequence[Helper], files: dict[str, tuple[list[str], Marks]]
) -> None:
    """Add the files of the first functions that are not among `files`."""
    for path in list(dict.fromkeys(one.path for one in sought))[:_MAX_FILES]:
        if path not in files:
            names = [one.function for one in sought if one.path == path]
            with contextlib.suppress(InvalidArgument, NotFound):
                file, marks = await session.workspace.read_marked(path, names, unexecuted=True)
                files[path] = file.lines, marks


def _other_uses(
    name: str, path: str, lines: Sequence[str], told: Collection[tuple[str, int]]
) -> list[Excerpt]:
    """The other lines of a file with the state that changes are about; of many, those that write it."""
    found = [index for index in lines_with(name, lines) if (path, index + 1) not in told]
    found = found if len(found) <= _MAX_USES else [index for index in found if writes(name, lines[index])]
    if not found:
        return []
    numbered = (f"{index + 1}\t{_use(lines, index)}" for index in found[:_MAX_USES])
    head = f"{path}, other lines with `{name}`"
    return [Excerpt(path, head, "\n".join([head, *numbered]))]


def _use(lines: Sequence[str], index: int) -> str:
    """A line, with the function that it is in."""
    text, function = shorten(lines[index], _MAX_USE), function_around(lines, index)
    return f"{function}(): {text}" if function else text


def _callers_of(changes: Sequence[CodeChange], recording: Recording | None) -> list[Helper]:
    """The functions that have called the one of the best change."""
    callers = recording.callers if recording and changes else []
    return [
        one for one in callers if (one.by.path, one.by.function) == (changes[0].path, changes[0].function)
    ]


def _helpers_of(wanted: Sequence[Sequence[Place]], recording: Recording | None) -> list[Helper]:
    """The functions that those of `wanted` have called, but for these."""
    functions = {(one.path, one.function) for one, *_ in wanted}
    helpers = recording.helpers if recording else []
    return [
        one
        for one in helpers
        if (one.by.path, one.by.function) in functions
        and (one.path, one.function) not in functions
        and not one.function.endswith("__")  # no call of it is to be seen
    ][:_MAX_SOUGHT]


def _lines_about(
    places: Sequence[Place], files: Mapping[str, tuple[list[str], Marks]]
) -> Iterator[tuple[str, int]]:
    """(path, line) of the headers of blocks around the places in a function, of these, and where their names are bound.

    The first name of a line, which may be that of a changed object, comes before what it uses.
    """
    path = places[0].path
    span = _find_span(places[0], *files[path]) if path in files else None
    if span is None:
        return
    first, last = span
    source = list(_clipped(files[path][0], first, last))
    named = dict.fromkeys(one.line for one in places if first <= one.line <= last)
    for line in list(named)[:_MAX_NAMED]:
        bound = list(_find_bindings(source, line - first))
        for index in (*_find_headers(source, line - first), *bound[:1], line - first, *bound[1:]):
            yield path, first + index


def _short_helpers(
    helpers: Sequence[Helper],
    shown: Collection[tuple[str, int]],
    files: Mapping[str, tuple[list[str], Marks]],
    values: Mapping[tuple[str, str], Mapping[int, str]],
    changed: Collection[tuple[str, int]],
) -> Iterator[Excerpt]:
    """The first short ones of which no line is `shown`; those called by `changed` lines may be longer."""
    left, seen = _MAX_HELPERS, set[tuple[str, tuple[int, int]]]()
    for one in helpers:
        span = _find_span(one, *files[one.path]) if one.path in files else None
        if not left or span is None or span[1] - span[0] > _MAX_LINES or (one.path, span) in seen:
            continue
        seen.add((one.path, span))
        lines = [line for path, line in shown if path == one.path]
        told = values.get((one.path, one.function), {})
        longest = _MAX_CALLED if (one.by.path, one.by.line) in changed else _MAX_HELPER
        text = _excerpt(one, *files[one.path], lines, [one.line], told, longest)
        if text.partition("\n")[0].endswith(_PARTS):  # without values there may be room for all
            text = _excerpt(one, *files[one.path], lines, [one.line], {}, longest)
        if text and len(text) <= longest and not text.partition("\n")[0].endswith(_PARTS):
            yield Excerpt(one.path, one.function, text)
            left -= 1


def _is_scrap(text: str) -> bool:
    """True for a few lines of a longer function: it would have to be asked for anyway."""
    head, *lines = text.split("\n")
    return head.endswith(_PARTS) and len(lines) < _LEAST_LINES


def _values_of_lines(found: Diagnosis) -> dict[tuple[str, str], dict[int, str]]:
    """Values that were set or decided at the lines of the calls that are told, by path and function."""
    calls = found.recording.calls if found.recording else []
    return {
        (one.path, one.function): {line: shorten(text, _MAX_VALUE) for line, text in one.lines}
        for one in calls
    }


def _annotate(text: str, values: Mapping[int, str]) -> str:
    """Add the values at lines behind them: without a name that the line sets, and an object by its type alone only once."""
    lines, objects = text.split("\n"), set[str]()
    for index, line in enumerate(lines):
        number = _NUMBER.match(line)
        value = values.get(int(number[1])) if number else None
        if number and value:
            name, is_set, alone = value.partition(" = ")
            told = alone if is_set and line[number.end() :].lstrip().startswith(f"{name} =") else value
            if told not in objects:
                lines[index] = f"{line}   {VALUE} {told}"
            if _OBJECT.fullmatch(told):
                objects.add(told)
    return "\n".join(lines)


def _whole_file(path: str, lines: Sequence[str]) -> str:
    """The source of a small file; "" if it is longer."""
    if sum(map(len, lines)) > _MAX_SMALL_FILE:
        return ""
    text = f"{path}\n{number_lines(list(_clipped(lines, 1, len(lines))), 1)}"
    return text if len(text) <= _MAX_SMALL_FILE else ""


def _best_first(shown: Shown, recording: Recording, callers: Sequence[Place]) -> list[list[Place]]:
    """The places in each function that the text names.

    That of a call that failed before it began; of signals, but for hints; of changes, and those with the same code; of writes of
    attributes that the failing line reads; of hints, of shared objects, of state that is kept and those with the same code, if
    that is sure; those that a failure passed; of the calls that matter most; where a caught exception was raised; on the way
    back from a wrong value; the head of the class of the object that all comes from; those of this test alone.
    """
    of_object = recording.chain_class
    refused = [one for one in shown.links if one.refused]
    way = shown.links if recording.chain_of_value else []
    calls = _suspect_calls(recording)
    kept = [place for one in shown.kept for place in _places_of(one)]
    functions: dict[tuple[str, str], list[Place]] = {}
    for place in (
        *refused,
        *(place for one in recording.signals if one.kind != HINT for place in one.places),
        *_with_alike(shown.changes, recording.alike),
        *recording.written,
        *(place for one in recording.signals if one.kind == HINT for place in one.places),
        *(place for alias in shown.aliases for place in _places_of_alias(alias)),
        *(_with_alike(kept, recording.alike) if shown.is_sure else []),
        *callers,
        *calls[:_AHEAD],
        *(one.raised for one in recording.caught),
        *way,
        *_with_alike(kept, recording.alike),
        *([] if shown.is_sure else recording.values),
        *calls,
        *([of_object] if of_object and of_object.last - of_object.line < _MAX_CLASS else []),
        *shown.suspects,
        *shown.links,
    ):
        if place.function != "<module>" and not _is_test(place):
            functions.setdefault((place.path, place.function), []).append(place)
    return list(functions.values())


def _suspect_calls(recording: Recording) -> list[Place]:
    """The functions of the calls, the most suspect first, each at the line that few passing tests run, else its most suspect one."""
    rare = {(one.path, one.function): one.line for one in reversed(recording.suspects)}
    best = sorted(recording.calls, key=lambda one: -one.score)
    return [
        Place(
            path=one.path,
            line=rare.get((one.path, one.function)) or one.suspect_line or one.line,
            function=one.function,
        )
        for one in best
    ]


def _is_test(place: Place) -> bool:
    return place.function.rpartition(".")[2].startswith("test")


def _with_alike(places: Sequence[Place], alike: Sequence[Alike]) -> list[Place]:
    """Places, each with the functions right behind it that have the same code."""
    return [each for place in places for each in (place, *(one for one in alike if one.of == place.function))]


def _places_of_alias(alias: Alias) -> list[Place]:
    return [alias.changed, alias.stored, *([alias.given] if alias.given else [])]


def _places_of(kept: Kept) -> list[Place]:
    """Its writers, what has not changed it, its holder, where it is written and read, and those that could have reset it."""
    held = [kept.held] if kept.held else []
    return [*kept.writers, *kept.passed_by, kept.written, kept.read, *held, *kept.others]


def _find_span(place: Place, lines: Sequence[str], marks: Marks) -> tuple[int, int] | None:
    """First and last line of the innermost function of a place, or of the head of a class; None if it is not there."""
    if isinstance(place, ObjectClass):
        return (place.line, place.last) if place.line <= place.last <= len(lines) else None
    spans = [
        (first, last)
        for one in marks.definitions
        if one.name == place.function
        for _, first, last in one.found
        if first <= place.line <= last <= len(lines)
    ]
    return min(spans, key=lambda each: each[1] - each[0], default=None)


def _excerpt(
    place: Place,
    lines: Sequence[str],
    marks: Marks,
    shown: Collection[int],
    named: Sequence[int],
    values: Mapping[int, str],
    longest: int = _MAX_FUNCTION,
) -> str:
    """The function of a place with the `values` at its lines; of a long one the lines with values nearest to the place.

    Without values, of a long one the lines around the place and around those `named` near it. "" if a line of it is shown,
    or it is not there.
    """
    first, last = _find_span(place, lines, marks) or (0, -1)
    if not first or any(first <= line <= last for line in shown):
        return ""
    head = f"{place.path} {place.function}"
    source = list(_clipped(lines, first, last))
    if sum(map(len, source)) <= _MAX_DOCSTRING + longest:
        blocks = marks.unexecuted if has_run(marks.unexecuted, first, source) else []
        is_refused = isinstance(place, Link) and place.refused  # its docstring tells of its arguments
        docstrings = () if is_refused else function_docstring(source)
        folds = fold_unexecuted(blocks, first, last, docstrings)
        whole = _annotate(f"{head}\n{number_folded(source, first, folds)}", values)
        if len(whole) <= longest:
            return whole
    if values:
        inside = [line - first for line in named if first <= line <= last]
        bound = [
            first + index
            for line in inside
            for binding in _find_bindings(source, line)
            for index in (range(binding, line) if line - binding <= _STRETCH else [binding])
        ]
        near = sorted(values, key=lambda line: abs(line - place.line))
        beside = [line for line in near if any(abs(line - each) <= _BESIDE for each in named)]
        returns = [line for line in near if _RESULT in values[line]]
        headers = [first + index for line in inside for index in _find_headers(source, line)]
        wanted = list(dict.fromkeys([*named, *headers, *beside, *returns, *bound, *near]))
        return _longest_part(head, source, first, wanted, values, longest)
    around = _AROUND if longest >= _MAX_FUNCTION else _BESIDE
    windows = _windows(place, source, first, named, around)
    pieces = (
        number_without_docstring(source[start - first : end - first + 1], start)
        for start, end in _merge(windows)
    )
    return f"{head}{_PARTS}\n" + "\n…\n".join(pieces)


def _longest_part(
    head: str,
    source: Sequence[str],
    first: int,
    wanted: Sequence[int],
    values: Mapping[int, str],
    longest: int,
) -> str:
    """As many of the lines `wanted` of a function, the first ones, as fit, with the few between two of them."""
    text = ""
    inside = [line for line in wanted if first <= line < first + len(source)]
    for number in range(1, len(inside) + 1):
        ranges = _merge([(line, line) for line in inside[:number]])
        pieces = [number_lines(source[start - first : end - first + 1], start) for start, end in ranges]
        longer = _annotate(f"{head}{_PARTS}\n" + "\n…\n".join(pieces), values)
        if text and len(longer) > longest:
            break
        text = longer
    return text


def _windows(
    place: Place, lines: Sequence[str], first: int, named: Sequence[int], around: int
) -> list[tuple[int, int]]:
    """Ranges of lines of a long function, which begins at `first`, that tell most about its `named` ones.

    Those around the place, around others that are named, and where names that they use are bound farther up.
    """
    last = first + len(lines) - 1
    near = [line for line in (place.line, *named) if abs(line - place.line) <= _NEAR]
    windows = [(max(first, min(near) - around), min(last, max(near) + around))]

    def add(line: int, beside: int) -> None:
        if len(windows) < _MAX_PIECES and not any(start <= line <= end for start, end in windows):
            windows.append((max(first, line - beside), min(last, line + beside)))

    inside = [line for line in dict.fromkeys((place.line, *named)) if first <= line <= last]
    for line in inside:
        add(line, _BESIDE)
    for line in inside:
        for bound in _find_bindings(lines, line - first):
            if around == _AROUND and line - first - bound <= _STRETCH:
                windows.append((first + max(0, bound - 1), min(last, line + 1)))
            add(first + bound, 1)
    headers = {first + index for line in inside for index in _find_headers(lines, line - first)}
    return [*windows, *((line, line) for line in sorted(headers))]


def _find_headers(lines: Sequence[str], used: int) -> Iterator[int]:
    """Index of each line that opens a block around `used`, up to the function's own."""
    depth = _depth(lines[used])
    for index in range(used - 1, -1, -1):
        line = lines[index]
        if line.strip() and _depth(line) < depth and not line.lstrip().startswith(_NO_HEADER):
            depth = _depth(line)
            yield index


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _find_bindings(lines: Sequence[str], used: int) -> Iterator[int]:
    """Index of the last line above `used` that binds each name that this line uses."""
    for name in dict.fromkeys(_NAME.findall(lines[used])):
        binds = re.compile(
            rf"\s*(?:for\s+|\w+\s*,\s*)*{name}\s*(?:,\s*\w+\s*)*(?::[^=]*)?(?:[-+*/|&]?=(?!=)|in\b)"
        )
        found = next(
            (index for index in range(used - 1, max(0, used - _MAX_ABOVE), -1) if binds.match(lines[index])),
            None,
        )
        if found is not None:
            yield found


def _merge(windows: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join ranges of lines that touch or have only a line or two between them."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(windows):
        if merged and start <= merged[-1][1] + _GAP:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def _clipped(lines: Sequence[str], first: int, last: int) -> Iterator[str]:
    for line in lines[first - 1 : last]:
        yield line if len(line) <= _MAX_LINE else line[: _MAX_LINE - 1] + "…"
