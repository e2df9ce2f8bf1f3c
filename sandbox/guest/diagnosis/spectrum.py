"""Which lines ran in the failing test and in few of the passing ones.

Lines are weighed by Ochiai: failing runs of the line / sqrt(failing tests * all runs of the line).
"""

from __future__ import annotations

import math

from ..debugger.isolation.pristine import time
from . import failure
from .job import guarded
from .line_tracers import choose
from .sources import Sources

_MAX_FAILING = 100
_MAX_OTHERS = 3
_MAX_SUSPECTS = 60
_MAX_LINES = 5000
_MAX_FILES = 2000
_MAX_KEPT = 200
"""Passing tests whose lines are kept until the failing one has run."""
_MAX_SOON = 20
"""Other failing tests that run right after the one in question where changes of the code are tried."""
_ENOUGH = 20
"""Passing tests; more are not waited for when the time for them is over."""
_SIBLING = 0.1
"""Preference for the same test with other parameters as the nearest one."""
_PASSED = ("except", "finally")
"""Beginnings of lines that run because an exception passes them."""


class SpectrumObserver:
    """Collects the executed lines of each test."""

    records_values = False
    compares_lines = True
    soon: frozenset = frozenset()
    ends_with_exception = False
    hooks: dict = {}

    def __init__(self, job):
        self.job = job
        self._passed = {}
        """Number of passing tests that ran a line."""
        self._passing = 0
        self._failing = []
        """(test, failure, lines) of failing tests."""
        self._passing_lines = []
        """(test, its lines) of passing tests."""
        self._nearest = (-1.0, "")
        """(likeness, passing test) of the one that ran most of the same lines."""
        self._files = set()
        self._tracer = choose(job.project)
        self._cut, self._enough_at = "", math.inf
        self._shared_depth, self._before_shared = 0, set()
        self._has_begun, self._outside = False, set()
        """Lines that run before the first test, and in what several tests share."""

    @guarded
    def start(self):
        """Begin with the first test."""
        self._tracer.start()

    @guarded
    def begin_test(self, name):
        self._shared_depth = 0
        if not self._has_begun:
            self._outside |= self._tracer.take()
            self._has_begun = True
        self._tracer.restart()

    @guarded
    def set_up_shared(self, begins):
        """Leave out what the first test of several runs for all of them: it tells nothing about this one."""
        if begins and not self._shared_depth:
            self._before_shared = self._tracer.take()
            self._tracer.restart()
        self._shared_depth += 1 if begins else -1
        if not self._shared_depth:
            self._outside |= self._tracer.take()
            self._tracer.restart()
            self._tracer.take().update(self._before_shared)

    @guarded
    def end_test(self, name, outcome, exc):
        """Count the lines of a test. Returns True if the run should end."""
        lines = self._tracer.take()
        if outcome == "passed" and any(name == failing for failing, _, _ in self._failing):
            return False  # it is the failing one, once more
        if outcome == "passed":
            self._passing += 1
            for line in lines:
                self._passed[line] = self._passed.get(line, 0) + 1
        elif exc is not None and len(self._failing) < _MAX_FAILING:
            self._failing.append((name, failure.describe(exc, self.job), lines))
            if name == self.job.test:
                self._enough_at = time.monotonic() + self.job.settings.get("enough_s", math.inf)
        if self.job.settings.get("compared"):
            self._find_nearest(name, outcome, lines)
        self._cut = self._cut or self._why_cut()
        return bool(self._cut)

    def _why_cut(self):
        """Why no more tests are to run; "" if they are."""
        count = self._passing + len(self._failing)
        if self.job.is_over():
            return "the time for it was over after %d tests" % count
        is_enough = self._passing >= _ENOUGH and time.monotonic() > self._enough_at
        return "%d tests were enough" % count if is_enough else ""

    def _find_nearest(self, name, outcome, lines):
        """Take the nearest of the passing tests; not before the failing test has run."""
        self._files.update({file for file, _ in lines})
        if outcome == "passed" and len(self._passing_lines) < _MAX_KEPT:
            self._passing_lines.append((name, lines))
        mine = next((lines for test, _, lines in self._failing if test == self.job.test), None)
        if mine is None:
            return
        mine = self._of_code(mine)
        for other, ran in self._passing_lines:
            ran = self._of_code(ran)
            likeness = len(mine & ran) / (len(mine | ran) or 1)
            likeness += _SIBLING * (other.partition("[")[0] == self.job.test.partition("[")[0])
            self._nearest = max(self._nearest, (likeness, other), key=lambda one: one[0])
        self._passing_lines = []

    def _of_code(self, lines):
        return {line for line in lines if not self.job.is_test_code(line[0])}

    @guarded
    def failed(self, exc):
        """A program without tests has failed."""
        self.job.write({"plain": failure.describe(exc, self.job)})

    @guarded
    def finish(self):
        self._tracer.stop()
        self.job.write(self._result())

    def compared(self, op, left, right):
        """Ignore the operands of a failing comparison."""

    def _result(self):
        plain, same = self._same_cause()
        alike = {name for name, _ in same}
        result = {
            "passed": self._passing,
            "failed": len(alike),
            "others": len({name for name, _, _ in self._failing} - alike),
            "failing": [{"test": name, **fail} for name, fail, _ in self._others()][:_MAX_OTHERS],
            "cut": self._cut,
            "plain": plain,
            "nearest": self._nearest[1],
            "soon": [name for name, _, _ in self._failing if name != self.job.test][:_MAX_SOON],
            "files": sorted(map(self.job.relative, self._files))[:_MAX_FILES],
        }
        if same:
            result.update(self._rank([lines for _, lines in same]))
        return result

    def _others(self):
        """Failing tests that are not the one in question with other parameters."""
        stem = (self.job.test or "").partition("[")[0]
        return [one for one in self._failing if one[0].partition("[")[0] != stem]

    def _same_cause(self):
        """(failure of the test, [(name, lines)] of all runs that fail alike: its own, and those with other parameters)."""
        plain = next((fail for name, fail, _ in self._failing if name == self.job.test), None)
        if plain is None:
            return None, []
        stem = self.job.test.partition("[")[0]
        return plain, [
            (name, lines)
            for name, fail, lines in self._failing
            if name.partition("[")[0] == stem
            and all(fail[key] == plain[key] for key in ("type", "path", "line"))
        ]

    def _rank(self, same):
        count, failing = len(same), {}
        for lines in same:
            for line in lines:
                failing[line] = failing.get(line, 0) + 1
        scored = []
        for line, runs in failing.items():
            score = runs / math.sqrt(count * (runs + self._passed.get(line, 0)))
            scored.append((score, line))
        scored.sort(key=lambda entry: (-entry[0], entry[1]))
        return {
            "suspects": self._suspects(scored),
            "lines": [
                [self.job.relative(file), line, round(score, 4), self._passed.get((file, line), 0)]
                for score, (file, line) in scored[:_MAX_LINES]
            ],
            "outside": [[self.job.relative(file), line] for file, line in sorted(self._outside)[:_MAX_LINES]],
            "all_lines": max(len(scored), len(self._outside)) <= _MAX_LINES,
        }

    def _suspects(self, scored):
        """Functions by their best line that at most half of the passing tests run, without those of the tests."""
        sources, best = Sources(), {}
        for score, (file, line) in scored:
            if self.job.is_test_code(file) or not file.endswith(".py"):  # a template names its own file
                continue
            passing = self._passed.get((file, line), 0)
            if 2 * passing > self._passing or sources.line(file, line).startswith(_PASSED):
                continue
            name, first = sources.function_at(file, line)
            known = best.get((file, first))
            if known is None:
                if len(best) >= _MAX_SUSPECTS:
                    break
                best[file, first] = {
                    "path": self.job.relative(file),
                    "line": line,
                    "function": name,
                    "text": sources.line(file, line),
                    "score": round(score, 4),
                    "passing": passing,
                    "count": 1,
                    "more": [],
                }
            elif known["score"] == round(score, 4):
                known["count"] += 1
                if len(known["more"]) < 5:
                    known["more"].append(line)
        return sorted(best.values(), key=lambda one: (-one["score"], -one["count"]))
