"""A failing run beside a passing one: the first lines where path or values part."""

from __future__ import annotations

import os

import pytest

from sandbox.guest.supervisor.processes import diagnosis
from sandbox.session.diagnosis import Comparison, Diagnosis
from tests.guest.diagnosis.conftest import ODD, PYTHON, Diagnose
from tools._diagnosis import render_diagnosis

HEAD = "import unittest\nfrom shop import *\n\nclass Case(unittest.TestCase):\n"
BAD, GOOD = "test_shop.Case.test_bad", "test_shop.Case.test_good"
SHOP = """\
RATES = {"at": 20, "de": 19}

class Line:
    def __init__(self, price, country):
        self.price = price
        self.country = country

def rate(line):
    return RATES.get(line.country, 0)

def discount(price):
    return price - 5

def net(line):
    price = line.price
    if price > 100:
        price = discount(price)
    else:
        price = price + 1
    return price

def total(lines):
    found = 0
    for line in lines:
        found += net(line) + rate(line)
    return found
"""


def comparison(found: Diagnosis) -> Comparison:
    assert found.comparison is not None, found.notes
    assert found.comparison.problems == []
    assert found.comparison.outcome == "failed"
    return found.comparison


def test_operands_of_a_condition_are_no_values_that_differ(diagnose: Diagnose) -> None:
    tests = HEAD + (
        "    def test_good(self):\n        self.assertEqual(total([Line(10, 'at')]), 31)\n"
        "    def test_bad(self):\n        self.assertEqual(total([Line(200, 'at')]), 251)\n"
    )
    shop = SHOP.replace("if price > 100:", "if price > 100 and line.country:")
    seen = comparison(diagnose({"shop.py": shop, "test_shop.py": tests}, BAD, against=GOOD))
    assert seen.values == []
    assert [(one.function, one.name, one.here) for one in seen.inputs] == [("Line.__init__", "price", "200")]


def test_the_first_condition_at_which_two_tests_part(diagnose: Diagnose) -> None:
    tests = HEAD + (
        "    def test_good(self):\n"
        "        self.assertEqual(total([Line(10, 'at'), Line(20, 'at')]), 72)\n"
        "    def test_bad(self):\n"
        "        lines = [Line(10, 'at'), Line(200, 'at')]\n"
        "        self.assertEqual(total(lines), 251)\n"
    )
    found = diagnose({"shop.py": SHOP, "test_shop.py": tests}, BAD, against=GOOD)
    seen = comparison(found)
    (parting,) = seen.paths
    assert (parting.path, parting.line, parting.function) == ("shop.py", 16, "net")
    assert (parting.here, parting.there) == ("True", "False")
    assert (parting.next_here, parting.next_there) == (17, 19)
    assert [(one.called.function, one.line) for one in seen.only_here] == [("discount", 17)]
    assert seen.only_there == []
    assert seen.values == []
    assert [(one.function, one.name, one.here) for one in seen.inputs] == [("Line.__init__", "price", "200")]
    assert render_diagnosis(found).splitlines()[:4] == [
        f"against {GOOD} (passed), 4 functions in both; each as: here | there",
        "  path parts: shop.py:16 net(): if price > 100:   True | False, goes on at :17 | :19",
        "  differs first: shop.py:4 Line.__init__(): def __init__(self, price, country):   price = 200 | 20",
        "  called only here: shop.py:11 discount(), from shop.py:17 net(): price = discount(price)",
    ]


def test_state_that_only_one_run_finds_differs_though_its_inputs_are_the_same(diagnose: Diagnose) -> None:
    shop = """\
CACHE = {}

def look_up(key):
    if key in CACHE:
        return CACHE[key]
    found = len(key)
    CACHE[key] = found
    return found
"""
    tests = HEAD + (
        "    def test_a(self):\n        CACHE['abc'] = 9\n"
        "    def test_bad(self):\n        self.assertEqual(look_up('abc'), 3)\n"
    )
    found = diagnose({"shop.py": shop, "test_shop.py": tests}, BAD, in_order=True, against="auto")
    seen = comparison(found)
    assert seen.against == BAD
    assert [(one.line, one.here, one.there) for one in seen.values] == [(4, "True", "False")]
    assert [(one.line, one.next_here, one.next_there) for one in seen.paths] == [(4, 5, 6)]


def test_an_object_that_differs_by_an_attribute(diagnose: Diagnose) -> None:
    shop = """\
class Box:
    __slots__ = ("size",)

BOX = Box()
BOX.size = 1

def grow():
    return measure(BOX)

def measure(box):
    width = box.size
    return width * 10
"""
    tests = HEAD + (
        "    def test_a(self):\n        BOX.size = 2\n"
        "    def test_bad(self):\n        self.assertEqual(grow(), 10)\n"
    )
    found = diagnose({"shop.py": shop, "test_shop.py": tests}, BAD, in_order=True, against="auto")
    first = comparison(found).values[0]
    assert (first.line, first.name, first.here, first.there) == (8, "BOX", "<Box size=2>", "<Box size=1>")


@pytest.mark.skipif("PDBOX_TEST_PYTHON" in os.environ, reason="pytest may not be there")
def test_a_loop_that_goes_round_more_often_and_what_follows_it(diagnose: Diagnose) -> None:
    shop = """\
def count(items):
    n = 0
    for item in items:
        n += item
    if n > 5:
        n = 0
    return n
"""
    tests = """\
import pytest
from shop import count

@pytest.mark.parametrize("items", [[1, 2], [1, 2, 3], [7]])
def test_count(items):
    assert count(items) == sum(items)
"""
    found = diagnose(
        {"shop.py": shop, "test_shop.py": tests},
        "test_shop.py::test_count[items1]",
        command=f"{PYTHON} -m pytest -q -p no:cacheprovider",
        against="auto",
    )
    seen = comparison(found)
    assert seen.against == "test_shop.py::test_count[items0]"
    assert [(one.line, one.here, one.there, one.next_here, one.next_there) for one in seen.paths] == [
        (3, "[1, 2, 3]", "[1, 2]", 3, 5),
        (5, "True", "False", 6, 7),
    ]


def test_a_program_beside_one_that_does_not_fail(diagnose: Diagnose) -> None:
    app = """\
import subprocess, sys
def parse(text):
    if text.startswith("-"):
        raise ValueError(text)
    return int(text)
subprocess.run([sys.executable, "-c", "import other"])
print(parse(sys.argv[1]))
"""
    found = diagnose(
        {"app.py": app, "other.py": "def f():\n    return 1\nf()\n"},
        command=f"{PYTHON} app.py -3",
        against=f"{PYTHON} app.py 3",
    )
    seen = comparison(found)
    assert (seen.against_outcome, seen.functions) == ("passed", 2)
    assert [(one.line, one.here, one.there) for one in seen.paths] == [(3, "True", "False")]


def test_runs_without_a_common_function_are_told(diagnose: Diagnose) -> None:
    shop = "def one():\n    return 1\ndef two():\n    return 2\n"
    tests = HEAD + (
        "    def test_bad(self):\n        self.assertEqual(one(), 2)\n"
        "    def test_good(self):\n        self.assertEqual(two(), 2)\n"
    )
    found = diagnose({"shop.py": shop, "test_shop.py": tests}, BAD, against=GOOD)
    assert comparison(found).functions == 0
    assert render_diagnosis(found).splitlines()[0] == (
        f"against {GOOD} (passed), can't be aligned: no function of the repository ran in both"
    )


@pytest.mark.parametrize(
    ("against", "note"),
    [
        (BAD, "no comparison: `against` is the failing test itself"),
        ("test_shop.Case.test_none", "no comparison: test_shop.Case.test_none was not run"),
        ("test_shop.Case.test_skipped", "no comparison: test_shop.Case.test_skipped was skipped"),
    ],
)
def test_what_can_not_be_compared_is_told(diagnose: Diagnose, against: str, note: str) -> None:
    tests = HEAD + (
        "    def test_bad(self):\n        self.assertEqual(one(), 2)\n"
        "    @unittest.skip('no')\n    def test_skipped(self): pass\n"
    )
    found = diagnose({"shop.py": "def one():\n    return 1\n", "test_shop.py": tests}, BAD, against=against)
    assert (found.comparison, found.notes) == (None, [note])


def test_a_run_that_fails_too_is_compared_and_told(diagnose: Diagnose) -> None:
    shop = "def one(n):\n    m = n + 1\n    return m\n"
    tests = HEAD + (
        "    def test_bad(self):\n        self.assertEqual(one(1), 1)\n"
        "    def test_good(self):\n        self.assertEqual(one(2), 2)\n"
    )
    found = diagnose({"shop.py": shop, "test_shop.py": tests}, BAD, against=GOOD)
    assert comparison(found).against_failed is not None
    assert f"against {GOOD} (FAILS too: AssertionError at test_shop.py:8), 1 function in both" in (
        render_diagnosis(found)
    )


def test_only_so_many_events_are_compared(diagnose: Diagnose, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosis, "_MAX_COMPARED", 5000)
    shop = "def long(n):\n    for i in range(9000):\n        k = i * n\n    return k\n"
    tests = HEAD + (
        "    def test_bad(self):\n        self.assertEqual(long(1), 0)\n"
        "    def test_good(self):\n        self.assertEqual(long(0), 0)\n"
    )
    found = diagnose({"shop.py": shop, "test_shop.py": tests}, BAD, against=GOOD)
    seen = comparison(found)
    assert seen.cut == "only the first 5000 events of a run were compared"
    assert [(one.name, one.here, one.there) for one in seen.inputs] == [("n", "1", "0")]


def test_objects_that_raise_whatever_is_done_with_them(diagnose: Diagnose) -> None:
    shop = ODD + "def make(n):\n    held = [Odd(), n]\n    return {'odd': held}\n"
    tests = HEAD + (
        "    def test_bad(self):\n        found = make(1)\n        self.assertEqual(len(found), 2)\n"
        "    def test_good(self):\n        self.assertEqual(len(make(2)), 1)\n"
    )
    found = diagnose({"shop.py": shop, "test_shop.py": tests}, BAD, against=GOOD)
    assert comparison(found).functions == 1


def test_a_program_that_forges_its_stream_loses_the_comparison_alone(diagnose: Diagnose) -> None:
    tests = (
        "import atexit, glob, json, os, tempfile\n"
        "def forge():\n"
        "    for folder in glob.glob(os.path.join(tempfile.gettempdir(), 'pdbox-*/job.json')):\n"
        "        folder = os.path.dirname(folder)\n"
        "        try:\n"
        "            job = json.load(open(folder + '/job.json'))\n"
        "        except OSError:\n"
        "            continue  # of another test\n"
        "        if (job['mode'], job['root']) == ('comparison', os.getcwd()):\n"
        "            with open(folder + '/result.json', 'w') as file:\n"
        "                json.dump({'stream': 'AAAA', 'outcome': 'passed'}, file)\n"
        + HEAD
        + "    def test_bad(self):\n        self.assertEqual(one(), 2)\n"
        + "    def test_good(self):\n        atexit.register(forge)\n        one()\n"
    )
    found = diagnose({"shop.py": "def one():\n    return 1\n", "test_shop.py": tests}, BAD, against=GOOD)
    assert found.recording is not None
    assert found.comparison is not None
    assert found.comparison.functions == 0
    assert len(found.comparison.problems) == 1
