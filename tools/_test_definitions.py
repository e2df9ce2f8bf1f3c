"""Source that tells more of a test: lines from its middle, and classes and constants of its file that it names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from sandbox.errors import InvalidArgument, NotFound
from sandbox.host_files import in_thread
from sandbox.session.session import Session
from sandbox.session.workspace import Marks
from tools._text import number_lines, number_without_docstring

_MAX_NAMES = 60
_MAX_LINES, _MAX_CHARACTERS = 20, 500
"""Lines and characters of one definition: of a longer one the test needs a part, which it does not tell."""
_MAX_ALL = 900
_NAME = re.compile(r"(?<![\w.\"'])[A-Za-z_]\w*")
_MAX_GAP, _MAX_MIDDLE = 40, 1500
"""Lines and characters from the middle of a test."""
_QUOTES = re.compile(r"\s*[rRuU]?(?:\"\"\"|''')")
_ASSIGNED = re.compile(r"(?P<name>[A-Za-z_]\w*)\s*(?::[^=]*)?=(?!=)")
_TEXT = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")
_OPENING, _CLOSING = re.compile(r"[(\[{]"), re.compile(r"[)\]}]")


class LinesOfTest(NamedTuple):
    """Lines of a test that an answer shows: {number: source}; `others`: numbers of further lines of its file that it shows."""

    path: str
    lines: dict[int, str]
    others: frozenset[int] = frozenset()


async def read_definitions(session: Session, test: LinesOfTest) -> list[str]:
    """Read the lines between those of a test, and the short classes and constants of the file that it names, in their order there.

    A heading and numbered lines for each, but for what is shown already. Empty if the file can't be read.
    """
    names = list(dict.fromkeys(name for line in test.lines.values() for name in _NAME.findall(line)))
    names = names[:_MAX_NAMES]
    try:
        file, marks = await session.workspace.read_marked(test.path, names)
    except (InvalidArgument, NotFound):
        return []
    return await in_thread(lambda: [*_middle(test, file.lines), *_texts(test, file.lines, marks, names)])


def _middle(test: LinesOfTest, lines: Sequence[str]) -> Iterator[str]:
    """The lines that a long test lacks, unless they are many, or a docstring."""
    numbers = sorted(test.lines)
    for before, after in pairwise(numbers):
        source = list(lines[before : after - 1])
        size = sum(map(len, source))
        is_short = len(source) <= _MAX_GAP and size <= _MAX_MIDDLE
        if size and is_short and not _QUOTES.match(source[0]):
            yield f"{test.path}, lines {before + 1}-{after - 1}\n{number_lines(source, before + 1)}"


def _texts(test: LinesOfTest, lines: Sequence[str], marks: Marks, names: Sequence[str]) -> Iterator[str]:
    room = _MAX_ALL
    spans = {**_classes(lines, marks), **_constants(lines, names)}
    for name in names:
        first, last = spans.get(name, (0, 0))
        source = list(lines[first - 1 : last] if first else ())
        is_shown = any(first <= number <= last for number in (*test.lines, *test.others))
        size = sum(map(len, source))
        if source and not is_shown and len(source) <= _MAX_LINES and size <= min(room, _MAX_CHARACTERS):
            room -= size
            yield f"{test.path} {name}\n{number_without_docstring(source, first)}"


def _classes(lines: Sequence[str], marks: Marks) -> dict[str, tuple[int, int]]:
    """{name: first and last line} of the classes at the left margin."""
    return {
        one.name: (first, last)
        for one in marks.definitions
        for name, first, last in one.found
        if name == one.name and _is_class(lines[first - 1 : last])
    }


def _is_class(lines: Sequence[str]) -> bool:
    """True for a class at the left margin: what follows its decorators there begins it."""
    heads = (line for line in lines if line[:1].strip() and line[0] not in "@#)]}")
    return next(heads, "").startswith("class ")


def _constants(lines: Sequence[str], names: Sequence[str]) -> dict[str, tuple[int, int]]:
    """{name: first and last line} of the assignments at the left margin, by their first one."""
    found: dict[str, tuple[int, int]] = {}
    for number, line in enumerate(lines, 1):
        assigned = _ASSIGNED.match(line)
        name = assigned["name"] if assigned else ""
        if name in names and name not in found and (last := _end_of(lines, number)):
            found[name] = (number, last)
    return found


def _end_of(lines: Sequence[str], first: int) -> int:
    """Last line of the statement at a line, by its brackets and triple quotes; 0 if it is long."""
    depth, quotes = 0, 0
    for number in range(first, min(first + _MAX_LINES, len(lines) + 1)):
        line = lines[number - 1][:_MAX_CHARACTERS]
        quotes += line.count('"""') + line.count("'''")
        code = _TEXT.sub("", line)
        depth += len(_OPENING.findall(code)) - len(_CLOSING.findall(code))
        if depth <= 0 and quotes % 2 == 0 and not line.endswith("\\"):
            return number
    return 0
