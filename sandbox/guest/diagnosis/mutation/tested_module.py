"""The module of the failing test, executed anew: the classes and constants that it defines are made by changed code then."""

from __future__ import annotations

import sys

from ...debugger.isolation.pristine import os
from .. import line_tracers


class TestedModule:
    """A loaded module. What tests of it look up by name is that of its last execution."""

    def __init__(self, module):
        self._module = module

    @classmethod
    def of(cls, test):
        """Find the module of a test by its id: `tests/test_a.py::test_b`, `tests.test_a.Case.test_b`.

        None if it is not loaded, or nobody knows how to execute it: a main program.
        """
        path, _, name = test.partition("::")
        if name:
            end = os.sep + path.replace("/", os.sep)
            files = ((one, getattr(one, "__file__", None)) for one in list(sys.modules.values()))
            found = [one for one, file in files if isinstance(file, str) and file.endswith(end)]
        else:
            parts = test.split(".")
            names = (".".join(parts[:number]) for number in range(len(parts), 0, -1))
            found = [sys.modules[one] for one in names if one in sys.modules][:1]
        loader = getattr(getattr(found[0], "__spec__", None), "loader", None) if len(found) == 1 else None
        return cls(found[0]) if hasattr(loader, "exec_module") else None

    def execute(self):
        """Execute it in its own namespace, as when it was imported."""
        self._module.__spec__.loader.exec_module(self._module)

    def trace(self, project):
        """Execute it; returns {(filename, line)} of the functions of a project that run meanwhile."""
        tracer = line_tracers.choose(project)
        tracer.start()
        try:
            self.execute()
        finally:
            tracer.stop()
        return tracer.take()
