"""Records the values of all sites in this process, from its start to the failure."""

# Replaces methods of the import system.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import ast
import builtins
import collections
import importlib.machinery
import sys

from ..debugger.isolation.pristine import os, time
from . import main_script
from .caught import Caught
from .job import guarded
from .rewriting import CAUGHT, ENTER, RECORD, Rewriter

_CHECKED = 1 << 14
_MAX_UNUSED_S = 1.5
"""Time for modules of which no function runs in the failing test: only their import is recorded."""
_STATM = "/proc/self/statm"
_PAGE = 4096


class Recorder:
    """One flat log of site, frame and value. When it is full, its oldest events are dropped."""

    _asides = True

    def __init__(self, job, used=(), runs_alone=False):
        """`used`: the files of which functions will run, relative to the workspace; empty if that is not known.

        `runs_alone`: they are all, and no other tests run.
        """
        self._job = job
        self.rewriter = Rewriter(self._asides)
        self.limit = int(job.settings["events"])
        self._memory = int(job.settings["memory"])
        self._log = collections.deque(maxlen=3 * self.limit)
        self.cut = ""
        self._spent_s = 0.0
        self._used, self._runs_alone = frozenset(used), runs_alone
        self._spares_tests = bool(job.settings.get("spare_tests"))
        """Code of tests stays as it is: libraries may read the bytecode of what calls them, of a lambda for instance."""

    def install(self):
        """Record all modules of the repository that are imported from now on."""
        self._set(*self._recording_functions())
        self._watch_imports()

    def stop(self):
        """Record nothing more. Rewritten code goes on as before."""
        self._set(_pass, _enter_nothing, catch_nothing)

    def events(self):
        """(log, True if older events were dropped)."""
        log = list(self._log)
        self._log.clear()
        return log, len(log) >= 3 * self.limit

    @staticmethod
    def _set(record, enter, caught):
        setattr(builtins, RECORD, record)
        setattr(builtins, ENTER, enter)
        setattr(builtins, CAUGHT, caught)

    def _recording_functions(self):
        extend, new_frame, check = self._log.extend, self.rewriter.new_frame, self._check

        def record(site, frame, value):
            extend((site, frame, value))
            return value

        def enter(site, *parameters):
            frame = new_frame()
            if not frame % _CHECKED:
                check()
            extend((site, frame, None))
            for value in parameters:
                site += 1
                extend((site, frame, value))
            return frame

        def caught(site, frame):
            try:
                extend((site, frame, Caught(sys.exc_info()[1])))
            except Exception:
                pass  # near the limit of recursion, say: it would be raised in the program's handler

        return record, enter, caught

    @guarded
    def _check(self):
        """Stop when the recorded values need too much memory, or the time is over."""
        with open(_STATM, "rb") as file:
            resident = int(file.read().split()[1]) * _PAGE
        if resident > self._memory:
            self.cut = "it was ended at %d MB of memory" % (resident >> 20)
        elif self._job.is_over():
            self.cut = "its time was over"
        if self.cut:
            self.stop()

    def _watch_imports(self):
        loader = importlib.machinery.SourceFileLoader
        stock = loader.get_code

        def get_code(this, name):
            code = self._compile(this, name)
            return stock(this, name) if code is None else code

        loader.get_code = get_code
        main_script.install(self._compile, self._job.project)
        sys.dont_write_bytecode = True

    @guarded
    def _compile(self, loader, name):
        """Compile a module of the repository, rewritten; None for other modules, or if that is impossible."""
        path = loader.get_filename(name)
        if not self._is_recorded(path):
            return None
        used = self._is_used(path)
        if not used and self._spent_s > _MAX_UNUSED_S:
            return None
        started = time.monotonic()
        data = loader.get_data(path)
        tree = ast.parse(data, path)
        self.rewriter.rewrite(tree, path, used)
        code = compile(tree, path, "exec", dont_inherit=True)
        if not used:
            self._spent_s += time.monotonic() - started
        return code

    def _is_recorded(self, path):
        return self._job.project.has(path) and not (self._spares_tests and self._job.is_test_code(path))

    def _is_used(self, path):
        """True if functions of a file run in the test, or that is not known: fixtures may have run before it."""
        if not self._used or self._job.relative(path) in self._used:
            return True
        has_tests = os.path.basename(path).startswith("test_")
        return self._job.is_test_code(path) and not (self._runs_alone and has_tests)

    def watch_assertions(self, module):
        """Rewrite test modules too, after pytest has rewritten their assertions."""
        stock = module.rewrite_asserts

        def rewrite_asserts(tree, *args, **kwargs):
            stock(tree, *args, **kwargs)
            self._rewrite_tests(tree, args, lambda plain: stock(plain, *args, **kwargs))

        module.rewrite_asserts = rewrite_asserts
        # Its own bytecode has no records.
        for name in ("_read_pyc", "_write_pyc"):
            if hasattr(module, name):
                setattr(module, name, _nothing)

    @guarded
    def _rewrite_tests(self, tree, args, rewrite_asserts):
        path = next((arg for arg in args if isinstance(arg, str) and arg.endswith(".py")), None)
        if path is None or not self._is_recorded(path):
            return
        try:
            self.rewriter.rewrite(tree, path, self._is_used(path))
            compile(tree, path, "exec", dont_inherit=True)
        except Exception:
            with open(path, "rb") as file:
                plain = ast.parse(file.read(), path)
            rewrite_asserts(plain)
            tree.body = plain.body  # pytest compiles it: without records the test runs all the same
            raise


def _pass(site, frame, value):
    return value


def _enter_nothing(site, *parameters):
    return 0


def catch_nothing(site, frame):
    """Take the place of what records exceptions that the program catches."""


def _nothing(*args, **kwargs):
    return None
