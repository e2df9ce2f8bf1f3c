"""Runs the failing test again and again, each time in a child process with another change of the code.

The process stops before the failing test. Each child is a copy of it in which one function has changed code, goes on
with the test, and if that passes, with the tests after it.
"""

from __future__ import annotations

import sys
from functools import partial

from ...debugger.isolation.pristine import os, threading
from .. import failure
from ..job import guarded
from ..sources import Sources
from . import state_uses
from .attempts import Attempts
from .child import fail_alike
from .definitions import Definitions
from .functions import Loaded, import_modules, without_annotations
from .guard import open_files
from .plan import Plan
from .tested_module import OwnModules, TestedModule
from .together import try_together
from .trial import Forked, Trial

_MAX_TOLD, _MAX_USES = 20, 40
_MAX_BESIDE = 3
"""Changes, the best ones, of which is told what else they name."""
_MAX_NAMED, _MAX_NAME = 2, 300
"""Other tests that a change breaks and that are named; characters of a name."""
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

    def raised(self, exc):
        """End such a child, before a report of its failure is made; it tells how far the test came."""
        try:
            self._tell_way(exc)
        finally:
            os._exit(0)

    def _tell_way(self, exc):
        if self._report is not None:
            self._report.tell_way(failure.way_in_tests(exc, self.job))

    def set_up_shared(self, begins):
        """Run it like the rest."""

    def end_test(self, name, outcome, exc):
        """True when this process has nothing more to run."""
        if self._report is None:
            return self._has_begun
        if exc is None:
            self._report.tell(name, outcome, None)
        else:
            self._tell_way(exc)
            self._report.tell(name, outcome, failure.describe(exc, self.job))
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
        executed = [one for one in (module, own) if one is not None]
        for one in executed:
            one.like = trial.start(None, _OTHERS_S, partial(self._tell_imported, one, trial))
        trial.wait()
        for one in executed:
            one.imported = {} if self._difference(one.like) else one.like.imported
        trial.expect(base, *(one.like for one in executed))
        imported, at_start = (one.imported if one else {} for one in (module, own))
        paths = {path for path, _, _ in lines} | imported.keys() | at_start.keys()
        loaded = Loaded(self.job.relative, paths)
        definitions = self._read_definitions(loaded)
        result.update(others=len(trial.others), failing=len(trial.failing))
        plan = Plan(self.job, self._spectrum, loaded, definitions, lines, imported, at_start)
        changes = plan.changes()
        attempts = Attempts(self.job, trial, loaded, definitions, plan, self._spectrum, module, own)
        self._kept = trial, plan, changes, attempts, lines
        trial.serve(plan.groups(_MAX_SERVERS), base.outcomes[0][2])
        for function, mutant in changes:
            if trial.is_over():
                result["cut"] = "the time for it was over"
                break
            attempts.start(function, mutant)
        trial.wait_for_last()
        result.update(tried=attempts.number, **self._told(attempts.tried, [], trial, definitions))
        self.job.write(result)
        alone = attempts.number
        further = try_together(attempts, trial, plan)
        trial.end()
        if attempts.number > alone:
            result.update(tried=attempts.number, **self._told(attempts.tried, further, trial, definitions))
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
        return Definitions(
            {filename: without_annotations(tree) for filename, tree in trees.items() if tree is not None}
        )

    def _told(self, tried, further, trial, definitions):
        """The changes with which the test passes, or comes further: those first with which the others pass, also such as fail without."""
        rank = partial(_rank, len(trial.failing))
        passing = sorted((one for one in tried if one[0].has_passed), key=rank)
        told = [self._describe(one, trial, definitions) for one in passing[:_MAX_TOLD]]
        more = [self._describe(one, trial, definitions) for one in sorted(further, key=rank)]
        state = self._state(told, passing, definitions)
        beside = self._beside(passing, state["name"] if state else "", definitions)
        return {"passing": len(passing), "changes": told, "further": more, "state": state, "beside": beside}

    def _describe(self, tried, trial, definitions):
        """Describe a change, and what the other tests do with it."""
        child, function, mutant = tried
        broken, ran = child.of_others()
        return {
            **self._place(function.filename, mutant.line),
            "function": function.name,
            "change": mutant.describe(self._sources.lines(function.filename)),
            "broken": broken,
            "breaks": [name[:_MAX_NAME] for name in child.breaks()[:_MAX_NAMED]],
            "ran": ran,
            "mended": child.mended(),
            "fails_at": "" if child.has_passed else trial.came_to(child),
            "only_here": child.is_only_here,
            "hollow": mutant.is_hollow,
            "forced": mutant.is_forced,
            "computed_by": self._place_of(mutant.computed_by, definitions),
        }

    def _place_of(self, definition, definitions):
        """The place of a function's `def`; None for None."""
        if definition is None:
            return None
        return self._place(definitions.filename_of(definition), definition.lineno)

    def _state(self, told, passing, definitions):
        """The state that the changes are about, with its uses; None if there is none."""
        if not told:
            return None
        mutants = [mutant for _, _, mutant in passing[:_MAX_TOLD]]
        name, filename, uses = state_uses.find(mutants, passing[0][1].filename, definitions)
        uses = [(filename, *use) for use in uses]
        uses += state_uses.find_elsewhere(f".{name}", filename, definitions, self._of_package(definitions))
        return {"name": name[:_MAX_NAME], "uses": self._uses(uses)} if name else None

    def _beside(self, passing, known, definitions):
        """Names and uses of all else that the best changes of one file are about."""
        best = [(function.filename, mutant) for _, function, mutant in passing[:_MAX_BESIDE]]
        filenames = self._of_package(definitions)
        if not best or best[0][0] not in filenames:
            return []
        mutants = [mutant for filename, mutant in best if filename == best[0][0]]
        found = state_uses.find_beside(mutants, best[0][0], known.split(", "), definitions, filenames)
        return [{"name": name[:_MAX_NAME], "uses": self._uses(uses)} for name, uses in found]

    def _of_package(self, definitions):
        """Names of the files that are no tests."""
        return [filename for filename in definitions.trees if not self.job.is_test_code(filename)]

    def _uses(self, uses):
        return [dict(self._place(path, line), is_written=written) for path, line, written in uses[:_MAX_USES]]

    def _place(self, filename, line):
        return {
            "path": self.job.relative(filename),
            "line": line,
            "function": self._sources.function_at(filename, line)[0],
            "text": self._sources.line(filename, line),
        }


def _rank(failing, tried):
    """Key by which changes are told: what tests disprove, then what is rarely the cause, come later.

    The share of the other tests that a change breaks counts against that of the `failing` ones that it mends.
    """
    child, _, mutant = tried
    broken, ran = child.of_others()
    mended = child.mended()
    harm = broken / max(1, ran) - (0 if mutant.is_hollow else mended / max(1, failing))
    doubts = mutant.is_hollow, broken, -mended, mutant.is_blunt, child.is_only_here
    return child.is_of_tests, harm, *doubts, -ran, mutant.likelihood
