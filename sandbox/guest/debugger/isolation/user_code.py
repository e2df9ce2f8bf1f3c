"""Tells the repository's own code from other code."""

from __future__ import annotations

import sys

from ...paths import FOREIGN_FOLDERS
from .pristine import os


class Project:
    """The files under the working directory, without installed packages."""

    def __init__(self, workdir):
        self._root = workdir + os.sep
        self._known = {}
        self._prefixes = tuple(
            {os.path.realpath(prefix) + os.sep for prefix in (sys.prefix, sys.base_prefix)}
            - {self._root, os.sep}
        )

    def contains(self, frame):
        """True if this frame runs code of the repository."""
        filename = frame.f_code.co_filename
        known = self._known.get(filename)
        if known is None:
            known = self._known[filename] = self.has(filename)
        return known

    def has(self, filename):
        """True for a file of the repository."""
        if filename[:1] == "<" or not filename:
            return False
        real = os.path.realpath(filename)
        if not real.startswith(self._root) or (real.startswith(self._prefixes) and not self._inside_prefix()):
            return False
        return not any(part in FOREIGN_FOLDERS for part in real[len(self._root) :].split(os.sep)[:-1])

    def _inside_prefix(self):
        # A repository that lies inside the interpreter's own folder (`/usr/src/app` under a prefix of
        # `/usr`).
        return any(self._root.startswith(prefix) for prefix in self._prefixes)
