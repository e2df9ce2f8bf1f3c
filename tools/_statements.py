"""The statements of a piece of source: the names that they use and the variables that they set.

By its tokens: to make a syntax tree of hostile source can crash the interpreter.
"""

from __future__ import annotations

import io
import keyword
import tokenize
from collections.abc import Iterator, Sequence
from itertools import accumulate, takewhile
from typing import NamedTuple

_MAX_CHARACTERS = 50_000
"""Characters that are looked at: reading them takes a thread that can't be cancelled."""
_MAX_ERRORS = 20
"""Tokens that are none of Python's: the tokenizer searches the rest of a line for each quote that nothing closes."""
_NO_CODE = frozenset([tokenize.COMMENT, tokenize.NL, tokenize.ENCODING, tokenize.ENDMARKER])
_LITERAL = "…"
"""In place of literals. Parts of an f-string, which are tokens from Python 3.12 on, may look like an operator."""
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_NO_TARGET_BEFORE = frozenset(["==", "!=", "<=", ">=", ":="])
_NO_VARIABLE_AFTER = frozenset([".", "!"])
"""Before attributes, and before the conversion of a value in an f-string."""
_DEFINING = frozenset(["def", "class"])
_COMPOUND = frozenset(
    ["if", "elif", "else", "while", "for", "try", "except", "finally", "with", "async", "def", "class"]
)
_MATCHING = frozenset(["match", "case"])


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
    """Variables that it assigns to, but for those behind the head of a compound statement: these may be left as they are."""
    sets: set[str]
    """These, those that it binds otherwise, and those whose object it changes: `x[0] = 1`, `x.add(1)`."""


def read_statements(lines: Sequence[str], first: int) -> Iterator[Statement]:
    """Read the statements of lines of which the first has the number `first`, as far as they are Python.

    The first one is only a head, as that of the function whose lines these are. Of many characters the first 50,000 are read.
    """
    definition: Statement | None = None
    level = inside = count = 0
    for tokens in _logical_lines(_first_of(lines)):
        level += sum({tokenize.INDENT: 1, tokenize.DEDENT: -1}.get(one.type, 0) for one in tokens)
        code = [one for one in tokens if one.type not in (tokenize.INDENT, tokenize.DEDENT)]
        if not code:
            continue
        one = _statement(code, first - 1)
        if definition is not None and level > inside:
            definition.uses.extend(one.uses)
            definition = definition._replace(last=one.last)
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


def _first_of(lines: Sequence[str]) -> list[str]:
    """The first lines, as many as may be looked at."""
    sizes = accumulate(len(line) + 1 for line in lines)
    return [line for line, _ in zip(lines, takewhile(_MAX_CHARACTERS.__ge__, sizes), strict=False)]


def _logical_lines(lines: Sequence[str]) -> Iterator[list[tokenize.TokenInfo]]:
    """Yield the tokens of each statement, of the last one as far as it goes."""
    tokens, errors = list[tokenize.TokenInfo](), 0
    # From Python 3.12 on the tokenizer encodes what it reads, which fails for a lone surrogate.
    text = "\n".join(lines).encode(errors="replace").decode()
    try:
        for one in tokenize.generate_tokens(io.StringIO(text).readline):
            errors += one.type == tokenize.ERRORTOKEN
            if errors > _MAX_ERRORS:
                break
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
    first, last = before + code[0].start[0], before + code[-1].end[0]
    found = Statement(first, last, code[0].start[1], [], set(), set())
    words = [one.string if one.type in (tokenize.NAME, tokenize.OP) else _LITERAL for one in code]
    for part in _parts(words):
        _add_names(part, found)
    return found._replace(binds=set()) if _is_head(words) else found


def _is_head(words: Sequence[str]) -> bool:
    """True for the words of a compound statement."""
    return words[0] in _COMPOUND or (words[0] in _MATCHING and words[1:2] not in ([":"], ["."], ["="], [","]))


def _parts(words: Sequence[str]) -> Iterator[list[str]]:
    """Split a line at its semicolons, and behind the head of a compound statement."""
    part, depth, is_head = list[str](), 0, _is_head(words)
    for text in words:
        depth += (text in _OPENING) - (text in _CLOSING)
        if not depth and (text == ";" or (text == ":" and is_head)):
            yield part
            part, is_head = [], False
        else:
            part.append(text)
    yield part


def _add_names(words: Sequence[str], found: Statement) -> None:
    """Add the names of a simple statement, or of a head, to those of `found`."""
    outside, targets, depth = list[str](), set[str](), 0
    start, is_read = len(found.uses), False  # True in an annotation, and for what a loop iterates over
    for previous, text, following in zip(["", *words], words, [*words[1:], ""], strict=False):
        # What follows a lambda on the same level is as if it were in brackets.
        depth += (text in _OPENING or (text == "lambda" and not depth)) - (text in _CLOSING)
        if _is_name(text):
            is_argument = depth and following == "=" and previous in ("(", ",", "lambda")
            if following == ":=":
                found.sets.add(text)
            elif previous not in _NO_VARIABLE_AFTER and not is_argument:
                found.uses.append(text)
                if not depth and not is_read:
                    outside.append(text)
                    is_target = previous in ("", ",", "=") and following in ("=", ",", ":")
                    targets.update([text] if is_target else [])
            if previous in ("as", "def", "class") or words[0] in ("import", "from"):
                found.sets.add(text)
        elif depth or text in _NO_TARGET_BEFORE:
            continue
        elif text == ":":
            is_read = True
        elif text == "=":
            found.binds.update(targets)
            found.uses[start:] = [name for name in found.uses[start:] if name not in targets]
            found.sets.update(outside)
            start, is_read = len(found.uses), False
            outside.clear()
            targets.clear()
        elif text.endswith("=") or (text == "in" and words[0] in ("for", "async")):
            found.sets.update(outside)
            is_read = True
    if words and _is_name(words[0]) and words[1:2] in (["."], ["["]):
        found.sets.add(words[0])  # of an expression: an object whose method is called


def _is_name(text: str) -> bool:
    return text.isidentifier() and not keyword.iskeyword(text)
