"""Recordings that do not fit, or that change what the program does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sandbox.guest.supervisor.processes import diagnosis, observed_run
from tests.guest.diagnosis.conftest import ODD, PYTHON, Diagnose
from tests.guest.operations.conftest import State

HEAD = "import unittest\nfrom shop import *\n\nclass Case(unittest.TestCase):\n"
CASE, ITEM = "test_shop.Case.test_bad", "test_shop.py::Case::test_bad"


@pytest.mark.parametrize(
    ("failing", "differs"),
    [
        (
            "    if len(locals()) > 1: raise ValueError(1)\n    raise ValueError(1)\n",
            "ValueError: 1 at shop.py:3",
        ),
        ("    raise (KeyError if len(locals()) > 1 else ValueError)(1)\n", "KeyError: 1 at shop.py:3"),
    ],
)
def test_a_recording_that_fails_at_another_line_or_with_another_type_is_not_used(
    diagnose: Diagnose, failing: str, differs: str
) -> None:
    shop = "def names():\n    x = 1\n" + failing
    found = diagnose(
        {"shop.py": shop, "test_shop.py": HEAD + "    def test_bad(self):\n        names()\n"}, CASE
    )
    assert found.spectrum is not None
    assert found.spectrum.plain is not None
    assert found.spectrum.plain.type == "ValueError"
    assert found.recording is not None
    assert found.recording.differs == differs
    assert (found.recording.chain, found.recording.aliases) == ([], [])


def test_code_of_a_test_that_the_program_reads_is_not_recorded(diagnose: Diagnose) -> None:
    shop = """\
def find(query):
    if query.__code__.co_names != ("price",):
        raise LookupError(query.__code__.co_names)
    return bounded(1)

def bounded(n):
    return min(n, 1)
"""
    tests = HEAD + "    def test_bad(self):\n        self.assertEqual(find(lambda row: row.price), 2)\n"
    found = diagnose({"shop.py": shop, "test_shop.py": tests}, CASE)
    assert found.recording is not None and found.recording.differs == ""
    assert found.recording.events > 0


def test_functions_of_other_tests_are_not_recorded(diagnose: Diagnose) -> None:
    other = "def square(n):\n    return n * n\n\nVALUES = list(map(square, range(1000)))\n"
    tests = "from test_other import VALUES\n\ndef test_bad():\n    total = sum(VALUES[:3])\n    assert total == 6\n"
    files = {"test_other.py": other, "test_shop.py": tests}
    found = diagnose(files, "test_shop.py::test_bad", command=f"{PYTHON} -m pytest")
    assert found.recording is not None and found.recording.differs == ""
    assert 0 < found.recording.events < 100


def test_a_test_whose_code_is_too_deep_to_be_rewritten_runs_as_pytest_made_it(diagnose: Diagnose) -> None:
    deep = "def test_deep():\n    return 0" + " + 1" * 600 + "\n\n"
    tests = "from shop import double\n\n" + deep + "def test_bad():\n    assert double(2) == 4\n"
    files = {"shop.py": "def double(n):\n    return n + 1\n", "test_shop.py": tests}
    found = diagnose(files, "test_shop.py::test_bad", command=f"{PYTHON} -m pytest")
    assert found.recording is not None and found.recording.differs == ""
    assert found.recording.failed is not None and "double(2)" in found.recording.failed.message
    assert any("RecursionError" in one for one in found.recording.problems)


def test_without_a_recording_the_lines_that_ran_are_those_of_the_comparison_with_passing_tests(
    diagnose: Diagnose, state: State
) -> None:
    shop = "def names(n):\n    x = 1\n    if n:\n        x = 2\n        x = 3\n        x = 4\n"
    failing = "    raise (KeyError if len(locals()) > 2 else ValueError)(1)\n"
    tests = HEAD + "    def test_bad(self):\n        names(0)\n"
    tests += "    def test_other(self):\n        self.assertRaises(ValueError, names, 1)\n"
    tests += "    def test_third(self): pass\n"
    found = diagnose({"shop.py": shop + failing, "test_shop.py": tests}, ITEM, command=f"{PYTHON} -m pytest")
    assert found.recording is not None and found.recording.differs
    assert state.executed_lines is not None
    path = Path(state.workdir, "shop.py")
    assert state.executed_lines.unexecuted("shop.py", str(path), path.read_bytes()) == [[4, 6]]


def test_lines_of_a_shared_set_up_count_as_executed(diagnose: Diagnose, state: State) -> None:
    shop = "def build():\n    x = 1\n    x = 2\n    x = 3\n    return x\n"
    shop += "def names():\n    x = 1\n    raise (KeyError if len(locals()) > 1 else ValueError)(1)\n"
    tests = (
        HEAD
        + "    @classmethod\n    def setUpClass(cls): build()\n    def test_bad(self):\n        names()\n"
    )
    found = diagnose({"shop.py": shop, "test_shop.py": tests}, ITEM, command=f"{PYTHON} -m pytest")
    assert found.recording is not None and found.recording.differs and state.executed_lines is not None
    path = Path(state.workdir, "shop.py")
    assert state.executed_lines.unexecuted("shop.py", str(path), path.read_bytes()) == []


@pytest.mark.parametrize("lines", [[[5, 1, 0.5]], [["shop.py"]], 7, [7], None])
def test_lines_that_a_program_forges_are_not_believed(lines: object) -> None:
    forged: dict[str, object] = {"lines": lines, "outside": [], "all_lines": True}
    assert diagnosis._executed_lines(forged) is None
    real: dict[str, object] = {"lines": [["a.py", 1, 0.5, 3]], "outside": [["a.py", 2]], "all_lines": True}
    assert diagnosis._executed_lines(real) == {"a.py": [1, 2]}
    assert diagnosis._executed_lines({**real, "all_lines": False}) is None


def test_a_recording_with_the_same_failure_but_for_a_random_path_is_used(diagnose: Diagnose) -> None:
    shop = "import tempfile\n\ndef folder():\n    path = tempfile.mkdtemp(prefix='data_')\n    return path + '/x'\n"
    tests = HEAD + "    def test_bad(self):\n        assert folder() == '/config/x', folder()\n"
    found = diagnose({"shop.py": shop, "test_shop.py": tests}, CASE)
    assert found.recording is not None and found.recording.differs == ""
    assert [link.name for link in found.recording.chain][-2:] == ["folder()", "path"]


def test_of_too_many_events_the_last_ones_are_kept(
    diagnose: Diagnose, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diagnosis, "_MAX_EVENTS", 50)
    shop = "def long():\n    for i in range(1000):\n        n = i * 2\n    return n\n"
    tests = HEAD + "    def test_bad(self):\n        self.assertEqual(long(), 0)\n"
    found = diagnose({"shop.py": shop, "test_shop.py": tests}, CASE)
    assert found.recording is not None
    assert (found.recording.events, found.recording.cut) == (50, "only its last 50 events were kept")
    assert {("long()", "1998"), ("n", "1998")} <= {(link.name, link.value) for link in found.recording.chain}


def test_tests_of_the_folder_that_do_not_end_in_time_leave_those_of_the_file(
    diagnose: Diagnose, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[float] = []

    def observe(command: str, env: object, call: object, seconds: float, *more: Any) -> Any:
        limits.append(seconds)
        return observed_run.observe(command, env, call, seconds, *more)

    monkeypatch.setattr(diagnosis, "observe", observe)
    monkeypatch.setattr(diagnosis, "_WIDER_S", 3.0)
    shop = "def total(n):\n    return n + (n > 2)\n"
    tests = "from shop import total\n\ndef test_bad():\n    assert total(3) == 3\ndef test_good():\n    assert total(1) == 1\n"
    other = "def test_slow():\n    while True: pass\n"
    found = diagnose(
        {"shop.py": shop, "tests/test_shop.py": tests, "tests/test_slow.py": other},
        "tests/test_shop.py::test_bad",
        command=f"{PYTHON} -m pytest -q",
    )
    assert found.spectrum is not None and found.spectrum.passed == 1
    assert limits[1] == 3.0 and 3.0 not in limits[2:]
    assert found.notes == []


@pytest.mark.parametrize(("seconds", "passed"), [(0.0, 20), (600.0, 30)])
def test_of_many_passing_tests_no_more_than_enough_are_waited_for(
    diagnose: Diagnose, monkeypatch: pytest.MonkeyPatch, seconds: float, passed: int
) -> None:
    monkeypatch.setattr(diagnosis, "_ENOUGH_S", seconds)
    tests = HEAD + "    def test_bad(self):\n        self.assertEqual(total(3), 3)\n"
    tests += "".join(
        f"    def test_good_{n:02}(self):\n        self.assertEqual(total(1), 1)\n" for n in range(30)
    )
    shop = "def total(n):\n    return n + (n > 2)\n"
    found = diagnose({"shop.py": shop, "test_shop.py": tests}, CASE).spectrum
    assert found is not None and found.passed == passed
    assert found.cut == ("21 tests were enough" if passed == 20 else "")


def test_a_run_without_an_end_is_ended(diagnose: Diagnose) -> None:
    tests = HEAD + "    def test_bad(self):\n        while True: pass\n"
    found = diagnose({"shop.py": "", "test_shop.py": tests}, CASE, timeout_s=3)
    assert (found.spectrum, found.recording) == (None, None)
    assert [note.partition(" over ")[0] for note in found.notes] == [
        "no spectrum: it took",
        "no recording: it took",
    ]


def test_objects_that_raise_whatever_is_done_with_them(diagnose: Diagnose) -> None:
    shop = (
        ODD
        + """\
def make():
    held = [Odd()]
    kept = {"odd": held}
    held.append(Odd())
    return kept["odd"][0]
"""
    )
    tests = HEAD + (
        "    def test_bad(self):\n        odd = type.__call__(object) and make()\n        raise KeyError(odd)\n"
    )
    found = diagnose({"shop.py": shop, "test_shop.py": tests}, CASE)
    assert found.recording is not None, found.notes
    assert (found.recording.problems, found.recording.differs) == ([], "")
    assert ("make()", "<Odd>", 18) in [(link.name, link.value, link.line) for link in found.recording.chain]


def test_threads_and_their_frames(diagnose: Diagnose) -> None:
    shop = """\
import threading

class Counter:
    def __init__(self):
        self.values = []

    def add(self, value):
        kept = value * 1000
        self.values.append(kept)

def count(n):
    counter = Counter()
    threads = [threading.Thread(target=counter.add, args=(i,)) for i in range(1, n + 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counter.values)
"""
    tests = HEAD + "    def test_bad(self):\n        self.assertEqual(count(3), 1)\n"
    found = diagnose({"shop.py": shop, "test_shop.py": tests}, CASE)
    assert found.recording is not None, found.notes
    assert (found.recording.problems, found.recording.differs) == ([], "")
    lines = [(link.name, link.value, link.line) for link in found.recording.chain]
    assert ("count()", "6000", 18) in lines
    assert any(line in (8, 9) for _, _, line in lines)


def test_addresses_and_numbers_in_paths_may_differ_between_runs(diagnose: Diagnose) -> None:
    shop = "import os\n\ndef fail():\n    raise ValueError('no /tmp/run-%d/x in %r, but 3/4' % (os.getpid(), object()))\n"
    found = diagnose(
        {"shop.py": shop, "test_shop.py": HEAD + "    def test_bad(self):\n        fail()\n"}, CASE
    )
    assert found.recording is not None
    assert found.recording.differs == ""
    assert found.recording.failed is not None
    assert found.recording.failed.message == "no /tmp/run-…/x in <object object at 0x…>, but …/…"


def test_what_a_program_puts_in_place_of_the_result_is_not_waited_for(diagnose: Diagnose) -> None:
    tests = (
        "import atexit, glob, json, os, tempfile\n"
        "def replace():\n"
        "    for job in glob.glob(os.path.join(tempfile.gettempdir(), 'pdbox-*/job.json')):\n"
        "        result = os.path.join(os.path.dirname(job), 'result.json')\n"
        "        try:\n"
        "            mine = json.load(open(job))['root'] == os.getcwd()\n"
        "        except OSError:\n"
        "            continue  # of another test\n"
        "        if mine and not os.path.exists(result):\n"
        "            os.mkfifo(result)\n"
        "    os._exit(1)\n" + HEAD + "    def test_bad(self):\n        replace()\n"
    )
    found = diagnose({"shop.py": "", "test_shop.py": tests}, CASE)
    assert (found.spectrum, found.recording) == (None, None)
    assert found.notes == [
        "no spectrum: its run left no result (exit code 1)",
        "no recording: its run left no result (exit code 1)",
    ]


def test_a_test_that_fails_as_an_object_is_freed_passes_recorded_and_that_is_told(diagnose: Diagnose) -> None:
    shop = "import weakref\n\nclass Line:\n    pass\n\ndef follow():\n    line = Line()\n    return weakref.ref(line)\n"
    tests = HEAD + "    def test_bad(self):\n        self.assertIsNotNone(follow()())\n"
    found = diagnose({"shop.py": shop, "test_shop.py": tests}, CASE)
    assert found.spectrum is not None and found.recording is None
    assert found.notes == [
        "no recording: its run ended well: recorded, the test passes, as that keeps all objects alive (weakref? __del__?)"
    ]
