"""Globs for paths, as shells and editors write them."""

from __future__ import annotations

import re

from ..errors import GuestError

_MAX_BRACES = 50
"""Patterns that a glob with braces may stand for."""
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")


def compile_glob(pattern: str):
    """Make a predicate for relative paths: `*.py` for a name in any folder, `src/*.py` from the root; `**`
    crosses folders, `{py,pyi}` is one or the other.

    A pattern that names a folder matches everything in it. Raises GuestError (invalid).
    """
    patterns = _expand_braces(pattern.strip("/"))
    if pattern.count("*") > 12 or len(patterns) > _MAX_BRACES:
        raise GuestError("invalid", f"The glob {pattern[:200]!r} has too many wildcards.")
    try:
        return re.compile("(?:{})(?:/.*)?\\Z".format("|".join(map(_translate, patterns))), re.DOTALL).match
    except re.error as exc:
        raise GuestError("invalid", f"The glob {pattern[:200]!r} is broken.") from exc


def _expand_braces(pattern: str) -> list[str]:
    """The patterns that one with braces stands for, as in a shell; no more than a few over the limit."""
    found = _BRACES.search(pattern)
    if found is None:
        return [pattern]
    expanded: list[str] = []
    for part in found.group(1).split(","):
        if len(expanded) <= _MAX_BRACES:
            expanded += _expand_braces(pattern[: found.start()] + part + pattern[found.end() :])
    return expanded


def _translate(pattern: str) -> str:
    pattern = pattern.strip("/")
    regex, at = "" if "/" in pattern else "(?:.*/)?", 0
    while at < len(pattern):
        if pattern.startswith("**/", at) and (at == 0 or pattern[at - 1] == "/"):
            regex, at = regex + "(?:[^/]+/)*", at + 3
        elif pattern.startswith("**", at):
            regex, at = regex + ".*", at + 2
        elif pattern[at] == "*":
            regex, at = regex + "[^/]*", at + 1
        elif pattern[at] == "?":
            regex, at = regex + "[^/]", at + 1
        elif pattern[at] == "[" and pattern.find("]", at + 2) > 0:
            end = pattern.find("]", at + 2)
            regex, at = regex + _set(pattern[at + 1 : end]), end + 1
        else:
            regex, at = regex + re.escape(pattern[at]), at + 1
    return regex


def _set(signs: str) -> str:
    negated = signs[0] in "!^"
    signs = signs[1:] if negated else signs
    return "[{}{}]".format("^/" if negated else "", re.sub(r"([\\\[\]^&~|])", r"\\\1", signs))
