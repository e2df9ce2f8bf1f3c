"""The order in which changes are tried."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sandbox.guest.diagnosis.mutation.definitions import Definitions
from sandbox.guest.diagnosis.mutation.plan import Plan

OFTEN = """\
def f{0}(a, b):
    for one in reversed(a):
        b.append(one)
    return a + b if a > b else len(a) + 2
"""
SELDOM = """\
class Walk:
    def __init__(self, found):
        self.depth, self.found = 0, found

    def visit(self, depth):
        self.depth = depth
        self.found.append(self.depth)
"""


def plan(text: str, lent: Sequence[tuple[str, int]] = (), **spectrum: Any) -> list[tuple[str, str]]:
    """(function, change) of a module whose lines have all run, the first lines being the most suspect."""
    tree, lines = ast.parse(text), text.splitlines()
    job: Any = SimpleNamespace(
        relative=lambda name: Path(name).name, read=lambda name: {"named": [], "ranking": [], "lent": lent}
    )
    loaded: Any = SimpleNamespace(
        has=lambda function: True, is_of_tests=lambda function: function.name.startswith("Case.")
    )
    every = [("shop.py", number, 1 - number / 10_000) for number in range(1, len(lines) + 1)]
    given = {"plain": {}, "outside": [], "all_lines": True, **spectrum}
    made = Plan(job, given, loaded, Definitions({"/workspace/shop.py": tree}), every, {}, {})
    return [(function.name, mutant.describe(lines)) for function, mutant in made.changes()]


def test_a_kind_of_which_there_are_few_comes_early_though_its_function_is_the_last() -> None:
    many = "".join(map(OFTEN.format, range(60)))
    order = plan(many + SELDOM)
    put_back = order.index(("Walk.visit", "with `self.depth` at its end as it was before"))
    assert len(order) > 1000
    assert put_back < 60


def test_each_change_comes_once() -> None:
    order = plan(OFTEN.format(1) + OFTEN.format(2) + SELDOM)
    assert len(order) == len(set(order)) > 50


def test_methods_of_test_cases_come_last() -> None:
    method = "".join(f"    {line}\n" for line in OFTEN.format(0).splitlines())
    order = plan("class Case:\n" + method + "".join(map(OFTEN.format, range(1, 9))))
    for kind in ("in reverse", "with `<`", "with `1` for `2`"):
        assert [name for name, change in order if kind in change][-1] == "Case.f0"


@pytest.mark.parametrize(
    ("body", "is_reset"),
    [
        ("return True or self.items == 1", False),
        ("return 1 if self.items else 2", False),
        ("return sorted(self.items)", True),
        ("return self", True),
        ("pass", True),
        ("yield self.items", True),
    ],
)
def test_a_method_that_only_answers_resets_nothing(body: str, is_reset: bool) -> None:
    text = (
        f"class Box:\n    def __init__(self):\n        self.items = []\n\n    def f(self):\n        {body}\n"
    )
    assert (("Box.f", "with `self.items = []` at its start") in plan(text)) is is_reset


def test_of_one_kind_the_most_suspect_function_comes_first() -> None:
    order = [
        name for name, change in plan("".join(map(OFTEN.format, range(9)))) if change.endswith("in reverse")
    ]
    assert order == [f"f{number}" for number in range(9)]


def test_a_change_of_the_line_that_raised_is_none() -> None:
    told = {change for _, change in plan(OFTEN.format(1), plain={"path": "shop.py", "line": 4})}
    assert "with `b.append(one)` after the block of `for one in reversed(a):…`, not in it" in told
    assert not any("a > b" in one for one in told)


def test_copies_of_arguments_that_are_changed_after_the_call_come_early() -> None:
    def place(lent: Sequence[tuple[str, int]]) -> int:
        text = "".join(map(OFTEN.format, range(60))) + "def send(lines):\n    keep(lines)\n    return lines\n"
        return plan(text, lent).index(("send", "with a copy of `lines` in `keep(lines)`"))

    line = 60 * OFTEN.count("\n") + 2
    assert place([("shop.py", line)]) < 60
    assert place([("shop.py", line - 1), ("other.py", line)]) > 1000
