"""Source of the functions that a diagnosis names, so that no call is needed to read them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from sandbox.errors import InvalidArgument, NotFound
from sandbox.session.diagnosis import Alike, Diagnosis, Kept, ObjectClass, Place, Recording
from sandbox.session.session import Session
from sandbox.session.workspace import Marks
from tools._diagnosis import select_shown
from tools._text import number_lines, number_without_docstring

_MAX_FUNCTION = 1200
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
_GAP = 3
_MAX_ABOVE = 300
"""Lines above a named one that are searched for where its names are bound."""
_MAX_LINE = 160
_LEAST_SECOND = 600
"""Characters that the first function leaves for others."""
_MAX_CLASS = 25
"""Lines of a class that is shown in place of its name."""
_MAX_SMALL_FILE = 2400
"""Characters of a file that is shown whole where a function of it would be: it would be asked for next."""


_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*")


class Excerpt(NamedTuple):
    """The source of a function, parts of it, or a small file (no `function`): numbered lines below its name."""

    path: str
    function: str
    text: str


async def read_excerpts(
    session: Session, found: Diagnosis, shown: Collection[tuple[str, int]], room: int
) -> list[Excerpt]:
    """Read the functions that matter most in a diagnosis.

    `shown`: paths and lines; functions with one of them are left out. `room`: characters in all, but for the first one.
    """
    files: dict[str, tuple[list[str], Marks]] = {}
    wanted = _best_first(found)
    excerpts: list[Excerpt] = []
    for place, *others in wanted:
        if place.path not in files:
            if len(files) == _MAX_FILES:
                continue
            names = [each.function for each, *_ in wanted if each.path == place.path]
            try:
                file, marks = await session.workspace.read_marked(place.path, names)
            except (InvalidArgument, NotFound):
                continue
            files[place.path] = file.lines, marks
        lines = {line for path, line in shown if path == place.path}
        if any(one.path == place.path and not one.function for one in excerpts):
            continue
        named = [one.line for one in (place, *others)]
        text = _excerpt(place, *files[place.path], lines, named)
        if len(text) > room and excerpts:
            text = _excerpt(place, *files[place.path], lines, named[:1], _BESIDE)
        whole = "" if lines or not text else _whole_file(place.path, files[place.path][0])
        if whole and (len(whole) <= room or not excerpts):
            excerpts.append(Excerpt(place.path, "", whole))
            room -= len(whole)
        elif text and (len(text) <= room or not excerpts):
            room = room - len(text) if excerpts else max(room - len(text), _LEAST_SECOND)
            excerpts.append(Excerpt(place.path, place.function, text))
    return excerpts


def _whole_file(path: str, lines: Sequence[str]) -> str:
    """The source of a small file; "" if it is longer."""
    if sum(map(len, lines)) > _MAX_SMALL_FILE:
        return ""
    text = f"{path}\n{number_lines(list(_clipped(lines, 1, len(lines))), 1)}"
    return text if len(text) <= _MAX_SMALL_FILE else ""


def _best_first(found: Diagnosis) -> list[list[Place]]:
    """The places in each function that the text names.

    That of a call that failed before it began, of shared objects, of state that is kept and those with the same code, the
    head of the class of the object that all comes from, those of this test alone, on the way back.
    """
    shown, recording = select_shown(found), found.recording or Recording()
    of_object = recording.chain_class
    functions: dict[tuple[str, str], list[Place]] = {}
    for place in (
        *(one for one in shown.links if one.refused),
        *(place for alias in shown.aliases for place in (alias.changed, alias.stored)),
        *_with_alike([place for kept in shown.kept for place in _places_of(kept)], recording.alike),
        *([of_object] if of_object and of_object.last - of_object.line < _MAX_CLASS else []),
        *shown.suspects,
        *shown.links,
    ):
        if place.function != "<module>":
            functions.setdefault((place.path, place.function), []).append(place)
    return list(functions.values())


def _with_alike(places: list[Place], alike: list[Alike]) -> list[Place]:
    """Places, each with the functions right behind it that have the same code."""
    return [each for place in places for each in (place, *(one for one in alike if one.of == place.function))]


def _places_of(kept: Kept) -> list[Place]:
    """Its writers, what has not changed it, its holder, where it is written and read, and those that could have reset it."""
    held = [kept.held] if kept.held else []
    return [*kept.writers, *kept.passed_by, kept.written, kept.read, *held, *kept.others]


def _excerpt(
    place: Place,
    lines: Sequence[str],
    marks: Marks,
    shown: Collection[int],
    named: Sequence[int],
    around: int = _AROUND,
) -> str:
    """The function of a place, or if it is long the lines around it and around those `named` near it.

    "" if a line of it is shown, or it is not there.
    """
    if isinstance(place, ObjectClass):
        ranges = [(place.line, place.last)] if place.line <= place.last <= len(lines) else []
    else:
        ranges = [
            (first, last)
            for one in marks.definitions
            if one.name == place.function
            for _, first, last in one.found
            if first <= place.line <= last <= len(lines)
        ]
    if not ranges:
        return ""
    first, last = min(ranges, key=lambda each: each[1] - each[0])
    if any(first <= line <= last for line in shown):
        return ""
    head = f"{place.path} {place.function}"
    whole = f"{head}\n{number_without_docstring(list(_clipped(lines, first, last)), first)}"
    if len(whole) <= _MAX_FUNCTION and around == _AROUND:
        return whole
    windows = _windows(place, list(_clipped(lines, first, last)), first, named, around)
    pieces = (
        number_without_docstring(list(_clipped(lines, start, end)), start) for start, end in _merge(windows)
    )
    return f"{head}, parts\n" + "\n  …\n".join(pieces)


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
    return windows


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
