"""The details of failing tests in the answer of `eval`: frames, captured output, and what ran at the deadline."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from sandbox.guest.protocol.signals import DUMP
from sandbox.guest.supervisor.processes import failing_tests
from tests.guest.operations.conftest import Guest
from tests.guest.operations.test_eval import evaluate

PYTHON = os.environ.get("PDBOX_TEST_PYTHON") or sys.executable
SHOP = """
import json

def total(prices):
    return sum(
        prices,
        start=[],
    )

def load(text):
    return json.loads(text)

def deep(n):
    return deep(n - 1) if n else 1 // 0
"""
CASES = """
import shop, sys, unittest

class Case(unittest.TestCase):
    def test_total(self):
        print("before")
        shop.total([1])
    def test_load(self):
        shop.load("{")
    def test_deep(self):
        shop.deep(50)
    def test_equal(self):
        for n in range(300):
            print("again")
        print("to stderr", file=sys.stderr)
        self.assertEqual(1, 2)
    def test_good(self):
        print("nobody asks")
"""
TOTAL = ["shop.py:5 in total: return sum(prices, start=[],)"]


def skip_without_pytest(command: str) -> None:
    """Skip the test if its command needs pytest, and the Python under test has none."""
    if "pytest" in command and sys.executable != PYTHON:
        pytest.skip("no pytest for this Python")


def failing(answer: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Each failing test by its name."""
    bad = [test for test in answer["tests"] if test["outcome"] in ("failed", "error")]
    return {test["id"].partition(" ")[0].rpartition("::")[2]: test for test in bad}


@pytest.mark.parametrize("command", ["-m unittest --buffer test_shop", "-m pytest -q --tb=no test_shop.py"])
def test_a_failing_test_has_lines_from_the_test_to_the_failure_and_its_output(
    guest: Guest, command: str
) -> None:
    skip_without_pytest(command)
    guest.write({"shop.py": SHOP, "test_shop.py": CASES})
    answer = evaluate(guest, f"{PYTHON} {command}")
    tests = failing(answer)
    assert tests["test_total"]["frames"] == ["test_shop.py:7 in test_total: shop.total([1])", *TOTAL]
    assert tests["test_total"]["output"] == "before"
    *first, last = tests["test_load"]["frames"]
    assert first == [
        'test_shop.py:9 in test_load: shop.load("{")',
        "shop.py:11 in load: return json.loads(text)",
    ]
    assert last.startswith("… 3 frames of libraries, to json/decoder.py:")
    assert tests["test_deep"]["frames"][-1].endswith("return deep(n - 1) if n else 1 // 0 … ×51")
    assert tests["test_equal"]["frames"] == ["test_shop.py:16 in test_equal: self.assertEqual(1, 2)"]
    assert tests["test_equal"]["output"] == "again … ×300\n[stderr]\nto stderr"
    good = [test for test in answer["tests"] if test["outcome"] == "passed"]
    assert good and not any("frames" in test or "output" in test for test in good)
    assert answer["captured"] is ("pytest" in command)


RAISED_FROM = """
import json, unittest
def load(text):
    try:
        return json.loads(text)
    except ValueError as exc:
        raise KeyError("config") from exc
def quiet(text):
    try:
        return {}[text]
    except KeyError:
        raise ValueError from None
class Case(unittest.TestCase):
    def test_load(self):
        try:
            load("{")
        except KeyError:
            raise RuntimeError
    def test_quiet(self):
        quiet("x")
"""


@pytest.mark.parametrize("command", ["-m unittest test_a", "-m pytest -q test_a.py"])
def test_the_exceptions_that_the_last_one_was_raised_from_are_named_with_their_places(
    guest: Guest, command: str
) -> None:
    skip_without_pytest(command)
    guest.write({"test_a.py": RAISED_FROM})
    tests = failing(evaluate(guest, f"{PYTHON} {command}"))
    assert tests["test_load"]["frames"] == [
        "test_a.py:18 in test_load: raise RuntimeError",
        'raised after KeyError at test_a.py:7 in load: raise KeyError("config") from exc',
        "raised after JSONDecodeError at test_a.py:5 in load: return json.loads(text)",
    ]
    assert tests["test_quiet"]["frames"][-1] == "test_a.py:12 in quiet: raise ValueError from None"


def test_the_output_of_tests_is_not_captured_with_s(guest: Guest) -> None:
    guest.write({"test_a.py": "def test_a(): print('seen')\n"})
    answer = evaluate(guest, f"{sys.executable} -m pytest -q -s")
    assert answer["captured"] is False and "seen" in answer["output"]


def test_a_log_and_the_output_of_a_fixture_are_part_of_the_output(guest: Guest) -> None:
    text = """
import logging, pytest
@pytest.fixture
def order():
    print("made")
def test_a(order):
    logging.warning("careful")
    print("x" * 1000)
    for n in range(2000):
        print(n)
    assert 0
"""
    guest.write({"test_a.py": text})
    (test,) = evaluate(guest, f"{sys.executable} -m pytest -q")["tests"]
    output = test["output"].split("\n")
    assert output[0] == "made" and len(output[1]) == 300
    assert output[-2] == "[log]" and output[-1].endswith("careful")
    assert len(test["output"]) < 2600 and "characters left out" in test["output"]


def test_frames_of_a_module_that_can_not_be_collected_begin_in_it(guest: Guest) -> None:
    guest.write({"test_a.py": "import helper\n", "helper.py": "x = 1\nraise ValueError('no')\n"})
    (test,) = evaluate(guest, f"{sys.executable} -m pytest -q")["tests"]
    places = [frame for frame in test["frames"] if "libraries" not in frame]
    assert places == [
        "test_a.py:1 in <module>: import helper",
        "helper.py:2 in <module>: raise ValueError('no')",
    ]


def test_what_the_program_replaces_and_what_its_objects_do_is_no_part_of_the_report(guest: Guest) -> None:
    text = """
import builtins
class Odd(Exception):
    def __eq__(self, other): raise SystemExit("called")
def test_odd(monkeypatch):
    monkeypatch.setattr(builtins, "open", None)
    raise Odd
"""
    guest.write({"test_a.py": text})
    (test,) = evaluate(guest, f"{sys.executable} -m pytest -q --tb=no")["tests"]
    assert (test["outcome"], test["frames"]) == ("failed", ["test_a.py:7 in test_odd: raise Odd"])


@pytest.mark.skipif(DUMP is None, reason="a system without real-time signals")
@pytest.mark.parametrize("runner", ["unittest", "pytest"])
def test_at_the_deadline_it_is_known_where_the_test_was_and_what_did_not_run(
    guest: Guest, runner: str
) -> None:
    skip_without_pytest(runner)
    text = """
import threading, unittest
def wait_for(lock):
    lock.acquire()
class Case(unittest.TestCase):
    def test_a(self): pass
    def test_b(self):
        lock = threading.Lock()
        lock.acquire()
        wait_for(lock)
    def test_c(self): pass
"""
    guest.write({"test_a.py": text})
    answer = evaluate(guest, f"{PYTHON} -m {runner} test_a{'.py' * (runner == 'pytest')}", timeout_s=5)
    (test,) = failing(answer).values()
    assert test["frames"] == [
        "test_a.py:10 in test_b: wait_for(lock)",
        "test_a.py:4 in wait_for: lock.acquire()",
    ]
    assert answer["running"] == [test["id"]] and answer["not_run"] == 1
    assert answer["not_run_ids"] == (["test_a.py::Case::test_c"] if runner == "pytest" else [])


FORGED = """
import json, os, socket
path = os.environ["PDBOX_REPORT"]
sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
run = {"runner": "pytest", "run": "1.1"}
def send(**fields):
    sock.sendto(json.dumps(dict(run, **fields)).encode(), path)
send(kind="collected", count=9, ids=[1, None, "t.py::a", ["x"]])
frames = [5, "x", None, ["a"], [1, 2, 3, 4], ["/etc/passwd", 1, "f", 1], ["/a\\0b", 1, "f", 1], ["/\\ud800", 1, "f", 1], [FIFO, 1, "f", 1],
          [HERE + "/p.py", 2, "f", 10 ** 30], [HERE + "/p.py", 10 ** 9, "f", -1], -7, True]
send(kind="result", id="t.py::a", outcome="failed", frames=frames, output=["no"])
send(kind="result", id="t.py::b", outcome="failed", frames={"x": 1}, output="y" * 50_000)
send(kind="start", id="t.py::c")
import time
time.sleep(1000)
"""


def test_what_programs_send_in_place_of_frames_does_no_harm(guest: Guest) -> None:
    os.mkfifo(guest.root / "fifo")
    here = f"FIFO, HERE = {str(guest.root / 'fifo')!r}, {str(guest.root)!r}\n"
    guest.write({"p.py": here + FORGED})
    answer = evaluate(guest, f"{sys.executable} p.py", timeout_s=3)
    tests = failing(answer)
    assert set(tests) == {"a", "b", "c"}
    assert "root" not in json.dumps(tests["a"]) and len(tests["b"]["output"]) <= 4000
    assert tests["a"]["frames"][-2:] == [f"p.py:2 in f … ×{10**30}", "p.py:1000000000 in f"]
    assert answer["not_run_ids"] == [] and "frames" not in tests["c"]


def test_the_first_of_many_failures_keep_their_details(guest: Guest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failing_tests, "_MAX_DETAILS", 1000)
    text = """
import pytest
def check(n): assert n < 0
@pytest.mark.parametrize("n", range(40))
def test_a(n):
    print("output of", n)
    check(n)
"""
    guest.write({"test_a.py": text})
    tests = evaluate(guest, f"{sys.executable} -m pytest -q --tb=no")["tests"]
    assert tests[0]["output"] == "output of 0" and len(tests[0]["frames"]) == 2
    assert "output" not in tests[-1]
    assert tests[-1]["frames"] == ["test_a.py:3 in check: def check(n): assert n < 0"]


def test_a_run_in_which_pytest_itself_fails_says_where(guest: Guest) -> None:
    plugin = """
def stop(report):
    raise RuntimeError("broken plugin")
def pytest_runtest_logreport(report):
    if report.when == "teardown" and "test_b" in report.nodeid:
        stop(report)
"""
    guest.write({"conftest.py": plugin, "test_i.py": "def test_a(): pass\ndef test_b(): pass\n"})
    tests = evaluate(guest, f"{sys.executable} -m pytest -q")["tests"]
    assert tests[0]["frames"][-2:] == [
        "conftest.py:6 in pytest_runtest_logreport: stop(report)",
        'conftest.py:3 in stop: raise RuntimeError("broken plugin")',
    ]


def test_a_failure_in_a_worker_of_xdist_has_its_frames(guest: Guest) -> None:
    pytest.importorskip("xdist")
    guest.write({"shop.py": SHOP, "test_shop.py": CASES})
    command = f"{sys.executable} -m pytest -q -n 1 -p no:cacheprovider test_shop.py::Case::test_total"
    (test,) = evaluate(guest, command)["tests"]
    assert test["frames"] == ["test_shop.py:7: shop.total([1])", TOTAL[0].replace(" in total", "")]
    assert test["output"] == "before"


def test_a_folder_outside_of_the_repository_is_a_library(guest: Guest, tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "other.py").write_text("def call(f):\n    f()\n")
    guest.write(
        {"test_a.py": "import other\ndef fail():\n    assert 0\ndef test_a():\n    other.call(fail)\n"}
    )
    answer = evaluate(guest, f"{sys.executable} -m pytest -q", env={"PYTHONPATH": str(tmp_path / "lib")})
    assert answer["tests"][0]["frames"] == [
        "test_a.py:5 in test_a: other.call(fail)",
        "… 1 frame of libraries",
        "test_a.py:3 in fail: assert 0",
    ]
