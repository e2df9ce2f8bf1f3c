"""Paths that a patch names, and patterns for them."""

from __future__ import annotations

import re

_HEAD = "diff --git a/"
_SIDE = re.compile(rb"^(?:---|\+\+\+) (?:[ab]/)?([^\t\r\n]{1,4096})", re.MULTILINE)
_MAGIC = re.compile(r"([\\*?\[\]!# ])")


def changed_files(patch: str) -> list[str]:
    """Return the paths of the files that a patch by git changes, renamed and binary ones too."""
    heads = (line for line in patch.split("\n") if line.startswith(_HEAD))
    return list(dict.fromkeys(head.rpartition(" b/")[2].strip() for head in heads))


def named_files(patch: bytes) -> list[str]:
    """Return the paths that any patch may touch, or more: a removed line can look like a path."""
    names = (match.decode("utf-8", "replace").strip() for match in _SIDE.findall(patch))
    return list(dict.fromkeys(name for name in names if name != "/dev/null" and not name.startswith('"')))


def pattern_of(path: str) -> str:
    """Return the pattern, as in `.gitignore`, that matches this one path."""
    return "/" + _MAGIC.sub(r"\\\1", path)
