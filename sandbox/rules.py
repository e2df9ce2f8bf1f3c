"""`.gitignore`-syntax rules, compiled here and applied in the sandbox."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pathspec import GitIgnoreSpec
from pathspec.pattern import RegexPattern

from sandbox.errors import InvalidArgument

JUNK = (".git/", "__pycache__/", "*.py[co]", ".pytest_cache/", ".mypy_cache/", ".ruff_cache/", ".hypothesis/", ".DS_Store")
"""What programs leave behind; never part of a listing, a search or a diff."""

Pairs = list[tuple[str, bool]]
MAX_DEPTH = 100
"""Folders below folders; what lies deeper is left out."""


def is_bounded(line: str) -> bool:
    """Whether matching the pattern takes bounded time.

    Patterns become backtracking regular expressions, and a hostile repository brings both the pattern and the names.
    """
    return len(line) <= 1000 and line.count("**") <= 3 and all(part.count("*") <= 3 for part in line.split("/"))


def compile_rules(lines: Iterable[str], source: str = ".gitignore") -> Pairs:
    """(regular expression, include) for each pattern; for a path, the last one that matches decides.

    Directories are matched with a trailing slash, and a path is out when it or a folder above it is.

    Raises:
        InvalidArgument: a line that is no pattern, naming `source`.
    """
    lines = list(lines)
    if (bad := next((line for line in lines if not is_bounded(line)), None)) is not None:
        raise InvalidArgument(f"{source} has a pattern with too many wildcards: {bad[:100]!r}.", "Three `*` a name are the limit.")
    try:
        spec = GitIgnoreSpec.from_lines(lines)
    except ValueError as exc:
        raise InvalidArgument(f"{source} has a line that is not a gitignore pattern: {exc}.") from exc
    return [
        (pattern.regex.pattern, pattern.include)
        for pattern in spec.patterns
        if isinstance(pattern, RegexPattern) and pattern.regex is not None and pattern.include is not None
    ]


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
        return {"ignore": compile_rules((*JUNK, *self.untracked), ".gitignore"), "read_only": []}
