"""Changes of the code with which a failing test passes."""

from __future__ import annotations

import os
import re
import subprocess
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from sandbox.guest.diagnosis.mutation.child import Child
from sandbox.guest.diagnosis.mutation.mutant import AIMED, LIKELY
from sandbox.guest.diagnosis.mutation.observer import _rank  # pyright: ignore[reportPrivateUsage]
from sandbox.guest.supervisor.processes import diagnosis
from sandbox.session.diagnosis import CodeChange, Mutation
from tests.guest.diagnosis.conftest import PYTHON, Diagnose
from tests.guest.operations.conftest import State

HEAD = "import unittest\nfrom shop import *\n\nclass Case(unittest.TestCase):\n"
CASE = "test_shop.Case.test_bad"
CART = """\
class Cart:
    def __init__(self):
        self.__lines = []

    @property
    def lines(self):
        return self.__lines

    def add(self, line):
        if line and line not in self.lines:
            self.lines.append(line)
        return self


class Sorted(Cart):
    def add(self, line):
        super().add(line)
        self.lines.sort()
        return self
"""
CART_TESTS = """\
    def test_bad(self):
        self.assertEqual(Sorted().add('b').add('a').lines, ['b', 'a'])
    def test_once(self):
        self.assertEqual(Cart().add('b').add('b').lines, ['b'])
    def test_nothing(self):
        self.assertEqual(Cart().add('').lines, [])
"""


def mutation(diagnose: Diagnose, shop: str, tests: str, test: str = CASE, **args: str) -> Mutation:
    found = diagnose({"shop.py": shop, "test_shop.py": HEAD + tests}, test, mutate=True, **args)
    assert found.notes == []
    assert found.mutation is not None
    assert found.mutation.problems == []
    return found.mutation


def names_in(state: State) -> list[str]:
    """Names in the repository, but for the bytecode that any run leaves there."""
    return sorted(one.name for one in Path(state.workdir).iterdir() if one.name != "__pycache__")


def changes(found: Mutation) -> list[tuple[int, str, int]]:
    return [(one.line, one.change, one.broken) for one in found.changes]


def test_a_function_that_does_nothing_any_more_is_told_after_what_mends_a_part_of_it(
    diagnose: Diagnose,
) -> None:
    shop = """\
def trip(text):
    words = text.split(" ")
    words.sort()
    return " ".join(words)
"""
    tests = """\
    def test_bad(self):
        self.assertEqual(trip('b a'), 'b a')
    def test_one(self):
        self.assertEqual(trip('a'), 'a')
"""
    told = {one.change: one.hollow for one in mutation(diagnose, shop, tests).changes}
    mending, at_once = "without `words.sort()`", "if it returned its argument `text` at once"
    assert (told[mending], told[at_once]) == (False, True)
    assert [*told].index(mending) < [*told].index(at_once)


@pytest.mark.parametrize("starts_thread", [False, True])
def test_of_a_file_with_few_tests_changes_may_harm_those_of_its_folder(
    diagnose: Diagnose, starts_thread: bool
) -> None:
    shop = "def label(name):\n    name = name.strip()\n    return name.upper()\n"
    bad = "from shop import label\ndef test_bad():\n    assert label(' a') == 'a'\n"
    others = "from shop import label\nimport pytest, threading, time\n"
    if starts_thread:  # changes can't be tried beside it
        others += "threading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n"
    others += "@pytest.mark.parametrize('number', range(6))\n"
    others += "def test_upper(number):\n    assert label('a' * number) == 'A' * number\n"
    others += "def test_other():\n    assert label('a ') == 'a'\n"
    files = {"conftest.py": "", "shop.py": shop, "tests/test_bad.py": bad, "tests/test_others.py": others}
    found = diagnose(files, "tests/test_bad.py::test_bad", f"{PYTHON} -m pytest -q", mutate=True).mutation
    assert found is not None
    told = {one.change: one.broken for one in found.changes}
    if starts_thread:
        assert (found.others, told["with `name` for `name.upper()`"]) == (0, 0)
    else:
        assert (found.others, found.failing) == (6, 0)  # one of another file fails for whatever reason
        assert told["with `name` for `name.upper()`"] == 5


def test_other_failing_tests_run_before_those_that_pass(diagnose: Diagnose) -> None:
    shop = "def label(name):\n    return name.strip().upper()\n"
    tests = "from shop import label\nimport pytest\ndef test_bad():\n    assert label(' a') == 'a'\n"
    tests += "@pytest.mark.parametrize('number', range(100))\ndef test_empty(number):\n    assert label('') == ''\n"
    tests += "def test_other():\n    assert label('b ') == 'b'\n"
    files = {"shop.py": shop, "test_shop.py": tests}
    found = diagnose(files, "test_shop.py::test_bad", f"{PYTHON} -m pytest -q", mutate=True).mutation
    assert found is not None
    assert (found.others, found.failing) == (58, 1)  # of the first sixty that run
    assert found.changes[0].mended == 1


MARKS = """\
class Mark:
    def __init__(self, text):
        self.unsure: bool = text in "?%"
        self.about: bool = text in "~%"
"""
MARK_TESTS = """\
    def test_bad(self):
        mark = Mark("%")
        self.assertFalse(mark.unsure)
        self.assertFalse(mark.about)
    def test_unsure(self):
        self.assertTrue(Mark("?").unsure)
    def test_maybe(self):
        self.assertTrue(Mark("~").about)
"""


def test_two_changes_of_which_each_lets_the_test_come_further(diagnose: Diagnose) -> None:
    found = mutation(diagnose, MARKS, MARK_TESTS)
    best = found.changes[0]
    assert (best.line, best.broken, best.ran) == (3, 0, 2)
    assert best.change == """without `'%'` in `text in "?%"`, and :4 without `'%'` in `text in "~%"`"""


def test_two_changes_of_which_each_mends_other_tests_too(diagnose: Diagnose) -> None:
    tests = (
        MARK_TESTS.replace("        self.assertFalse(mark.about)\n", "")
        + """\
    def test_one(self):
        mark = Mark("%")
        self.assertEqual((mark.unsure, mark.about), (False, False))
    def test_other(self):
        self.assertFalse(Mark("%").unsure)
"""
    )
    found = mutation(diagnose, MARKS, tests)
    best = found.changes[0]
    assert (best.broken, best.mended) == (0, 2) and ", and :4 without" in best.change
    assert all(one.mended == 1 for one in found.changes if ", and :" not in one.change)


def test_where_nothing_lets_the_test_pass_changes_with_which_it_comes_further(diagnose: Diagnose) -> None:
    shop = (
        "def count(items):\n    return len(items) + 1\ndef total(items):\n    return 'none' + items[0] * 7\n"
    )
    tests = """\
    def test_bad(self):
        self.assertEqual(count("ab"), 2)
        self.assertEqual(total("ab"), "b of a")
    def test_good(self):
        self.assertTrue(count("ab"))
    def test_total(self):
        self.assertTrue(total("ab"))
"""
    found = mutation(diagnose, shop, tests)
    assert found.changes == []
    best = found.further[0]
    assert (best.function, best.line, best.broken, best.ran) == ("count", 2, 0, 2)
    line = (HEAD + tests).splitlines().index('        self.assertEqual(total("ab"), "b of a")') + 1
    assert best.fails_at == f"test_shop.py:{line}"


def test_a_change_that_breaks_the_set_up_is_none_with_which_the_test_comes_further(
    diagnose: Diagnose,
) -> None:
    shop = "def make(n):\n    return [n] * n\ndef total(items):\n    return 'none' + str(items[0] * 7)\n"
    tests = """\
    def test_bad(self):
        self.assertEqual(total(self.made), "b of a")
    def test_good(self):
        self.assertTrue(total([1]))
    def setUp(self):
        self.made = make(2)
        self.assertEqual(self.made, [2, 2])
"""
    found = mutation(diagnose, shop, tests)
    assert found.changes == found.further == []


def test_how_far_a_test_comes_is_told_by_the_line_of_its_helper(diagnose: Diagnose) -> None:
    shop = (
        "def count(items):\n    return len(items) + 1\ndef total(items):\n    return 'none' + items[0] * 7\n"
    )
    helper = "def check(case, items):\n    case.assertEqual(count(items), 2)\n    case.assertEqual(total(items), 'x')\n"
    tests = HEAD.replace("shop", "tests.helpers") + "    def test_bad(self):\n        check(self, 'ab')\n"
    files = {
        "shop.py": shop,
        "tests/__init__.py": "",
        "tests/helpers.py": "from shop import *\n" + helper,
        "tests/test_shop.py": tests,
    }
    found = diagnose(files, "tests.test_shop.Case.test_bad", mutate=True).mutation
    assert found is not None
    assert {one.fails_at for one in found.further} == {"tests/helpers.py:4"}


def test_a_child_has_no_time_for_other_tests_after_its_latest_end() -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb", 0) as file:
        child = Child([], (set(), set()))
        child.begin(reading, 100, 1000)
        child.latest = child.ends + 10
        file.write(b'["test_a", "failed", null]\n')
        assert child.read() and child.outcomes
        assert child.ends == child.latest
    os.close(reading)


def test_deeply_nested_code_is_changed_too(diagnose: Diagnose) -> None:
    deep = "def deep(n):\n    if n == 0:\n        return 0\n" + "".join(
        f"    elif n == {number}:\n        return {number}\n" for number in range(1, 700)
    )
    shop = deep + "def total(n):\n    found: int = n + 1\n    return found\n"
    tests = "    def test_bad(self):\n        self.assertEqual((deep(2), total(3)), (2, 3))\n"
    assert mutation(diagnose, shop, tests).passing > 0


def test_what_few_other_tests_have_run_with_and_what_does_nothing_any_more_come_later() -> None:
    def passing(
        ran: int, likelihood: int, mended: int = 0, broken: int = 0, *, is_hollow: bool = False
    ) -> tuple[object, ...]:
        mutant = SimpleNamespace(is_blunt=False, is_hollow=is_hollow, likelihood=likelihood)
        counts = {"of_others": lambda: (broken, ran), "mended": lambda: mended}
        return SimpleNamespace(is_of_tests=False, is_only_here=False, **counts), None, mutant

    ordered = [
        passing(60, LIKELY, 2, 1),
        passing(60, LIKELY, 1),
        passing(60, AIMED),
        passing(60, LIKELY),
        passing(0, AIMED),
        passing(60, AIMED, 2, is_hollow=True),
    ]
    turned = ordered[::-1]
    turned.sort(key=partial(_rank, 2))
    assert turned == ordered


def test_of_a_cache_the_function_is_told_whose_results_it_keeps(diagnose: Diagnose) -> None:
    shop = """\
import functools

NAMED = {}

@functools.lru_cache()
def add(text):
    name = text.strip("<>")
    NAMED[name] = text
    return name

def read(text):
    return NAMED[add(text)]
"""
    tests = """\
    def test_bad(self):
        self.assertEqual([read('<a'), read('a>'), read('<a')], ['<a', 'a>', '<a'])
"""
    found = mutation(diagnose, shop, tests)
    told = {one.change: one.computed_by for one in found.changes}
    kept = told["without the cache around `add`, line 5"]
    assert kept is not None and (kept.path, kept.line, kept.function) == ("shop.py", 6, "add")
    assert [one for change, one in told.items() if "cache" not in change and one] == []


@pytest.mark.parametrize(
    ("command", "test"),
    [(f"{PYTHON} -m unittest", CASE), (f"{PYTHON} -m pytest -q", "test_shop.py::Case::test_bad")],
)
def test_a_statement_without_which_the_test_passes_is_found(
    diagnose: Diagnose, command: str, test: str
) -> None:
    found = mutation(diagnose, CART, CART_TESTS, test, command=command)
    assert (18, "without `self.lines.sort()`", 0) in changes(found)
    assert found.others == 2 and {one.ran for one in found.changes} == {2}
    assert {one.function for one in found.changes} <= {"Sorted.add", "Cart.add", "Cart.lines"}
    assert found.tried > found.passing == len(found.changes)


AT_IMPORT = """\
import unittest
from shop import *

CART = Sorted().add('b').add('a')

class Case(unittest.TestCase):
    def test_bad(self):
        self.assertEqual(CART.lines, ['b', 'a'])
    def test_one(self):
        self.assertEqual(Cart().add('b').add('a').lines, ['b', 'a'])
"""


@pytest.mark.parametrize(
    ("command", "test"),
    [(f"{PYTHON} -m unittest", CASE), (f"{PYTHON} -m pytest -q", "test_shop.py::Case::test_bad")],
)
def test_code_that_runs_when_the_test_is_imported_is_changed_too(
    diagnose: Diagnose, command: str, test: str
) -> None:
    found = diagnose({"shop.py": CART, "test_shop.py": AT_IMPORT}, test, command=command, mutate=True)
    assert found.mutation is not None and found.mutation.problems == []
    assert (18, "without `self.lines.sort()`", 0) in changes(found.mutation)


AT_START = {
    "shop/__init__.py": "from shop.table import TABLE\n",
    "shop/names.py": "NAMES = ['B', 'b']\n",
    "shop/table.py": """\
from shop.names import NAMES
from shop import names

class Table(dict): pass

def table(names):
    made = Table()
    for name in names:
        made.setdefault(name.lower(), name)
    return made

TABLE = table(NAMES)
""",
    "test_shop.py": """\
import unittest
from shop import TABLE
from shop.table import Table, names

class Case(unittest.TestCase):
    def test_bad(self):
        self.assertEqual(TABLE, {'b': 'b'})
    def test_type(self):
        self.assertIsInstance(TABLE, Table)
        self.assertEqual(len(names.NAMES), 2)
""",
}


@pytest.mark.parametrize(
    ("command", "test"),
    [(f"{PYTHON} -m unittest", CASE), (f"{PYTHON} -m pytest -q", "test_shop.py::Case::test_bad")],
)
def test_code_that_runs_when_a_package_is_imported_is_changed_too(
    diagnose: Diagnose, command: str, test: str
) -> None:
    found = diagnose(AT_START, test, command=command, mutate=True).mutation
    assert found is not None and found.problems == []
    assert (9, "with an assignment for `made.setdefault(name.lower(), name)`", 0) in changes(found)
    assert found.changes[0].ran == 1


def test_a_package_that_fails_when_it_is_imported_twice_is_not(diagnose: Diagnose) -> None:
    once = "import builtins\nassert not hasattr(builtins, 'seen')\nbuiltins.seen = True\nNAMES = ['B', 'b']\n"
    found = diagnose({**AT_START, "shop/names.py": once}, CASE, mutate=True).mutation
    assert found is not None and found.problems == [] and found.changes == []


def test_a_module_that_fails_when_it_is_executed_twice_is_not(diagnose: Diagnose) -> None:
    once = "import builtins\nassert not hasattr(builtins, 'seen')\nbuiltins.seen = True\n"
    found = diagnose({"shop.py": CART, "test_shop.py": once + AT_IMPORT}, CASE, mutate=True).mutation
    other = diagnose({"shop.py": CART, "test_shop.py": AT_IMPORT}, CASE, mutate=True).mutation
    assert found is not None and other is not None and found.problems == []
    assert 0 < found.tried < other.tried and found.changes == []


def test_tests_that_fail_once_their_module_is_executed_anew_are_not_counted(diagnose: Diagnose) -> None:
    kind = "class Mine: pass\nKEPT.append(Mine())\n"
    tests = AT_IMPORT.replace("CART =", f"{kind}CART =").replace(
        "import unittest\n", "import unittest\nfrom kept import KEPT\n"
    )
    tests += "    def test_kind(self):\n        self.assertIsInstance(KEPT[0], Mine)\n"
    found = diagnose(
        {"shop.py": CART, "kept.py": "KEPT = []\n", "test_shop.py": tests}, CASE, mutate=True
    ).mutation
    assert found is not None and found.others == 2
    told = next(one for one in found.changes if one.change == "without `self.lines.sort()`")
    assert (told.broken, told.ran) == (0, 1)


FIRST = """\
class Cart:
    def __init__(self):
        self.lines = []

    def add(self, name):
        self.lines.append(name)
        self.lines.sort()
        return self

    def first(self):
        return self.lines[0]
"""


def test_changes_that_mend_other_failing_tests_come_first(diagnose: Diagnose) -> None:
    tests = """\
    def test_bad(self):
        self.assertEqual(Cart().add('b').add('a').first(), 'b')
    def test_good(self):
        self.assertEqual(Cart().add('a').first(), 'a')
    def test_order(self):
        self.assertEqual(Cart().add('b').add('a').lines, ['b', 'a'])
"""
    found = mutation(diagnose, FIRST, tests)
    assert (found.others, found.failing) == (1, 1)
    told = {one.change: (one.line, one.broken, one.mended) for one in found.changes}
    assert told["without `self.lines.sort()`"] == (7, 0, 1)
    assert told["with `-1` for `0`"] == (11, 0, 0)
    assert found.changes[0].mended == 1


def test_other_lines_with_the_state_that_changes_are_about_are_told(diagnose: Diagnose) -> None:
    shop = """\
class Prices:
    def __init__(self):
        self.cache = {}
    def price(self, name):
        if name[0] not in self.cache:
            self.cache[name[0]] = len(name)
        return self.cache[name[0]]
    def forget(self):
        self.cache.clear()
"""
    tests = "    def test_bad(self):\n        prices = Prices()\n        prices.price('ab')\n"
    state = mutation(diagnose, shop, tests + "        self.assertEqual(prices.price('abc'), 3)\n").state
    assert state is not None and state.name == "cache"
    assert [(one.path, one.line, one.function, one.is_written) for one in state.uses] == [
        ("shop.py", 3, "Prices.__init__", True),
        ("shop.py", 5, "Prices.price", False),
        ("shop.py", 6, "Prices.price", True),
        ("shop.py", 7, "Prices.price", False),
        ("shop.py", 9, "Prices.forget", True),
    ]


def test_other_tests_that_fail_with_a_change_are_counted(diagnose: Diagnose) -> None:
    shop = "def f(n):\n    if n > 2:\n        return 0\n    return n\n"
    tests = "    def test_bad(self):\n        self.assertEqual(f(3), 3)\n"
    tests += "    def test_four(self):\n        self.assertEqual(f(4), 0)\n"
    found = changes(mutation(diagnose, shop, tests))
    assert (2, "if `n > 2` were false", 1) in found
    assert found[-1][2] == 1


def test_functions_in_functions_and_generators_are_changed(diagnose: Diagnose) -> None:
    shop = """\
def counted(function):
    def call(*args):
        result = list(function(*args))
        result.append(0)
        return result
    return call

@counted
def f(n):
    for i in range(n):
        if i % 2:
            yield i
"""
    tests = "    def test_bad(self):\n        self.assertEqual(f(4), [1, 3])\n"
    assert changes(mutation(diagnose, shop, tests)) == [(4, "without `result.append(0)`", 0)]


def test_a_module_that_the_test_itself_imports_is_changed(diagnose: Diagnose) -> None:
    tests = "import unittest\nclass Case(unittest.TestCase):\n    def test_bad(self):\n        import shop\n"
    files = {
        "shop.py": "def f(n):\n    return n + 1\n",
        "test_shop.py": tests + "        self.assertEqual(shop.f(3), 3)\n",
    }
    found = diagnose(files, CASE, mutate=True).mutation
    assert found is not None
    assert (2, "with `0` for `1`", 0) in changes(found)


def test_a_change_that_is_no_code_is_not_tried(diagnose: Diagnose) -> None:
    shop = "def f(n):\n    for i in range(n):\n        n = i\n        if i > 1:\n            break\n    return n\n"
    tests = "    def test_bad(self):\n        self.assertEqual(f(3), 1)\n"
    assert (4, "with `>=` in `i > 1`", 0) in changes(mutation(diagnose, shop, tests))


def test_changed_code_removes_and_writes_no_files_of_the_repository(
    diagnose: Diagnose, state: State, tmp_path: Path
) -> None:
    shop = """\
import os, shutil, subprocess, tempfile

def f(really=False):
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(folder + '/a')
        open(folder + '/a/b', 'w').close()
        if really:
            shutil.rmtree('data')
        if really:
            open('written', 'w').close()
        if really:
            os.rename('data/keep', 'data/lost')
        if really:
            subprocess.run(['touch', 'started'])
    return 1
"""
    tests = "    def test_bad(self):\n        self.assertEqual(f(), 2)\n"
    (kept := Path(state.workdir, "data", "keep")).parent.mkdir()
    kept.write_text("x")
    found = mutation(diagnose, shop, tests)
    assert found.problem == "" and found.tried > 8
    assert (15, "with `2` for `1`", 0) in changes(found)
    assert kept.read_text() == "x"
    assert names_in(state) == ["data", "shop.py", "test_shop.py"]


def test_what_a_test_makes_in_the_repository_is_removed(diagnose: Diagnose, state: State) -> None:
    shop = """\
import os
import shutil

def f(name):
    os.makedirs(name + "/deep")
    with open(name + "/deep/file", "w") as file:
        file.write("x")
    os.rename(name + "/deep/file", name + "/other")
    os.symlink("shop.py", name + "/link")
    n = 1
    if name == "never":
        shutil.rmtree(name)
    return n
"""
    tests = "    def test_bad(self):\n        self.addCleanup(shutil.rmtree, 'made')\n"
    tests += "        self.assertEqual(f('made'), 2)\n"
    found = mutation(diagnose, shop, "    import shutil\n" + tests)
    assert found.problem == ""
    assert (10, "with `2` for `1`", 0) in changes(found)
    assert names_in(state) == ["shop.py", "test_shop.py"]


def test_a_test_that_changes_a_file_of_the_repository_is_not_tried(diagnose: Diagnose) -> None:
    tests = (
        "    def test_bad(self):\n        open('shop.py', 'a').close()\n        self.assertEqual(f(), 2)\n"
    )
    found = mutation(diagnose, "def f():\n    return 1\n", tests)
    why = "the test fails otherwise there (PermissionError: open by changed code: 'shop.py')"
    assert (found.problem, found.tried) == (why, 0)


def test_what_changed_code_writes_into_an_open_file_goes_nowhere(diagnose: Diagnose, state: State) -> None:
    shop = "log = open('log', {mode!r})\ndef f():\n    log.write('x')\n    log.flush()\n    return 1\n"
    tests = "    def test_bad(self):\n        self.assertEqual(f(), 2)\n"
    found = mutation(diagnose, shop.format(mode="a"), tests)
    assert (found.problem, (5, "with `2` for `1`", 0) in changes(found)) == ("", True)
    log = Path(state.workdir, "log").read_text()
    assert log and len(log) < found.tried  # of the runs without changes
    found = mutation(diagnose, shop.format(mode="a+"), tests)
    assert found.problem == "a file of the repository is open for reading and writing when the test begins"


def test_the_line_that_raises_is_not_changed(diagnose: Diagnose) -> None:
    shop = "def check(n):\n    if n > 2:\n        raise AssertionError(n)\n"
    found = changes(mutation(diagnose, shop, "    def test_bad(self):\n        check(3)\n"))
    assert {line for line, _, _ in found} == {1, 2}


def test_a_process_with_threads_is_not_forked(diagnose: Diagnose) -> None:
    shop = "import threading\nstop = threading.Event()\nthreading.Thread(target=stop.wait, daemon=True).start()\n"
    tests = "    def test_bad(self):\n        self.assertEqual(f(), 2)\n"
    found = mutation(diagnose, shop + "def f():\n    return 1\n", tests)
    assert found.problem == "other threads run when the test begins"


def test_a_test_case_of_the_package_is_changed_after_all_else(diagnose: Diagnose) -> None:
    shop = "import unittest\n\nclass Quiet(unittest.TestCase):\n    def check(self, a, b):\n"
    shop += "        if a != b:\n            self.fail('no')\n\ndef f():\n    return 1\n"
    tests = (
        HEAD.replace("unittest.TestCase", "Quiet") + "    def test_bad(self):\n        self.check(f(), 2)\n"
    )
    found = diagnose({"shop.py": shop, "test_shop.py": tests}, CASE, mutate=True).mutation
    assert found is not None and found.problems == []
    assert found.changes[0].function == "f"
    assert {one.function for one in found.changes} == {"f", "Quiet.check"}


def test_changes_that_never_end_are_ended(diagnose: Diagnose, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = "def f(n):\n    i = 0\n    while i < n:\n        i += 1\n    return i + 1\n"
    tests = "    def test_bad(self):\n        self.assertEqual(f(3), 3)\n"
    found = mutation(diagnose, shop, tests)
    assert (5, "with `0` for `1`", 0) in changes(found)


def test_no_change_is_tried_where_that_is_not_wanted(diagnose: Diagnose) -> None:
    files = {"shop.py": CART, "test_shop.py": HEAD + CART_TESTS}
    assert diagnose(files, CASE).mutation is None


def test_another_test_that_never_ends_with_a_change_has_not_run(diagnose: Diagnose) -> None:
    shop = """\
state = []

def mark():
    state.append(1)

def run(waits):
    state.clear()
    mark()
    while waits and not state:
        pass
    return len(state)
"""
    tests = "    def test_bad(self):\n        self.assertEqual(run(False), 0)\n"
    tests += "    def test_waits(self):\n        self.assertEqual(run(True), 1)\n"
    found = mutation(diagnose, shop, tests)
    told = {one.change: (one.broken, one.ran) for one in found.changes}
    assert (found.others, told["without `mark()`"]) == (1, (0, 0))


def test_when_the_time_is_over_no_more_are_tried(diagnose: Diagnose, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosis, "_MUTATION_S", 0.0)
    monkeypatch.setattr(diagnosis, "_MUTATION_IN_VAIN_S", (0.0, 0.0))
    found = mutation(diagnose, CART, CART_TESTS)
    assert (found.tried, found.cut) == (0, "the time for it was over")


MARKED = """\
def mark(text):
    if text:
        text = text + "!"
    return text

def join(names):
    result = ",".join(names)
    if len(result) > 100 or result == "":
        result = result[7:]
    return result
"""


@pytest.mark.parametrize("is_run", [True, False])
def test_a_change_that_no_passing_test_runs_does_not_end_the_search(
    diagnose: Diagnose, monkeypatch: pytest.MonkeyPatch, is_run: bool
) -> None:
    monkeypatch.setattr(diagnosis, "_MUTATION_S", 0.0)
    monkeypatch.setattr(diagnosis, "_MUTATION_IN_VAIN_S", (60.0, 60.0))
    tests = "    def test_bad(self):\n        self.assertEqual(mark(join(['a'])), 'a')\n"
    tests += f"    def test_good(self):\n        self.assertTrue({'mark' if is_run else ''}(join(['b'])))\n"
    found = mutation(diagnose, MARKED, tests)
    told = {one.change: one.only_here for one in found.changes}
    assert told["if `text` were false"] is not is_run
    assert bool(found.cut) == is_run


def test_without_other_tests_the_search_ends_where_some_changes_help(
    diagnose: Diagnose, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diagnosis, "_MUTATION_S", 0.0)
    monkeypatch.setattr(diagnosis, "_MUTATION_IN_VAIN_S", (60.0, 60.0))
    tests = "    def test_bad(self):\n        self.assertNotEqual(mark(join(['a'])), 'a!')\n"
    found = mutation(diagnose, MARKED, tests)
    assert found.passing >= 3 and found.cut
    assert all(one.only_here for one in found.changes)


def test_a_change_of_a_whole_function_is_told_to_be_of_lines_that_no_passing_test_runs(
    diagnose: Diagnose,
) -> None:
    tests = "    def test_bad(self):\n        self.assertNotEqual(mark(join(['a'])), 'a!')\n"
    tests += "    def test_good(self):\n        self.assertTrue(join(['b']))\n"
    found = mutation(diagnose, MARKED, tests)
    told = {one.function: one.only_here for one in found.changes if one.change == "if it returned at once"}
    assert told["mark"] and not told.get("join")


ROUTES = """\
class Routes:
    known = {}

    def __init__(self, names, strict=False):
        self.names, self.strict = list(names), strict
        for name in names:
            if name not in self.known or self.strict:
                self.known[name] = len(self.known)

    def find(self, name):
        number = self.known.get(name)
        if number is None and self.strict:
            raise KeyError(name)
        if number is not None and number >= len(self.names):
            number = None
        return number
"""
TEST = "    def test_bad(self):\n        {}\n        self.assertEqual({}, {})\n"


@pytest.mark.parametrize(
    ("shop", "tests"),
    [
        (CART, CART_TESTS),
        (ROUTES, TEST.format("Routes('ab')", "Routes('cd').find('c')", 2)),
        (ROUTES, TEST.format("Routes('ba')", "Routes('ab', strict=True).find('a')", 2)),
    ],
)
def test_with_each_change_that_is_told_made_in_the_file_the_test_passes(
    diagnose: Diagnose, state: State, shop: str, tests: str
) -> None:
    found = mutation(diagnose, shop, tests)
    made = [(one, changed) for one in found.changes if (changed := changed_by_hand(shop, one))]
    assert len(made) >= 1
    for one, changed in made:
        Path(state.workdir, "shop.py").write_text(changed)
        run = subprocess.run(
            [PYTHON, "-m", "unittest", CASE], cwd=state.workdir, capture_output=True, text=True, check=False
        )
        assert run.returncode == 0, (one.change, run.stderr)


def changed_by_hand(text: str, one: CodeChange) -> str:
    """The text of a file with a statement left out, or with a condition that is replaced; empty for another change."""
    lines = text.splitlines()
    line = lines[one.line - 1]
    removed = re.fullmatch(r"without `(.*)`", one.change)
    forced = re.fullmatch(r"if `(.*)` were (true|false)", one.change)
    if removed and line.strip() == removed[1]:
        lines[one.line - 1] = line.replace(removed[1], "pass")
    elif forced and forced[1] in line:
        lines[one.line - 1] = line.replace(forced[1], forced[2].capitalize())
    else:
        return ""
    return "\n".join(lines) + "\n"


def test_the_functions_of_findings_are_named_the_surest_first() -> None:
    def place(line: int) -> dict[str, object]:
        return {"path": "shop.py", "line": line, "function": "f", "text": ""}

    kept = {
        "writers": [place(4)],
        "written": place(5),
        "read": place(6),
        "passed_by": [],
        "others": [place(7)],
    }
    recording = {
        "signals": [{"kind": "used_up", "places": [place(1)]}],
        "aliases": [{"changed": place(2), "stored": place(3)}],
        "kept": [kept],
    }
    assert diagnosis._named_lines(recording) == [["shop.py", line] for line in range(1, 8)]
    assert diagnosis._named_lines({**recording, "kept": [{"writers": 3}]}) == []
    assert diagnosis._named_lines({}) == []


LENDING = """\
kept = []

def keep(lines):
    kept.append(lines)

def fill(lines):
    lines.append(1)

def send(lines):
    keep(lines)
    keep(
        lines=lines)
    keep([*lines])
    fill(lines)
    fill(lines)
    lines.append(2)
    fill(lines)
    return kept
"""


def test_arguments_that_are_changed_after_the_call_are_found(
    diagnose: Diagnose, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[list[tuple[str, int]]] = []

    def take(runs: object, spectrum: object, recording: dict[str, list[tuple[str, int]]]) -> None:
        found.append(recording.pop("lent"))

    monkeypatch.setattr(diagnosis._Runs, "_mutate", take)  # pyright: ignore[reportPrivateUsage]
    test = "    def test_bad(self):\n        lines = []\n        self.assertEqual(send(lines), [])\n"
    diagnose({"shop.py": LENDING, "test_shop.py": HEAD + test}, CASE, mutate=True)
    # Not the last call, after which nothing is changed, and not that of the test.
    assert found == [[["shop.py", number] for number in (10, 12, 14, 15)]]
