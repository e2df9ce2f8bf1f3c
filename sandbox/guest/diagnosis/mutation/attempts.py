"""Attempts to mend the failing test: a child process for each change."""

from __future__ import annotations

from bisect import bisect_left
from functools import partial

from ..job import guarded
from .plan import lines_in


class Attempts:
    """Starts children, and keeps what was tried."""

    def __init__(self, job, trial, loaded, definitions, plan, spectrum, tested, own):
        """`tested`, `own`: modules that are executed anew where they run changed code; None if that can't be."""
        self._job, self._trial, self._loaded, self._plan = job, trial, loaded, plan
        self._definitions, self._tested, self._own = definitions, tested, own
        self.number = 0
        """Number of changes."""
        self.tried = []
        """(child, function, change of it)."""
        self._only_here, self._run = set(), {}
        """Places of lines that no passing test runs; path -> the lines that the failing test runs, in order."""
        if not spectrum["cut"]:
            found = {(path, line) for path, line, _, runs in spectrum["lines"] if not runs}
            self._only_here = found.difference(map(tuple, spectrum["outside"]))
        for path, line in sorted(one[:2] for one in spectrum["lines"]):
            self._run.setdefault(path, []).append(line)

    def start(self, function, mutant, *more, goes_on=False):
        """Start a child with a change of a function. Does nothing if the changed code does not fit.

        `more`: other functions that it changes, too. `goes_on`: run the other tests also if the first one fails.
        """
        path, code, changed = self._job.relative(function.filename), None, []
        with mutant:
            for one in (function, *more):
                compiled = guarded(self._loaded.compile)(one)
                if not compiled:
                    return
                changed += compiled
            if self._plan.is_of_start(function):
                tree = self._definitions.trees[function.filename]
                code = guarded(self._loaded.compile_file)(function.filename, tree)
        if self._own is not None and code is not None:
            prepare = partial(self._own.execute, function.filename, code)
            child = self._trial.start(changed, None, prepare, self._own.like, goes_on)
        elif self._tested is not None and lines_in(function, self._tested.imported.get(path)):
            child = self._trial.start(changed, None, self._tested.execute, self._tested.like, goes_on)
        else:
            child = self._trial.start(changed, goes_on=goes_on)
        child.is_only_here = self._is_only_here(path, mutant.line)
        child.is_of_tests, child.is_hollow = self._loaded.is_of_tests(function), mutant.is_hollow
        self.number += not goes_on
        self.tried.append((child, function, mutant))

    def _is_only_here(self, path, line):
        """True for a change at a line that no passing test runs; at one that begins nothing that runs, the next that does counts."""
        run = self._run.get(path, ())
        index = bisect_left(run, line)
        return (path, run[index] if index < len(run) else line) in self._only_here
