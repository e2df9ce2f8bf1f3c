"""The source of one function that a diagnosis names, whole or the lines that tell most about it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice

from sandbox.session.diagnosis import Link, ObjectClass, Place
from sandbox.session.workspace import Marks
from tools._text import (
    SHORT_DOCSTRING,
    fold_unexecuted,
    function_docstring,
    has_run,
    number_folded,
    number_lines,
    number_without_docstring,
)

MAX_FUNCTION = 1800
"""Characters of a function that is shown whole."""
_AROUND = 6
"""Lines shown before and after the named one of a function that is too long."""
_NEAR = 12
"""Lines between two named ones of such a function that are shown together."""
_BESIDE = 2
"""Lines shown before and after a named one that is farther away."""
_STRETCH = 20
"""Lines between where a name is bound and where it is used, all of which are shown."""
_MAX_PIECES = 4
_LOOPS = "for ", "while ", "async for "
_NO_HEADER = "#", ")", "]", "}"
_MAX_BLOCK = 45
"""Lines of a block that is shown with its header."""
_GAP = 3
_MAX_ABOVE = 300
"""Lines above a named one that are searched for where its names are bound."""
_MAX_DOCSTRING = 5000
"""Characters of a docstring that is left out for the rest of a function to be shown whole."""
_DOCSTRING_OF_CAUSE = 14
"""Lines of a docstring up to which it is shown in the function that a fault is most likely in."""
_MAX_LINE = 160
MAX_SMALL_FILE = 2400
_PARTS = ", parts"
VALUE = "◂"
"""Before the value of a line, which is no source."""
_RESULT = "→ "
"""Before the value that a function has returned."""
_OBJECT = re.compile(r"(?:→ )?<\w+>")
_NUMBER = re.compile(r"^B?>?(\d+)\t", re.MULTILINE)
_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*")


def cut_out(
    place: Place,
    lines: Sequence[str],
    marks: Marks,
    shown: Collection[int],
    named: Sequence[int],
    values: Mapping[int, str],
    longest: int = MAX_FUNCTION,
    *,
    is_cause: bool = False,
) -> str:
    """The function of a place with the `values` at its lines; of a long one the lines with values nearest to the place.

    Without values, of a long one the lines around the place and around those `named` near it. "" if a line of it is shown,
    or it is not there. `is_cause`: a docstring that is not long tells how it should be.
    """
    first, last = find_span(place, lines, marks) or (0, -1)
    if not first or any(first <= line <= last for line in shown):
        return ""
    head = f"{place.path} {place.function}"
    source = list(clipped(lines, first, last))
    if sum(map(len, source)) <= _MAX_DOCSTRING + longest:
        blocks = marks.unexecuted if has_run(marks.unexecuted, first, source) else []
        is_refused = isinstance(place, Link) and place.refused  # its docstring tells of its arguments
        longer_than = _DOCSTRING_OF_CAUSE if is_cause else SHORT_DOCSTRING
        docstrings = () if is_refused else function_docstring(source, longer_than)
        folds = fold_unexecuted(blocks, first, last, docstrings)
        whole = _annotate(f"{head}\n{number_folded(source, first, folds)}", values)
        if len(whole) <= longest:
            return whole
    if values:
        inside = [line - first for line in named if first <= line <= last]
        bound = [
            first + index
            for line in inside
            for binding in find_bindings(source, line)
            for index in (range(binding, line) if 0 < line - binding <= _STRETCH else [binding])
        ]
        near = sorted(values, key=lambda line: abs(line - place.line))
        beside = [line for line in near if any(abs(line - each) <= _BESIDE for each in named)]
        returns = [line for line in near if _RESULT in values[line]]
        headers = [first + index for line in inside for index in find_headers(source, line)]
        at = place.line - first
        own = [*find_headers(source, at), *find_bindings(source, at)] if at in inside else []
        own_lines = [first + index for index in own]
        wanted = list(dict.fromkeys([*named, *own_lines, *headers, *beside, *returns, *bound, *near]))
        return _longest_part(head, source, first, wanted, values, longest)
    around = _AROUND if longest >= MAX_FUNCTION else _BESIDE
    windows = _windows(place, source, first, named, around)
    pieces = (
        number_without_docstring(source[start - first : end - first + 1], start)
        for start, end in _merge(windows)
    )
    return f"{head}{_PARTS}\n" + "\n…\n".join(pieces)


def has_parts(text: str) -> bool:
    """True for an excerpt of a longer function."""
    return text.partition("\n")[0].endswith(_PARTS)


def lines_of(text: str) -> list[int]:
    """Numbers of the lines of an excerpt."""
    return [int(line[1]) for line in _NUMBER.finditer(text)]


def whole_file(path: str, lines: Sequence[str]) -> str:
    """The source of a small file; "" if it is longer."""
    if sum(map(len, lines)) > MAX_SMALL_FILE:
        return ""
    text = f"{path}\n{number_lines(list(clipped(lines, 1, len(lines))), 1)}"
    return text if len(text) <= MAX_SMALL_FILE else ""


def find_span(place: Place, lines: Sequence[str], marks: Marks) -> tuple[int, int] | None:
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
    for bound in find_bindings(lines, place.line - first) if place.line in inside else ():
        add(first + bound, 1)
    for line in inside:
        add(line, _BESIDE)
    for line in inside:
        for bound in find_bindings(lines, line - first):
            if around == _AROUND and 0 < line - first - bound <= _STRETCH:
                windows.append((first + max(0, bound - 1), min(last, line + 1)))
            add(first + bound, 1)
    headers = {first + index for line in inside for index in find_headers(lines, line - first)}
    return [*windows, *_merge([(line, line) for line in sorted({*inside, *headers})])]


def find_headers(lines: Sequence[str], used: int) -> Iterator[int]:
    """Index of each line that opens a block around `used`, up to the function's own."""
    depth = _depth(lines[used])
    for index in range(used - 1, -1, -1):
        line = lines[index]
        if line.strip() and _depth(line) < depth and not line.lstrip().startswith(_NO_HEADER):
            depth = _depth(line)
            yield index


def find_block(lines: Sequence[str], line: int) -> range:
    """Indexes of the longest block, with its header, that a line opens or is in and that is not too long; else empty."""
    found = _block_of(lines, line)
    for header in find_headers(lines, line):
        block = _block_of(lines, header)
        if not block:  # those around it are longer still
            break
        found = block
    return found


def _block_of(lines: Sequence[str], header: int) -> range:
    """Indexes of a header of several lines and of its block; empty if that is too long."""
    depth = _depth(lines[header])
    end = header + 1
    last = min(len(lines), header + _MAX_BLOCK + 1)
    while end < last and (not lines[end].strip() or _depth(lines[end]) > depth):
        end += 1
    return range(header, end if end - header <= _MAX_BLOCK else header)


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def find_bindings(lines: Sequence[str], used: int, most: int = 1) -> Iterator[int]:
    """Index of the last lines above `used`, so many, that bind each name of this line, and of those below it in a loop.

    Lines of a docstring may look like one: `other: the order`.
    """
    end = _end_of_loop(lines, used)
    told = {index for docstring in function_docstring(lines) for index in docstring}
    for name in dict.fromkeys(_NAME.findall(lines[used])):
        above, below = range(used - 1, max(0, used - _MAX_ABOVE), -1), range(end - 1, used, -1)
        for indexes in (above, below):
            named = (one for one in indexes if name in lines[one] and one not in told)
            yield from islice((one for one in named if _binds(lines[one], name)), most)


def _end_of_loop(lines: Sequence[str], used: int) -> int:
    """Index behind the loop that a line begins, or behind the nearest one around it; that of the line itself outside of loops."""
    for header in (used, *find_headers(lines, used)):
        if lines[header].lstrip().startswith(_LOOPS):
            depth = _depth(lines[header])
            rest = range(used + 1, min(len(lines), used + _MAX_ABOVE))
            return next(
                (one for one in rest if lines[one].strip() and _depth(lines[one]) <= depth), rest.stop
            )
    return used


def _binds(line: str, name: str) -> bool:
    """True if a line binds a name, by an assignment or as the variable of a loop."""
    pattern = rf"\s*(?:for\s+|\w+\s*,\s*)*{name}\s*(?:,\s*\w+\s*)*(?::[^=]*)?(?:[-+*/|&]?=(?!=)|in\b)"
    return re.match(pattern, line) is not None


def _merge(windows: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join ranges of lines that touch or have only a line or two between them."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(windows):
        if merged and start <= merged[-1][1] + _GAP:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def clipped(lines: Sequence[str], first: int, last: int) -> Iterator[str]:
    for line in lines[first - 1 : last]:
        yield line if len(line) <= _MAX_LINE else line[: _MAX_LINE - 1] + "…"
