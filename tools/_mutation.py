"""Changes of the code with which a failing test passes, as text."""

from __future__ import annotations

from collections.abc import Sequence

from sandbox.session.diagnosis import CodeChange, Mutation, Place
from tools._places import format_place, shorten
from tools._text import plural

_MAX_FUNCTIONS, _MAX_OF_FUNCTION = 4, 2
_MANY = 12
"""Functions with such changes that say little: nearly any change makes the test pass."""
_MAX_CHANGE = 180
_MAX_FURTHER, _MAX_NAME = 3, 70
_MORE = 15
"""One of so many other tests may fail more than with the best change."""
_LITTLE_HARM = 2
"""Other tests that may fail with a change; with more it only hides the failure, unless it mends as many, or they are few of many."""
_HARM = 10
"""One of so many other tests that run with a change may fail with it, too."""


def select_changes(found: Mutation | None) -> list[CodeChange]:
    """Select the changes that are told: of few functions, with which the fewest other tests fail and the most pass.

    If the best one mends other tests that fail, of those which mend at least half as many. Those that only make unequal objects
    equal are left out behind others.
    """
    if found is None or not found.changes:
        return []
    harmless = [one for one in found.changes if one.broken <= max(_LITTLE_HARM, one.ran / _HARM, one.mended)]
    if not harmless:
        return []
    best = harmless[0]
    is_right = not best.broken and best.mended == found.failing > 0
    most = 0 if is_right else best.broken + found.others / _MORE
    by_function: dict[tuple[str, str], list[CodeChange]] = {}
    for one in harmless:
        does_more = 2 * one.mended >= best.mended or one.broken < best.broken
        if one.broken <= most and does_more and (_compares(best) or not _compares(one)):
            by_function.setdefault((one.path, one.function), []).append(one)
    if len(by_function) >= _MANY:
        return []
    few = list(by_function.values())[:_MAX_FUNCTIONS]
    return [one for of_function in few for one in _on_different_lines(of_function)]


def _compares(one: CodeChange) -> bool:
    """True for a change of a method by which objects are compared, as the test does with its result."""
    return one.function.rpartition(".")[2] in ("__eq__", "__ne__")


def is_mending(changes: Sequence[CodeChange], found: Mutation | None) -> bool:
    """True if the cause is mostly at the best of the changes told: no other test fails with it, of those that ran.

    Of other tests that fail without it, one passes: it does more than to hide the failure. And its function still does something;
    and if it only decides a condition or leaves something out, a test that passes runs its line.
    """
    failing = found.failing if found else 0
    return any(
        one.ran
        and not (one.broken or one.hollow or (one.only_here and one.forced))
        and (one.mended or not failing)
        for one in changes[:1]
    )


def is_changed(place: Place, changes: Sequence[CodeChange]) -> bool:
    """True for a place in a function of one of the changes, or in one inside of it."""
    return any(
        place.path == one.path and f"{place.function}.".startswith(f"{one.function}.") for one in changes
    )


def _on_different_lines(changes: Sequence[CodeChange]) -> list[CodeChange]:
    first = {one.line: one for one in reversed(changes)}
    return sorted(first.values(), key=changes.index)[:_MAX_OF_FUNCTION]


def select_further(found: Mutation | None) -> list[CodeChange]:
    """Select the changes with which the test comes further that are told: on different lines, of those that hardly break another test."""
    if found is None:
        return []
    first: dict[tuple[str, int], CodeChange] = {}
    for one in found.further:
        is_known = one.ran > 0 or not found.others
        if one.fails_at and is_known and one.broken <= max(_LITTLE_HARM, one.mended):
            first.setdefault((one.path, one.line), one)
    return list(first.values())[:_MAX_FURTHER]


def mutation_lines(
    found: Mutation | None, shown: Sequence[CodeChange], further: Sequence[CodeChange]
) -> list[str]:
    """Format the changes with which the test passes, or comes further, a line for each."""
    if found is None or not found.tried:
        return []
    if further:
        head = f"{_none(found)}; with these it comes further{_counted(found)}:"
        told = (f"{_effect_of(one, found)}{_text_of(one)}, then fails at {one.fails_at}" for one in further)
        return [head, *(f"  {one}" for one in told)]
    if not shown:  # of many that break nothing, none says much
        return [_none(found)] if all(one.broken for one in found.changes) else []
    best = f"the best of {found.passing}; " if found.passing > len(shown) else ""
    head = f"changes with which the test passes ({best}{found.tried} tried){_counted(found)}:"
    return [head, *(f"  {_effect_of(one, found)}{_text_of(one)}" for one in shown)]


def _none(found: Mutation) -> str:
    harmless = " without breaking others" if found.passing else ""
    return f"no small change makes the test pass{harmless} ({found.tried} tried)"


def _counted(found: Mutation) -> str:
    """Number of other tests that ran with each change."""
    failing = (
        f" and {found.failing} that {'fail' if found.failing > 1 else 'fails'} too" if found.failing else ""
    )
    return f"; {plural(found.others, 'other test')}{failing} ran with each" if found.others or failing else ""


def _effect_of(one: CodeChange, found: Mutation) -> str:
    """Other tests that a change breaks, of how many if not all ran, and the number of those that it mends."""
    if not found.others and not found.failing:
        return ""
    names = ", ".join(shorten(_last_part(name), _MAX_NAME) for name in one.breaks)
    more = one.broken - len(one.breaks)
    broken = f"breaks {one.broken}" if one.broken else "breaks none"
    broken += f" ({names}{f' … {more} more' if more else ''})" if names else ""
    broken += f" of the {one.ran} that ran" if one.ran < found.others else ""
    broken += " (no passing test runs it)" if one.only_here and not one.broken else ""
    return f"{broken}, mends {one.mended}: " if found.failing else f"{broken}: "


def _last_part(test: str) -> str:
    """`test_b[x]` of `a.py::C::test_b[x]`."""
    name, bracket, parameters = test.partition("[")
    return name.rpartition("::")[2] + bracket + parameters


def _text_of(one: CodeChange) -> str:
    return shorten(f"{format_place(one)}: {one.change}", _MAX_CHANGE)
