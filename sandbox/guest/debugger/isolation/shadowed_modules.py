"""Modules of the standard library that we imported, and that the program has under the same names."""

from __future__ import annotations

import os
import sys


def unload(loaded, folders=()):
    """Drop the modules imported by us that would hide modules of the program with the same names.

    `loaded` names the modules from before. The program's are those on `sys.path` in front of the library's, and
    those in `folders`.
    """
    theirs = set()
    for folder in [*folders, *_before_the_library()]:
        theirs |= _modules_in(folder)
    for name in list(sys.modules):
        if name not in loaded and name.partition(".")[0] in theirs and not name.startswith("_pdbox"):
            del sys.modules[name]


def _before_the_library():
    library = os.path.dirname(os.path.realpath(os.__file__))
    before = []
    for entry in sys.path:
        if os.path.realpath(entry or os.getcwd()) == library:
            break
        before.append(entry or os.getcwd())
    return before


def _modules_in(folder):
    found = set()
    try:
        names = os.listdir(folder)
    except OSError:
        return found  # not there, or a zip file
    for name in names:
        stem, dot, extension = name.partition(".")
        if (
            extension == "py"
            or extension.endswith("so")
            or os.path.isfile(os.path.join(folder, name, "__init__.py"))
        ):
            found.add(stem)
    return found
