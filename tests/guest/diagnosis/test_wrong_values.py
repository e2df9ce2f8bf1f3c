"""Wrong values: the changes that put them into objects, also where nothing recorded leads from there to the failure."""

from __future__ import annotations

import pytest

from sandbox.session.diagnosis import Recording
from tests.guest.diagnosis.conftest import PYTHON, Diagnose
from tools._diagnosis import render_diagnosis

ROWS = """\
class Row:
    def __init__(self, cells):
        self.cells = cells

    def copy(self):
        return Row(self.cells)

    def put(self, index, value):
        self.cells[index] = value

def first(row):
    return eval("row.cells[0]")
"""
TESTS = """\
import unittest
from rows import *

class Case(unittest.TestCase):
    def test_bad(self):
        row = Row([1, 2])
        row.copy().put(0, 7)
        self.assertEqual(first(row), 1)

    def test_copy(self):
        self.assertEqual(first(Row([1, 2]).copy()), 1)

    def test_put(self):
        row = Row([1, 2])
        row.put(1, 3)
        row.put(0, 4)
        self.assertEqual(first(row), 4)

    def test_both(self):
        copied = Row([1, 2]).copy()
        copied.put(0, 5)
        self.assertEqual(first(copied), 5)

    test_again = test_more = test_both
"""
COPIED = ROWS.replace("Row(self.cells)", "Row(list(self.cells))")
PUT_TWICE = COPIED.replace("] = value", "] = value + 6")


def recording(diagnose: Diagnose, rows: str, tests: str) -> Recording:
    found = diagnose({"rows.py": rows, "test_rows.py": tests}, "test_rows.Case.test_bad")
    assert found.recording is not None and found.recording.problems == [], found
    return found.recording


def test_a_shared_object_with_the_wrong_value_is_told_where_no_line_is_rare(
    diagnose: Diagnose,
) -> None:
    found = diagnose({"rows.py": ROWS, "test_rows.py": TESTS}, "test_rows.Case.test_bad")
    assert (
        "shared objects:\n"
        "  [… 2 items] stored at rows.py:3 Row.__init__(): self.cells = cells\n"
        "    given by rows.py:6 Row.copy(): return Row(self.cells)\n"
        "    changed at rows.py:9 Row.put(): self.cells[index] = value"
    ) in render_diagnosis(found)


def test_the_change_that_put_a_wrong_value_in_is_told(diagnose: Diagnose) -> None:
    tests = TESTS.replace("row.copy().put(0, 7)", "row.put(0, 1)")
    found = recording(diagnose, PUT_TWICE, tests)
    assert [(one.value, one.name, one.line, one.is_change) for one in found.values] == [
        ("7", "self.cells", 9, True)
    ]


def test_a_value_that_the_failing_line_has_counted_is_not_looked_for(diagnose: Diagnose) -> None:
    counted = "row.put(0, 3); self.assertEqual(len([4, 4, 4]), 1)"
    assert recording(diagnose, ROWS, TESTS.replace("row.copy().put(0, 7)", counted)).values == []


@pytest.mark.parametrize("value", ["0", "None"])
def test_a_value_that_is_put_in_often_is_not_told(diagnose: Diagnose, value: str) -> None:
    tests = TESTS.replace("row.copy().put(0, 7)", f"[row.put(0, {value}) for _ in range(9)]")
    assert recording(diagnose, ROWS, tests).values == []


EXPECTING = """\
import unittest
from rows import *

class Case(unittest.TestCase):
    def test_bad(self):
        expected = "one row"
        {assertion}
"""
NAMES = """\
def one(name):
    return name + " row"

def two(name):
    return name + " rows"
"""


@pytest.mark.parametrize(
    "assertion",
    [
        "self.assertEqual('one row', two('one'))",
        "self.assertEqual(two('one'), 'one row')",
        "self.assertEqual(expected, two('one'))",
        "assert 'one row' == two('one')",
        "assert two('one') == 'one row'",
        "table = {'a': 'one row'}; result = two('one'); assert table['a'] == result",
    ],
)
def test_the_wrong_value_is_the_one_that_the_test_does_not_name(diagnose: Diagnose, assertion: str) -> None:
    tests = EXPECTING.replace("{assertion}", f"one('one'); {assertion}")
    files = {"rows.py": NAMES, "test_rows.py": tests}
    command = f"{PYTHON} -m pytest -q -p no:cacheprovider"
    found = diagnose(files, "test_rows.py::Case::test_bad", command).recording
    assert found is not None and found.problems == []
    assert [(one.value, one.line) for one in found.values] == [("'one rows'", 5)]


LINES = """\
class Line:
    def __init__(self, text):
        self.text = text
        self.parse()

    def parse(self):
        text = self.text.strip()
        text = without_mark(text)
        self.heading = text

    def get(self):
        return f"{self.heading}"[:100]

def without_mark(text):
    return text[1:] if text.startswith("*") else text
"""


def test_the_way_back_goes_to_the_place_where_a_wrong_text_was_made(diagnose: Diagnose) -> None:
    tests = (
        "import unittest\nfrom rows import *\n\nclass Case(unittest.TestCase):\n    def test_bad(self):\n"
        "        self.assertEqual(Line(' *one row').get(), 'one')\n"
    )
    found = recording(diagnose, LINES, tests)
    assert found.chain_of_value
    assert [(one.value, one.line) for one in found.values] == [("'one row'", 15)]
    assert [(one.line, one.value) for one in found.chain][:3] == [
        (6, "'one row'"),
        (12, "'one row'"),
        (15, "'one row'"),
    ]


def test_writes_of_the_attributes_that_the_failing_line_reads_are_told(diagnose: Diagnose) -> None:
    tests = (
        "import unittest\nfrom rows import *\n\nclass Case(unittest.TestCase):\n    def test_bad(self):\n"
        "        line = Line('*one')\n        line.mark = '+'\n"
        "        self.assertEqual((line.heading, line.text, line.mark), ('two', '', ''))\n"
    )
    found = diagnose({"rows.py": LINES, "test_rows.py": tests}, "test_rows.Case.test_bad")
    assert found.recording is not None and found.recording.problems == []
    assert [(one.name, one.line, one.value) for one in found.recording.written] == [("heading", 9, "'one'")]
    text = render_diagnosis(found)
    assert (
        ".heading = 'one' of the failing line was set at rows.py:9 Line.parse(): self.heading = text" in text
    )
