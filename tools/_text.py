"""Pieces of answer text."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import NamedTuple

SHORT_DOCSTRING = 5
_LONG_DOCSTRING = 7
# Controls but tab and line ends, line and paragraph separators, marks of direction, invisible characters. Joiners of
# letters are left: scripts and emoji need them.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\U000e0000-\U000e007f]|\r(?!\n)"
)
_DOCSTRING = re.compile(r"\s*[rRuU]?(\"\"\"|''')")


class Fold(NamedTuple):
    """Lines, by their indexes, that are shown as one."""

    lines: range
    is_docstring: bool = False
    """False for lines that have not run."""

    def describe(self, first: int) -> str:
        """Say what is not shown; `first`: the number of the line with the index 0."""
        if self.is_docstring:
            return f"{len(self.lines)} lines of docstring"
        return f"lines {first + self.lines.start}-{first + self.lines.stop - 1} not run"


def fence(label: str, text: str, language: str = "") -> str:
    """Put `text` below its label and between fences longer than any in the text."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    head = f"{label}\n" if label else ""
    return f"{head}{fence}{language}\n{text.rstrip(chr(10))}\n{fence}"


def show_hidden(text: str) -> str:
    """Escape characters as Python does that would steer a terminal, turn the order of letters, or not be seen."""
    return _HIDDEN.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()


def number_lines(
    lines: Sequence[str], first: int, *, current: int | None = None, marked: Container[int] = ()
) -> str:
    """Add line numbers and a tab, `B` at breakpoints and `>` at the current line; to empty lines without marks nothing."""
    return "\n".join(
        f"{'B' if number in marked else ''}{'>' if number == current else ''}{number}\t{line}".rstrip()
        if line.strip() or number in marked or number == current
        else ""
        for number, line in enumerate(lines, first)
    )


def number_folded(
    lines: Sequence[str],
    first: int,
    folds: Iterable[Fold],
    *,
    current: int | None = None,
    marked: Container[int] = (),
) -> str:
    """Add line numbers as `number_lines` does, with one line in place of those of each fold, the first of those that overlap."""
    pieces, done = list[str](), 0
    for fold in folds:
        if done <= fold.lines.start and fold.lines.stop <= len(lines):
            shown = lines[done : fold.lines.start]
            if shown:
                pieces.append(number_lines(shown, first + done, current=current, marked=marked))
            pieces.append(f"… {fold.describe(first)}")
            done = fold.lines.stop
    if done < len(lines):
        pieces.append(number_lines(lines[done:], first + done, current=current, marked=marked))
    return "\n".join(pieces)


def fold_unexecuted(
    blocks: Iterable[tuple[int, int]], first: int, last: int, docstrings: Iterable[range] = ()
) -> list[Fold]:
    """Folds of docstrings and of blocks, as first and last lines of a file, that are in the lines `first` to `last`.

    Blocks come in order and don't overlap; others are left out.
    """
    folds, done = list[Fold](), first
    for start, end in blocks:
        if done < start <= end <= last:
            folds.append(Fold(range(start - first, end - first + 1)))
            done = end
    inside = {index for fold in folds for index in fold.lines}
    folds += [Fold(one, is_docstring=True) for one in docstrings if one.start not in inside]
    return sorted(folds, key=lambda fold: fold.lines.start)


def has_run(blocks: Iterable[tuple[int, int]], first: int, lines: Sequence[str]) -> bool:
    """False if all below the head of a function, which begins at the line `first`, is in one of the blocks that have not run."""
    head = next((index for index, line in enumerate(lines) if line.rstrip().endswith(":")), 0)
    return not any(start <= first + head + 1 and first + len(lines) - 1 <= end for start, end in blocks)


def number_without_docstring(lines: Sequence[str], first: int) -> str:
    """Add line numbers to the source of a function, with one line in place of a docstring of more than five."""
    return number_folded(lines, first, [Fold(one, is_docstring=True) for one in function_docstring(lines)])


def function_docstring(lines: Sequence[str], longer_than: int = SHORT_DOCSTRING) -> Iterator[range]:
    """Yield the indexes of the docstring of a function, if it has more than `longer_than` lines."""
    start, end = _docstring(lines)
    if end - start > longer_than:
        yield range(start, end)


def _docstring(lines: Sequence[str]) -> tuple[int, int]:
    """Index of the first line of a function's docstring, and of the line after it; (0, 0) if there is none."""
    for start, line in enumerate(lines[1:], 1):
        opened = _DOCSTRING.match(line)
        if opened and lines[start - 1].rstrip().endswith(":"):
            quotes = opened[1]
            if quotes in line[opened.end() :]:
                return start, start + 1
            closing = (number for number in range(start + 1, len(lines)) if quotes in lines[number])
            return start, next(closing, len(lines) - 1) + 1
        if line.strip() and lines[start - 1].rstrip().endswith(":"):
            break  # the body begins without one
    return 0, 0


def long_docstrings(lines: Sequence[str]) -> Iterator[range]:
    """Yield the indexes of the lines of docstrings of more than a few lines, without the first line of each.

    Looks at each line once: a file may be made of beginnings of docstrings.
    """
    index = 1
    while index < len(lines):
        start, index = index, index + 1
        opened = _DOCSTRING.match(lines[start]) if lines[start - 1].rstrip().endswith(":") else None
        if opened is None or opened[1] in lines[start][opened.end() :]:
            continue
        while index < len(lines) and opened[1] not in lines[index]:
            index += 1
        index = min(index + 1, len(lines))
        if index - start > _LONG_DOCSTRING:
            yield range(start + 1, index)


def mark_gap(text: str, gap: int | None, missing: int) -> str:
    """Mark the position `gap` of `missing` bytes that were not kept."""
    if gap is None or not missing:
        return text
    head, tail = text[:gap].rstrip("\n"), text[gap:].lstrip("\n")
    return f"{head}\n[… {missing:,} bytes were not kept …]\n{tail}"


def without_overwritten(text: str) -> str:
    """Leave out what a carriage return went back over, such as the earlier states of a progress bar, and count it."""
    if "\r" not in text:
        return text
    return "\n".join(map(_last_state, text.split("\n")))


def _last_state(line: str) -> str:
    body = line.rstrip("\r")
    before, back, last = body.rpartition("\r")
    if not back:
        return line
    states = sum(1 for state in before.split("\r") if state)
    gap = f"[… {states} overwritten …] " if states else ""
    return f"{gap}{last}{line[len(body) :]}"


def last_lines(text: str, limit: int) -> str:
    """The end of `text`, from the beginning of a line, in at most `limit` characters."""
    if len(text) <= limit:
        return text
    tail = text[len(text) - limit :]
    return tail[tail.find("\n") + 1 :]


def describe_signal(name: str) -> str:
    """Describe the end of a process that a signal has ended, which nobody here has sent."""
    return f"ended by {name}{' (perhaps it was out of memory)' if name == 'SIGKILL' else ''}"


def plural(count: int, word: str, many: str = "") -> str:
    return f"{count:,} {word if count == 1 else many or word + 's'}"


def format_size(count: int) -> str:
    """Format a number of bytes for people."""
    return (
        f"{count:,} B"
        if count < 10_000
        else f"{count / 1000:,.0f} kB"
        if count < 10_000_000
        else f"{count / 1e6:,.0f} MB"
    )
