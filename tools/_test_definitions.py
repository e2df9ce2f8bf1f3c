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
from tools._statements import Statement, read_statements
from tools._text import number_lines, number_without_docstring

_MAX_NAMES = 50
_MAX_LINES, _MAX_CHARACTERS = 20, 500
"""Lines and characters of one definition: of a longer one the test needs a part, which it does not tell."""
_MAX_ALL = 900
_FEW, _MAX_MIDDLE = 12, 1500
"""Lines from the middle of a test that are shown whatever they do; characters of those that are shown."""
_MAX_TEST = 2000
"""Lines of a test that are looked at."""
_QUOTES = re.compile(r"\s*[rRuU]?(?:\"\"\"|''')")


class LinesOfTest(NamedTuple):
    """Lines of a test that an answer shows: {number: source}; `others`: numbers of further lines of its file that it shows."""

    path: str
    lines: dict[int, str]
    others: frozenset[int] = frozenset()
    failing: int = 0
    """Number of the line at which it failed."""


async def read_definitions(session: Session, test: LinesOfTest) -> list[str]:
    """Read the lines between those of a test, and the short classes and constants of the file that it names, in their order there.

    A heading and numbered lines for each, but for what is shown already. Empty if the file can't be read.
    """
    first, last = max(min(test.lines), 1), max(test.lines)
    try:
        file, _ = await session.workspace.read_marked(test.path)
        source = file.lines[first - 1 : min(last, first + _MAX_TEST)]
        statements = await in_thread(lambda: list(read_statements(source, first)))
        names = _names_in(test, statements)
        file, marks = await session.workspace.read_marked(test.path, names)
    except (InvalidArgument, NotFound):
        return []
    return await in_thread(lambda: [*_middle(test, file.lines, statements), *_texts(test, file.lines, marks)])


def _names_in(test: LinesOfTest, statements: Sequence[Statement]) -> list[str]:
    """The names that the statements use of which a line is shown."""
    shown = [one for one in statements if not test.lines.keys().isdisjoint(range(one.first, one.last + 1))]
    return list(dict.fromkeys(name for one in shown for name in one.uses))[:_MAX_NAMES]


def _middle(test: LinesOfTest, lines: Sequence[str], statements: Sequence[Statement]) -> Iterator[str]:
    """The lines that a long test lacks, but no docstring; of many, those that set what its failing line uses."""
    leading = _leading_to(test.failing, statements)
    for before, after in pairwise(sorted(test.lines)):
        between = range(max(before, 0) + 1, min(after, len(lines) + 1))
        shown = [number for number in between if number not in test.others]
        if len(shown) > _FEW:
            shown = [number for number in shown if number in leading]
        size = sum(len(lines[number - 1]) for number in shown)
        if 0 < size <= _MAX_MIDDLE and not _QUOTES.match(lines[shown[0] - 1]):
            yield _numbered(test.path, lines, shown)


def _leading_to(failing: int, statements: Sequence[Statement]) -> set[int]:
    """Numbers of the lines of statements that set what a line uses, and what these use in turn; none if it is not among them."""
    before = [one for one in statements if one.first <= failing]
    if not before or before[-1].last < failing:
        return set()
    names, found = {*before[-1].uses}, set[int]()
    for one in reversed(before[:-1]):
        if not names.isdisjoint(one.sets):
            if one.column <= before[-1].column:  # not in a branch
                names -= one.binds
            names.update(one.uses)
            found.update(range(one.first, one.last + 1))
    return found


def _numbered(path: str, lines: Sequence[str], numbers: Sequence[int]) -> str:
    """Lines of a file below a heading, with a mark between those that are apart."""
    pieces = list[list[int]]()
    for number in numbers:
        if pieces and number == pieces[-1][-1] + 1:
            pieces[-1].append(number)
        else:
            pieces.append([number])
    texts = (number_lines(lines[one[0] - 1 : one[-1]], one[0]) for one in pieces)
    parts = ", parts" if len(pieces) > 1 else ""
    return f"{path}, lines {numbers[0]}-{numbers[-1]}{parts}\n" + "\n…\n".join(texts)


def _texts(test: LinesOfTest, lines: Sequence[str], marks: Marks) -> Iterator[str]:
    """The classes and constants at the left margin, each where it is defined first."""
    room = _MAX_ALL
    for one in marks.definitions:
        spans = [(first, last) for name, first, last in one.found if name == one.name]
        first, last = spans[0] if spans else (1, 0)
        source = list(lines[first - 1 : last])
        is_shown = any(first <= number <= last for number in (*test.lines, *test.others))
        size = sum(map(len, source))
        is_short = len(source) <= _MAX_LINES and size <= min(room, _MAX_CHARACTERS)
        if source and is_short and not is_shown and _is_class_or_constant(source):
            room -= size
            yield f"{test.path} {one.name}\n{number_without_docstring(source, first)}"


def _is_class_or_constant(source: Sequence[str]) -> bool:
    """True for a definition at the left margin, but for functions."""
    heads = (line for line in source if line[:1].strip() and line[0] not in "@#)]}")
    return not next(heads, "def ").startswith(("def ", "async def "))
