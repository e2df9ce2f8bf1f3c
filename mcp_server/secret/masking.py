"""Text with masks in the place of secrets."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from mcp_server.secret.known import Known
from mcp_server.secret.mask import mask
from mcp_server.secret.names import Strength, has_name, strength
from mcp_server.secret.pattern import Pattern
from mcp_server.secret.shapes import PEM, PEM_LEAST, PEM_LINE, URL, Shape
from mcp_server.secret.values import LEAST, is_dull, is_plain, looks_secret

_QUOTED = r"[bBrRuUfF]{0,2}'(?:[^'\\\n]|\\.)*+'|[bBrRuUfF]{0,2}\"(?:[^\"\\\n]|\\.)*+\""
_CUT_OFF = r"[bBrRuUfF]{0,2}['\"][^'\"\\\n]{8,}+(?=$)"
_LITERAL = Pattern(rf"{_QUOTED}|{_CUT_OFF}", re.MULTILINE)
_LISTING = r"^[ ]{0,7}+\d{1,7}+[ ][ B>-]{0,4}+\t.*+$"
"""A line of source code as pdb lists it."""
_NAMED = Pattern(
    rf"""
    {_LISTING}
    | (?: (?P<lead>^(?:[+-]|[ \t]{{1,8}}|export[ ]|declare[ ]-x[ ])?+) | (?<![\w.-]) )
      -{{0,2}}+
      (?P<name>[A-Za-z_][\w.-]{{0,99}}+) (?![\w.-])
      \\{{0,3}}+['"]?+\]?+
      [ \t]{{0,40}}+ (?: :=? | = ) (?![:=]) [ \t]{{0,40}}+
    """,
    re.VERBOSE | re.MULTILINE,
)
_VALUE = Pattern(
    rf"""
    (?P<literal> {_QUOTED} | \\{{1,3}}+["'][^"'\\\n]*+\\{{1,3}}+["'] | {_CUT_OFF} )
    | (?P<bare> [^\s'"`,;()\[\]{{}}<>|&\\⟦⟧]{{8,}}+ ) (?P<end>[ \t]*+$)?
    """,
    re.VERBOSE | re.MULTILINE,
)
_CODE = Pattern(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|[A-Za-z_]+")
"""Attributes, types, constants."""


@dataclass
class Masking:
    """Masks text after text, by the values, shapes and (with `named`) names to look for, and counts its masks."""

    known: Sequence[Known]
    shapes: Sequence[Shape]
    named: bool
    count: int = field(default=0, init=False)

    def text(self, text: str, *, source: bool = False) -> str:
        if len(text) < LEAST:
            return text
        text = self._shapes(self._known(text))
        return self._by_name(text) if self.named and not source and has_name(text.lower()) else text

    def _known(self, text: str) -> str:
        for spelling, replacement in self.known:
            if spelling in text:
                self.count += text.count(spelling)
                text = text.replace(spelling, replacement)
        return text

    def _shapes(self, text: str) -> str:
        for shape in self.shapes:
            replace = self._pem if shape.pattern is PEM else self._replaced(shape.kind)
            text = shape.pattern.compiled.sub(replace, text)
        return text

    def _replaced(self, kind: str) -> Callable[[re.Match[str]], str]:
        def replaced(match: re.Match[str]) -> str:
            group = "secret" if "secret" in match.re.groupindex else 0
            secret = match[group]
            if (
                "EXAMPLE" in secret
                or len(set(secret)) < 6
                or (match.re is URL.compiled and (is_plain(secret) or is_dull(secret)))
            ):
                return match[0]
            before, after = (
                match[0][: match.start(group) - match.start()],
                match[0][match.end(group) - match.start() :],
            )
            return f"{before}{self.masked(kind, secret)}{after}"

        return replaced

    def _pem(self, match: re.Match[str]) -> str:
        body, end, rest = match[2].partition("-----END")
        least = 4 if end else PEM_LEAST
        masked = PEM_LINE.compiled.sub(
            lambda line: line[0] if len(line[0]) < least else mask("private key", line[0]), body
        )
        self.count += masked != body
        return f"{match[1]}{masked}{end}{rest}"

    def _by_name(self, text: str) -> str:
        parts: list[str] = []
        done = at = 0
        while (match := _NAMED.compiled.search(text, at)) is not None:
            at = match.end()
            name = match["name"]
            if (
                name is None
                or not (found := strength(name))
                or (value := _VALUE.compiled.match(text, at)) is None
            ):
                continue
            if value["bare"]:
                at = value.end()
            if (masked := self._named(match, value, found)) is not None:
                parts += [text[done : value.start()], masked]
                done = at = value.end()
        return "".join([*parts, text[done:]]) if parts else text

    def _named(self, match: re.Match[str], value: re.Match[str], found: Strength) -> str | None:
        """What stands in the place of a named value; None if it may be shown."""
        if value["literal"]:
            opening, inner, closing = _split(value["literal"])
            return f"{opening}{self.masked('value', inner)}{closing}" if looks_secret(inner, found) else None
        # Without quotes it may be code: unless it stands alone on its line, as `env` prints, only what is clearly random.
        bare, end = value["bare"], value["end"]
        alone = (
            match["lead"] is not None and end is not None and (found == "strong" or match["name"].isupper())
        )
        if _CODE.compiled.fullmatch(bare) or not looks_secret(bare, "strong" if alone else "weak"):
            return None
        return f"{self.masked('value', bare)}{end or ''}"

    def literals(self, text: str, found: Strength) -> str:
        """Python's text with a mask in each literal that may be the secret whose name is that strong."""

        def literal(match: re.Match[str]) -> str:
            opening, inner, closing = _split(match[0])
            if not looks_secret(inner, found):
                return match[0]
            return f"{opening}{self.masked('value', inner)}{closing}"

        return _LITERAL.compiled.sub(literal, text)

    def masked(self, kind: str, value: str) -> str:
        """The mask of `value`, counted."""
        self.count += 1
        return mask(kind, value)


def _split(literal: str) -> tuple[str, str, str]:
    """Opening, text and closing of a literal. The closing may have been cut off."""
    start = next(number for number, char in enumerate(literal) if char in "'\"")
    closing = (
        literal[len(literal) - 1 - literal.count("\\", 0, start) :]
        if literal.endswith(literal[start])
        else ""
    )
    return literal[: start + 1], literal[start + 1 : len(literal) - len(closing)], closing
