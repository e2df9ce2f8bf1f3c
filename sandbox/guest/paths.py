"""Folders of the guest's own code, and of code that is foreign to a repository, for supervisor and debugger."""

import os

GUEST = os.path.dirname(os.path.realpath(__file__))
DEBUGGER = os.path.join(GUEST, "debugger")
LAUNCHER = os.path.join(DEBUGGER, "launch.py")
HOOKS = os.path.join(GUEST, "hooks")
LIBRARY = os.path.dirname(os.path.realpath(os.__file__))
"""Folder of the standard library."""
OURS = GUEST + os.sep
"""Prefix of the path of each file of the guest."""
FOREIGN_FOLDERS = frozenset(
    ("site-packages", "dist-packages", ".venv", "venv", ".tox", ".nox", "node_modules", ".eggs")
)
"""Folders below a repository whose files are not its own code."""


def is_in_library(path):
    """True for the real path of a part of the standard library, and not of what is installed below it."""
    rest = path[len(LIBRARY) :]
    return (path == LIBRARY or path.startswith(LIBRARY + os.sep)) and "-packages" not in rest


def library_entries(path):
    """Return the entries of `sys.path` that lead to the standard library; all of them if none does."""
    return [entry for entry in path if entry and is_in_library(os.path.realpath(entry))] or path
