"""The diff of an edit.

It is computed here because hostile text makes it slow: only its own session waits for it.
"""

from __future__ import annotations

from . import patch

MAX_DIFF = 64 << 10
"""Bytes of a diff; of a longer one the middle is left out."""


def unified(path: str, old: bytes, new: bytes, encoding: str, newline: str) -> tuple[bytes, int]:
    """(diff between two versions of a text, in UTF-8; bytes left out of its middle)."""
    left, right = _lines(old, encoding, newline), _lines(new, encoding, newline)
    regions = patch.changed_regions(left, right)
    if not regions:
        return b"", 0
    name = path.encode("utf-8", "backslashreplace")
    head = [b"--- a/%s\n" % name, b"+++ b/%s\n" % name]
    text = b"".join(head + patch.hunks(left, right, regions))
    if len(text) <= MAX_DIFF:
        return text, 0
    first = text[: text.rfind(b"\n", 0, MAX_DIFF // 2) + 1]
    last = text[text.find(b"\n", len(text) - MAX_DIFF // 2) + 1 :]
    return first + last, len(text) - len(first) - len(last)


def _lines(data: bytes, encoding: str, newline: str) -> list:
    try:
        text = data.decode(encoding)
    except (UnicodeError, LookupError):
        return patch.split(data)
    return patch.split(text.replace(newline, "\n").encode("utf-8", "backslashreplace"))
