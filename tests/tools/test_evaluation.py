"""The answer of `eval`: failures, output and notes within one budget."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.session.results import Evaluation, TestResult
from tools._evaluation import EvalAnswer, answer, render
from tools._failures import list_failures
from tools._truncation import LIMIT, data_of, truncate

COUNTED = {"failed": "failed", "error": "errors", "passed": "passed"}


class Documents:
    """A session, as far as hints need one."""

    handle = "H"


def failed(number: int, **fields: Any) -> TestResult:
    given = {"message": f"AssertionError: assert {number} == 0", "frames": [f"t.py:{number} in test_a: f()"]}
    return TestResult(id=f"t.py::test_{number}", outcome="failed", **{**given, **fields})


def evaluation(*tests: TestResult, **fields: Any) -> Evaluation:
    counts = {outcome: sum(test.outcome == outcome for test in tests) for outcome in COUNTED}
    given = {"exit_code": 1, "tests": list(tests), "counts": counts, "runner": "pytest", "captured": True}
    return Evaluation(**{**given, **{name: counts[outcome] for outcome, name in COUNTED.items()}, **fields})


def answer_of(*tests: TestResult, **fields: Any) -> EvalAnswer:
    return answer(evaluation(*tests, **fields), Documents())  # type: ignore[arg-type] - all that it uses of a session


def text_of(*tests: TestResult, **fields: Any) -> str:
    return truncate(answer_of(*tests, **fields), render)[1]


def test_a_failure_has_its_message_its_frames_and_its_output() -> None:
    test = failed(
        1,
        message="AssertionError: assert 3 == 4\n\n +  where 3 = f()",
        frames=["t.py:1 in test_1: assert f() == 4", "shop.py:2 in f: return 3"],
        output="one\ntwo",
    )
    assert text_of(test) == (
        "1 failed (exit code 1)\n"
        "FAILED t.py::test_1: AssertionError: assert 3 == 4\n"
        "   +  where 3 = f()\n"
        "  at t.py:1 in test_1: assert f() == 4\n"
        "     shop.py:2 in f: return 3\n"
        "  output:\n"
        "    one\n"
        "    two"
    )


def test_tests_that_failed_for_the_same_reason_are_named_only() -> None:
    frames = ["shop.py:2 in f: return 1 / n"]
    tests = [failed(n, message="ZeroDivisionError: by zero", frames=frames) for n in (1, 2)]
    other = failed(3, message="ZeroDivisionError: another", frames=frames)
    parameters = [
        TestResult(id=f"t.py::test_1[{n}]", outcome="failed", message="ValueError: no", frames=frames)
        for n in "ab"
    ]
    assert text_of(*tests, other, *parameters) == (
        "5 failed (exit code 1)\n"
        "FAILED t.py::test_1: ZeroDivisionError: by zero\n"
        "  at shop.py:2 in f: return 1 / n\n"
        "  for the same reason: t.py::test_2; t.py::test_3: ZeroDivisionError: another\n"
        "FAILED t.py::test_1[a]: ValueError: no\n"
        "  at shop.py:2 in f: return 1 / n\n"
        "  for the same reason: [b]"
    )


def test_other_places_and_other_kinds_of_exceptions_are_other_reasons() -> None:
    frames = ["shop.py:2 in f: return g(n)"]
    tests = [
        failed(1, message="KeyError: 1", frames=frames),
        failed(2, message="TypeError: 1", frames=frames),
        failed(3, message="KeyError: 1", frames=["shop.py:3 in f: return g(n)"]),
        failed(4, message="KeyError: 1", frames=[]),
        failed(5, message="KeyError: 2", frames=[]),
    ]
    assert "for the same reason" not in text_of(*tests)


@pytest.mark.parametrize("count", [1, 3, 10, 60, 3000])
@pytest.mark.parametrize("size", [10, 400, 4000])
def test_however_much_has_failed_the_first_is_told_most_of_and_text_and_data_are_within_the_limit(
    count: int, size: int
) -> None:
    tests = [
        failed(
            n,
            message="ValueError: " + "m" * size,
            frames=["t.py:1 in g: " + "x" * 100] * 9 + [f"t.py:{n} in f: f()"],
        )
        for n in range(1, count + 1)
    ]
    tests = [test.model_copy(update={"output": "o" * size}) for test in tests]
    whole = answer_of(*tests, fixed=["x" * 50] * 100, broken=["y" * 50] * 100)
    cut, text = truncate(whole, render)
    assert len(text) <= LIMIT and len(str(data_of(cut))) <= LIMIT + 500
    assert text.startswith(f"{count:,} failed (exit code 1)\nFAILED t.py::test_1: ValueError: m")
    assert cut.tests == whole.tests, "composed to fit, so nothing is cut afterwards"
    told = len(cut.tests) + sum(one.count for one in cut.omitted if one.field == "tests")
    assert told == count
    sizes = [len(failure.model_dump_json()) for failure in cut.tests]
    assert sizes[0] == max(sizes) and len(cut.tests) >= min(count, 3)


def test_room_that_small_failures_leave_is_for_the_large_ones() -> None:
    small, large = failed(1), failed(2, message="ValueError: " + "m" * 1500)
    listed, left_out = list_failures([small, large], 3000)
    assert (listed[1].message, left_out) == (large.message, 0)


def test_nothing_is_said_of_tests_that_passed_but_their_number() -> None:
    good = TestResult(id="t.py::test_good", outcome="passed")
    whole = answer_of(good, failed(1), output="header\nt.py::test_good PASSED\n")
    assert "test_good" not in truncate(whole, render)[1] and "test_good" not in str(data_of(whole))


def test_output_is_shown_if_no_tests_were_heard_of() -> None:
    text = text_of(output="no such option\n", exit_code=4, runner=None, captured=False)
    assert text == "no test results (exit code 4)\noutput:\n```\nno such option\n```"


@pytest.mark.parametrize(
    "fields",
    [{"signal": "SIGSEGV", "exit_code": None}, {"exit_code": 3}, {"running": ["t.py::test_1"]}],
    ids=str,
)
def test_output_is_shown_if_the_run_did_not_end_as_one_with_failures_does(fields: dict[str, Any]) -> None:
    assert "Fatal error" in text_of(failed(1), output="Fatal error\n", **fields)


def test_output_is_shown_if_nothing_has_failed_and_the_run_has() -> None:
    good = TestResult(id="t.py::test_good", outcome="passed")
    assert "too little coverage" in text_of(good, output="too little coverage\n", exit_code=1)


PYTEST = """============================= test session starts ==============================
platform linux -- Python 3.12.1, pytest-8.4.2, pluggy-1.6.0
rootdir: /workspace
plugins: cov-1.0
collected 2 items

test_a.py mine
.F

=================================== FAILURES ===================================
____________________________________ test_b ____________________________________

    def test_b(): assert 0
E   assert 0

test_a.py:2: AssertionError
=========================== short test summary info ============================
FAILED test_a.py::test_b - assert 0
========================= 1 failed, 1 passed in 0.02s ==========================
"""
UNITTEST = """mine
.F
======================================================================
FAIL: test_b (test_a.Case.test_b)
A docstring.
----------------------------------------------------------------------
Traceback (most recent call last):
  File "/workspace/test_a.py", line 5, in test_b
    self.fail()
AssertionError: None

----------------------------------------------------------------------
Ran 2 tests in 0.001s

FAILED (failures=1)
"""
DJANGO = """Found 2 test(s).
Creating test database for alias 'default'...
System check identified no issues (0 silenced).
mine
test_a (shop.tests.Case.test_a) ... ok
test_b (shop.tests.Case.test_b) ... FAIL

======================================================================
FAIL: test_b (shop.tests.Case.test_b)
----------------------------------------------------------------------
Traceback (most recent call last):
AssertionError: 1 != 2

----------------------------------------------------------------------
Ran 2 tests in 0.001s

FAILED (failures=1)
Destroying test database for alias 'default'...
"""


@pytest.mark.parametrize(
    ("output", "left"),
    [(PYTEST, "test_a.py mine"), (UNITTEST, "mine"), (DJANGO, "mine")],
    ids=["pytest", "unittest", "django"],
)
def test_of_uncaptured_output_only_that_of_tests_is_shown(output: str, left: str) -> None:
    text = text_of(failed(1), output=output, captured=False)
    assert text.endswith(f"\noutput:\n```\n{left}\n```")
    assert "output" not in text_of(failed(1), output=output, captured=True)


def test_at_a_timeout_it_is_said_what_ran_what_did_not_and_how_to_raise_the_limit() -> None:
    good = TestResult(id="t.py::test_good", outcome="passed")
    hung = TestResult(
        id="t.py::test_h",
        outcome="error",
        message="The test was running when the time was over.",
        frames=["t.py:9 in test_h: wait(lock)"],
    )
    text = text_of(
        good,
        hung,
        exit_code=None,
        timed_out=True,
        timeout_s=2.5,
        running=["t.py::test_h"],
        not_run=7,
        not_run_ids=["t.py::test_i", "t.py::test_j"],
    )
    assert text == (
        "1 error, 1 passed, 7 not run (ended at timeout_s)\n"
        "ERROR t.py::test_h: The test was running when the time was over.\n"
        "  at t.py:9 in test_h: wait(lock)\n"
        "The limit was 2.5 s (`timeout_s`, at most 3600); 1 of 9 tests had ended; running: t.py::test_h; "
        "not run: t.py::test_i, t.py::test_j and 5 more."
    )


@pytest.mark.parametrize("tests", [[failed(1)], [TestResult(id="t.py::test_1", outcome="passed")]])
def test_what_another_program_of_the_entry_point_prints_is_shown(tests: list[TestResult]) -> None:
    report = "=== FAILURES ===\nassert 1 == 0\n=== 1 failed in 0.01s ===\n"
    done = evaluation(*tests, output=f".F\n{report}12:found by grep\n", exit_code=0)
    shown = answer(done, Documents(), of_others=True)  # type: ignore[arg-type] - all that it uses of a session
    assert shown.output == "12:found by grep"
    assert answer(done, Documents()).output == ""  # type: ignore[arg-type]
