"""Rules in `.gitignore` syntax: translated here, matched in the sandbox, or here while a repository is packed.

`pathspec` translates the patterns. A hostile repository controls both patterns and names, and for a pattern
with several wildcards its regular expressions backtrack for years. This module translates such patterns
itself: a star between two others takes the first match and is never retried (as in `fnmatch` since Python
3.9). This changes no result, because no star crosses a slash. A `**` works likewise. One match then takes at
most a few milliseconds. Matching many names runs in a thread with a limit on its processor time.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

from sandbox.errors import InvalidArgument

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
"""Files that programs leave behind; never part of a listing, a search or a diff."""

Pairs = list[tuple[str, bool]]
"""(regular expression, include) of each pattern.

The last one that matches a path decides. Folders end with a slash.
"""
MAX_DEPTH = 100
"""Maximum depth of folders; deeper ones are left out."""
MAX_LINE = 1000
"""Maximum characters of a pattern."""
MAX_RULES = 2000
"""Maximum lines of a rule file (hidden, read-only or untracked files)."""
MAX_TEXT = 64 << 10
"""Maximum characters of a rule file."""


def lenient(lines: Iterable[str]) -> Pairs:
    """Compile the lines of a `.gitignore`. Invalid or too long patterns are skipped, as git does."""
    pairs: Pairs = []
    for line in lines:
        try:
            pairs += _translate(line)
        except ValueError:
            continue
    return pairs


def compile_rules(lines: Iterable[str], source: str) -> Pairs:
    """Compile the lines of a pdbox rule file, where each line has to be a valid pattern.

    Raises:
        InvalidArgument: a line is not a pattern, or too long. The message names `source`.
    """
    pairs: Pairs = []
    for line in lines:
        try:
            pairs += _translate(line)
        except ValueError as exc:
            raise InvalidArgument(f"{source} has a line that can't be used: {line[:100]!r} {exc}.") from None
    return pairs


def rule_lines(text: str, source: str) -> tuple[str, ...]:
    """Split the text of a pdbox rule file into lines.

    Raises:
        InvalidArgument: it is longer than any real one.
    """
    lines = tuple(text.splitlines())
    if len(lines) > MAX_RULES or len(text) > MAX_TEXT:
        raise InvalidArgument(
            f"{source} has {len(lines):,} lines and {len(text):,} characters.",
            f"At most {MAX_RULES:,} lines and {MAX_TEXT:,} characters can be used.",
        )
    return lines


class Decision(enum.Enum):
    """Outcome of rules for a path."""

    NAMED = "the last pattern that matches names it"
    EXCEPTED = "the last pattern that matches excepts it (`!`)"
    OPEN = "no pattern matches"


class Matcher:
    """Matches paths against rules, each path by itself: the folders above it are not considered."""

    def __init__(self, pairs: Pairs) -> None:
        # The last match decides, so they are tried from the end. Of equal patterns only the last one is
        # needed.
        self._patterns = [
            (re.compile(regex).match, Decision.NAMED if include else Decision.EXCEPTED)
            for regex, include in dict.fromkeys(reversed(pairs))
        ]

    def decide(self, path: str) -> Decision:
        """Return the decision of the rules about `path`. Folders end with a slash."""
        for match, decision in self._patterns:
            if match(path):
                return decision
        return Decision.OPEN

    def has_named(self, path: str) -> bool:
        """True if the rules name `path`."""
        return self.decide(path) is Decision.NAMED


_ENDS = {"(?:(?P<ps_d>/)|$)": r"/?\Z", "(?P<ps_d>/)": r"/\Z"}
"""Ends of pathspec's expressions, which also match paths below a folder; here each path is matched by itself."""


def _translate(line: str) -> Pairs:
    """Translate the pattern in `line`, if it has one. Raises ValueError."""
    if len(line) > MAX_LINE:
        raise ValueError(f"is longer than {MAX_LINE} characters")
    # In pathspec a set (`[…]`) can match a slash; in git it can't.
    if "**" in line or "[" in line or any(name.count("*") > 1 for name in line.split("/")):
        return _translate_safely(line)
    return _translate_by_pathspec(line)


def _translate_by_pathspec(line: str) -> Pairs:
    # Imported with the first session, because it would add 10 ms to the start of the server.
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    try:
        pattern = GitIgnoreSpecPattern(line)
    except re.error:  # a reversed range: git ignores the pattern
        return []
    except ValueError as exc:
        raise ValueError("is no gitignore pattern") from exc
    compiled = cast("re.Pattern[str] | None", pattern.regex)  # pyright: ignore[reportUnknownMemberType]
    if compiled is None or pattern.include is None:  # comments and empty lines
        return []
    regex = compiled.pattern
    end = next((end for end in _ENDS if regex.endswith(end)), None)
    if end is None or regex == end:  # of `*/` pathspec takes any path that has a folder
        return _translate_safely(line)
    return [(regex.removesuffix(end) + _ENDS[end], pattern.include)]


def _translate_safely(line: str) -> Pairs:
    """Translate a pattern without backtracking. Raises ValueError."""
    pattern = line if line.endswith("\\ ") else line.rstrip()
    if not pattern or pattern == "/" or pattern.startswith("#"):
        return []
    include = not pattern.startswith("!")
    segments = pattern.removeprefix("!").split("/")
    is_folder = len(segments) > 1 and not segments[-1]
    if is_folder:
        segments.pop()
    if len(segments) == 1:
        segments.insert(0, "**")  # a name alone matches at any depth
    elif not segments[0]:
        segments.pop(0)
    if segments[-1:] in ([], [""]):
        raise ValueError("is no gitignore pattern")
    regex = _regex(segments, is_folder)
    return [] if regex is None else [(regex, include)]


def _regex(segments: Sequence[str], is_folder: bool) -> str | None:
    """Build the expression for whole paths.

    None if a set is unclosed or reversed: git ignores such patterns.
    """
    groups = _Groups()
    runs: list[list[str]] = [[]]
    for segment in segments:
        if segment == "**":
            runs.append([])
            continue
        translated = _segment(segment, groups)
        if translated is None:
            return None
        runs[-1].append(translated)
    return _join(runs, is_folder, groups)


def _join(runs: Sequence[list[str]], is_folder: bool, groups: _Groups) -> str:
    """Join `runs` of segments at `**`. The first run is empty if the pattern begins with `**`."""
    end = r"/\Z" if is_folder else r"/?\Z"
    regex, last = "/".join(runs[0]), len(runs) - 1
    if last:
        regex += "/" if runs[0] else ""
    for number, run in enumerate(runs[1:], 1):
        body = "/".join(run)
        if number == last:
            # `a/**` matches everything in the folder, but not the folder itself.
            return f"{regex}(?:[^/]+/)*?{body}{end}" if run else f"{regex}.+{end}"
        if run:
            # The first match leaves the most text for the rest of the pattern.
            regex += groups.once(f"(?:[^/]+/)*?{body}/")
    return regex + end


@dataclass
class _Groups:
    """Names the groups of a regular expression."""

    count: int = 0

    def once(self, regex: str) -> str:
        """Return `regex` as an atomic group, written for Pythons before 3.11."""
        self.count += 1
        return f"(?=(?P<_{self.count}>{regex}))(?P=_{self.count})"


def _segment(glob: str, groups: _Groups) -> str | None:
    """Translate one segment of a path. None if a set in it is invalid. Raises ValueError."""
    if glob == "*":
        return "[^/]+"
    chunks = [""]
    at = 0
    while at < len(glob):
        sign, at = glob[at], at + 1
        if sign == "*":
            chunks.append("")
        elif sign == "?":
            chunks[-1] += "[^/]"
        elif sign == "\\":
            if at == len(glob):
                raise ValueError("ends with a backslash")
            chunks[-1], at = chunks[-1] + re.escape(glob[at]), at + 1
        elif sign == "[":
            translated, at = _set(glob, at)
            if translated is None:
                return None
            chunks[-1] += translated
        else:
            chunks[-1] += re.escape(sign)
    if len(chunks) == 1:
        return chunks[0]
    middle = "".join(groups.once(f"[^/]*?{chunk}") for chunk in chunks[1:-1] if chunk)
    return f"{chunks[0]}{middle}[^/]*{chunks[-1]}"


def _set(glob: str, at: int) -> tuple[str | None, int]:
    """Translate the set after a `[` and return its end. None if it is unclosed, or has a reversed range."""
    negated = glob[at : at + 1] in ("!", "^")
    start = at + negated
    end = glob.find("]", start + 1)  # as the first character it is literal
    if end < 0:
        return None, at
    signs, regex, index = glob[start:end], "", 0
    while index < len(signs):
        first, is_range = signs[index], signs[index + 1 : index + 2] == "-" and index + 2 < len(signs)
        last = signs[index + 2] if is_range else first
        if last < first:
            return None, at
        regex += rf"\U{ord(first):08x}" + (rf"-\U{ord(last):08x}" if is_range else "")
        index += 3 if is_range else 1
    return f"(?!/)[{'^' if negated else ''}{regex}]", end + 1


@dataclass(frozen=True)
class Rules:
    """Rules of one workspace: files that tools hide, protect or leave out of the diff."""

    hidden: tuple[str, ...] = ()
    """Lines of `.debugignore`."""
    read_only: tuple[str, ...] = ()
    """Lines of `.debugreadonly`."""
    untracked: tuple[str, ...] = ()
    """Lines of the root `.gitignore`; its files are left out of the diff."""

    def for_tools(self) -> dict[str, Pairs]:
        """Rules for listing, searching and reading."""
        return {
            "ignore": compile_rules((*JUNK, *self.hidden), ".debugignore"),
            "read_only": compile_rules((".debugignore", ".debugreadonly", *self.read_only), ".debugreadonly"),
        }

    def for_diff(self) -> dict[str, Pairs]:
        """Rules for the baseline and the diff: hidden files count, junk and untracked ones don't."""
        return {"ignore": lenient((*JUNK, *self.untracked)), "read_only": []}
