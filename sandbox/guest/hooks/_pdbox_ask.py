# ruff: noqa: INP001 - started by its path: `python -IS _pdbox_ask.py EXECUTABLE WORDS...`
"""Stands in for a Python that would not ask whether it is to be debugged: asks, and becomes it, or the debugger."""

import os
import sys


def _ask():
    here = os.path.dirname(os.path.abspath(__file__))
    executable, words = sys.argv[1], sys.argv[2:]
    become = os.execv  # as it is; what is to be led to us would come by here again
    sys.path.insert(0, here)
    from _pdbox_path import leave as leave_path

    try:
        import _pdbox_debug

        _pdbox_debug.ask(__import__, leave_path, words, executable)
        _pdbox_debug.forget(leave_path)
    except Exception:  # nobody answers: it runs as it would have
        os.environ.pop("PDBOX_DEBUG", None)
        leave_path()
    become(executable, words)


_ask()
