"""Differences between the outcomes of a test run and those of the runs before."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_GOOD = {"passed", "xfailed", "skipped"}
_OF_UNITTEST = re.compile(r"([\w.]+) \(([\w.]+)\)")
_FIXTURES = ("setUpClass", "tearDownClass", "setUpModule", "tearDownModule")
_NOT_IMPORTED = "unittest.loader."
_MAX_DEPTH = 8


@dataclass(frozen=True)
class Changes:
    """Changes in test outcomes that a run caused."""

    fixed: list[str]
    broken: list[str]
    outcomes: dict[str, str]
    """Last outcome of every test.

    A module or class that can be collected again has none of its own any more.
    """


def compare(before: Mapping[str, str], now: Mapping[str, str]) -> Changes:
    """Compare a run with the last outcome of each test.

    A module that can't be collected, or a class with a failing set-up, represents its tests. It is broken if
    one of them was good before, and fixed if it is absent and one of them is present.
    """
    new_bad = {name for name, outcome in now.items() if outcome not in _GOOD and before.get(name) is None}
    gone_bad = {name for name, outcome in before.items() if outcome not in _GOOD and name not in now}
    good_before = (name for name, outcome in before.items() if outcome in _GOOD)
    broken_groups, fixed_groups = _with_members(new_bad, good_before), _with_members(gone_bad, now)
    both = [name for name in now if name in before]
    return Changes(
        fixed=[name for name in both if before[name] not in _GOOD and now[name] in _GOOD] + fixed_groups,
        broken=[name for name in both if before[name] in _GOOD and now[name] not in _GOOD] + broken_groups,
        outcomes={
            **{
                name: outcome
                for name, outcome in before.items()
                if name not in now and name not in fixed_groups
            },
            **now,
        },
    )


def find_test(name: str, tests: Mapping[str, object]) -> str | None:
    """Return the id that a test has among `tests`, by its id or its dotted name; None if it is none of them."""
    return name if name in tests else next((test for test in tests if _name(test) == name), None)


def _with_members(groups: set[str], tests: Iterable[str]) -> list[str]:
    """Return those of `groups` that contain one of `tests`."""
    if not groups:
        return []
    names = {_name(group): group for group in groups}
    found = {names[prefix] for test in tests for prefix in _prefixes(_name(test)) if prefix in names}
    return sorted(found)


def _name(test: str) -> str:
    """Convert a unittest id to a dotted name.

    For a fixture or a broken module: the name of its class or module.
    """
    match = _OF_UNITTEST.fullmatch(test)
    if match is None:
        return test
    name, place = match.groups()
    if place.startswith(_NOT_IMPORTED):
        return name
    return place if name in _FIXTURES or place.endswith(f".{name}") else f"{place}.{name}"


def _prefixes(name: str) -> Iterable[str]:
    separator = "::" if "::" in name else "."
    parts = name.partition("[")[0].split(separator, _MAX_DEPTH)
    return (separator.join(parts[:end]) for end in range(1, len(parts)))
