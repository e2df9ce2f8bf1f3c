# ruff: noqa: INP001 - loaded by its name from here
"""This folder on the environment's import path."""

import os

_HERE = os.path.dirname(os.path.abspath(__file__))


def leave():
    """Take it out of the environment: what is started from now on need not come by here."""
    before = os.environ.get("PYTHONPATH")
    if before is None:
        return
    entries = before.split(os.pathsep)
    entries = [entry for entry in entries if not entry or os.path.abspath(entry) != _HERE]
    if entries:
        os.environ["PYTHONPATH"] = os.pathsep.join(entries)
    else:
        os.environ.pop("PYTHONPATH", None)
