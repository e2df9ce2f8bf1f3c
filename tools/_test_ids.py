"""Test ids in the text of a client: `tests/test_x.py::test_y[a b]`. In time linear in its length, whatever it is."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator

_WORD = re.compile(r"[^\s,\[]+")
_LINE_END = re.compile(r"\n")
_TEST_FILES = frozenset({"test.py", "tests.py", "conftest.py"})
_TEST_FOLDERS = frozenset({"test", "tests", "testing"})
_OF_UNITTEST = re.compile(r"(\w+) \(([\w.]+)\)\Z")


def find_words(text: str, closing: re.Pattern[str], *, within: str = "") -> Iterator[tuple[int, int, int]]:
    """Yield (start, end, end of its parameters) of each word.

    Parameters are a bracket right behind a word that has `within` before its last character; white space may be in it.
    It ends, on its line, at the first match of `closing`, a `]` with what follows it.
    """
    closers = [found.start() for found in closing.finditer(text)]
    line_ends = [found.start() for found in _LINE_END.finditer(text)]
    at = 0
    while (found := _WORD.search(text, at)) is not None:
        at = end = found.end()
        if text[end : end + 1] == "[" and within in text[found.start() : end - 1]:
            closer = _first_from(closers, end + 1)
            if closer is not None and closer < (_first_from(line_ends, end) or len(text)):
                at = closer + 1
        yield found.start(), end, at


def is_test_file(path: str) -> bool:
    """True for a file of tests or their fixtures, by its name or a folder's."""
    *folders, name = path.split("/")
    is_named = name.startswith("test_") or name.endswith("_test.py") or name in _TEST_FILES
    return is_named or not _TEST_FOLDERS.isdisjoint(folders)


def is_of(found: str, asked: str) -> bool:
    """True if the test `found` is the one that was `asked` for, or one of that file or class; by their names."""
    (names, parameters), (wanted, chosen) = _split(found), _split(asked)
    starts = range(len(names) - len(wanted) + 1)
    return chosen in ("", parameters) and any(names[at : at + len(wanted)] == wanted for at in starts)


def _split(test: str) -> tuple[list[str], str]:
    """The names in an id of pytest or unittest, from folder to function, and its parameters."""
    if found := _OF_UNITTEST.match(test):
        name, place = found.groups()
        test = place if place.endswith(f".{name}") else f"{place}.{name}"
    path, separator, rest = test.partition("::")
    if not (separator or path.endswith(".py")):
        return test.split("."), ""
    inner, bracket, parameters = rest.partition("[")
    return [*path.removesuffix(".py").split("/"), *filter(None, inner.split("::"))], bracket + parameters


def _first_from(positions: list[int], start: int) -> int | None:
    index = bisect_left(positions, start)
    return positions[index] if index < len(positions) else None
