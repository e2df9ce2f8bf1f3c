# ruff: noqa: INP001 - loaded by its name from here
"""Imports a package of the guest into a process of the program."""

import os
import sys


def load_package(name):
    """Import `_pdbox.<name>` and return it.

    Modules of the program with names of the library are set aside meanwhile.
    """
    guest = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    library = os.path.dirname(os.path.realpath(os.__file__))
    path, aside = sys.path[:], {}
    for loaded, module in list(sys.modules.items()):
        if _hides(loaded, module, library):
            aside[loaded] = sys.modules.pop(loaded)
    # Only the standard library, so that a `json.py` on PYTHONPATH is not taken for it.
    sys.path[:] = [entry for entry in path if entry and _is_within(os.path.realpath(entry), library)] or path
    try:
        package = type(sys)("_pdbox")
        package.__path__ = [guest]
        sys.modules["_pdbox"] = package
        __import__("_pdbox." + name)
    finally:
        sys.path[:] = path
        sys.modules.update(aside)
    return sys.modules["_pdbox." + name]


def _hides(name, module, library):
    """True for a module of the program with the name of one of the library."""
    top = os.path.join(library, name.partition(".")[0])
    path = getattr(module, "__file__", None)
    if (
        not isinstance(path, str)
        or name == "__main__"
        or not (os.path.isdir(top) or os.path.isfile(top + ".py"))
    ):
        return False
    return not _is_within(os.path.realpath(path), library)


def _is_within(path, library):
    rest = path[len(library) :]
    return (path == library or path.startswith(library + os.sep)) and "-packages" not in rest
