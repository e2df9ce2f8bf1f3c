"""Events of one run in a form that another run can compare with its own."""

from __future__ import annotations

import base64
import bisect
import json
import zlib

from .. import sites as kinds
from .snapshots import atom_text

_MAX_PACKED = 3 << 20
_MAX_UNPACKED = 128 << 20


class Place:
    """A site, as both runs know it."""

    __slots__ = ("control", "function", "kind", "line", "name", "path")

    def __init__(self, path, line, kind, name, function, control):
        self.path, self.line, self.kind, self.name = path, line, kind, name
        self.function, self.control = function, control
        """Its own function, and the key of the condition or loop that it stands in."""


class Stream:
    """Columns of events: key of the site, frame, text of the value."""

    def __init__(self, places, keys, frames, texts):
        self.places, self.keys, self.frames, self.texts = places, keys, frames, texts
        """`places`: key -> Place."""

    def __len__(self):
        return len(self.keys)

    def place(self, event):
        return self.places[self.keys[event]]

    def pack(self):
        """The stream as text of bounded length: if it is too long, its end is missing."""
        count = len(self)
        while True:
            packed = self._packed(count)
            if len(packed) <= _MAX_PACKED:
                return packed
            count //= 2

    def _packed(self, count):
        table, numbers = {}, []
        for text in self.texts[:count]:
            numbers.append(table.setdefault(text, len(table)))
        order = {key: number for number, key in enumerate(dict.fromkeys(self.keys[:count]))}
        data = {
            "places": [
                [*key, *_fields(self.places[key]), list(self.places[key].control or ())] for key in order
            ],
            "keys": [order[key] for key in self.keys[:count]],
            "frames": self.frames[:count],
            "numbers": numbers,
            "texts": list(table),
        }
        return base64.b64encode(zlib.compress(json.dumps(data).encode(), 1)).decode()


def _fields(place):
    return place.path, place.line, place.kind, place.name, place.function


def unpack(text):
    """The stream that `pack` has made."""
    data = json.loads(zlib.decompressobj().decompress(base64.b64decode(text), _MAX_UNPACKED))
    places, order = {}, []
    for module, number, path, line, kind, name, function, control in data["places"]:
        order.append((module, number))
        places[module, number] = Place(path, line, kind, name, function, tuple(control) or None)
    return Stream(
        places,
        [order[number] for number in data["keys"]],
        data["frames"],
        [data["texts"][number] for number in data["numbers"]],
    )


def stream_of(log, texts, rewriter, job):
    """The stream of a recorded log of site, frame and value."""
    keys = _Keys(rewriter, job)
    values = log[2::3]
    shown = [atom_text(value) if text is None else text for value, text in zip(values, texts)]
    found = [keys.of(number) for number in log[0::3]]
    return Stream(keys.places, found, log[1::3], shown)


class _Keys:
    """(path, number within its module) of each site, which is the same in all processes."""

    def __init__(self, rewriter, job):
        self._rewriter, self._job, self._known, self.places = rewriter, job, {}, {}

    def of(self, number):
        key = self._known.get(number)
        if key is None:
            key = self._known[number] = self._make(number)
        return key

    def _make(self, number):
        site, firsts = self._rewriter.sites[number], self._rewriter.first_sites
        path = self._job.relative(site.scope.filename)
        first = firsts[bisect.bisect_right(firsts, number) - 1]
        key = (path, number - first)
        if key not in self.places:
            control = _loop_of(self._rewriter, site) if site.control is None else site.control
            control = None if control is None else (path, control - first)
            name = _name_of(site)[:100]
            self.places[key] = Place(path, site.line, site.kind, name, site.scope.name[:200], control)
        return key


def _loop_of(rewriter, site):
    """The site of the iterable of which a comprehension makes an element; None for others."""
    if site.kind != kinds.ELEMENT:
        return None
    before = rewriter.sites[max(0, site.number - 20) : site.number]
    return next((one.number for one in reversed(before) if one.kind == kinds.ITERABLE), None)


def _name_of(site):
    """Name of the value that is recorded at a site."""
    if site.kind == kinds.BASE and site.extra[0] in ("method", "mutate") and type(site.extra[1]) is str:
        return site.extra[1]
    if site.kind == kinds.BASE:
        return f"the object of .{site.name}"
    if site.kind in (kinds.SETATTR, kinds.GETATTR):
        return f"the object of .{site.name.rpartition('.')[2]}"
    if site.kind == kinds.RETURN:
        return f"{site.scope.name.rpartition('.')[2]}()"
    return "condition" if site.kind == kinds.TEST else site.name
