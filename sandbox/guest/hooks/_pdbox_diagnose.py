# ruff: noqa: INP001 - loaded by its name from here
"""Loads the code that observes a run for `diagnose` and `trace`, as `PDBOX_DIAGNOSE` asks.

The variable names a folder with the job; results are written there. The program must see nothing of this,
as under the debugger: not on `sys.path`, not as a module that replaces its own.
"""

import os
import sys

VARIABLE = "PDBOX_DIAGNOSE"


def install(load):
    """Start to observe this process. `load(name)` imports a module of this folder."""
    if sys.version_info < (3, 8):
        return
    loaded = set(sys.modules)
    load("_pdbox_package").load_package("diagnosis.start").begin(os.environ[VARIABLE], loaded)
