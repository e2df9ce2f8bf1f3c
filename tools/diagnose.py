"""The `diagnose` tool: from a failing test to its cause in one call."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from sandbox.errors import InvalidArgument, PdboxError
from sandbox.host_files import in_thread
from sandbox.session.debugger import Frame, Function, Source, StopReply
from sandbox.session.session import Session
from sandbox.session.test_command import PYTEST
from tools import _session_uris as documents
from tools._assertions import leave_out_difference
from tools._run_output import shorten_run_output
from tools._stop import StopAnswer, is_part
from tools._stop import answer as stop_answer
from tools._stop import render as render_stop
from tools._test_definitions import LinesOfTest, read_definitions
from tools._test_ids import is_of, is_test_file
from tools._text import last_lines
from tools._tool import Report, Tool
from tools._truncation import Omitted, SourceText, Truncatable

if TYPE_CHECKING:  # the server starts without the models of a diagnosis
    from sandbox.session.diagnosis import Diagnosis, Place
    from tools._diagnosis import Shown
    from tools._excerpts import Excerpt

_MAX_STOPS = 100
_MAX_OUTPUT = 1000
_MAX_VALUE = 300
_MAX_OTHERS, _MAX_NAME = 3, 150
_MAX_CALLERS = 2
_WHOLE = 3800
"""Characters of an answer, which the source of functions fills up."""
_LEAST_SOURCE, _LEAST_BESIDE, _LEAST_OF_CHANGES = 3000, 1500, 1000
"""Characters of source that are shown whatever the rest takes; beside a sure finding; beside changes at which the cause mostly is."""
_LEAST_SETUP = 1000
"""Characters of the test's set-up that are shown whatever the rest takes."""
_MANY_BEFORE, _BEFORE = 12, 8
"""Lines of a test before its failing one of which not all are shown beside such changes; those that are."""
_SETUPS = "setUp", "asyncSetUp", "setup_method"
_NOT_FAILED = "no diagnosis: this test has not failed, neither alone nor among all tests"
_NOT_REACHED = "no diagnosis: alone this test passes, and among all tests its failure was not reached"


class DiagnoseAnswer(StopAnswer):
    """The stop at the failure, and where its values came from."""

    values: Annotated[list[str], Truncatable("head", "Evaluate them one by one with `pdb`.")]
    diagnosis: Annotated[str, Truncatable("head")]
    functions: Annotated[list[str], Truncatable("head", "`view` shows them."), SourceText()] = Field(
        default_factory=list[str]
    )
    of_test: Annotated[list[str], Truncatable("head", "`view` shows them."), SourceText()] = Field(
        default_factory=list[str]
    )
    """The middle of a long test, short classes and constants that it names."""
    also_failing: list[str] = Field(default_factory=list[str])
    """The first ones; `more_failing` counts the rest."""
    more_failing: int = 0


async def diagnose(
    session: Session,
    report: Report,
    test: Annotated[
        str | None,
        Field(description="Test id; left out, the first that fails (of the last `eval`)."),
    ] = None,
    entrypoint: Annotated[
        str | None, Field(description='Instead: a command that fails, e.g. "python app.py 3".')
    ] = None,
    expressions: Annotated[
        list[str], Field(description='Shown as at the failure, e.g. ["order.items", "len(x)"].')
    ] = [],  # noqa: B006  (pydantic copies it)
    against: Annotated[
        str | None,
        Field(description='Passing test, or "auto": tells where both part.'),
    ] = None,
    timeout_s: Annotated[float, Field(gt=0, le=3600, description="For all runs together.")] = 120,
) -> DiagnoseAnswer:
    """Find the cause of a failing test: stops `pdb` post mortem at its failure, tells where its wrong value came from.

    Runs it and its file again: small changes with which it passes, the calls that matter, objects shared
    by two names, state kept. `pdb` goes on from there.
    """
    end = time.monotonic() + timeout_s
    if not (test or entrypoint):
        test = await _first_failing(session, report, timeout_s / 2)
    report("running the test under the debugger")
    command = await session.command_of_test(test, entrypoint) if test else entrypoint
    stop = await _stop_at_failure(session, command, end)
    whole = entrypoint or session.entrypoint
    in_order = stop.state == "exited" and test is not None and bool(whole)
    if in_order:  # alone it passes
        report("running all tests: alone this one passes")
        stop = await _stop_at_failure(session, whole, end, test)
    values = [await _evaluate(session, text) for text in expressions[:20]] if stop.state == "stopped" else []
    if in_order and (stop.state == "exited" or _is_other(stop, test)):
        text, found = _NOT_FAILED if stop.state == "exited" else _NOT_REACHED, None
    else:
        text, found = await _diagnose(session, report, stop, entrypoint, end, against, in_order=in_order)
    others_told = [one.test for one in found.spectrum.failing] if found and found.spectrum else []
    if found is not None:
        session.note_diagnosis(stop.test, others_told)
    shown = await in_thread(_with_last_output, stop_answer(stop, session), documents.output_hint(session))
    if stop.test == test and not in_order:
        shown = shown.model_copy(update={"test": None})  # the client has named it
    others, more = await in_thread(_others_than, stop.test, session, {*others_told})
    whole = DiagnoseAnswer.model_construct(
        **vars(shown), values=values, diagnosis=text, also_failing=others, more_failing=more
    )
    return whole if found is None else await _with_source(session, whole, found)


def _with_last_output(stop: StopAnswer, hint: str) -> StopAnswer:
    """With the end of what the program itself has printed: logs may be long, and what failed is told otherwise."""
    text = shorten_run_output(stop.output)
    kept = last_lines(text, _MAX_OUTPUT)
    left = Omitted(field="output", count=len(text) - len(kept), unit="characters", hint=hint)
    return stop.model_copy(update={"output": kept}).with_omitted(left)


async def _with_source(session: Session, whole: DiagnoseAnswer, found: Diagnosis) -> DiagnoseAnswer:
    """Add the functions that the diagnosis names, then those that the failing line called, as far as there is room.

    Where the diagnosis tells calls or changes, only functions of test code are added.
    """
    from tools._diagnosis import select_shown
    from tools._excerpts import read_excerpts

    answer, told = without_library(whole).model_copy(update={"called": []}), select_shown(found)
    if answer.exception and found.recording and found.recording.difference:
        message = await in_thread(leave_out_difference, answer.exception.message)
        exception = answer.exception.model_copy(update={"message": message})
        answer = answer.model_copy(update={"exception": exception})
    if told.is_mended:
        answer = with_short_test(with_named_locals(answer))
    is_told = told.is_sure or bool(told.changes)
    least = _LEAST_OF_CHANGES if told.is_mended else _LEAST_BESIDE if is_told else _LEAST_SOURCE
    room = max(least, _WHOLE - len(render(answer)))
    passed = _callers_in(answer), _origin_of(answer)
    excerpts = await read_excerpts(session, found, _places_in(answer), room, *passed)
    functions = [one.text for one in excerpts]
    called = select_called(whole, told)
    called = list(_not_shown(called, excerpts, room - sum(map(len, functions))))
    of_test = list[str]()
    # Not by the answer, which doesn't tell a test that the client has named.
    if session.diagnosed and not told.is_mended:
        test = _test_in(answer, [line for one in excerpts for line in one.lines()])
        of_test = await read_definitions(session, test) if test else []
    return answer.model_copy(update={"called": called, "functions": functions, "of_test": of_test})


def without_library(answer: DiagnoseAnswer) -> DiagnoseAnswer:
    """Without source and locals of a function that is not of the repository, to which nothing of it has led.

    A test runner that has caught the exception itself raises another one there.
    """
    is_library = answer.frame is not None and PurePosixPath(answer.frame.path).is_absolute()
    if not is_library or answer.call_path or answer.project_frame:
        return answer
    return answer.model_copy(update={"source": None, "locals": [], "locals_omitted": 0})


def with_named_locals(answer: DiagnoseAnswer) -> DiagnoseAnswer:
    """With those locals alone that the failing line names, or the lines below it, into which its statement may go on.

    But for those whose value is in the message of the failure.
    """
    names = _names_of_failing(answer)
    if not names:
        return answer
    message = answer.exception.message if answer.exception else ""
    named = [
        one
        for one in answer.locals
        if one.name.partition(".")[0] in names and not is_part(one.value, message)
    ]
    left_out = answer.locals_omitted + len(answer.locals) - len(named)
    return answer.model_copy(update={"locals": named, "locals_omitted": left_out})


def _names_of_failing(stop: StopAnswer) -> set[str]:
    """Names in the failing line, and in the lines below it, into which its statement may go on."""
    statement = stop.source.lines[max(0, stop.source.current - stop.source.start) :] if stop.source else []
    return {*re.findall(r"\w+", " ".join(statement))}


def with_short_test(answer: DiagnoseAnswer) -> DiagnoseAnswer:
    """With the first line of a long test, and those just before the failing one."""
    pieces = _pieces_of_test(answer)
    if not pieces or pieces[-1].current - pieces[0].start <= _MANY_BEFORE:
        return answer
    first, last = pieces[0], pieces[-1]
    start = max(last.start, last.current - _BEFORE)
    head = first.model_copy(update={"lines": first.lines[:1], "more": 0})
    tail = last.model_copy(update={"start": start, "lines": last.lines[start - last.start :]})
    if answer.call_path:
        return answer.model_copy(update={"test_source": [head, tail]})
    return answer.model_copy(update={"test_source": [head], "source": tail})


def _pieces_of_test(stop: StopAnswer) -> list[Source]:
    """The parts of the test's source: with a path to the failure the last one is not where it has stopped."""
    return [*stop.test_source, *([stop.source] if stop.source and not stop.call_path else [])]


def select_called(stop: StopAnswer, told: Shown) -> list[Function]:
    """Functions that the failing line called; where the diagnosis tells calls or changes, those of test code alone.

    Beside a change that is mostly at the cause, those of them that the failing line names: nothing that has prepared the test.
    """
    if not (told.calls or told.changes):
        return stop.called
    if told.is_mended:
        names = _names_of_failing(stop)
        return [one for one in stop.called if one.function in names and is_test_file(one.path)]
    test = stop.call_path[0] if stop.call_path else stop.frame
    return [one for one in stop.called if is_test_file(one.path) or (test and one.path == test.path)]


def _not_shown(called: list[Function], excerpts: list[Excerpt], room: int) -> Iterator[Function]:
    """Called functions whose source is not among `excerpts`, set-ups and those which have `room`."""
    shown = {(one.path, one.function.rpartition(".")[2]) for one in excerpts}
    whole = {one.path for one in excerpts if not one.function}
    for one in called:
        size = sum(len(line) + len(" 1234  ") for line in one.lines)
        least = _LEAST_SETUP if one.function in _SETUPS else 0
        is_shown = one.path in whole or (one.path, one.function) in shown
        if one.lines and not is_shown and size <= max(room, least):
            yield one
            room = max(0, room - size)


async def _first_failing(session: Session, report: Report, timeout_s: float) -> str | None:
    """The first failing test of the last `eval`, which runs now if there was none; None if none fails."""
    if not session.metadata.outcomes and session.entrypoint:
        report("running the tests")
        await session.evaluate(timeout_s=timeout_s, past_errors=True, before=False)
    return session.metadata.first_failing


async def _stop_at_failure(
    session: Session, entrypoint: str | None, end: float, test: str | None = None
) -> StopReply:
    """Run to the first failure, past all breakpoints; with `test`, past the failures of other tests, too."""
    stop = await session.debugger.command("c", entrypoint=entrypoint, timeout_s=_left(end))
    for _ in range(_MAX_STOPS):
        failed = stop.reason == "post_mortem" and not _is_other(stop, test)
        if stop.state != "stopped" or failed or time.monotonic() > end:
            break
        stop = await session.debugger.command("c", timeout_s=_left(end))
    return stop


def _is_other(stop: StopReply, test: str | None) -> bool:
    """True at the failure of another test than the one that was asked for."""
    return test is not None and stop.test is not None and not is_of(stop.test, test)


def _left(end: float) -> float:
    return max(1.0, end - time.monotonic())


async def _evaluate(session: Session, expression: str) -> str:
    """Evaluate an expression at the stop, as `p` does: `name = value`."""
    line = " ".join(expression.split())
    try:
        value = (await session.debugger.command(f"p {line}", timeout_s=10)).reply.strip()
    except PdboxError as exc:
        value = exc.message
    return f"{line[:100]} = {value if len(value) <= _MAX_VALUE else value[:_MAX_VALUE] + '…'}"


async def _diagnose(
    session: Session,
    report: Report,
    stop: StopReply,
    entrypoint: str | None,
    end: float,
    against: str | None,
    *,
    in_order: bool,
) -> tuple[str, Diagnosis | None]:
    """Run the observed runs. Returns (text of their findings, the findings)."""
    from tools._diagnosis import render_diagnosis

    if stop.state in ("running", "waiting_for_input"):
        return "no diagnosis: the program had not failed when timeout_s was over", None
    if stop.state != "stopped" or stop.reason != "post_mortem":
        return "no diagnosis: nothing has failed in this run", None
    test = stop.test
    command = entrypoint or session.entrypoint or session.debug_entrypoint
    if test is not None and (not command or command == test):
        command = PYTEST if "::" in test else f"python -m unittest {test}"
    if command is None:
        return "no diagnosis: the session has no entry point", None
    report("looking where the value came from")
    try:
        found = await session.diagnose(
            command=command, test=test, timeout_s=_left(end), in_order=in_order, against=against
        )
    except InvalidArgument as exc:
        return f"no diagnosis: {exc.message}", None
    note = "alone this test passes: it depends on the tests before it\n" if in_order else ""
    return note + render_diagnosis(found), found


def _places_in(stop: StopAnswer) -> list[tuple[str, int]]:
    """A path and line of each function of which a stop shows the source."""
    frames = [*stop.call_path[:1], *([stop.frame] if stop.frame else [])]
    return [(one.path, one.line) for one in frames]


def _test_in(stop: StopAnswer, shown: Sequence[tuple[str, int]]) -> LinesOfTest | None:
    """The lines of the test that a stop shows; None if it shows none. `shown`: path and number of further lines."""
    frame, pieces = stop.call_path[0] if stop.call_path else stop.frame, _pieces_of_test(stop)
    lines = {number: line for one in pieces for number, line in enumerate(one.lines, one.start)}
    if not (frame and lines):
        return None
    others = {line for path, line in shown if path == frame.path}
    if stop.source and stop.frame and stop.frame.path == frame.path:
        others.update(range(stop.source.start, stop.source.start + len(stop.source.lines)))
    return LinesOfTest(frame.path, lines, frozenset(others), pieces[-1].current)


def _callers_in(stop: StopAnswer) -> list[Place]:
    """The functions between the test and an exception, the innermost first: their source is not among the stop's."""
    between = stop.call_path[1:-1] if stop.frame else []
    return [_place_of(one) for one in reversed(between[-_MAX_CALLERS:])]


def _origin_of(stop: StopAnswer) -> Place | None:
    """The place where the exception behind that of the stop was raised; None if there is none."""
    chain = stop.exception.chain if stop.exception else []
    causes = [*takewhile(lambda one: one.relation == "cause", chain)]
    return _place_of(causes[-1].raised_at) if causes and causes[-1].raised_at else None


def _place_of(frame: Frame) -> Place:
    from sandbox.session.diagnosis import Place

    return Place(path=frame.path, line=frame.line, function=frame.function)


def render(answer: DiagnoseAnswer) -> str:
    """Format the stop, the expressions, the diagnosis, and the functions that it names."""
    from tools._source_parts import VALUE

    evaluated = ["expressions:", *(f"  {value}" for value in answer.values)] if answer.values else []
    values = f" ({VALUE} value in the call told)" if any(VALUE in text for text in answer.functions) else ""
    functions = [f"source of functions named above{values}:", *answer.functions] if answer.functions else []
    of_test = ["more of the test:", *answer.of_test] if answer.of_test else []
    return "\n".join(
        [render_stop(answer), *_others(answer), *evaluated, answer.diagnosis, *functions, *of_test]
    )


def _others_than(test: str | None, session: Session, told: set[str]) -> tuple[list[str], int]:
    """The first of the other tests that fail, but for those `told`, and the number of the rest.

    There may be tens of thousands.
    """
    if test is None:
        return [], 0
    others = [one for one in session.metadata.failing if one not in told and not is_of(test, one)]
    return [one[:_MAX_NAME] for one in others[:_MAX_OTHERS]], max(0, len(others) - _MAX_OTHERS)


def _others(answer: DiagnoseAnswer) -> list[str]:
    """A line with other tests that fail: they may have the same cause."""
    more = f" and {answer.more_failing} more" if answer.more_failing else ""
    return [f"also failing: {', '.join(answer.also_failing)}{more}"] if answer.also_failing else []


TOOL = Tool(
    diagnose,
    render,
    title="Find the cause of a failing test",
    group="debug",
    slow=True,
    wide=lambda _: True,
    aliases={"timeout": "timeout_s"},
)
