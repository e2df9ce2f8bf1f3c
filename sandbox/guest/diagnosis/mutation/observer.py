"""Runs the failing test again and again, each time in a child process with another change of the code.

The process stops before the failing test. Each child is a copy of it in which one function has changed code, goes on
with the test, and if that passes, with the tests after it.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from functools import partial

from ...debugger.isolation.pristine import os, threading
from .. import failure
from ..job import guarded
from ..sources import Sources
from . import state_uses
from .child import fail_alike
from .definitions import Definitions
from .functions import Loaded, import_modules
from .guard import open_files
from .plan import Plan, lines_in
from .tested_module import OwnModules, TestedModule
from .trial import Forked, Trial

_MAX_TOLD = 20
_MAX_SERVERS = 128
"""Functions with a fork server, each of which takes some 2 MB."""
_OTHERS_S = 2.0
"""Time for the other tests of the unchanged program."""


class MutationObserver:
    """Tries changes when the failing test is about to begin."""

    records_values = False
    compares_lines = False
    hooks: dict = {}

    def __init__(self, job):
        self.job = job
        self._spectrum = job.read("spectrum.json")
        self._sources = Sources()
        self.soon = frozenset(self._spectrum.get("soon", ()))
        """Tests that run right after the failing one."""
        self._run = {}
        """Path -> the lines that the failing test runs, in order."""
        self._has_begun = False
        self._trial = None
        self._kept: tuple = ()
        """All that changes are made of. A child would take longer to free it than for most tests, as it shares its memory."""
        self._folder = os.path.realpath(os.path.join(job.folder, "files"))
        os.mkdir(self._folder)
        os.environ["TMPDIR"] = self._folder

    def start(self):
        """Begin with the first test."""

    def begin_test(self, name):
        """Try all changes before the failing test. Returns in each child, and once in this process."""
        if name == self.job.test and not self._has_begun:
            self._has_begun = True
            try:
                self._try_changes()
            except Forked:
                pass

    @property
    def _report(self):
        """In a child process: what it reports to."""
        return self._trial and self._trial.report

    @property
    def ends_with_exception(self):
        """True in a child with changed code that runs the failing test: it has not passed then."""
        return self._report is not None and self._report.is_waiting

    def raised(self):
        """End such a child, before a report of its failure is made."""
        os._exit(0)

    def set_up_shared(self, begins):
        """Run it like the rest."""

    def end_test(self, name, outcome, exc):
        """True when this process has nothing more to run."""
        if self._report is None:
            return self._has_begun
        self._report.tell(name, outcome, failure.describe(exc, self.job) if exc is not None else None)
        return False

    def failed(self, exc):
        """A program without tests is not run again."""

    def compared(self, op, left, right):
        """Ignore the operands of a failing comparison."""

    def finish(self):
        """End a child that has run all tests."""
        if self._report is not None:
            os._exit(0)

    @guarded
    def _try_changes(self):
        problem, lines = self._problem(), []
        if not problem:
            lines = list(self._lines())
            import_modules({path for path, _, _ in lines}, self.job.root, self.job.relative)
            problem = self._problem()  # modules may start threads
        if problem:
            self.job.write({"problem": problem})
            return
        trial = self._trial = Trial(self.job, self._folder)
        base = trial.start(None, _OTHERS_S)
        trial.wait()
        problem = self._difference(base)
        if problem:
            self.job.write({"problem": problem})
            return
        result: dict = {"tried": 0, "others": 0, "failing": 0}
        self.job.write(result)
        module = TestedModule.of(self.job.test)
        own = OwnModules.of(module, self._is_own) if module else None
        anew, from_start = (
            trial.start(None, _OTHERS_S, partial(self._tell_imported, one, trial)) if one else base
            for one in (module, own)
        )
        trial.wait()
        imported, at_start = ({} if self._difference(one) else one.imported for one in (anew, from_start))
        trial.expect(base, anew, from_start)
        paths = {path for path, _, _ in lines} | imported.keys() | at_start.keys()
        loaded = Loaded(self.job.relative, paths)
        definitions = self._read_definitions(loaded)
        result.update(others=len(trial.others), failing=len(trial.failing))
        tried, only_here = [], self._only_here()
        for path, line in sorted(one[:2] for one in self._spectrum["lines"]):
            self._run.setdefault(path, []).append(line)
        plan = Plan(self.job, self._spectrum, loaded, definitions, lines, imported, at_start)
        changes = plan.changes()
        self._kept = trial, plan, changes, tried, lines
        trial.serve(plan.groups(_MAX_SERVERS), base.outcomes[0][2])
        for function, mutant in changes:
            if trial.is_over():
                result["cut"] = "the time for it was over"
                break
            path, code = self.job.relative(function.filename), None
            with mutant:
                changed = guarded(loaded.compile)(function)
                if plan.is_of_start(function):
                    tree = definitions.trees[function.filename]
                    code = guarded(loaded.compile_file)(function.filename, tree)
            if not changed:
                continue
            if own is not None and code is not None:
                prepare = partial(own.execute, function.filename, code)
                child = trial.start(changed, None, prepare, from_start)
            elif module is not None and lines_in(function, imported.get(path)):
                child = trial.start(changed, None, module.execute, anew)
            else:
                child = trial.start(changed)
            child.is_only_here = self._is_among(only_here, path, mutant.line)
            child.is_of_tests, child.is_hollow = loaded.is_of_tests(function), mutant.is_hollow
            tried.append((child, function, mutant))
        trial.end()
        result.update(tried=len(tried), **self._told(tried, trial, definitions))
        self.job.write(result)

    def _problem(self):
        """Why changed code can't be tried; "" if it can."""
        if not self._spectrum.get("plain") or not self._spectrum.get("lines"):
            return "no lines of the failing test are known"
        if threading.active_count() > 1:
            return "other threads run when the test begins"
        if not sys.platform.startswith("linux"):
            return "it needs Linux"
        if any(reads for _, reads in open_files(self.job.root)):
            return "a file of the repository is open for reading and writing when the test begins"
        return ""

    def _difference(self, base):
        """Why the test is not the same where changes are tried; "" if it is."""
        plain = self._spectrum["plain"]
        first = base.outcomes[0] if base.outcomes else None
        if first is None:
            return "the test did not end"
        _, outcome, failed = first
        if outcome == "passed" or failed is None:
            return "the test passes there"
        if not fail_alike(plain, failed):
            return "the test fails otherwise there (%s: %s)" % (failed["type"], failed["message"][:100])
        return ""

    def _lines(self):
        """(path, line, score) of the lines outside of tests that the failing test runs."""
        for path, line, score, _ in self._spectrum["lines"]:
            if path.endswith(".py") and not self.job.is_test_code(os.path.join(self.job.root, path)):
                yield path, line, score

    def _is_own(self, filename):
        """True for a file of the repository outside of tests."""
        return self.job.project.has(filename) and not self.job.is_test_code(filename)

    def _tell_imported(self, modules, trial):
        """In a child: execute modules anew, and tell the lines outside of tests that run meanwhile."""
        imported = {}
        for filename, line in modules.trace(self.job.project):
            if not self.job.is_test_code(filename):
                imported.setdefault(self.job.relative(filename), []).append(line)
        trial.report.tell_imported(imported)

    def _read_definitions(self, loaded):
        trees = {filename: self._sources.tree(filename) for filename in loaded.filenames.values()}
        return Definitions({filename: tree for filename, tree in trees.items() if tree is not None})

    def _told(self, tried, trial, definitions):
        """The changes with which the test passes: those first with which the others do, too, also such as fail without it."""
        passing = [
            (*child.of_others(), child.mended(), function, mutant, child)
            for child, function, mutant in tried
            if child.has_passed
        ]
        passing.sort(key=_rank)
        told = []
        for broken, ran, mended, function, mutant, child in passing[:_MAX_TOLD]:
            lines = self._sources.lines(function.filename)
            told.append(
                {
                    **self._place(function.filename, mutant.line),
                    "function": function.name,
                    "change": mutant.describe(lines),
                    "broken": broken,
                    "ran": ran,
                    "mended": mended,
                    "only_here": child.is_only_here,
                    "hollow": mutant.is_hollow,
                    "computed_by": self._place_of(mutant.computed_by, definitions),
                }
            )
        return {"passing": len(passing), "changes": told, "state": self._state(told, passing, definitions)}

    def _place_of(self, definition, definitions):
        """The place of a function's `def`; None for None."""
        if definition is None:
            return None
        return self._place(definitions.filename_of(definition), definition.lineno)

    def _only_here(self):
        """(path, line) of the lines that no passing test runs, and nothing before the tests."""
        if self._spectrum["cut"]:
            return set()  # not all tests have run
        found = {(path, line) for path, line, _, runs in self._spectrum["lines"] if not runs}
        return found.difference(map(tuple, self._spectrum["outside"]))

    def _is_among(self, only_here, path, line):
        """True for a change at one of these lines; of one at a line that begins nothing that runs, the next that does counts."""
        run = self._run.get(path, ())
        index = bisect_left(run, line)
        return (path, run[index] if index < len(run) else line) in only_here

    def _state(self, told, passing, definitions):
        """The state that the changes are about, with its uses; None if there is none."""
        if not told:
            return None
        mutants = [one[4] for one in passing[:_MAX_TOLD]]
        name, filename, uses = state_uses.find(mutants, passing[0][3].filename, definitions)
        places = [dict(self._place(filename, line), is_written=is_written) for line, is_written in uses]
        return {"name": name, "uses": places} if name else None

    def _place(self, filename, line):
        return {
            "path": self.job.relative(filename),
            "line": line,
            "function": self._sources.function_at(filename, line)[0],
            "text": self._sources.line(filename, line),
        }


def _rank(passing):
    """Key by which changes are told: what a test disproves, then what is rarely the cause, come later."""
    broken, ran, mended, _, mutant, child = passing
    doubts = mutant.is_blunt, child.is_only_here
    return child.is_of_tests, broken, mutant.is_hollow, -mended, *doubts, -ran, mutant.likelihood
