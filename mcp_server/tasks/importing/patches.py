"""Makes patches: from two versions of a file, and from two folders."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

from mcp_server.tasks.folder import read_bytes
from mcp_server.tasks.importing.trees import JUNK
from sandbox.errors import InvalidArgument

_MAX_COMPARED = 20_000
"""Lines up to which two files are compared; longer ones are replaced as a whole, as comparing takes quadratic time."""
_UNPLAIN = frozenset('"\\\n\r\t')


def diff_file(path: str, before: bytes | None, after: bytes | None) -> bytes:
    """Make the patch for one file; None stands for no file. Empty if both are the same.

    Raises:
        InvalidArgument: the file is not text, or its name can't stand in a patch.
    """
    if before == after:
        return b""
    if not path.isprintable() or not _UNPLAIN.isdisjoint(path):
        raise InvalidArgument(f"The name {path!r} can't stand in a patch.")
    if b"\0" in (before or b"") or b"\0" in (after or b""):
        raise InvalidArgument(f"{path} differs, and is not text.", "Give the fix as a patch of git.")
    end = "\t" if " " in path else ""
    old = "/dev/null" if before is None else f"a/{path}{end}"
    new = "/dev/null" if after is None else f"b/{path}{end}"
    head = [f"diff --git a/{path} b/{path}"]
    if before is None:
        head.append("new file mode 100644")
    if after is None:
        head.append("deleted file mode 100644")
    hunks = _hunks(_lines(before or b""), _lines(after or b""))
    names = [f"--- {old}", f"+++ {new}"] if hunks else []
    return "".join(f"{line}\n" for line in (*head, *names)).encode() + hunks


def _lines(data: bytes) -> list[bytes]:
    """Split at newlines only: other bytes that end lines for Python belong to the text."""
    lines = [line + b"\n" for line in data.split(b"\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _hunks(before: list[bytes], after: list[bytes]) -> bytes:
    if max(len(before), len(after)) > _MAX_COMPARED:
        first = [b"@@ -%d,%d +%d,%d @@\n" % (bool(before), len(before), bool(after), len(after))]
        lines = [*first, *(b"-" + line for line in before), *(b"+" + line for line in after)]
    else:
        diff = difflib.diff_bytes(difflib.unified_diff, before, after, b"a", b"b")
        lines = list(diff)[2:]
    return b"".join(
        line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n" for line in lines
    )


def diff_trees(before: Path, after: Path) -> bytes:
    """Make the patch that turns the files of one folder into those of another. Links are not compared.

    Raises:
        InvalidArgument: a file that differs is not text.
    """
    old, new = _files(before), _files(after)
    parts = (
        diff_file(
            name,
            read_bytes(old[name]) if name in old else None,
            read_bytes(new[name]) if name in new else None,
        )
        for name in sorted(old.keys() | new.keys())
    )
    return b"".join(parts)


def _files(folder: Path) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in JUNK]
        for name in names:
            path = Path(place) / name
            if name not in JUNK and not path.is_symlink() and path.is_file():
                found[path.relative_to(folder).as_posix()] = path
    return found
