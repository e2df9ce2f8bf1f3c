"""Makes patches: from two versions of a file, and from two folders."""

from __future__ import annotations

import base64
import difflib
import gzip
import os
import re
from pathlib import Path

from mcp_server.tasks.folder import read_bytes
from mcp_server.tasks.importing.trees import JUNK
from sandbox.errors import InvalidArgument

_MAX_COMPARED = 20_000
"""Lines up to which two files are compared; longer ones are replaced as a whole, as comparing takes quadratic time."""
_PIECE = 12_000
"""Characters of a patch in one set-up command."""
_RANGE = rb"(\d{1,9})(?:,(\d{1,9}))?"
_HUNK = re.compile(rb"@@ -" + _RANGE + rb" \+" + _RANGE + rb" @@(.*)", re.DOTALL)
_TURNED = {b"new file mode ": b"deleted file mode ", b"deleted file mode ": b"new file mode "}
_ONE_WAY = (b"GIT binary patch", b"Binary files ", b"rename from ", b"copy from ", b"old mode ")
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


def reverse_patch(patch: bytes) -> bytes:
    """Make the patch that undoes a patch by git.

    Raises:
        InvalidArgument: it is damaged, or changes more than text.
    """
    lines = patch.removesuffix(b"\n").split(b"\n")[::-1]
    done: list[bytes] = []
    while lines:
        line = lines.pop()
        if match := _HUNK.fullmatch(line):
            old, old_count, new, new_count, section = match.groups()
            sides = [
                start + (b"" if count is None else b"," + count)
                for start, count in ((new, new_count), (old, old_count))
            ]
            done.append(b"@@ -%s +%s @@%s" % (*sides, section))
            done += _reverse_hunk(lines, int(old_count or 1), int(new_count or 1))
        elif line.startswith(b"--- "):
            done += _reverse_names(line, lines.pop() if lines else b"")
        elif line.startswith(_ONE_WAY):
            raise InvalidArgument("It changes more than the text of files, so it can't be undone.")
        elif not line.startswith(b"index "):
            kind = next((kind for kind in _TURNED if line.startswith(kind)), b"")
            done.append(_TURNED.get(kind, b"") + line[len(kind) :])
    return b"".join(line + b"\n" for line in done)


def _reverse_names(old: bytes, new: bytes) -> tuple[bytes, bytes]:
    """Reverse the two lines with the names of a file."""
    before, after = old[4:], new[4:]
    return (
        b"--- " + (b"a/" + after[2:] if after.startswith(b"b/") else after),
        b"+++ " + (b"b/" + before[2:] if before.startswith(b"a/") else before),
    )


def _reverse_hunk(lines: list[bytes], old: int, new: int) -> list[bytes]:
    """Reverse the body of a hunk of `old` lines that become `new`, and take it from the end of `lines`."""
    done, removed, added = list[bytes](), list[bytes](), list[bytes]()
    last = done
    while lines and (old > 0 or new > 0 or lines[-1].startswith(b"\\")):
        line = lines.pop()
        match line[:1]:
            case b"+":
                last, turned, new = removed, b"-" + line[1:], new - 1
            case b"-":
                last, turned, old = added, b"+" + line[1:], old - 1
            case b"\\":
                turned = line
            case b" " | b"":
                done += [*removed, *added]
                removed, added = [], []
                last, turned, old, new = done, line, old - 1, new - 1
            case _:
                break
        last.append(turned)
    if old or new:
        raise InvalidArgument("It is no whole patch.")
    return [*done, *removed, *added]


def apply_in_setup(patch: str) -> list[str]:
    """Make set-up commands that apply a patch to a repository of an image."""
    packed = base64.b64encode(gzip.compress(patch.encode(), mtime=0)).decode()
    name = ".pdbox-test.patch"
    pieces = [packed[start : start + _PIECE] for start in range(0, len(packed), _PIECE)]
    write = [f"printf %s {piece} >> {name}" for piece in pieces]
    unpack = (
        f"base64 -d {name} | gzip -d | git -c safe.directory='*' apply --whitespace=nowarn - && rm {name}"
    )
    return [*write, unpack] if patch.strip() else []
