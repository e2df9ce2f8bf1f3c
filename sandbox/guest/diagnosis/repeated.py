"""Objects that one expression puts into a container several times: `[[]] * 3`, `dict.fromkeys(names, [])`."""

from __future__ import annotations

from .events import is_atom

_MAX_ITEMS = 1000
_CERTAIN = 5.0
"""Suspicion of an object that is in several places and was changed."""
MAX_REPEATED = 2


def find(events, lines_that_repeat, is_test_code, score_of_line, distances):
    """Suspect (score, event of the container, number of places, event of the change), the best first.

    `lines_that_repeat`: gives the lines of a file that have such an expression.
    """
    best = {}

    def is_suspect(site):
        filename = site.scope.filename
        return not is_test_code(filename) and site.line in lines_that_repeat(filename)

    for event in events.of_sites(is_suspect):
        site = events.site(event)
        for item, count in _repeated(events.value_of[event]):
            change = _change(events, item, event, distances)
            key = (site.scope.filename, site.line)
            if change is None or key in best:
                continue
            suspicion = max(score_of_line(site), score_of_line(events.site(change)))
            best[key] = (_CERTAIN + 3 * suspicion + (change in distances), event, count, change)
    return sorted(best.values(), key=lambda found: (-found[0], found[1]))[:MAX_REPEATED]


def _repeated(value):
    """Yield (item, number of places) of what a list, tuple or dict has in several places."""
    if type(value) is dict:
        items = list(value.values())[:_MAX_ITEMS]
    elif type(value) in (list, tuple):
        items = value[:_MAX_ITEMS]
    else:
        return
    counts = {}
    for item in items:
        if not is_atom(item):
            counts[id(item)] = counts.get(id(item), 0) + 1
    for item in items:
        count = counts.pop(id(item), 0)
        if count > 1:
            yield item, count


def _change(events, item, after, distances):
    """The first event after `after` that changes an object: on the way to the failure, if one is; None if there is none."""
    changes = [event for event in events.all_changes(id(item)) if event > after]
    return next((event for event in changes if event in distances), changes[0] if changes else None)
