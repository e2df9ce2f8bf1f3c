"""The places in the program that a diagnosis names, the most telling function first."""

from __future__ import annotations

from collections.abc import Sequence

from sandbox.session.diagnosis import Alias, Alike, CodeChange, Kept, Place, Recording
from tools._diagnosis import Shown
from tools._mutation import is_changed
from tools._signals import COMMON, HINT, WEAK

_AHEAD = 4
"""Functions of calls that are shown before those of a finding that is not sure."""
_FEW = 3
"""Changes that are so few that each says much, although no other test was run with them."""
_MAX_CLASS = 25
"""Lines of a class that is shown in place of its name."""


def order_places(
    shown: Shown, recording: Recording, callers: Sequence[Place], origin: Place | None = None
) -> list[list[Place]]:
    """The places in each function that the text names, by what is told of the recording.

    That of a call that failed before it began; of changes at which the cause mostly is; where the exception behind that of the
    stop was raised; of signals, but for hints and common ones; of other changes; all changes with those of the same code; of those
    with which the test comes further; of writes of attributes that the failing line reads; of hints, of shared objects, of state
    that is kept and those with the same code, if that is sure; those that a failure passed; of the calls that matter most, first
    such as keep state; of common signals; where a caught exception was raised; on the way back from a wrong value; the head of the
    class of the object that all comes from; those of this test alone. Beside such changes no other calls and none that a failure
    passed.
    """
    of_object = recording.chain_class
    refused = [one for one in shown.links if one.refused]
    way = shown.links if recording.chain_of_value else []
    calls = _suspect_calls(recording)
    if shown.is_mended:
        calls, callers = [one for one in calls if is_changed(one, shown.changes)], ()
    kept = [place for one in shown.kept for place in places_of_kept(one, few=shown.is_mended)]
    of_kept = {(one.path, one.function) for one in kept}
    calls.sort(key=lambda one: (one.path, one.function) not in of_kept)
    is_few = len(shown.changes) <= _FEW and not any(one.ran for one in shown.changes)
    is_first = shown.is_mended or is_few
    harmless = [one for one in shown.changes if not (one.broken or one.hollow) and is_first]
    others = [one for one in shown.changes if one not in harmless]
    functions: dict[tuple[str, str], list[Place]] = {}
    for place in (
        *refused,
        *_with_alike(with_computed(harmless), recording.alike),
        *([origin] if origin else []),
        *(place for one in recording.signals if one.kind not in WEAK for place in one.places),
        *_with_alike(with_computed(others), recording.alike),
        *shown.further,
        *recording.written,
        *(place for one in recording.signals if one.kind == HINT for place in one.places),
        *(place for alias in shown.aliases for place in places_of_alias(alias)),
        *(_with_alike(kept, recording.alike) if shown.is_sure else []),
        *callers,
        *calls[:_AHEAD],
        *(place for one in recording.signals if one.kind in COMMON for place in one.places),
        *(one.raised for one in recording.caught),
        *way,
        *_with_alike(kept, recording.alike),
        *([] if shown.is_sure else recording.values),
        *calls,
        *([of_object] if of_object and of_object.last - of_object.line < _MAX_CLASS else []),
        *shown.suspects,
        *shown.links,
    ):
        if place.function != "<module>" and not _is_test(place):
            functions.setdefault((place.path, place.function), []).append(place)
    return list(functions.values())


def _suspect_calls(recording: Recording) -> list[Place]:
    """The functions of the calls, the most suspect first, each at the line that few passing tests run, else its most suspect one."""
    rare = {(one.path, one.function): one.line for one in reversed(recording.suspects)}
    best = sorted(recording.calls, key=lambda one: -one.score)
    return [
        Place(
            path=one.path,
            line=rare.get((one.path, one.function)) or one.suspect_line or one.line,
            function=one.function,
        )
        for one in best
    ]


def _is_test(place: Place) -> bool:
    return place.function.rpartition(".")[2].startswith("test")


def _with_alike(places: Sequence[Place], alike: Sequence[Alike]) -> list[Place]:
    """Places, each with the functions right behind it that have the same code."""
    return [each for place in places for each in (place, *(one for one in alike if one.of == place.function))]


def with_computed(changes: Sequence[CodeChange]) -> list[Place]:
    """Changes, each with the function whose kept result it computes anew."""
    return [place for one in changes for place in (one, one.computed_by) if place is not None]


def places_of_alias(alias: Alias) -> list[Place]:
    return [alias.changed, alias.stored, *([alias.given] if alias.given else [])]


def places_of_kept(kept: Kept, *, few: bool = False) -> list[Place]:
    """Its writers, what has not changed it, its holder, where it is written and read, and those that could have reset it.

    With `few`, what has not changed it and where it is written and read.
    """
    if few:
        return [*kept.passed_by, kept.written, kept.read]
    held = [kept.held] if kept.held else []
    return [*kept.writers, *kept.passed_by, kept.written, kept.read, *held, *kept.others]
