"""Regular expressions that cost nothing before they are needed."""

from __future__ import annotations

import re
from functools import cached_property


class Pattern:
    """A regular expression, compiled at its first use: forty of them are a noticeable part of the server's start."""

    def __init__(self, text: str, flags: int = 0) -> None:
        self._text = text
        self._flags = flags

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        return re.compile(self._text, self._flags)
