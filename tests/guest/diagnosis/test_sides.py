"""The first difference of compared values: where it is, and what is there."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NamedTuple

import pytest

from sandbox.guest.diagnosis.sides import first_difference
from tests.guest.diagnosis.conftest import Diagnose
from tests.guest.diagnosis.test_mutation import CASE, HEAD
from tools._diagnosis import render_diagnosis

DEEP = {"body": [{"id": "a"}, {"id": "b", "span": (1, 2)}]}


class Odd:
    """Its objects raise when they are compared."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("eq")

    def __hash__(self) -> int:
        return hash("id")


class Named(OrderedDict[str, Any]):
    """Its own methods are not asked."""

    def items(self) -> Any:
        raise RuntimeError("items")

    def __len__(self) -> int:
        raise RuntimeError("len")


class Pair(NamedTuple):
    """A tuple with names."""

    first: int
    second: Any


class Loose(dict[str, int]):
    """It compares otherwise than a dict."""

    def __eq__(self, other: object) -> bool:
        return False

    __hash__ = None  # pyright: ignore[reportAssignmentType]


@pytest.mark.parametrize(
    ("actual", "expected", "found"),
    [
        (DEEP, {"body": [{"id": "a"}, {"id": "b", "span": (1, 3)}]}, ("['body'][1]['span'][1]", "2", "3")),
        (DEEP, {"body": [{"id": "a"}, {"id": "b"}]}, ("['body'][1]['span']", "(1, 2)", "nothing")),
        (DEEP, {"body": [{"id": "a"}]}, ("['body'][1]", "{'id': 'b', 'span': (… 2 items)}", "nothing")),
        ([1, 2, 3, 4, 5, 6, 7], [1, 2, 3, 0, 5, 6, 7], ("[3]", "4", "0")),
        ([0, [1]], [0, ["1"]], ("[1][0]", "1", "'1'")),
        ([[1], [2, 3]], [[1, 9], [2, 4]], ("[1][1]", "3", "4")),
        ({Odd(): 1, "x": [1]}, {"id": 1, "x": [2]}, ("['x'][0]", "1", "2")),
        (Named({"x": [1]}), {"x": [2]}, ("['x'][0]", "1", "2")),
        ([Pair(1, [2])], [(1, [3])], ("[0][1][0]", "2", "3")),
        ("a" * 70 + "b", "a" * 70 + "c", ("character 70", "…'" + "a" * 30 + "b'", "…'" + "a" * 30 + "c'")),
        ([["a" * 70]], [["a" * 69]], ("[0][0], character 69", "…'" + "a" * 31 + "'", "…'" + "a" * 30 + "'")),
    ],
)
def test_the_first_difference_is_told(actual: Any, expected: Any, found: tuple[str, str, str]) -> None:
    assert first_difference(actual, expected) == found


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        (1, 2),
        ("ab", "ac"),
        ([1, 2], [1, 3]),
        ([1], (1,)),
        ([[Odd()]], [[Odd()]]),
        ([[Loose(a=1)]], [[Loose(a=2)]]),
        ({"x": OrderedDict(a=[1], b=2)}, {"x": OrderedDict(b=2, a=[3])}),
        (DEEP, DEEP),
        ([], 1),
    ],
    ids=[
        "atoms",
        "short texts",
        "short lists",
        "types",
        "objects",
        "own ==",
        "order",
        "equal",
        "type of an atom",
    ],
)
def test_what_is_seen_at_a_glance_or_can_not_be_compared_is_not_told(actual: Any, expected: Any) -> None:
    assert first_difference(actual, expected) is None


def test_a_cycle_has_an_end() -> None:
    one: list[Any] = [0]
    other: list[Any] = [0]
    one.append(one)
    other.append(other)
    assert first_difference(one, other) is None


def test_equal_numbers_of_other_types_do_not_differ() -> None:
    assert first_difference([[0.0, 55], [1, True]], [[0, 55], [1.0, 0]]) == ("[1][1]", "True", "0")


@pytest.mark.parametrize(
    ("compared", "told"),
    [
        ("{'rows': [{'name': 'a', 'price': 4}]}, rows()", "3 instead of 4"),
        ("rows(), self.expected", "3 instead of 4"),
        ("self.made, rows()", "4 on the left, 3 on the right"),
    ],
)
def test_the_answer_begins_with_the_difference(diagnose: Diagnose, compared: str, told: str) -> None:
    shop = "def rows():\n    return {'rows': [{'name': 'a', 'price': 3}]}\n"
    tests = (
        "import unittest\nfrom shop import rows\n\nclass Case(unittest.TestCase):\n    def test_bad(self):\n"
        "        self.expected = self.made = {'rows': [{'name': 'a', 'price': 4}]}\n"
        f"        self.assertEqual({compared})\n"
    )
    found = diagnose({"shop.py": shop, "test_shop.py": tests}, "test_shop.Case.test_bad")
    assert render_diagnosis(found).startswith(f"differs first at ['rows'][0]['price']: {told}\n")


@pytest.mark.parametrize("assertion", ["self.assertIn('c', text())", "assert 'c' in text()"])
def test_what_is_not_in_a_text_differs_at_no_place(diagnose: Diagnose, assertion: str) -> None:
    tests = f"{HEAD}    def test_bad(self):\n        {assertion}\n"
    found = diagnose({"shop.py": "def text():\n    return 'ab' * 90\n", "test_shop.py": tests}, CASE)
    assert found.recording is not None and found.recording.difference is None
