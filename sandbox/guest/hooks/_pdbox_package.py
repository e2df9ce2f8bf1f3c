# ruff: noqa: INP001 - loaded by its name from here
"""Imports a package of the guest into a process of the program."""

import os
import sys


def load_package(name):
    """Import `_pdbox.<name>` and return it.

    Modules of the program with names of the library are set aside meanwhile.
    """
    guest = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    package = type(sys)("_pdbox")
    package.__path__ = [guest]
    sys.modules["_pdbox"] = package
    from _pdbox import paths  # pyright: ignore[reportMissingImports] # just made

    path, aside = sys.path[:], {}
    for loaded, module in list(sys.modules.items()):
        if _hides(loaded, module, paths):
            aside[loaded] = sys.modules.pop(loaded)
    # Only the standard library, so that a `json.py` on PYTHONPATH is not taken for it.
    sys.path[:] = paths.library_entries(path)
    try:
        __import__("_pdbox." + name)
    finally:
        sys.path[:] = path
        sys.modules.update(aside)
    return sys.modules["_pdbox." + name]


def _hides(name, module, paths):
    """True for a module of the program with the name of one of the library."""
    top = os.path.join(paths.LIBRARY, name.partition(".")[0])
    path = getattr(module, "__file__", None)
    if (
        not isinstance(path, str)
        or name == "__main__"
        or not (os.path.isdir(top) or os.path.isfile(top + ".py"))
    ):
        return False
    return not paths.is_in_library(os.path.realpath(path))
