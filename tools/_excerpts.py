"""Source of the functions that a diagnosis names, so that no call is needed to read them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from sandbox.errors import InvalidArgument, NotFound
from sandbox.session.diagnosis import Diagnosis, Place, Recording
from sandbox.session.session import Session
from sandbox.session.workspace import Marks
from tools._text import number_without_docstring

_MAX_FUNCTION = 900
_MAX_FILES = 5
_AROUND = 6
"""Lines shown before and after the named one of a function that is too long."""
_NEAR = 12
"""Lines between two named ones of such a function that are shown together."""
_BESIDE = 2
"""Lines shown before and after a named one that is farther away."""
_MAX_PIECES = 3
_MAX_LINE = 160


class Excerpt(NamedTuple):
    """The source of a function, or parts of it: numbered lines below `path function`."""

    path: str
    function: str
    text: str


async def read_excerpts(
    session: Session, found: Diagnosis, shown: Collection[tuple[str, int]], room: int
) -> list[Excerpt]:
    """Read the functions that matter most in a diagnosis.

    `shown`: paths and lines; functions with one of them are left out. `room`: characters in all.
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
        text = _excerpt(place, *files[place.path], lines, [one.line for one in (place, *others)])
        if text and len(text) <= room:
            excerpts.append(Excerpt(place.path, place.function, text))
            room -= len(text)
    return excerpts


def _best_first(found: Diagnosis) -> list[list[Place]]:
    """The places in each function: of shared objects, of state that is kept, of this test alone, on the way back."""
    recording = found.recording or Recording()
    lists: list[Sequence[Place]] = [
        [place for alias in recording.aliases[:2] for place in (alias.changed, alias.stored)],
        [
            place
            for kept in recording.kept[:2]
            for place in (*kept.writers, *([kept.held] if kept.held else []), kept.written, kept.read)
        ],
        (recording.suspects or (found.spectrum.suspects if found.spectrum else []))[:5],
    ]
    in_turn = (place for places in zip_longest(*lists) for place in places if place is not None)
    functions: dict[tuple[str, str], list[Place]] = {}
    for place in (*in_turn, *recording.chain[:8]):
        if place.function != "<module>":
            functions.setdefault((place.path, place.function), []).append(place)
    return list(functions.values())


def _excerpt(
    place: Place, lines: Sequence[str], marks: Marks, shown: Collection[int], named: Sequence[int]
) -> str:
    """The function of a place, or if it is long the lines around it and around those `named` near it.

    "" if a line of it is shown, or it is not there.
    """
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
    if len(whole) <= _MAX_FUNCTION:
        return whole
    near = [line for line in (place.line, *named) if abs(line - place.line) <= _NEAR]
    start, end = max(first, min(near) - _AROUND), min(last, max(near) + _AROUND)
    pieces = {start: number_without_docstring(list(_clipped(lines, start, end)), start)}
    for line in dict.fromkeys(named):
        if first <= line < start - _BESIDE or end + _BESIDE < line <= last:
            above, below = max(first, line - _BESIDE), min(last, line + _BESIDE)
            if all(abs(line - other) > _NEAR for other in pieces):
                pieces[above] = number_without_docstring(list(_clipped(lines, above, below)), above)
        if len(pieces) == _MAX_PIECES:
            break
    return f"{head}, parts\n" + "\n  …\n".join(text for _, text in sorted(pieces.items()))


def _clipped(lines: Sequence[str], first: int, last: int) -> Iterator[str]:
    for line in lines[first - 1 : last]:
        yield line if len(line) <= _MAX_LINE else line[: _MAX_LINE - 1] + "…"
