"""Places in a program and pieces of its source as the text of a diagnosis has them."""

from __future__ import annotations

from sandbox.session.diagnosis import Place

_MAX_TEXT = 80


def format_place(one: Place) -> str:
    """Format path, line and function; no test, which the answer names anyway."""
    names = one.function.split(".")
    call = "" if names[0] == "<module>" or names[-1].startswith("test") else f" {one.function}()"
    return f"{one.path}:{one.line}{call}"


def shorten(text: str, longest: int = _MAX_TEXT) -> str:
    """Put source or a message on one line of at most `longest` characters, without its indentation."""
    return shorten_value(" ".join(text.split()), longest)


def shorten_value(text: str, longest: int = _MAX_TEXT) -> str:
    """Put the text of a value on one line of at most `longest` characters, with all of its spaces: they may be what is wrong."""
    line = " ".join(text.splitlines())
    return line if len(line) <= longest else line[: longest - 1] + "…"
