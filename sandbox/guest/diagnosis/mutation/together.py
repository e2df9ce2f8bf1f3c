"""Changes that mend a part each, and pairs of these: one mistake was often made at two places."""

from __future__ import annotations

from collections import deque
from itertools import islice

from .mutant import Joined

_MAX_PARTS, _MAX_OF_LINE = 12, 2
"""Changes that others are joined to; at one line."""
_MAX_BESIDE = 80
"""Changes that are joined to one."""
_MAX_FURTHER = 8
"""Changes with which the test comes further, and with which the other tests run, too."""


def try_together(attempts, trial, plan):
    """Try pairs of changes, each of which mends a part: of the other failing tests, or else of the failing one, which comes further.

    Returns those with which it comes further, if there is no other: [(child, function, change)]; other tests have run with them.
    """
    tried = [one for one in attempts.tried if not one[0].is_of_tests]
    harmless = _harmless(tried)
    if any(one[0].mended() == len(trial.failing) for one in harmless):
        return []
    parts = _few_of([one for one in harmless if one[0].mended()])
    further = [] if harmless else _few_of([one for one in tried if trial.came_to(one[0])])
    is_over, number = trial.begin_together(), len(attempts.tried)
    waiting = deque((one, islice(plan.beside(*one[1:]), _MAX_BESIDE)) for one in parts or further)
    while waiting and not is_over():
        part, beside = waiting.popleft()
        for other, second in beside:
            _, function, mutant = part
            joined = Joined.of(mutant, second)
            if joined is not None:
                attempts.start(function, joined, *([] if other is function else [other]))
                waiting.append((part, beside))
                break
    trial.wait()
    pairs = attempts.tried[number:]
    if parts:
        most = max(child.mended() for child, _, _ in parts)
        attempts.tried[number:] = [one for one in pairs if one[0].mended() > most]
    if not further or _harmless(pairs):
        return []
    number = len(attempts.tried)
    trial.begin_further()
    for _, function, mutant in further[:_MAX_FURTHER]:
        attempts.start(function, mutant, goes_on=True)
    trial.wait()
    return attempts.tried[number:]


def _harmless(tried):
    """Those with which the test passes, and no other one fails."""
    return [one for one in tried if one[0].has_passed and not one[0].breaks()]


def _few_of(tried):
    """The first few of (child, function, change), and few of a line."""
    found, of_line = [], {}
    for one in tried:
        place = one[1].filename, one[2].line
        of_line[place] = of_line.get(place, 0) + 1
        if of_line[place] <= _MAX_OF_LINE:
            found.append(one)
    return found[:_MAX_PARTS]
