"""The part of a test run's output that an answer shows: what its failures do not say already."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sandbox.session.results import Evaluation
from tools._text import last_lines, mark_gap, without_overwritten

_UNCAPTURED = 1000
"""Maximum characters of the output of tests that the runner did not capture."""
_ODD = 1200
"""The same, of a run that did not end as a run with failures does."""
_DOUBLE, _SINGLE = "=" * 70, "-" * 70
_UNITTEST_FAILURE = re.compile(r"(?:FAIL|ERROR): ")
_UNITTEST_COUNT = re.compile(r"Ran \d+ tests? in [\d.]+s")
_UNITTEST_END = re.compile(r"(?:FAILED|OK)\b")
_PYTEST_START = re.compile(r"=+ test session starts =+")
_PYTEST_COLLECTED = re.compile(r"collected \d")
_PYTEST_REPORT = re.compile(r"=+ (?:FAILURES|ERRORS|short test summary info) =+")
_PYTEST_COUNTS = re.compile(r"(?:=+ )?\d+ [a-z]+(?:, \d+ [a-z]+)* in [\d.]+s")
_PROGRESS = re.compile(
    r"(?:\S+\.py )?[.FEsxX]+(?: *\[ *\d+%\])?"
    r"|\S.* (?:\.\.\. (?:ok|FAIL|ERROR|skipped .*|expected failure|unexpected success)|PASSED|FAILED|ERROR)(?: *\[ *\d+%\])?"
    r"|\w+ \([\w.]+\) \.\.\. ?"
    r"|Found \d+ test\(s\)\.|(?:Creating|Destroying) test database for alias .*"
)
_MAX_PROGRESS = 1000
"""Characters of a longer line are no progress. Matching it could take long."""
_DJANGO_CHECK = "System check identified ", " silenced)."


def output_to_show(done: Evaluation, limit: int, *, of_others: bool = False) -> tuple[str, int]:
    """Return the end of the output, as much as is of use, and the number of characters that are left out before it.

    All of it counts if no tests were heard of, or if the run did not end as a run with failures does. Else the
    failures say what the runner has printed about them; of the rest, only what tests have printed is left. Of a run in
    which all passed, nothing.

    `of_others`: other programs than the test runner have printed, too; their text is kept.
    """
    heard = bool(done.tests)
    if heard and done.exit_code == 0 and not of_others:
        return "", 0
    text = without_overwritten(mark_gap(done.output, done.gap, done.omitted))
    if heard and (done.timed_out or done.exit_code == 0 or not _ended_oddly(done)):
        if done.captured and not of_others:
            return "", 0
        text, limit = without_runner_text(text), min(limit, _UNCAPTURED)
    elif heard:
        limit = min(limit, _ODD)
    folded = _fold(text)
    shown = last_lines(folded, max(0, limit))
    return shown, len(folded) - len(shown)


def _ended_oddly(done: Evaluation) -> bool:
    bad = done.failed + done.errors + done.xpassed
    code = done.exit_code or 0
    return done.signal is not None or bool(done.running) or not bad or (done.runner == "pytest" and code > 2)


def shorten_run_output(text: str) -> str:
    """Drop what a test runner has printed, and write repeated lines once."""
    return _fold(without_runner_text(text))


def without_runner_text(text: str) -> str:
    """Drop headers, tracebacks, summaries and progress that unittest or pytest has printed.

    Takes a time linear in the length of the text, which programs can make what they like.
    """
    lines = _without_pytest_report(_without_pytest_header(_without_unittest_report(text.split("\n"))))
    lines = [line for line in _without_django_header(lines) if not _is_progress(line)]
    return "\n".join(lines).strip("\n")


def _without_unittest_report(lines: list[str]) -> list[str]:
    kept: list[str] = []
    at = 0
    while at < len(lines):
        if lines[at] == _DOUBLE:
            end, is_report = _unittest_report(lines, at)
        else:
            is_report = _is_unittest_end(lines[at : at + 4])
            end = at + (4 if is_report else 1)
        # What begins within blocks that are no report is none either.
        kept += [] if is_report else lines[at:end]
        at = end
    return kept


def _unittest_report(lines: list[str], at: int) -> tuple[int, bool]:
    """(the line behind the failures that begin at `at`, True if their number and the outcome follow and are behind)."""
    start = at
    while lines[at : at + 1] == [_DOUBLE]:
        head = next((size for size in (3, 2) if lines[at + size : at + size + 1] == [_SINGLE]), 0)
        if not head or not _UNITTEST_FAILURE.match(lines[at + 1]):
            return max(at, start + 1), False
        at += head + 1
        while at < len(lines) and lines[at] not in (_DOUBLE, _SINGLE):
            at += 1
    return (at + 4, True) if _is_unittest_end(lines[at : at + 4]) else (at, False)


def _is_unittest_end(lines: Sequence[str]) -> bool:
    """True for the rule, the number of tests and the outcome behind a run."""
    return (
        len(lines) == 4
        and lines[0] == _SINGLE
        and _UNITTEST_COUNT.fullmatch(lines[1]) is not None
        and not lines[2]
        and _UNITTEST_END.match(lines[3]) is not None
    )


def _without_pytest_header(lines: list[str]) -> list[str]:
    start = next((number for number, line in enumerate(lines) if _PYTEST_START.fullmatch(line)), len(lines))
    for number, line in enumerate(lines[start + 1 : -1], start + 1):
        if _PYTEST_COLLECTED.match(line):
            return [*lines[:start], *lines[number + 1 + (lines[number + 1 : number + 2] == [""]) :]]
    return lines


def _without_pytest_report(lines: list[str]) -> list[str]:
    counts = [number for number, line in enumerate(lines) if _PYTEST_COUNTS.match(line)]
    if not counts:
        return lines
    last = counts[-1]
    first = next((number for number, line in enumerate(lines[:last]) if _PYTEST_REPORT.fullmatch(line)), last)
    alone = set(counts)
    before = ["" if number in alone else line for number, line in enumerate(lines[:first])]
    return [*before, "", *lines[last + 1 :]]


def _without_django_header(lines: list[str]) -> list[str]:
    start, end = _DJANGO_CHECK
    for number in range(len(lines) - 1, -1, -1):
        if lines[number].startswith(start) and lines[number].endswith(end):
            return lines[number + 1 :]
    return lines


def _is_progress(line: str) -> bool:
    return len(line) <= _MAX_PROGRESS and _PROGRESS.fullmatch(line) is not None


def _fold(text: str) -> str:
    """Write a line that occurs several times in a row once, with their number."""
    lines: list[tuple[str, int]] = []
    for line in text.strip("\n").split("\n"):
        if lines and lines[-1][0] == line:
            lines[-1] = line, lines[-1][1] + 1
        else:
            lines.append((line, 1))
    return "\n".join(line if times == 1 else f"{line} … ×{times}" for line, times in lines)
