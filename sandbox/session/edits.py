"""Several edits of one file, by positions in its text as it was."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, islice

from sandbox.errors import InvalidArgument, NotFound
from sandbox.session.file_text import FileText, join_lines

MAX_EDITS = 200
"""Maximum number of edits in one call."""
_SPACES = re.compile(r"[ \t]+(?=\n|\Z)")


@dataclass(frozen=True)
class Edit:
    """A change of one file: lines `start..end`, the one occurrence of `old_code`, or the whole file."""

    path: str
    new_code: str
    start: int | None = None
    end: int | None = None
    old_code: str | None = None


class Absent(Exception):
    """The text to replace is not there."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class FileEdit:
    """Replacements of parts of one file, all by their positions in its text as it was."""

    def __init__(self, path: str, old: FileText | None) -> None:
        self.path = path
        self.old = old
        self._before = join_lines(old) if old else ""
        self._parts: list[tuple[int, int, str]] = []
        self._numbers: list[int] = []

    def add(self, number: int, edit: Edit) -> None:
        """Add edit `number`.

        Raises:
            InvalidArgument: its position does not exist, or it overlaps with another one.
        """
        begin, end, new = self._locate(edit)
        for other, (first, last, _) in zip(self._numbers, self._parts, strict=True):
            if (begin < last and first < end) or (begin, end) == (first, last) == (0, len(self._before)):
                raise InvalidArgument(
                    f"It overlaps with edit {other}.",
                    "Join the two: each line is replaced by one edit at most.",
                )
        self._parts.append((begin, end, new))
        self._numbers.append(number)

    @property
    def size(self) -> int:
        """Characters of the text as it was."""
        return len(self._before)

    def text(self) -> str:
        """The text with all replacements."""
        pieces: list[str] = []
        at = 0
        # The sort is stable: of several insertions at one place, the first stays the first.
        for begin, end, new in sorted(self._parts, key=lambda part: part[:2]):
            pieces += [self._before[at:begin], new]
            at = end
        return "".join([*pieces, self._before[at:]])

    @cached_property
    def _starts(self) -> list[int]:
        """Position of each line, and that after the last one's end."""
        return list(accumulate((len(line) + 1 for line in self.old.lines), initial=0)) if self.old else [0]

    def _locate(self, edit: Edit) -> tuple[int, int, str]:
        """(begin, end, replacement) of an edit, in characters."""
        new, old_code, start, end = edit.new_code.replace("\r\n", "\n"), edit.old_code, edit.start, edit.end
        if old_code and (start or end):
            raise InvalidArgument("Give `old_code` or `start`/`end`, not both.")
        if start == 0 and end is None and not old_code:
            raise InvalidArgument("There is no line 0: lines count from 1.", "`view` shows the numbers.")
        if not old_code and (start is not None or end is not None):
            return self._locate_lines(start or None, end, new)
        if old_code is not None:
            return *self._find_once(old_code.replace("\r\n", "\n")), new
        return 0, len(self._before), new

    def _find_once(self, old_code: str) -> tuple[int, int]:
        """(begin, end) of the one occurrence of `old_code`, if need be without regard to spaces at the ends of lines.

        Answers don't show those, so text that is copied from one lacks them.
        """
        if self.old is None:
            raise NotFound(
                "No such file, so `old_code` does not occur in it.",
                "Leave `old_code` out to create the file.",
            )
        if not old_code:
            raise InvalidArgument("`old_code` is empty.", "Give the text to replace, or `start` and `end`.")
        begin = _index_once(self.old.path, self._before, old_code)
        if begin is not None:
            return begin, begin + len(old_code)
        stripped, wanted = _without_spaces_at_ends(self._before), _without_spaces_at_ends(old_code)
        begin = _index_once(self.old.path, stripped, wanted) if wanted.strip() else None
        if begin is None:
            raise Absent(old_code)
        first, last = self._position(stripped, begin), self._position(stripped, begin + len(wanted))
        spaces = _SPACES.match(self._before, last)
        return first, spaces.end() if spaces else last

    def _position(self, stripped: str, index: int) -> int:
        """Position in the text of one in the text without spaces at the ends of lines."""
        line = stripped.count("\n", 0, index)
        return self._starts[line] + index - (stripped.rfind("\n", 0, index) + 1)

    def _locate_lines(self, start: int | None, end: int | None, new: str) -> tuple[int, int, str]:
        lines = self.old.lines if self.old else []
        total = len(lines)
        first = 1 if start is None else start
        last = end if end is not None else total if start is None else first
        if not 1 <= first <= total + 1 or last < first - 1 or last > max(total, first):
            raise InvalidArgument(
                f"Lines {first}-{last} don't exist: the file has {total}.",
                "`view` shows the numbers; start = last + 1 appends.",
            )
        begin, stop = self._starts[first - 1], self._starts[max(first - 1, min(last, total))]
        # "" deletes; a final newline in new_code ends its last line.
        text = new if not new or new.endswith("\n") else f"{new}\n"
        if begin > len(self._before):  # the last line had no end
            text = f"\n{text}"
        return min(begin, len(self._before)), min(stop, len(self._before)), text


def _without_spaces_at_ends(text: str) -> str:
    return "\n".join(line.rstrip(" \t") for line in text.split("\n"))


def _index_once(path: str, text: str, wanted: str) -> int | None:
    """The position of the one occurrence of `wanted`; None if there is none."""
    count = text.count(wanted)
    if count <= 1:
        return text.index(wanted) if count else None
    places = islice(re.finditer(re.escape(wanted), text), 10)
    lines = [text.count("\n", 0, found.start()) + 1 for found in places]
    numbers = ", ".join(map(str, lines)) + (", …" if count > len(lines) else "")
    raise InvalidArgument(
        f"`old_code` occurs {count} times in {path} (lines {numbers}).",
        "Give more of the text, or `start` and `end`.",
    )
