"""Text for sets of changed files."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

from sandbox.session.workspace import FileChange, Patch
from tools._text import plural

MAX_PATCH = 128 << 10
"""Bytes of a patch that are read, more than any answer can have."""

_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_CONTEXT = 1
_MAX_ADDED, _MAX_REMOVED = 4, 16
"""Lines of one change that are shown: the sender knows what was put in, and sees here what it has replaced."""


def digest(patch: Patch) -> bytes:
    """Hash that identifies a patch."""
    return hashlib.sha256(patch.text.encode("utf-8", "surrogateescape")).digest()


def changes(files: Sequence[FileChange], total: int) -> str:
    """The total number of changed files, and one line for each of `files`."""
    return "\n".join([f"{plural(total, 'file')} changed:", *map(_line, files)])


def _line(file: FileChange) -> str:
    size = "too large for the patch" if file.omitted else f"+{file.added} -{file.removed}"
    return f"  {file.path} ({file.kind}, {size})"


def shorten(diff: str) -> str:
    """Shorten the patch of one file for those who wrote the new lines: one line of context, long changes folded.

    Line numbers in its heads are those of the shown parts.
    """
    lines = diff.split("\n")
    starts = [number for number, line in enumerate(lines) if _HUNK.match(line)]
    parts = [
        part for start, end in pairwise([*starts, len(lines)]) for part in _changed_parts(lines[start:end])
    ]
    return "\n".join(parts) if parts else diff


def _changed_parts(hunk: Sequence[str]) -> Iterator[str]:
    """The changes of a hunk, each with its head; those with at most two lines between are one."""
    found = _HUNK.match(hunk[0])
    old, new = map(int, found.groups()) if found else (1, 1)
    body = [line for line in hunk[1:] if line]
    changed = (number for number, line in enumerate(body) if line[0] in "+-")
    around = {near for number in changed for near in range(number - _CONTEXT, number + _CONTEXT + 1)}
    near = sorted(around.intersection(range(len(body))))
    begun = 0
    for _, group in groupby(enumerate(near), key=lambda each: each[1] - each[0]):
        shown = [number for _, number in group]
        old += sum(line[0] != "+" for line in body[begun : shown[0]])
        new += sum(line[0] != "-" for line in body[begun : shown[0]])
        begun = shown[0]
        part = body[shown[0] : shown[-1] + 1]
        sizes = sum(line[0] in " -" for line in part), sum(line[0] in " +" for line in part)
        yield "\n".join([f"@@ -{old},{sizes[0]} +{new},{sizes[1]} @@", *_folded(part)])


def _folded(lines: Sequence[str]) -> Iterator[str]:
    for sign, group in groupby(lines, key=lambda line: line[0]):
        run = list(group)
        limit = {"+": _MAX_ADDED, "-": _MAX_REMOVED}.get(sign, len(run))
        if len(run) <= limit + 1:
            yield from run
        else:
            yield from run[: limit // 2]
            yield f"{sign} … {len(run) - limit} lines …"
            yield from run[len(run) - limit // 2 :]
