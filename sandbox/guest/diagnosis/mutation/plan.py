"""The order in which changes are tried."""

from __future__ import annotations

import heapq
import math
from collections import deque
from itertools import chain, islice

from ..job import guarded
from .functions import functions_in
from .mutant import AIMED, FIRST, LIKELY, UNLIKELY
from .mutants import mutants_of

_MAX_FUNCTIONS = 400
_IMPORTED, _MAX_IMPORTED = 40, 80
"""Functions that run when modules are imported, and in no test: they come after so many others; most of them."""
_LAST = 200
"""Functions after which the methods of test cases come."""
_OF_LIKELIHOOD, _OF_POSITION, _OF_LINE = 12, 0.05, 10
"""Functions further down the ranking that one step of likelihood, of position in its function, or a line is worth."""
_AHEAD = 4
"""Functions whose aimed changes are made at a time."""


class _Kind:
    """Changes of one kind that wait for their turn."""

    def __init__(self):
        self.waiting: list = []
        self._added = self._removed = 0

    def add(self, change):
        heapq.heappush(self.waiting, change)
        self._added += 1

    def take(self):
        self._removed += 1
        return heapq.heappop(self.waiting)

    @property
    def next_turn(self):
        """Number to compare with other kinds: the least is the next. Infinite if none waits."""
        return (self._removed + 1) * math.sqrt(self._added) if self.waiting else math.inf


class Plan:
    """The order of changes: those of suspect functions and lines first, and those that promise most."""

    def __init__(self, job, spectrum, loaded, definitions, lines, imported, at_start):
        """`lines`: (path, line, score) of those that the test runs.

        `imported`: {path: lines that its module runs when it is imported}; `at_start`: the same, with the modules that it imports.
        """
        self._job, self._spectrum = job, spectrum
        self._loaded, self._definitions, self._imported = loaded, definitions, imported
        self._at_start, self._of_start = at_start, set()
        self._scores = {}
        for path, line, score in lines:
            self._scores.setdefault(path, {})[line] = score
        self._raised = spectrum["plain"].get("path"), spectrum["plain"].get("line")
        self._outside = {}
        for path, line in spectrum["outside"]:
            self._outside.setdefault(path, set()).add(line)
        recorded = job.read("recording.json")
        self._lent = {}
        """Path -> lines of arguments that are changed after the call that was given them."""
        for path, line in recorded["lent"]:
            self._lent.setdefault(path, set()).add(line)
        self._functions = self._order([*recorded["named"], *recorded["ranking"]])
        self._made = {}

    def changes(self):
        """Yield (function, change of it), the most promising first.

        The first, the aimed and the common ones take turns, and so do the kinds of aimed ones, of which there are few:
        each reaches all functions soon.
        """
        first, common = self._ranked(FIRST, FIRST), self._ranked(LIKELY, UNLIKELY)
        yield from (one[2:] for one in _in_turn(first, self._aimed(), common) if one is not None)

    def beside(self, function, mutant):
        """Yield (function, change) of further changes of a function, those of the same kind first, and those in others of its file.

        Of other functions those of the same kind alone, and of none that runs when a module is imported: that has to be done anew.
        """
        same, alike, others = [], [], []
        for number, (_, _, one, _) in enumerate(self._functions):
            if one.filename == function.filename:
                for *_, other in self._of_function(number):
                    if one is function and other.line != mutant.line:
                        (same if other.kind == mutant.kind else others).append((one, other))
                    elif one is not function and other.kind == mutant.kind and not self._is_early(one):
                        alike.append((one, other))
        yield from chain(same, alike, others)

    def _is_early(self, function):
        path = self._job.relative(function.filename)
        return self.is_of_start(function) or bool(lines_in(function, self._imported.get(path)))

    def is_of_start(self, function):
        """True for a function that only runs when the modules of the repository are imported."""
        return function in self._of_start

    def groups(self, most):
        """Lists of the function objects of the most suspect functions of the test: those that are changed together.

        Without those that run when its module is imported: changes of these run that, too.
        """
        found = (
            function
            for _, path, function, _ in self._functions
            if not lines_in(function, self._imported.get(path))
        )
        return [self._loaded.objects_of(function) for function in islice(found, most)]

    def _ranked(self, least, most):
        """Yield the changes of some likelihoods by their keys, and None from time to time as long as there is none."""
        waiting: list = []
        for number, (index, *_) in enumerate(self._functions):
            # No change of this function or a later one comes before these.
            while waiting and waiting[0][0] < index + _OF_LIKELIHOOD * least:
                yield heapq.heappop(waiting)
            for one in self._of_function(number):
                if least <= one[3].likelihood <= most:
                    heapq.heappush(waiting, one)
            if not waiting and number % _AHEAD == 0:
                yield None
        while waiting:
            yield heapq.heappop(waiting)

    def _aimed(self):
        """Yield aimed changes: the kinds in turn, those of which there are few more often."""
        kinds: dict = {}
        made, total = 0, len(self._functions)
        while True:
            ahead = min(made + _AHEAD, total)
            for number in range(made, ahead):
                for one in self._of_function(number):
                    if one[3].likelihood == AIMED:
                        kinds.setdefault(one[3].kind, _Kind()).add(one)
            made = ahead
            kind = min(kinds.values(), key=lambda one: one.next_turn, default=None)
            if kind is not None and kind.waiting:
                yield kind.take()
            elif made == total:
                return

    def _of_function(self, number):
        """[(key, its place among all, function, change)] of those of one function."""
        if number not in self._made:
            self._made[number] = self._changed(number) or []
        return self._made[number]

    @guarded
    def _changed(self, number):
        """Make what `_of_function` returns."""
        index, path, function, executed = self._functions[number]
        scores, run = self._scores.get(path, {}), None
        if self._spectrum["all_lines"]:
            run = executed | self._outside.get(path, set())
        mutants = mutants_of(function, executed, self._definitions, run, self._lent.get(path, ()))
        found, made = [], []
        try:
            for one in mutants:
                if (path, one.line) != self._raised:
                    found.append(one)
        except RecursionError:
            pass  # an expression is too deep to be copied: the changes before it are left
        found.sort(key=lambda one: one.likelihood)
        for position, one in enumerate(found):
            doubt = 1 - scores.get(one.line, 0)
            key = index + _OF_LIKELIHOOD * one.likelihood + _OF_POSITION * position + _OF_LINE * doubt
            made.append((key, (number, position), function, one))
        return made

    def _order(self, ranked):
        """[(index, path, function, lines that run)], the most suspect first; the index of such as run at import alone is higher.

        `ranked`: (path, line), the most suspect first.
        """
        ranks = {}
        for index, (path, line) in enumerate(ranked):
            ranks.setdefault(path, {}).setdefault(line, index)
        tested, at_import = [], []
        for filename, tree in self._definitions.trees.items():
            path = self._job.relative(filename)
            scores = self._scores.get(path, {})
            for function in functions_in(filename, tree):
                if not self._loaded.has(function):
                    continue
                executed = lines_in(function, scores)
                early = lines_in(function, self._imported.get(path))
                if executed:
                    known, suspicion = ranks.get(path, {}), max(scores[line] for line in executed)
                    rank = min(map(known.__getitem__, lines_in(function, known)), default=1000)
                    is_last = self._loaded.is_of_tests(function)
                    tested.append((is_last, rank, -suspicion, path, function, executed | early))
                elif early:
                    at_import.append((path, function, early))
                elif at_start := lines_in(function, self._at_start.get(path)):
                    self._of_start.add(function)
                    at_import.append((path, function, at_start))
        tested.sort(key=lambda one: one[:3])
        found = [
            (index + _LAST * is_last, *rest)
            for index, (is_last, _, _, *rest) in enumerate(tested[:_MAX_FUNCTIONS])
        ]
        after = min(_IMPORTED, len(found))
        found += [(after, *rest) for rest in at_import[:_MAX_IMPORTED]]
        return sorted(found, key=lambda one: one[0])


def lines_in(function, lines):
    """Those of some lines, a set or the keys of a dict, that are in a function."""
    span = range(function.first_line, (function.node.end_lineno or 0) + 1)
    return {line for line in span if line in lines} if lines else set()


def _in_turn(*generators):
    """Yield one of each in turn until all have ended."""
    left = deque(generators)
    while left:
        for one in left[0]:
            yield one
            left.rotate(-1)
            break
        else:
            left.popleft()
