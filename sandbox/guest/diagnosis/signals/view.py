"""The recording as the search for signals sees it: functions that ran, with their source and their suspicion."""

# Nodes of one kind are told by their attributes.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import ast
from bisect import bisect_left

_LEAST = 0.3
"""Suspicion of a function off the way to the failure below which nothing is told of it."""
_FAR = 60
"""Distance from the failure beyond which a call is not on the way to it."""
_MAX_FUNCTIONS = 2000
_MAX_FRAMES = 100
_MAX_FILES = 60
"""Files of which the source is parsed, those of the most suspect functions first."""
_OTHER_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


class Signal:
    """A finding: its places are (file, line, function), as its kind has them."""

    def __init__(self, kind, rank, places, name="", value="", other="", holder="", event=None):
        self.kind, self.rank, self.places = kind, rank, places
        self.name, self.value, self.other, self.holder = name, value, other, holder
        self.event = event
        """An event of the call whose values tell more than those of other calls of its function; None if none does."""


class Function:
    """A function that ran, by its scope: its first frames, and how suspect it is."""

    def __init__(self, scope, line, frames, rank):
        self.scope, self.line, self.frames, self.rank = scope, line, frames, rank
        self.node = None
        """Its syntax tree."""

    @property
    def place(self):
        return self.scope.filename, self.line, self.scope.name


class View:
    """Events, and the suspect functions of the repository."""

    def __init__(self, events, calls, sources, is_test_code, score_of_line, distances, sides):
        self.events, self.calls, self.sources, self.is_test_code = events, calls, sources, is_test_code
        self.score_of_line, self.distances, self.sides = score_of_line, distances, sides
        self._definitions, self._sites, self._events_of, self._calls_in = {}, {}, {}, {}
        self.functions = self._functions()

    def place(self, event):
        site = self.events.site(event)
        return site.scope.filename, site.line, site.scope.name

    def definitions(self, filename):
        """(qualified name, line) -> syntax tree of each function and class of a file."""
        found = self._definitions.get(filename)
        if found is None and len(self._definitions) < _MAX_FILES:
            pairs = self.sources.definitions(filename)
            found = self._definitions[filename] = {(name, node.lineno): node for name, node in pairs}
        return found or {}

    def calls_in(self, node):
        """Name -> the calls of it in a function, in the order of their lines."""
        found = self._calls_in.get(id(node))
        if found is None:
            found = self._calls_in[id(node)] = {}
            for one in ast.walk(node):
                if isinstance(one, ast.Call):
                    name = getattr(one.func, "attr", None) or getattr(one.func, "id", None)
                    found.setdefault(name, []).append(one)
        return found

    def node_of(self, frame):
        """The syntax tree of the function that a frame runs; None for a module, and without source."""
        entered = self.events.entered.get(frame)
        if entered is None:
            return None
        site = self.events.site(entered)
        return self.definitions(site.scope.filename).get((site.scope.name, site.line))

    def sites_of(self, scope):
        """The sites of a function without those of functions in it."""
        if not self._sites:
            for site in self.events.sites:
                self._sites.setdefault(site.scope, []).append(site)
        return self._sites.get(scope, ())

    def events_of(self, frame):
        """The events of a frame, in order."""
        if not self._events_of:
            for one, number in enumerate(self.events.frame_of):
                self._events_of.setdefault(number, []).append(one)
        return self._events_of.get(frame, ())

    def last_before(self, frame, event):
        """The last event of a frame before an event, which is not its first one."""
        found = self.events_of(frame)
        return found[bisect_left(found, event) - 1]

    def events_at(self, sites):
        """frame -> the events of some sites, in order."""
        found = {}
        for event in sorted(event for site in sites for event in self.events.of_site(site.number)):
            found.setdefault(self.events.frame_of[event], []).append(event)
        return found

    def is_suspect(self, event):
        """True for an event on the way to the failure, or of a line that few passing tests run."""
        near = self.distances.get(event, _FAR + 1) <= _FAR
        return near or self.score_of_line(self.events.site(event)) >= _LEAST

    def _functions(self):
        """The suspect functions outside of tests, the most suspect first."""
        scores, nearest, frames, lines = {}, {}, {}, {}
        for site in self.events.executed_sites():
            score = self.score_of_line(site)
            scores[site.scope] = max(score, scores.get(site.scope, 0.0))
        for event, distance in self.distances.items():
            scope = self.events.site(event).scope
            nearest[scope] = min(distance, nearest.get(scope, distance))
        for frame, event in self.events.entered.items():
            site = self.events.site(event)
            lines[site.scope] = site.line
            found = frames.setdefault(site.scope, [])
            if len(found) < _MAX_FRAMES:
                found.append(frame)
        functions = [
            Function(scope, lines[scope], found, _rank(scores[scope], nearest.get(scope)))
            for scope, found in frames.items()
            if not self.is_test_code(scope.filename)
            and (scores[scope] >= _LEAST or nearest.get(scope, _FAR + 1) <= _FAR)
        ]
        functions = sorted(functions, key=lambda one: -one.rank)[:_MAX_FUNCTIONS]
        for one in functions:
            one.node = self.definitions(one.scope.filename).get((one.scope.name, one.line))
        return [one for one in functions if one.node is not None]


def _rank(score, distance):
    return score + (0.0 if distance is None else 1.0 / (1 + distance / 10))


def own_nodes(node):
    """Yield the nodes of a function or statement without those of functions and classes in it."""
    waiting = list(ast.iter_child_nodes(node))
    while waiting:
        one = waiting.pop()
        yield one
        if not isinstance(one, _OTHER_SCOPES):
            waiting += ast.iter_child_nodes(one)


def is_name(node, name):
    return isinstance(node, ast.Name) and node.id == name


def reads(node, name):
    """True if a name is read anywhere inside of `node`, or deleted, or changed in place by `+=`."""
    return any(
        is_name(one, name) and not isinstance(one.ctx, ast.Store)
        or isinstance(one, ast.AugAssign) and is_name(one.target, name)
        for one in ast.walk(node)
    )  # fmt: skip
