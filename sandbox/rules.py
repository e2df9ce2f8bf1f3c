"""`.gitignore`-syntax rules, compiled here and applied in the sandbox."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from sandbox.errors import InvalidArgument

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

JUNK = (
    ".git/",
    "__pycache__/",
    "*.py[co]",
    ".pytest_cache/",
    ".mypy_cache/",
    ".ruff_cache/",
    ".hypothesis/",
    ".DS_Store",
)
"""What programs leave behind; never part of a listing, a search or a diff."""

Pairs = list[tuple[str, bool]]
MAX_DEPTH = 100
"""Folders below folders; what lies deeper is left out."""


def lenient(lines: Iterable[str]) -> GitIgnoreSpec:
    """The patterns among `lines` of a `.gitignore`; those that are none, or too costly, are passed over as git does."""
    return _specification(line for line in lines if _problem(line) is None)


def compile_rules(lines: Iterable[str], source: str) -> Pairs:
    """(regular expression, include) for each pattern; for a path, the last one that matches decides.

    Directories are matched with a trailing slash, and a path is out when it or a folder above it is.

    Raises:
        InvalidArgument: a line that is no pattern, or too costly, naming `source`.
    """
    lines = list(lines)
    for line in lines:
        if problem := _problem(line):
            raise InvalidArgument(f"{source} has a line that can't be used: {line[:100]!r} {problem}.")
    return _pairs(_specification(lines))


def _specification(lines: Iterable[str]) -> GitIgnoreSpec:
    # Imported with the first session: the server's start has no use for the 10 ms that it takes.
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(lines)


def _problem(line: str) -> str | None:
    # Patterns become backtracking regular expressions, and a hostile repository brings both them and the names.
    if len(line) > 1000 or line.count("**") > 3 or any(part.count("*") > 3 for part in line.split("/")):
        return "has too many wildcards"
    try:
        _specification([line])
    except ValueError:
        return "is no gitignore pattern"
    return None


def _pairs(spec: GitIgnoreSpec) -> Pairs:
    pairs: Pairs = []
    for pattern in spec.patterns:
        regex = cast("re.Pattern[str] | None", pattern.regex)  # pyright: ignore[reportUnknownMemberType]
        if regex is not None and pattern.include is not None:  # comments and empty lines have none
            pairs.append((regex.pattern, pattern.include))
    return pairs


def takes(path: str, pairs: Pairs) -> bool:
    """Whether the last of `pairs` that matches `path` includes it; folders end with a slash."""
    verdict = False
    for regex, include in pairs:
        if re.match(regex, path):
            verdict = include
    return verdict


@dataclass(frozen=True)
class Rules:
    """What file tools hide and protect in one workspace."""

    hidden: tuple[str, ...] = ()
    """Lines of `.debugignore`."""
    read_only: tuple[str, ...] = ()
    """Lines of `.debugreadonly`."""
    untracked: tuple[str, ...] = ()
    """Lines of the root `.gitignore`: left out of the diff."""

    def for_tools(self) -> dict[str, Pairs]:
        """Rules for listing, searching and reading."""
        return {
            "ignore": compile_rules((*JUNK, *self.hidden), ".debugignore"),
            "read_only": compile_rules((".debugignore", ".debugreadonly", *self.read_only), ".debugreadonly"),
        }

    def for_diff(self) -> dict[str, Pairs]:
        """Rules for the baseline and the diff: hidden files count, junk and untracked ones don't."""
        return {"ignore": _pairs(lenient((*JUNK, *self.untracked))), "read_only": []}
