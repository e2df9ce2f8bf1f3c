"""Changes of the code with which a failing test passes, as text."""

from __future__ import annotations

from collections.abc import Sequence

from sandbox.session.diagnosis import CodeChange, Mutation
from tools._places import format_place

_MAX_FUNCTIONS, _MAX_OF_FUNCTION = 4, 2
_MANY = 12
"""Functions with such changes that say little: nearly any change makes the test pass."""
_MAX_CHANGE = 180


def select_changes(found: Mutation | None) -> list[CodeChange]:
    """Select the changes that are told: of few functions, with which no or the fewest other tests fail."""
    if found is None or not found.changes:
        return []
    least = found.changes[0].broken
    by_function: dict[tuple[str, str], list[CodeChange]] = {}
    for one in found.changes:
        if one.broken == least:
            by_function.setdefault((one.path, one.function), []).append(one)
    if len(by_function) >= _MANY:
        return []
    few = list(by_function.values())[:_MAX_FUNCTIONS]
    return [one for of_function in few for one in _on_different_lines(of_function)]


def _on_different_lines(changes: Sequence[CodeChange]) -> list[CodeChange]:
    first = {one.line: one for one in reversed(changes)}
    return sorted(first.values(), key=changes.index)[:_MAX_OF_FUNCTION]


def mutation_lines(found: Mutation | None, shown: Sequence[CodeChange]) -> list[str]:
    """Format the changes, a line for each."""
    if found is None or not shown:
        return []
    broken = shown[0].broken
    others = (
        f"; {broken or 'none'} of {found.others} other tests {'fails' if broken <= 1 else 'fail'} then"
        if found.others
        else ""
    )
    head = f"the test passes with one of these changes ({found.passing} of {found.tried} tried){others}:"
    return [head, *(f"  {format_place(one)}: {one.change}"[:_MAX_CHANGE] for one in shown)]
