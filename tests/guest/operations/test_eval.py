from __future__ import annotations

import json
import os
import socket
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from sandbox.guest.supervisor.processes import test_run
from tests.guest.operations.conftest import OPS, Guest

PYTHON = sys.executable
MANY = """
import os, sys, unittest, pytest

def test_ok(): pass
def test_fail(): assert 1 == 2, "nope"
@pytest.fixture
def bad(): raise ValueError("setup €")
@pytest.fixture
def bad_end():
    yield
    raise ValueError("teardown")
def test_setup(bad): pass
def test_teardown(bad_end): pass
def test_both(bad_end): assert 0, "call first"
@pytest.mark.skip(reason="because")
def test_skip(): pass
@pytest.mark.xfail(reason="known")
def test_xfail(): assert 0
@pytest.mark.xfail
def test_xpass(): pass
@pytest.mark.xfail(strict=True)
def test_strict(): pass
@pytest.mark.parametrize("a", ["a-b", "x y", "[q]", "::"])
def test_param(a): pass
class TestClass:
    def test_noise(self, monkeypatch):
        os.chdir("/")
        monkeypatch.delenv("PATH")
        os.write(1, b"raw\\xff")
class Case(unittest.TestCase):
    def test_sub(self):
        for i in range(3):
            with self.subTest(i=i):
                self.assertNotEqual(i, 1)
    @unittest.expectedFailure
    def test_expected(self): self.fail()
"""
OUTCOMES = {
    "test_m.py::test_ok": "passed",
    "test_m.py::test_fail": "failed",
    "test_m.py::test_setup": "error",
    "test_m.py::test_teardown": "error",
    "test_m.py::test_both": "failed",
    "test_m.py::test_skip": "skipped",
    "test_m.py::test_xfail": "xfailed",
    "test_m.py::test_xpass": "xpassed",
    "test_m.py::test_strict": "failed",
    "test_m.py::test_param[a-b]": "passed",
    "test_m.py::test_param[x y]": "passed",
    "test_m.py::test_param[[q]]": "passed",
    "test_m.py::test_param[::]": "passed",
    "test_m.py::TestClass::test_noise": "passed",
    "test_m.py::Case::test_sub": "failed",
    "test_m.py::Case::test_expected": "xfailed",
}


def evaluate(guest: Guest, command: str, **args: Any) -> dict[str, Any]:
    return guest.ask("eval", command=command, **{"timeout_s": 60, "max_output": 1 << 20, **args})


def outcomes(answer: dict[str, Any]) -> dict[str, str]:
    return {test["id"]: test["outcome"] for test in answer["tests"]}


def messages(answer: dict[str, Any]) -> dict[str, str]:
    return {test["id"]: test["message"] for test in answer["tests"]}


@pytest.mark.parametrize(
    "options", ["", "-q --tb=no", "-s -p no:cacheprovider --assert=plain", "-vv --capture=fd -W error"]
)
def test_each_outcome_of_pytest_is_told(guest: Guest, options: str) -> None:
    guest.write({"test_m.py": MANY})
    answer = evaluate(guest, f"{PYTHON} -m pytest {options}")
    assert outcomes(answer) == OUTCOMES
    assert (answer["runner"], answer["collected"], answer["exit_code"]) == ("pytest", 16, 1)
    assert answer["counts"] == {
        "passed": 6,
        "failed": 4,
        "error": 2,
        "skipped": 1,
        "xfailed": 2,
        "xpassed": 1,
    }
    said = messages(answer)
    assert said["test_m.py::test_setup"] == "ValueError: setup €"
    assert said["test_m.py::test_teardown"] == "ValueError: teardown"
    assert said["test_m.py::test_both"].startswith("AssertionError: call first")
    assert said["test_m.py::test_skip"] == "because"
    assert said["test_m.py::test_ok"] == ""
    first = answer["tests"][0]
    assert (first["file"], first["line"]) == ("test_m.py", 4)


@pytest.mark.parametrize(
    "command",
    [
        "pytest -q",
        "make test",
        "PYTHONPATH=sub pytest -q",
        "export A=1 PYTHONPATH='sub'; pytest -q",
        "cd sub && ../run.sh",
        f"{PYTHON} -c 'import pytest, sys; sys.exit(pytest.main([\"-q\"]))'",
        f'{PYTHON} -c \'import subprocess; subprocess.call(["pytest", "-q"])\'',
    ],
)
def test_any_way_to_start_pytest_will_do(guest: Guest, command: str) -> None:
    guest.write({"test_a.py": "def test_a(): pass\n", "sub/x": "", "Makefile": "test:\n\t@pytest -q\n"})
    guest.write({"run.sh": "#!/bin/sh\ncd $(dirname $0); exec pytest -q\n"})
    (guest.root / "run.sh").chmod(0o755)
    path = os.pathsep.join((str(Path(PYTHON).parent), os.environ["PATH"]))
    answer = evaluate(guest, command, env={"PATH": path})
    assert (outcomes(answer), answer["exit_code"]) == ({"test_a.py::test_a": "passed"}, 0)


def test_what_tests_run_themselves_is_not_counted(guest: Guest) -> None:
    nested = """
import os, subprocess, sys, unittest, pytest
def test_in_process(tmp_path):
    (tmp_path / "test_inner.py").write_text("def test_inner(): assert 0")
    assert pytest.main([str(tmp_path)]) == 1
def test_in_another_process(tmp_path):
    (tmp_path / "test_inner.py").write_text("def test_inner(): assert 0")
    assert subprocess.call([sys.executable, "-m", "pytest", str(tmp_path)]) == 1
def test_unittest():
    class Inner(unittest.TestCase):
        def test_inner(self): self.fail()
    unittest.TextTestRunner().run(Inner("test_inner"))
def test_forked():
    if os.fork() == 0:
        os._exit(0)
    os.wait()
"""
    guest.write({"test_n.py": nested})
    answer = evaluate(guest, f"{PYTHON} -m pytest -W ignore")
    assert set(outcomes(answer)) == {
        f"test_n.py::test_{name}" for name in ("in_process", "in_another_process", "unittest", "forked")
    }
    assert set(outcomes(answer).values()) == {"passed"}


def test_a_file_that_cannot_be_collected_is_an_error_by_its_name(guest: Guest) -> None:
    guest.write(
        {"test_a.py": "import nope_nope\n", "test_b.py": "def test_b(): pass\n", "test_c.py": "def f(:\n"}
    )
    answer = evaluate(guest, f"{PYTHON} -m pytest -q --continue-on-collection-errors")
    assert outcomes(answer) == {"test_a.py": "error", "test_c.py": "error", "test_b.py::test_b": "passed"}
    said = messages(answer)
    assert said["test_a.py"] == "ModuleNotFoundError: No module named 'nope_nope' (test_a.py:1)"
    assert said["test_c.py"].startswith("SyntaxError: ") and said["test_c.py"].endswith(" (test_c.py:1)")


def test_asked_to_pytest_runs_its_tests_though_files_cannot_be_collected(guest: Guest) -> None:
    nested = "import pytest\ndef test_n(tmp_path):\n    (tmp_path / 'test_x.py').write_text('1 / 0')\n"
    nested += "    (tmp_path / 'test_y.py').write_text('def test_y(): pass')\n"
    nested += "    assert pytest.main(['-p', 'no:cacheprovider', str(tmp_path)]) == 2\n"
    guest.write({"test_a.py": "import nope_nope\n", "test_n.py": nested})
    command = f"{PYTHON} -m pytest -q -W ignore"
    plain, past = (evaluate(guest, command, past_errors=past_errors) for past_errors in (False, True))
    assert (outcomes(plain), plain["exit_code"]) == ({"test_a.py": "error"}, 2)
    assert (outcomes(past), past["exit_code"]) == ({"test_a.py": "error", "test_n.py::test_n": "passed"}, 1)
    assert outcomes(evaluate(guest, f"{command} -x", past_errors=True)) == {"test_a.py": "error"}


def test_a_module_that_unittest_can_not_import_is_told_by_its_error_and_place(guest: Guest) -> None:
    guest.write({"test_a.py": "import helper\n", "helper.py": "x = 1\nraise ValueError('two\\nlines')\n"})
    answer = evaluate(guest, f"{PYTHON} -m unittest")
    assert list(messages(answer).values()) == ["ValueError: two (helper.py:2)"]


DOCTESTS = """
def double(n):
    '''
    >>> double(2)
    5
    >>> double("x")
    '''
    return n * 2

def broken():
    '''
    >>> 1 / 0
    '''

def load_tests(loader, tests, pattern):
    import doctest
    return doctest.DocTestSuite()
"""


def test_a_failing_doctest_says_what_failed(guest: Guest) -> None:
    guest.write({"mod.py": DOCTESTS})
    command = f"{PYTHON} -m pytest -q --doctest-modules --doctest-continue-on-failure mod.py"
    assert messages(evaluate(guest, command)) == {
        "mod.py::mod.double": "`double(2)` gave 4 where 5 was expected (mod.py:4)\n"
        "`double(\"x\")` gave 'xx' where nothing was expected (mod.py:6)",
        "mod.py::mod.broken": "`1 / 0` raised ZeroDivisionError: division by zero (mod.py:12)",
    }
    said = messages(evaluate(guest, f"{PYTHON} -m unittest mod"))
    assert said["double (mod)"].endswith("Failed example: double(2) Expected: 5 Got: 4")


def test_tests_that_never_began_are_counted(guest: Guest) -> None:
    guest.write(
        {"test_a.py": "def test_a(): pass\ndef test_b(): assert 0\ndef test_c(): pass\ndef test_d(): pass\n"}
    )
    answer = evaluate(guest, f"{PYTHON} -m pytest -x")
    assert (answer["collected"], answer["not_run"]) == (4, 2)


@pytest.mark.parametrize(
    ("death", "end"),
    [
        ("os._exit(7)", "the run ended with exit code 7"),
        ("os.kill(os.getpid(), 9)", "it was killed by SIGKILL"),
        ("time.sleep(1000)", "the time was over"),
    ],
)
def test_the_test_that_kills_the_run_is_an_error_and_the_others_keep_their_results(
    guest: Guest, death: str, end: str
) -> None:
    guest.write(
        {
            "test_d.py": f"import os, time\ndef test_a(): pass\ndef test_b(): assert 0\ndef test_c(): {death}\ndef test_d(): pass\n"
        }
    )
    answer = evaluate(guest, f"exec {PYTHON} -m pytest -q", timeout_s=20 if "sleep" in death else 60)
    assert outcomes(answer) == {
        "test_d.py::test_a": "passed",
        "test_d.py::test_b": "failed",
        "test_d.py::test_c": "error",
    }
    assert messages(answer)["test_d.py::test_c"] == f"The test was running when {end}."
    assert answer["collected"] == 4


def test_a_run_in_which_pytest_itself_fails_is_no_verdict(guest: Guest) -> None:
    plugin = """
def pytest_runtest_logreport(report):
    if report.when == "teardown" and "test_b" in report.nodeid:
        raise RuntimeError("broken plugin")
"""
    guest.write({"conftest.py": plugin, "test_i.py": "def test_a(): pass\ndef test_b(): pass\n"})
    answer = evaluate(guest, f"{PYTHON} -m pytest -q")
    assert answer["exit_code"] == 3
    assert set(outcomes(answer).values()) == {"error"}
    assert (
        messages(answer)["test_i.py::test_a"]
        == "INTERNALERROR of pytest: RuntimeError; until then the test had passed."
    )


def test_the_test_that_ran_when_pytest_failed_is_told_first(guest: Guest) -> None:
    plugin = """
def pytest_runtest_makereport(item, call):
    if "test_b" in item.name:
        raise RuntimeError("broken plugin")
"""
    guest.write({"conftest.py": plugin, "test_i.py": "def test_a(): pass\ndef test_b(): assert 0\n"})
    answer = evaluate(guest, f"{PYTHON} -m pytest -q")
    assert messages(answer) == {
        "test_i.py::test_b": "INTERNALERROR of pytest: RuntimeError while this test ran.",
        "test_i.py::test_a": "INTERNALERROR of pytest: RuntimeError; until then the test had passed.",
    }
    assert next(iter(messages(answer))) == "test_i.py::test_b"


UNITTEST = """
import os, unittest
class A(unittest.TestCase):
    def test_ok(self): pass
    def test_doc(self):
        "A line of text."
    def test_fail(self): self.assertEqual(1, 2)
    def test_error(self): raise ValueError("x")
    def test_skip(self): self.skipTest("why")
    @unittest.expectedFailure
    def test_xfail(self): self.fail()
    @unittest.expectedFailure
    def test_xpass(self): pass
    def test_sub(self):
        for i in range(3):
            with self.subTest(i=i):
                self.assertNotEqual(i, 1)
    def test_nested(self):
        class Inner(unittest.TestCase):
            def test_inner(self): self.fail()
        Inner("test_inner").run(unittest.TestResult())
    def test_fork(self):
        if os.fork() == 0:
            os._exit(0)
        os.wait()
class B(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise ValueError("class")
    def test_b(self): pass
class C(unittest.TestCase):
    def tearDown(self): raise ValueError("end")
    def test_c(self): pass
"""


@pytest.mark.parametrize(
    "command", ["-m unittest -v", "-m unittest -q test_u", "-c 'import unittest; unittest.main(\"test_u\")'"]
)
def test_each_outcome_of_unittest_is_told_by_the_text_it_prints(guest: Guest, command: str) -> None:
    guest.write({"test_u.py": UNITTEST})
    answer = evaluate(guest, f"{PYTHON} {command}")
    expected = {
        "test_ok": "passed",
        "test_doc": "passed",
        "test_fail": "failed",
        "test_error": "error",
        "test_skip": "skipped",
        "test_xfail": "xfailed",
        "test_xpass": "xpassed",
        "test_sub": "failed",
        "test_nested": "passed",
        "test_fork": "passed",
        "setUpClass": "error",
        "test_c": "error",
    }
    assert {name.split(" ")[0]: outcome for name, outcome in outcomes(answer).items()} == expected
    assert (answer["runner"], answer["collected"]) == ("unittest", 12)
    if "-v" in command:
        for test in answer["tests"]:
            assert test["id"] in answer["output"]
    assert (
        next(text for name, text in messages(answer).items() if name.startswith("test_sub"))
        == "(i=1): AssertionError: 1 == 1"
    )


def test_modules_of_the_repository_with_names_of_the_library_are_not_ours(guest: Guest) -> None:
    for name in ("json", "socket", "struct", "selectors"):
        guest.write({f"{name}.py": f"raise SystemExit('the program would see {name} too early')\n"})
    guest.write({"test_u.py": "import sys\nassert 'json' not in sys.modules\n" + UNITTEST})
    answer = evaluate(guest, f"{PYTHON} -m unittest test_u.A.test_ok")
    assert answer["exit_code"] == 0, answer["output"]
    assert list(outcomes(answer).values()) == ["passed"]


def test_a_sitecustomize_of_the_repository_still_runs(guest: Guest) -> None:
    guest.write({"site/sitecustomize.py": "import builtins\nbuiltins.THEIRS = __name__\n"})
    guest.write(
        {
            "test_s.py": "import sitecustomize\ndef test_s():\n    assert THEIRS == 'sitecustomize' and sitecustomize.builtins\n"
        }
    )
    answer = evaluate(guest, f"{PYTHON} -m pytest -q", env={"PYTHONPATH": str(guest.root / "site")})
    assert outcomes(answer) == {"test_s.py::test_s": "passed"}, answer["output"]


def test_the_program_sees_its_own_import_path(guest: Guest) -> None:
    guest.write(
        {
            "p.py": "import json, sys\nprint(json.dumps([sys.path, [name for name in sys.modules if 'pdbox' in name]]))\n"
        }
    )
    plain = json.loads(guest.ask("exec", command=f"{PYTHON} p.py", timeout_s=60)["output"])
    watched = json.loads(evaluate(guest, f"{PYTHON} p.py")["output"])
    assert watched[0] == plain[0]
    assert sorted(watched[1]) == ["_pdbox_finder", "_pdbox_report"]


def test_a_program_that_is_no_test_run_has_no_tests(guest: Guest) -> None:
    answer = evaluate(guest, "echo hello; exit 2")
    assert (answer["tests"], answer["collected"], answer["runner"], answer["exit_code"]) == (
        [],
        None,
        None,
        2,
    )
    assert answer["output"] == "hello\n"


def test_progress_tells_how_far_it_is(guest: Guest) -> None:
    guest.write(
        {"test_p.py": "import pytest\n@pytest.mark.parametrize('i', range(5))\ndef test_p(i): pass\n"}
    )
    call = guest.call()
    OPS["eval"]({"command": f"{PYTHON} -m pytest -q", "timeout_s": 60}, b"", call)
    assert call.told[0] == {"tests": 1, "of": 5, "last": "test_p.py::test_p[0]", "outcome": "passed"}


NOISE = """
import os, socket
sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
for data in [
    "x", "{}", "[1]", "[" * 50000, '{"kind": "result", "run": "1", "id": 5}',
    '{"kind": "result", "run": "1", "id": "x", "outcome": "great"}',
    '{"kind": "result", "run": "1", "id": "y", "outcome": "passed", "duration_s": NaN, "line": "1", "message": [1]}',
]:
    sock.sendto(data.encode(), os.environ["PDBOX_REPORT"])
"""


def test_what_programs_write_to_the_socket_does_no_harm(guest: Guest) -> None:
    guest.write({"p.py": NOISE})
    answer = evaluate(guest, f"{PYTHON} p.py")
    assert answer["exit_code"] == 0, answer["output"]
    assert answer["tests"] == [{"id": "y", "outcome": "passed", "duration_s": 0.0, "message": "[1]"}]
    json.dumps(answer, allow_nan=False)


def test_too_many_tests_for_an_answer_lose_the_passed_ones_first(
    guest: Guest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(test_run, "_MAX_JSON", 1000)
    guest.write(
        {
            "test_l.py": "import pytest\n@pytest.mark.parametrize('i', range(50))\ndef test_l(i): assert i != 49\n"
        }
    )
    answer = evaluate(guest, f"{PYTHON} -m pytest -q --tb=no")
    assert answer["tests"][-1]["id"] == "test_l.py::test_l[49]"
    assert len(answer["tests"]) + answer["tests_omitted"] == 50
    assert (answer["counts"]["passed"], answer["counts"]["failed"]) == (49, 1)


def test_nothing_is_left_behind(guest: Guest) -> None:
    guest.write({"test_a.py": "def test_a(): pass\n"})
    command = f"{PYTHON} -B -m pytest -q -p no:cacheprovider; echo $PDBOX_REPORT"
    place = Path(evaluate(guest, command)["output"].splitlines()[-1])
    assert not place.parent.exists()
    assert [path.name for path in guest.root.iterdir()] == ["test_a.py"]


@pytest.mark.parametrize("asked", ["--pdb", "--trace", "--pdb --trace"])
def test_pytest_does_not_wait_for_somebody_who_answers_pdb(guest: Guest, asked: str) -> None:
    text = "import pytest\ndef test_a(): assert 0\ndef test_b(): pass\n"
    guest.write({"test_m.py": text, "pytest.ini": f"[pytest]\naddopts = {asked}\n"})
    answer = evaluate(guest, f"{PYTHON} -m pytest test_m.py")
    assert outcomes(answer) == {"test_m.py::test_a": "failed", "test_m.py::test_b": "passed"}
    assert f"pdbox: {' and '.join(asked.split())} is off, nobody is here to answer pdb" in answer["output"]
    assert answer["exit_code"] == 1


def test_another_socket_in_place_of_ours_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(test_run, "_CLOSE_S", 0.2, raising=False)
    reports = test_run.Reports(lambda data: None)
    path = reports.environment({})["PDBOX_REPORT"]
    Path(path).unlink()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as theirs:
        theirs.bind(path)
        closing = threading.Thread(target=reports.close, daemon=True)
        closing.start()
        closing.join(10.0)
        assert not closing.is_alive()


@pytest.mark.parametrize(
    "forged",
    [
        [
            {"kind": "end", "id": "a", "run": "1"},
            {"kind": "result", "id": "a", "run": "1", "outcome": "passed"},
        ],
        [{"kind": "root", "path": "\0", "run": "1"}],
        [{"kind": "root", "path": "\ud800", "run": "1"}],
        [{"kind": [], "id": {}, "run": "1", "outcome": []}],
        [
            {"kind": "root", "path": "/tmp", "run": "1"},
            {"kind": "start", "id": "\0\ud800", "run": "1", "file": 1},
        ],
        [{"kind": "result", "id": "b", "run": "1", "outcome": "passed", "duration_s": "long", "line": -1}],
    ],
)
def test_a_forged_report_does_not_end_the_reading_of_others(forged: list[dict[str, Any]]) -> None:
    reports = test_run.Reports(lambda data: None)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.connect(reports.environment({})["PDBOX_REPORT"])
        for message in [*forged, {"kind": "result", "id": "good", "run": "2", "outcome": "passed"}]:
            sender.send(json.dumps(message).encode())
    reports.close()
    assert "good" in [test["id"] for test in reports.results("it ended", True)]


def test_tox_3_and_4_pass_on_what_the_reports_need(guest: Guest) -> None:
    names = "TOX_TESTENV_PASSENV", "TOX_OVERRIDE"
    answer = evaluate(
        guest,
        f"{PYTHON} -c 'import os; print([os.environ[name] for name in {json.dumps(names)}])'",
        env={"TOX_TESTENV_PASSENV": "MINE"},
    )
    assert answer["output"] == (
        "['MINE PYTHONPATH PDBOX_REPORT', 'testenv.pass_env+=PYTHONPATH,PDBOX_REPORT']\n"
    )
