"""Output of test runs without what their runners print."""

from __future__ import annotations

import pytest

from tools._run_output import shorten_run_output, without_runner_text

DOUBLE, SINGLE = "=" * 70, "-" * 70
UNITTEST = f"""\
.F
{DOUBLE}
FAIL: test_x (test_a.Case.test_x)
Describe the test.
{SINGLE}
Traceback (most recent call last):
AssertionError: 1 != 2

{SINGLE}
Ran 2 tests in 0.001s

FAILED (failures=1)
"""
PYTEST = """\
=== test session starts ===
platform linux
collected 2 items

test_a.py .F [100%]
=== FAILURES ===
assert 1 == 2
=== 1 failed, 1 passed in 0.01s ===
"""


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (UNITTEST, ""),
        (f"printed\n{UNITTEST}printed at the end", "printed\nprinted at the end"),
        (f"{DOUBLE}\nFAIL: as a program prints it\n", f"{DOUBLE}\nFAIL: as a program prints it"),
        (UNITTEST.replace("Ran", "Did"), UNITTEST.replace("Ran", "Did").removeprefix(".F\n").rstrip("\n")),
        (PYTEST, ""),
        (PYTEST.replace("test_a.py", "printed"), "printed .F [100%]"),
        ("printed\nSystem check identified no issues (0 silenced).\nprinted later", "printed later"),
        (f"..\n{SINGLE}\nRan 2 tests in 0.001s\n\nOK\nprinted", "printed"),
        (f"printed before\n{PYTEST}printed", "printed before\n\nprinted"),
        ("test_x (a.Case) ... ok\nprinted", "printed"),
        ("printed\ntest_x (a.Case.test_x) ... ", "printed"),
    ],
)
def test_what_runners_print_is_dropped_and_nothing_else(text: str, left: str) -> None:
    assert without_runner_text(text) == left


def test_repeated_lines_are_written_once() -> None:
    assert shorten_run_output(f"a\nb\nb\nb\n{UNITTEST}") == "a\nb … ×3"


@pytest.mark.parametrize(
    "line",
    [
        "= FAILURES =",
        DOUBLE,
        f"{DOUBLE}\nFAIL: x\n{SINGLE}",
        "x PASSED",
        "1 a, 1 a",
        "System check identified ",
        "a",
    ],
)
def test_a_megabyte_of_anything_is_looked_through(line: str) -> None:
    text = f"{line}\n" * ((1 << 20) // (len(line) + 1))
    assert len(without_runner_text(text)) <= len(text)
