"""State that changes of the code are about, and the lines of a file that use it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

_QUOTED = re.compile(r"`([^`]*)`")
_STATE = re.compile(r"\b[a-z_]\w*\.([A-Za-z_]\w*)\b(?!\()|\b([A-Z_][A-Z0-9_]{2,})\b")
"""An attribute that is not called, or a constant of a module, which may be a container."""
_EMPTIED = "were empty each time"
_MAX_LINE = 400
"""Characters of a line that are looked at."""
_MUTATING = "append|extend|insert|remove|pop|clear|update|add|discard|setdefault|popitem|appendleft|popleft"
_DEFINITION = re.compile(r"(\s*)(?:async\s+)?def\s+(\w+)")


def find_state(changes: Sequence[str]) -> str:
    """Name of the attribute or constant in the code of at least half of the `changes`, one of which writes it; "" if there is none."""
    counted = Counter(name for change in changes for name in _names_in(change))
    for name, count in counted.most_common():
        is_written = any(_EMPTIED in change or writes(name, change) for change in changes if name in change)
        if is_written and count * 2 >= len(changes):
            return name
    return ""


def _names_in(change: str) -> list[str]:
    found = (one for text in _QUOTED.findall(change) for one in _STATE.finditer(text))
    return list(dict.fromkeys(one[1] or one[2] for one in found))


def lines_with(name: str, lines: Sequence[str]) -> Iterator[int]:
    """Yield the index of each line that has a name, but for comments."""
    word = re.compile(rf"\b{re.escape(name)}\b")
    for index, line in enumerate(lines):
        if word.search(line, 0, _MAX_LINE) and not line.lstrip().startswith("#"):
            yield index


def writes(name: str, line: str) -> bool:
    """True if a line sets a name, an item of it, or changes its contents."""
    own = re.escape(name)
    written = (
        rf"\b{own}\b(?:\[[^=]*\])?\s*(?::[^=]*)?[-+*/|&]?=(?!=)|\b{own}\.(?:{_MUTATING})\(|\bdel\b.*\b{own}\b"
    )
    return re.search(written, line[:_MAX_LINE]) is not None


def function_around(lines: Sequence[str], index: int) -> str:
    """Name of the function that a line is in, by their indentation; "" for one of a module or class."""
    depth = len(lines[index]) - len(lines[index].lstrip())
    for line in reversed(lines[:index]):
        definition = _DEFINITION.match(line)
        if definition and len(definition[1]) < depth:
            return definition[2]
        if line.strip() and not line[0].isspace() and not line.startswith((")", "#", "@")):
            break
    return ""
