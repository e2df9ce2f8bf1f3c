"""Lets tests fail without texts that tell how two values differ: they take long, and of changed code nobody reads them."""

from __future__ import annotations

import sys


class _Silent:
    """Stands for a module that makes texts: each of its functions gives an empty one."""

    def __getattr__(self, name):
        return _give_no_text


def _give_no_text(*args, **kwargs):
    return ""


_SILENT = _Silent()
_MAKING = (
    ("unittest.case", "difflib", _SILENT),
    ("unittest.case", "pprint", _SILENT),
    ("_pytest.assertion.util", "assertrepr_compare", _give_no_text),
)
"""(module, name of what makes such texts, what stands for it)."""


class QuickFailures:
    """Leaves out these texts from `begin` to `end`."""

    def __init__(self):
        self._replaced = []

    def begin(self):
        for name, attribute, silent in _MAKING:
            module = sys.modules.get(name)
            if hasattr(module, attribute):
                self._replaced.append((module, attribute, getattr(module, attribute)))
                setattr(module, attribute, silent)

    def end(self):
        """Make them again: other tests may be about them."""
        for module, attribute, before in self._replaced:
            setattr(module, attribute, before)
        self._replaced = []
