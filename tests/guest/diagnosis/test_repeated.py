"""One object in several places of a container: the diagnosis names where it was put there and where it was changed."""

from __future__ import annotations

import pytest

from tests.guest.diagnosis.conftest import Diagnose
from tools._diagnosis import render_diagnosis

TEST = """\
import unittest
from shop import *

class Case(unittest.TestCase):
    def test_bad(self):
        self.assertEqual(made(), {expected})
"""
GRID = """\
def made():
    rows = [[0] * 2] * 3
    rows[1][0] = 1
    return rows
"""
NAMES = """\
def made():
    found = dict.fromkeys(
        ["a", "b"],
        [],
    )
    found["a"].append(1)
    return found
"""
FIELDS = """\
class Field(list):
    pass

class Segment(list):
    def assign(self, number, value):
        missing = number + 1 - len(self)
        self.extend([Field()] * missing)
        self[number].append(value)

def made():
    segment = Segment()
    segment.assign(2, "x")
    return list(segment)
"""
CELLS = """\
class Cell:
    taken = False

def made():
    cells = (Cell(),) * 2
    cells[0].taken = True
    return [cell.taken for cell in cells]
"""


def repeated(diagnose: Diagnose, shop: str, expected: object) -> list[tuple[int, int, int]]:
    """(places, line that put it there, line of the change)."""
    files = {"shop.py": shop, "test_shop.py": TEST.format(expected=expected)}
    found = diagnose(files, "test_shop.Case.test_bad").recording
    assert found is not None
    assert found.problems == []
    return [(one.places, one.stored.line, one.changed.line) for one in found.aliases if one.places]


@pytest.mark.parametrize(
    ("shop", "expected", "wanted"),
    [
        (GRID, [[0, 0], [1, 0], [0, 0]], (3, 2, 3)),
        (NAMES, {"a": [1], "b": []}, (2, 2, 6)),
        (FIELDS, [[], [], ["x"]], (3, 7, 8)),
        (CELLS, [True, False], (2, 5, 6)),
    ],
)
def test_one_object_in_several_places(
    diagnose: Diagnose, shop: str, expected: object, wanted: tuple[int, int, int]
) -> None:
    assert repeated(diagnose, shop, expected) == [wanted]


@pytest.mark.parametrize(
    "shop",
    [
        "def made():\n    zeros = [0] * 3\n    zeros[0] = 1\n    return zeros\n",
        "def made():\n    rows = [[0]] * 2\n    return rows\n",
        "def made():\n    row = []\n    rows = [row, row, [3 * 2]]\n    row.append(1)\n    return rows\n",
    ],
)
def test_numbers_unchanged_objects_and_those_put_there_one_by_one_are_not_told(
    diagnose: Diagnose, shop: str
) -> None:
    assert repeated(diagnose, shop, "None") == []


def test_the_answer_says_how_many_places_have_it(diagnose: Diagnose) -> None:
    files = {"shop.py": GRID, "test_shop.py": TEST.format(expected="None")}
    text = render_diagnosis(diagnose(files, "test_shop.Case.test_bad"))
    assert "one object in 3 places, put there at shop.py:2 made(): rows = [[0] * 2] * 3\n" in text
    assert "    changed at shop.py:3 made()" in text
