"""The statements of a piece of source, by its tokens: the names that they use and the variables that they set."""

from __future__ import annotations

import io
import keyword
import tokenize
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_NO_CODE = frozenset([tokenize.COMMENT, tokenize.NL, tokenize.ENCODING, tokenize.ENDMARKER])
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_COMPARING = frozenset(["==", "!=", "<=", ">="])
_DEFINING = frozenset(["def", "class"])


class Statement(NamedTuple):
    """Numbers of the first and last line, of a compound statement those of its head, and names.

    A function or class is one statement with all that is in it.
    """

    first: int
    last: int
    column: int
    uses: list[str]
    """Names that it reads, but for those of attributes and of arguments."""
    binds: set[str]
    """Variables that it assigns to."""
    sets: set[str]
    """These, those that it binds otherwise, and those whose object it changes: `x[0] = 1`, `x.add(1)`."""


def read_statements(lines: Sequence[str], first: int) -> Iterator[Statement]:
    """Read the statements of lines of which the first has the number `first`, as far as they are Python.

    The first one is only a head, as that of the function whose lines these are.
    """
    definition: Statement | None = None
    level = inside = count = 0
    for tokens in _logical_lines(lines):
        level += sum({tokenize.INDENT: 1, tokenize.DEDENT: -1}.get(one.type, 0) for one in tokens)
        code = [one for one in tokens if one.type not in (tokenize.INDENT, tokenize.DEDENT)]
        if not code:
            continue
        one = _statement(code, first - 1)
        if definition is not None and level > inside:
            definition = definition._replace(last=one.last, uses=definition.uses + one.uses)
            continue
        if definition is not None:
            yield definition
            definition = None
        if count and any(each.string in _DEFINING for each in code[:2]):
            definition, inside = one, level
        else:
            yield one
        count += 1
    if definition is not None:
        yield definition


def _logical_lines(lines: Sequence[str]) -> Iterator[list[tokenize.TokenInfo]]:
    """Yield the tokens of each statement, of the last one as far as it goes."""
    tokens = list[tokenize.TokenInfo]()
    try:
        for one in tokenize.generate_tokens(io.StringIO("\n".join(lines)).readline):
            if one.type == tokenize.NEWLINE:
                yield tokens
                tokens = []
            elif one.type not in _NO_CODE:
                tokens.append(one)
    except (tokenize.TokenError, SyntaxError):  # the lines end within a statement
        pass
    yield tokens


def _statement(code: Sequence[tokenize.TokenInfo], before: int) -> Statement:
    """Describe the statement of some tokens; `before`: number of the line before their source."""
    uses, outside, targets, depth = list[str](), list[str](), list[str](), 0
    binds, sets = set[str](), set[str]()
    words = ["", *(one.string for one in code), ""]
    for previous, one, following in zip(words, code, words[2:], strict=False):
        text = one.string
        depth += (text in _OPENING) - (text in _CLOSING)
        if one.type == tokenize.NAME and not keyword.iskeyword(text):
            is_argument = depth and following == "="
            if previous != "." and not is_argument:
                uses.append(text)
                outside += [] if depth else [text]
                is_target = not depth and previous in ("", ",", "=") and following in ("=", ",", ":")
                targets += [text] if is_target else []
            if previous in ("as", "def", "class") or words[1] in ("import", "from"):
                sets.add(text)
        elif depth or text in _COMPARING:
            continue
        elif text == "=":
            binds.update(targets)
            uses = [name for name in uses if name not in targets]
            sets.update(outside)
        elif text.endswith("=") or (text == "in" and words[1] in ("for", "async")):
            sets.update(outside)
    if uses and words[1] == uses[0] and words[2] in (".", "["):
        sets.add(uses[0])  # of an expression: an object whose method is called
    first, last = before + code[0].start[0], before + code[-1].end[0]
    return Statement(first, last, code[0].start[1], uses, binds, sets)
