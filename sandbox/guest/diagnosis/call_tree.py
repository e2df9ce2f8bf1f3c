"""The calls of a failing test that matter most to its failure, nested as they happened, with arguments and results."""

from __future__ import annotations

import math
import types

from . import sites as kinds
from .calls import constructs, describes
from .events import is_atom
from .safe_values import text_of, type_name
from .slicing import arguments_of

_MAX_CALLS = 10
_MAX_RANKED, _MAX_HELPERS = 200, 150
_MAX_CHANGED = 40
"""Functions, of which a change may help, whose callers and called functions are told."""
_FARNESS, _FAR = 0.02, 20
"""Suspicion that one step further from the failure must outweigh; the steps of a call that is not on the way to it."""
_LENGTH, _LONG = 0.5, math.log(50)
"""Suspicion that a long function has more than a short one: there is more in it that can be wrong."""
_REPEATED = 0.05
"""Suspicion less for each e-fold of calls: functions that are called often are helpers."""
_CONSTRUCTING = 0.25
"""Suspicion less of what makes an object: a test that sets one apart calls many such functions before it fails."""
_MAX_DEPTH = 60
_MAX_ARGUMENTS = 4
_MAX_ARGUMENT, _MAX_RESULT = 40, 60
_MAX_RESULTS = 3
"""Different results of the calls of a function at one line."""
_MAX_LINES = 60
_MAX_ON_LINE = 60


class _Function:
    """A function that a test has called: how often, how suspect, and the call that is told for all."""

    __slots__ = ("above", "calls", "constructs", "distance", "frame", "length", "line", "score")

    def __init__(self, name):
        self.calls, self.frame, self.distance, self.score, self.length = 0, -1, _FAR, 0.0, 0
        self.constructs = constructs(name)
        self.line = 0
        """The most suspect one."""
        self.above = []
        """(frame, line) of the callers, from the nearest to the test."""

    def rank(self):
        length = min(1.0, math.log(self.length + 1) / _LONG)
        score = self.score - _FARNESS * self.distance + _LENGTH * length - _REPEATED * math.log(self.calls)
        return score - _CONSTRUCTING * self.constructs


def select_calls(events, calls, is_test, score, distance, told, found_in):
    """Select the calls that matter most, in order, and count the functions that the test has called.

    Returns also the events at which each function is entered first, in the order of all; helpers: functions that
    the more suspect ones have called, each as the events of its start and of its caller then, and texts of the plain values
    that it has returned there; and callers: functions that have called such a one, each as the events of the call and of the
    start of the called one.

    Each is {entered: event of its start, depth: among those selected, called_at: line of the test or 0, calls: of
    its function, suspect_line, score, arguments, result, lines: see `_lines`}. `is_test(filename)`; `score(site)`: its
    suspicion; `distance`: event -> steps from the failure; `told`: frames that the answer tells anyway;
    `found_in`: function -> frame of the call that is told of it, instead of the one nearest to the failure.
    """
    functions = _functions(events, is_test, score, distance, found_in)
    ranked = sorted(functions, key=lambda one: (-one.rank(), one.frame))
    order = [events.entered[one.frame] for one in ranked[:_MAX_RANKED]]
    others = [one for one in ranked if one.frame not in told]
    ranked = others[:_MAX_CALLS]
    frames, selected = {one.frame for one in ranked}, []
    lines = _lines(events, {one.frame: one.line for one in ranked})
    for one in sorted(ranked, key=lambda one: events.entered[one.frame]):
        selected.append(
            {
                "entered": events.entered[one.frame],
                "depth": sum(frame in frames for frame, _ in one.above),
                "called_at": one.above[-1][1],
                "calls": one.calls,
                "suspect_line": one.line,
                "score": round(one.rank(), 3),
                "arguments": _arguments(events, one.frame),
                "result": _result(events, calls, one.frame),
                "lines": lines[one.frame],
            }
        )
    return (selected, len(functions), order, *_neighbours(events, calls, others, is_test))


def _neighbours(events, calls, functions, is_test):
    """(helpers, callers) as `select_calls` returns them, in one pass over the calls."""
    ranks = {_scope_of(events, one.frame): index for index, one in enumerate(functions)}
    suspects = {_scope_of(events, one.frame) for one in functions[:_MAX_CHANGED]}
    helpers, callers, results = _generators(events, functions, suspects, ranks), {}, {}
    for frame, event in events.entered.items():
        called = events.site(event).scope
        caller = events.caller_event(frame) if called in ranks else None
        if caller is None:
            continue
        site = events.site(caller)
        scope = site.scope
        if scope in suspects:
            key = ranks[called], scope, site.line
            helpers.setdefault(key, (event, caller))
            _add_result(results.setdefault(key, []), events, calls.last(frame))
        is_apart = scope is not called and scope.parent is not None and not is_test(scope.filename)
        if called in suspects and is_apart:
            callers.setdefault((ranks[called], scope), (caller, event))
    by_line = sorted(helpers, key=lambda one: (one[0], one[2]))
    by_rank = sorted(callers, key=lambda one: one[0])
    return (
        [(*helpers[key], results.get(key, [])) for key in by_line[:_MAX_HELPERS]],
        [callers[key] for key in by_rank[:_MAX_HELPERS]],
    )


def _add_result(results, events, last):
    """Add the text of what a call has returned to the few that there are of plain values, if it is another one."""
    value = events.value_of[last]
    is_plain = events.site(last).kind == kinds.RETURN and is_atom(value)
    if is_plain and len(results) < _MAX_RESULTS:
        text = _cut(text_of(value), _MAX_ARGUMENT)
        if text not in results:
            results.append(text)


def _generators(events, functions, callers, ranks):
    """Generator functions by the lines that have called them: they are entered elsewhere."""
    by_name = {}
    for one in functions:
        scope = _scope_of(events, one.frame)
        by_name.setdefault((scope.filename, scope.name.rpartition(".")[2]), one)
    found = {}
    for event, value in enumerate(events.value_of):
        site = events.site(event) if type(value) is types.GeneratorType else None
        if site is not None and site.scope in callers and site.kind != kinds.PARAMETER:
            one = by_name.get((value.gi_code.co_filename, value.gi_code.co_name))
            if one is not None:
                key = ranks[_scope_of(events, one.frame)], site.scope, site.line
                found.setdefault(key, (events.entered[one.frame], event))
    return found


def _scope_of(events, frame):
    return events.site(events.entered[frame]).scope


def only_describing(events):
    """Scopes of functions that ran only to describe a failure: methods like `__repr__`, and what they call."""
    frames = _describing(events)
    return {_scope_of(events, frame) for frame in frames} - {
        _scope_of(events, frame) for frame in events.entered if frame not in frames
    }


def _describing(events):
    """Frames of calls that describe a failure, and of those that they have made."""
    frames = set()
    for frame, event in events.entered.items():
        caller = events.caller_event(frame)
        is_inside = caller is not None and events.frame_of[caller] in frames
        if is_inside or describes(events.site(event).scope.name):
            frames.add(frame)
    return frames


def _functions(events, is_test, score, distance, found_in):
    """The functions outside of tests that ran after the first test function had begun, and were called by one.

    Without tests: those that the failing code of a module has called. Without the start of the test, which a long one
    loses: those whose callers are known as far as the recording goes.
    """
    nearest, nearest_of_site = {}, {}
    for event, steps in distance.items():
        site, frame = events.site(event), events.frame_of[event]
        if site.kind not in (kinds.ENTER, kinds.PARAMETER):
            nearest[frame] = min(steps, nearest.get(frame, steps))
            nearest_of_site[site.number] = min(steps, nearest_of_site.get(site.number, steps))
    begins = events.entered.get(events.outermost)
    functions, begun = {}, begins is None or events.site(begins).scope.parent is None
    describing = _describing(events)
    for frame, event in events.entered.items():
        scope = events.site(event).scope
        if scope.parent is None or scope.is_class or frame in describing:
            continue
        if is_test(scope.filename):
            begun = True
        elif begun:
            one = functions.get(scope) or functions.setdefault(scope, _Function(scope.name))
            one.calls += 1
            steps = min(nearest.get(frame, _FAR), _FAR)
            if one.frame < 0 or steps <= one.distance:
                one.frame, one.distance = frame, steps
    best = {}
    for site in events.executed_sites():
        one = functions.get(site.scope)
        if one is None:
            continue
        one.score = max(one.score, score(site))
        one.length += site.kind not in kinds.ASIDES
        if site.kind not in (kinds.ENTER, kinds.PARAMETER):
            key = (score(site), -nearest_of_site.get(site.number, _FAR), -site.line)
            if key > best.get(site.scope, (-1,)):
                best[site.scope], one.line = key, site.line
    for scope, one in functions.items():
        for frame in (found_in.get(scope, one.frame), one.frame):
            if not one.above:
                one.frame, one.above = frame, _callers(events, frame, is_test)
    return [one for one in functions.values() if one.above]


def _callers(events, frame, is_test):
    """(frame, line) of the callers up to the test, or as far as known; empty if there is none, or they describe a failure."""
    found = []
    while len(found) < _MAX_DEPTH:
        event = events.caller_event(frame)
        if event is None or events.frame_of[event] == frame:
            break
        site, frame = events.site(event), events.frame_of[event]
        found.append((frame, site.line))
        if is_test(site.scope.filename) or frame == events.outermost:
            return found
        if site.scope.parent is None or site.scope.is_class or describes(site.scope.name):
            break
        if frame not in events.entered:
            return [*found[:-1], (frame, 0)]
    return []


def _lines(events, frames):
    """frame -> [[line, text]] of the lines that ran, with the values that were set and the conditions that decided there.

    Of a loop the last ones; of a long function the lines nearest to its most suspect one. `frames`: frame -> that line.
    """
    found = {frame: {} for frame in frames}
    for event, frame in enumerate(events.frame_of):
        if frame not in frames or events.site(event).kind in (kinds.ENTER, kinds.PARAMETER):
            continue
        name, text = _set_or_decided(events, event)
        line = found[frame].setdefault(events.site(event).line, {})
        if text:
            line[name] = text
    return {
        frame: [
            [line, _cut(", ".join(lines[line].values()), _MAX_ON_LINE)]
            for line in sorted(sorted(lines, key=lambda line: abs(line - frames[frame]))[:_MAX_LINES])
        ]
        for frame, lines in found.items()
    }


def _set_or_decided(events, event):
    """(name, text) of a value that was set, a condition, a result or a caught exception; ("", "") at other events."""
    site, value = events.site(event), events.value_of[event]
    if site.kind == kinds.TEST:
        return "", _cut(text_of(value, 1), _MAX_ARGUMENT)
    if site.kind == kinds.RETURN:
        return "→", "→ " + _cut(_text_then(events, value, event), _MAX_ARGUMENT)
    if site.kind == kinds.CAUGHT:
        return "", "caught " + value.type
    if site.kind == kinds.BASE and site.extra[0] == "mutate":
        given = ", ".join(text_of(events.value_of[argument], 1) for argument in arguments_of(events, event))
        return "()", _cut(f"{site.name}({given})", _MAX_ARGUMENT) if given else ""
    is_literal = not site.deps and not site.is_call
    if (
        site.kind != kinds.STORE
        or site.name.startswith("@py_")
        or is_literal
        or _is_changed(events, value, event)
    ):
        return "", ""
    return site.name, "{} = {}".format(site.name, _cut(text_of(value, 1), _MAX_ARGUMENT))


def _arguments(events, frame):
    """The arguments of a call as text, without its object and those that are None."""
    shown = []
    for number, event in enumerate(events.parameters(frame)):
        name, value = events.site(event).name, events.value_of[event]
        is_own = number == 0 and name in ("self", "cls")
        if value is not None and not is_own and not _is_empty(value):
            shown.append("{}={}".format(name, _cut(_text_then(events, value, event), _MAX_ARGUMENT)))
    more = ["…"] if len(shown) > _MAX_ARGUMENTS else []
    return ", ".join(shown[:_MAX_ARGUMENTS] + more)


def _is_empty(value):
    """True for what `*args` and `**kwargs` are when nothing was given."""
    return (type(value) is tuple or type(value) is dict) and not value


def _result(events, calls, frame):
    """The result of a call as text: the name of the argument that it is, if it is an object; "" for None and none."""
    last = calls.last(frame)
    value = events.value_of[last]
    if events.site(last).kind != kinds.RETURN or value is None:
        return ""
    if not is_atom(value):
        for event in events.parameters(frame):
            if events.value_of[event] is value:
                return "{} itself".format(events.site(event).name)
    return _cut(_text_then(events, value, last), _MAX_RESULT)


def _cut(text, longest):
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _text_then(events, value, event):
    """A value as text; of a container that was changed after an event, its type."""
    return type_name(value) + " changed later" if _is_changed(events, value, event) else text_of(value, 1)


def _is_changed(events, value, event):
    """True for a container that was changed after an event: its text is not what it was."""
    return events.contents.get(id(value), (-1,))[-1] > event
