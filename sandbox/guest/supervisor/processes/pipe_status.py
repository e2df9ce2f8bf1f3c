"""Exit codes of all parts of a command's last pipe: the shell itself ends with that of the last part alone."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import tempfile

from ..errors import GuestError
from ..files.workspace import open_regular

_PIPE = re.compile(r"(?<!\|)\|(?!\|)")
_START = "BASH_ENV"
"""Variable with a file that bash reads before a command (bash(1), INVOCATION)."""
_CODES = re.compile(rb"(?:\d{1,3} ){2,32}")
_MAX_SIZE = 200


class PipeStatus:
    """A file to which bash writes the codes when a command ends. There is none without a pipe, or without room for it."""

    def __init__(self, command, env, home: str) -> None:
        self.environment: dict = {}
        """Variables for the command."""
        self._folder = ""
        if _START in os.environ or _START in (env or {}) or not _PIPE.search(command or ""):
            return
        try:
            self._folder = tempfile.mkdtemp(prefix="pipe-", dir=home)
            start = os.path.join(self._folder, "start")
            told = 'printf "%%s " "${PIPESTATUS[@]}" 2>/dev/null >|%s' % shlex.quote(self._codes)
            with open(start, "w", encoding="utf-8") as file:
                file.write("unset %s\ntrap %s EXIT\n" % (_START, shlex.quote(told)))
        except OSError:
            return
        self.environment[_START] = start

    @property
    def _codes(self) -> str:
        return os.path.join(self._folder, "codes")

    def read(self) -> list:
        """The codes, in order; none if there was no pipe, or if the command kept bash from telling."""
        if not self.environment:
            return []
        try:
            with os.fdopen(open_regular(self._codes, "codes"), "rb") as file:
                data = file.read(_MAX_SIZE)
        except (GuestError, OSError):
            return []
        return [int(code) for code in data.split()] if _CODES.fullmatch(data) else []

    def close(self) -> None:
        """Remove the file."""
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
