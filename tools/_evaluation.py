"""Answers of `eval`, and of `rewrite` with `run`: a test run as data and as text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

from pydantic import Field

from sandbox.host_files import in_thread
from sandbox.session.results import Evaluation, TestResult
from sandbox.session.session import Session
from tools import _session_uris as documents
from tools._failures import Failure, data_size_of, format_failure, list_failures, size_of
from tools._run_output import output_to_show
from tools._text import describe_signal, fence, plural
from tools._tool import Report
from tools._truncation import LIMIT, Answer, Omitted, Truncatable

TIMEOUT_S = 120
_BAD = ("failed", "error", "xpassed")
_COPIED = (
    *("exit_code", "passed", "failed", "errors", "skipped", "xfailed", "xpassed", "not_run"),
    *("runner", "timed_out", "signal"),
)
_MAX_NAMES = 500
"""Characters of the ids in one list."""
_LONG = 10_000
"""Characters of output and tests, above which an answer is made in a thread."""
_SEVERAL = re.compile(r"[;&|\n]")
"""In an entry point that may run more than the tests, but for what `_NO_COMMAND` finds."""
_NO_COMMAND = re.compile(r"'[^']*'|\"[^\"]*\"|\d?>&\d")
_RESERVE = 250
"""Characters for notes about what is left out, and for notices."""


class EvalAnswer(Answer):
    """Result of a test run. `tests` has those that did not pass; `fixed` and `broken` compare with the last run.

    After edits, of the tests that fail `failed_before` failed before them as well, `failed_now` did not.
    """

    exit_code: int | None
    passed: int
    failed: int
    errors: int
    skipped: int
    xfailed: int = 0
    xpassed: int = 0
    not_run: int = 0
    tests: Annotated[list[Failure], Truncatable("head", "Name some in `tests`.")]
    output: Annotated[
        str, Truncatable("tail", "Name some in `tests`, or write it to a file with `bash` and `view` that.")
    ]
    fixed: Annotated[list[str], Truncatable("head")] = Field(default_factory=list[str])
    broken: Annotated[list[str], Truncatable("head")] = Field(default_factory=list[str])
    runner: str | None = None
    timed_out: bool = False
    timeout_s: float = 0
    running: list[str] = Field(default_factory=list[str])
    not_run_tests: list[str] = Field(default_factory=list[str])
    signal: str | None = None
    failed_before: int = 0
    failed_now: int = 0
    restored: Annotated[list[str], Truncatable("head")] = Field(default_factory=list[str])


async def evaluate(
    session: Session,
    report: Report,
    *,
    entrypoint: str | None = None,
    tests: Sequence[str] = (),
    timeout_s: float = TIMEOUT_S,
    limit: int = LIMIT,
) -> EvalAnswer:
    """Run the tests of a session and give the answer about them, of at most `limit` characters."""
    done = await session.evaluate(
        entrypoint=entrypoint,
        tests=tests,
        timeout_s=timeout_s,
        on_progress=lambda progress, _: _report_progress(report, progress),
        past_errors=True,
        before=True,
    )
    brief_old = not (tests or "::" in (entrypoint or ""))  # who names tests wants to know all of them
    make = partial(answer, brief_old=brief_old, of_others=_runs_more(entrypoint or ""))
    if len(done.output) + len(done.tests) < _LONG:
        return make(done, session, limit)
    return await in_thread(make, done, session, limit)


def _runs_more(command: str) -> bool:
    """True for a command of a call that may run other programs than the tests."""
    return _SEVERAL.search(_NO_COMMAND.sub("", command)) is not None


def _report_progress(report: Report, progress: dict[str, Any]) -> None:
    """Report the progress of a test run."""
    count, total, last = progress.get("tests"), progress.get("of"), progress.get("last")
    if _is_count(count):
        # The texts come from the sandbox unchecked.
        words = f"{str(last or 'tests')[:300]}: {str(progress.get('outcome') or 'done')[:20]}"
        report(words, count, total if _is_count(total) else None)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and 0 <= value < 1 << 31


def answer(
    done: Evaluation,
    session: Session,
    limit: int = LIMIT,
    *,
    brief_old: bool = False,
    of_others: bool = False,
) -> EvalAnswer:
    """Convert a finished test run to an answer of at most `limit` characters that records its omissions.

    `session`: has the documents with the left-out parts. `brief_old`: see `list_failures`. `of_others`: see `output_to_show`.
    """
    bad = [test for test in done.tests if test.outcome in _BAD]
    whole = EvalAnswer(
        **{name: getattr(done, name) for name in _COPIED},
        tests=[],
        output="",
        fixed=_bound(done.fixed),
        broken=_bound(done.broken),
        restored=_bound(done.restored),
        failed_before=sum(test.failed_before is True for test in bad),
        failed_now=sum(test.failed_before is False for test in bad),
        **(_stuck(done) if done.timed_out else {}),
    )
    left = limit - _RESERVE - max(len(render(whole)), data_size_of(whole))
    listed, left_out = list_failures(bad, left, brief_old=brief_old)
    unlisted = max(0, sum(done.counts.get(outcome, 0) for outcome in _BAD) - len(bad))
    kept, rest = documents.saved_output_hint(session, done.kept), documents.hint(session, documents.TESTS)
    left -= sum(map(size_of, listed))
    output, output_omitted = output_to_show(done, left, of_others=of_others)
    output_omitted += _cut_outputs(bad, listed, all_of_them=left_out > 0)
    return (
        whole.model_copy(update={"tests": listed, "output": output})
        .with_omitted(
            Omitted(field="output", count=output_omitted, unit="characters", hint=kept or ""),
            Omitted(field="tests", count=left_out, unit="items", hint=f"Name some in `tests`. {rest}"),
            Omitted(field="tests", count=unlisted, unit="items", hint="They are counted all the same."),
            *(
                Omitted(field=name, count=len(getattr(done, name)) - len(getattr(whole, name)), unit="items")
                for name in ("fixed", "broken", "restored")
            ),
        )
        .with_hints(output=kept, tests=f"Name some in `tests`. {rest}")
    )


def _cut_outputs(tests: Sequence[TestResult], listed: Sequence[Failure], *, all_of_them: bool) -> int:
    """Characters that the listed tests, or all of them, have printed and that are not shown."""
    shown = {failure.id: len(failure.output) for failure in listed}
    return sum(
        max(0, len(test.output.strip("\n")) - shown.get(test.id, 0))
        for test in tests
        if all_of_them or test.id in shown
    )


def _stuck(done: Evaluation) -> dict[str, Any]:
    return {
        "timeout_s": done.timeout_s,
        "running": _bound(done.running),
        "not_run_tests": _bound(done.not_run_ids),
    }


def _bound(names: list[str]) -> list[str]:
    """Return the first of `names`, as many as an answer has room for."""
    left, kept = _MAX_NAMES, list[str]()
    for name in names:
        left -= len(name) + 3
        if left < 0:
            break
        kept.append(name)
    return kept


def render(answer: EvalAnswer) -> str:
    """Format counts, each failure, changes since the last run, and output if the failures don't have it."""
    parts = [
        _summary(answer),
        *(map(format_failure, answer.tests)),
        f"fixed since the last run: {', '.join(answer.fixed)}" if answer.fixed else "",
        f"broken since the last run: {', '.join(answer.broken)}" if answer.broken else "",
        f"read-only files put back before the run: {', '.join(answer.restored)}" if answer.restored else "",
        _timeout_text(answer) if answer.timed_out else "",
    ]
    if answer.output:
        parts.append(fence("output:", answer.output))
    elif not _counts(answer):
        parts.append("no output")
    return "\n".join(part for part in parts if part)


def _timeout_text(answer: EvalAnswer) -> str:
    began = sum((answer.passed, answer.failed, answer.errors, answer.skipped, answer.xfailed, answer.xpassed))
    total = began + answer.not_run
    texts = [f"The limit was {answer.timeout_s:g} s (`timeout_s`, at most 3600)"]
    if total:
        ended = began - len(answer.running)
        texts[0] += f"; {ended:,} of {total:,} tests had ended"
    if answer.running:
        texts.append(f"running: {', '.join(answer.running)}")
    if answer.not_run_tests:
        more = answer.not_run - len(answer.not_run_tests)
        texts.append(f"not run: {', '.join(answer.not_run_tests)}{f' and {more:,} more' if more > 0 else ''}")
    return "; ".join(texts) + "."


def _summary(answer: EvalAnswer) -> str:
    return f"{', '.join(_counts(answer)) or 'no test results'} ({_end(answer)}){_before(answer)}"


def _before(answer: EvalAnswer) -> str:
    """Tell how many of the failing tests failed before the edits too, if one did."""
    total, old, new = answer.failed + answer.errors, answer.failed_before, answer.failed_now
    if not old:
        return ""
    if old == total:
        who = {1: "it", 2: "both"}.get(total, "all of them")
        return f"; {who} failed before your edits too"
    open_ = f", of {total - old - new:,} it is not known" if total > old + new else ""
    return f"; {old:,} of the {total:,} failed before your edits too{open_}"


def _counts(answer: EvalAnswer) -> list[str]:
    return [
        plural(count, word) if word == "error" else f"{count:,} {word}"
        for count, word in (
            (answer.failed, "failed"),
            (answer.errors, "error"),
            (answer.passed, "passed"),
            (answer.skipped, "skipped"),
            (answer.xfailed, "xfailed"),
            (answer.xpassed, "xpassed"),
            (answer.not_run, "not run"),
        )
        if count
    ]


def _end(answer: EvalAnswer) -> str:
    if answer.timed_out:
        return "ended at timeout_s"
    return describe_signal(answer.signal) if answer.signal else f"exit code {answer.exit_code}"
