"""Modules that are executed anew: the classes and constants that they define are made by changed code then."""

from __future__ import annotations

import sys
from typing import Any

from ...debugger.isolation.pristine import os
from .. import line_tracers


class _Executed:
    """Modules that are executed anew before a test."""

    imported: dict = {}
    """{path: lines outside of tests that run meanwhile}."""
    like: Any = None
    """The unchanged program that does so, too."""

    def execute(self):
        raise NotImplementedError

    def trace(self, project):
        """Execute it; returns {(filename, line)} of the functions of a project that run meanwhile."""
        tracer = line_tracers.choose(project)
        tracer.start()
        try:
            self.execute()
        finally:
            tracer.stop()
        return tracer.take()


class TestedModule(_Executed):
    """The module of the failing test. What tests of it look up by name is that of its last execution."""

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


class OwnModules(_Executed):
    """The loaded modules of the repository but for tests, imported anew by that of the failing test."""

    def __init__(self, names, tested):
        self._names, self._tested = names, tested

    @classmethod
    def of(cls, tested, is_own):
        """Find those whose files `is_own(filename)` accepts; None if there are none."""
        files = ((name, getattr(one, "__file__", None)) for name, one in list(sys.modules.items()))
        names = [
            name
            for name, file in files
            if name != "__main__" and isinstance(file, str) and file.endswith(".py") and is_own(file)
        ]
        return cls(names, tested) if names else None

    def execute(self, filename=None, code=None):
        """Forget them, and execute the module of the test, which imports them; that of one file with changed code."""
        for name in self._names:
            sys.modules.pop(name, None)
        if code is not None:
            sys.meta_path.insert(0, _Changed(filename, code))
        self._tested.execute()


class _Changed:
    """Finds modules as others do, and gives that of one file changed code."""

    def __init__(self, filename, code):
        self._filename, self._code = filename, code

    def find_spec(self, name, path=None, target=None):
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None) if finder is not self else None
            spec = find(name, path, target) if find is not None else None
            if spec is not None:
                if spec.origin == self._filename:
                    spec.loader = self
                return spec
        return None

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        exec(self._code, module.__dict__)
