"""Answers of `pdb` and `wait`: the debugger's stops as data and as text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field, PlainSerializer

from sandbox.session.debugger import (
    Breakpoint,
    Call,
    Change,
    Frame,
    Function,
    Raised,
    Source,
    Stop,
    StopReply,
    Variable,
)
from sandbox.session.session import Session
from tools import _session_uris as documents
from tools._assertions import shorten_assertion
from tools._text import fence, number_lines, number_without_docstring, plural, without_overwritten
from tools._truncation import Answer, Omitted, SourceText, Truncatable, Variables

_REST = "Ask for less, e.g. `p x[:20]` or `p len(x)`."
_LISTING = re.compile(r"^\s*\d+\s+(?:B\s*)?->", re.MULTILINE)

_LOCATION = re.compile(r"^(?:\(Pdb\) )?> .*\(\d+\)", re.MULTILINE)

_PLACE_LINES = re.compile(r"(?:^|\n)> [^\n]*\((?P<line>\d+)\)[^\n]*\n-> [^\n]*\Z")

_NEXT_STEPS = {
    "not_started": "Not started: set breakpoints with `b file:line`, then `c` starts it.",
    "running": "It goes on: `wait` for the next stop, or `wait` with interrupt=true to stop it where it is.",
    "waiting_for_input": 'It reads its standard input: `wait` with stdin, e.g. "yes\\n"; "\\u0004" is its end.',
    "exited": "Breakpoints are kept: `c` or `run` starts it again.",
}

# At these prompts, commands mean something else than at pdb's. Somebody who gets there by mistake needs the way out.
_PROMPT_HINTS = {
    ">>>": " (a Python console: `exit()` leaves it)",
    "...": " (the rest of a statement, indented: an empty command ends it)",
    "(com)": " (commands of a breakpoint: `end` ends them)",
    "((Pdb))": " (the debugger of `debug`: `q` leaves it)",
    "Clear all breaks?": " (`y` or `n`; a command instead says yes)",
}

_REASONS = {
    "entry": "its first line",
    "return": "about to return",
    "post_mortem": "post mortem",
    "set_trace": "breakpoint() in the code",
    "interrupt": "interrupted",
    "watch": "a watched value has changed",
}

_LINKS = {"cause": "caused by", "context": "while handling"}

_THREAD_FAILED = "post mortem; `c` goes on with the other threads"
_FAILED = "post mortem; `c` goes on with the tests"


def _with_numbers(source: Source) -> list[str]:
    return _source_text(source).split("\n")


Numbered = Annotated[Source, PlainSerializer(_with_numbers)]


class StopAnswer(Stop, Answer):
    """Position of the program and events since the last answer."""

    reply: Annotated[str, Truncatable("both", _REST)]
    output: Annotated[
        str, Truncatable("both", "Let the program print less, or write it to a file and `view` that.")
    ]
    source: Annotated[Numbered | None, SourceText()]
    changed: Annotated[
        list[Change], Truncatable("head", "`pp locals()` shows all."), Variables(("value", "old", "detail"))
    ]
    breakpoints: Annotated[list[Breakpoint] | None, Truncatable("head", "`b` lists all."), SourceText()]
    return_value: Annotated[str | None, Truncatable("head", "`p __return__` shows it.")] = None
    native_stack: Annotated[str | None, Truncatable("head")] = None
    call_path: Annotated[list[Call], Truncatable("tail", "`w` shows all."), SourceText()] = Field(
        default_factory=list[Call]
    )
    test_source: Annotated[list[Numbered], Truncatable("tail"), SourceText()] = Field(
        default_factory=list[Source]
    )
    called: Annotated[list[Function], Truncatable("head"), SourceText()] = Field(
        default_factory=list[Function]
    )
    locals: Annotated[
        list[Variable], Truncatable("head", "`pp locals()` shows all."), Variables(("value",))
    ] = Field(default_factory=list[Variable])
    stale: Annotated[list[str], Truncatable("head")] = Field(default_factory=list[str])
    not_run: Annotated[list[str], Truncatable("head")] = Field(default_factory=list[str])
    next: str = ""


def answer(stop: StopReply, session: Session | None = None) -> StopAnswer:
    """Convert a `stop` of the sandbox to an answer that records its omissions.

    `session`: has the documents with the left-out parts.
    """
    # Without validation: `stop` was validated when it arrived.
    fields: dict[str, Any] = {
        **vars(stop),
        "output": without_overwritten(stop.output),
        "source": _source_to_show(stop),
        "next": _next_step(stop),
    }
    whole = StopAnswer.model_construct(**fields)
    if stop.reply_omitted or stop.output_omitted:
        not_kept = "" if session else "They were not kept."
        whole = whole.with_omitted(
            Omitted(field="reply", count=stop.reply_omitted, unit="characters", hint=_REST),
            Omitted(field="output", count=stop.output_omitted, unit="bytes", hint=not_kept),
        )
    if session is None:
        return whole
    reply = documents.saved_output_hint(session, stop.reply_kept)
    return whole.with_hints(
        reply=f"{_REST} {reply}" if reply else None,
        output=documents.output_hint(session) if stop.output else None,
    )


def render(stop: StopAnswer) -> str:
    """Format position, pdb's reply, program output, source, changes, and the next call."""
    parts = [
        _headline(stop),
        _reply_text(stop),
        fence("program output:", stop.output) if stop.output else "",
        fence("native stack:", stop.native_stack) if stop.native_stack else "",
        _exception_text(stop.exception),
        _path_text(stop.call_path),
        _sources_text(stop),
        f"returns {stop.return_value}" if stop.return_value is not None and not stop.stopped_frame else "",
        _locals_text(stop),
        _called_text(stop.called),
        _changes_text(stop.changed),
        _breakpoints_text(stop.breakpoints),
        f"not run: {'; '.join(stop.not_run)}" if stop.not_run else "",
        f"changed on disk since the program loaded it: {', '.join(stop.stale)}" if stop.stale else "",
        *(f"note: {notice}" for notice in stop.notices),
        stop.next,
    ]
    return "\n".join(part for part in parts if part)


def breakpoint_line(point: Breakpoint) -> str:
    """Format a breakpoint as `1 shop/pricing.py:6 if x > 3, reached 2×: return x`."""
    words = [
        f" if {point.condition}" if point.condition else "",
        ", temporary" if point.temporary else "",
        "" if point.enabled else ", disabled",
        f", ignored {point.ignore} more times" if point.ignore else "",
        f", reached {point.hits}×" if point.hits else "",
        f", {point.state}" if point.state != "ok" else "",
        f": {point.text.strip()}" if point.text.strip() else "",
    ]
    return f"{point.id} {point.path}:{point.line}{''.join(words)}"


def _reply_text(stop: StopAnswer) -> str:
    """pdb's reply, without its lines about the place if these are in the headline and the source."""
    reply = stop.reply.strip("\n")
    if stop.source is None or stop.frame is None or stop.source.current != stop.frame.line:
        return reply
    return (
        _PLACE_LINES.sub("", reply)
        if (found := _PLACE_LINES.search(reply)) and int(found["line"]) == stop.frame.line
        else reply
    )


def _headline(stop: StopAnswer) -> str:
    if stop.state == "exited":
        return f"ended by {stop.signal}" if stop.signal else f"exited with code {stop.exit_code}"
    if stop.frame is None or stop.state != "stopped":
        return stop.state.replace("_", " ")
    shown = f"at {_location(stop.frame)}; " if stop.stopped_frame else ""
    if _is_evaluation(stop) and stop.source is None and not stop.changed and stop.exception is None:
        return f"{shown}stopped at {_location(stop.stopped_frame or stop.frame)} · stop {stop.stop}{_process_text(stop)}"
    words = [f"{shown}stopped at {_location(stop.stopped_frame or stop.frame)}", _reason_text(stop)]
    if stop.project_frame is not None:
        words.append(f", called from {_location(stop.project_frame)}")
    words.append(f" · stop {stop.stop}")
    if stop.thread is not None and not stop.thread.main:
        words.append(f" · thread {stop.thread.name}")
    words.append(_process_text(stop))
    if stop.task:
        words.append(f" · task {stop.task}")
    if stop.test:
        words.append(f" · test {stop.test}")
    return "".join(words)


def _process_text(stop: StopAnswer) -> str:
    if stop.process is None:
        return ""
    return f" · process {stop.process.number} (pid {stop.process.pid}, {stop.process.program})"


def _is_evaluation(stop: Stop) -> bool:
    """True if pdb's reply is about a value, and not about a new place."""
    return bool(stop.reply.strip() and not _LOCATION.search(stop.reply))


def _reason_text(stop: StopAnswer) -> str:
    if stop.breakpoint is not None:
        return f" (breakpoint {stop.breakpoint})"
    if not stop.reason:
        return ""
    if stop.reason == "post_mortem" and stop.test:
        return f" ({_FAILED})"
    if stop.reason == "post_mortem" and stop.thread is not None and not stop.thread.main:
        return f" ({_THREAD_FAILED})"
    return f" ({_REASONS.get(stop.reason, stop.reason.replace('_', ' '))})"


def _location(frame: Frame) -> str:
    return f"{frame.path}:{frame.line} in {frame.function}"


def _exception_text(raised: Raised | None) -> str:
    if raised is None:
        return ""
    return "\n".join(
        [f"exception: {raised.type}: {shorten_assertion(raised.message)}", *_chain_lines(raised)]
    )


def is_part(text: str, whole: str) -> bool:
    """True if a text is in another one, and not as a part of words."""
    return re.search(rf"(?<!\w){re.escape(text)}(?!\w)", whole) is not None


def _chain_lines(raised: Raised) -> Iterator[str]:
    """A line for each exception behind one; of those that only hand on a part of its message the types in one line."""
    told, handed_on = " ".join(shorten_assertion(raised.message).split()), dict[str, None]()
    for cause in raised.chain:
        message = " ".join(cause.message.split())
        is_told = cause.relation == "cause" and message and is_part(message, told)
        if is_told and cause is not raised.chain[-1]:
            handed_on[cause.type] = None
            continue
        if handed_on:
            yield f"  caused by {', '.join(handed_on)}"
            handed_on.clear()
        at = f", raised at {_location(cause.raised_at)}" if cause.raised_at else ""
        yield f"  {_LINKS[cause.relation]} {cause.type}: {cause.message}{at}"


def _source_to_show(stop: Stop) -> Source | None:
    """The source around the stop, unless the reply shows source itself or is about a value."""
    return None if _is_evaluation(stop) or _LISTING.search(stop.reply) else stop.source


def _path_text(path: list[Call]) -> str:
    return "\n".join(["call path:", *map(_call_line, path)]) if path else ""


def _call_line(call: Call) -> str:
    skipped = f"  … {plural(call.skipped, 'frame')}\n" if call.skipped else ""
    repeated = f" (×{call.repeated})" if call.repeated > 1 else ""
    return f"{skipped}  {_location(call)}: {call.text}{repeated}"


def _sources_text(stop: StopAnswer) -> str:
    """The parts of the test and the source of the stop; of a function inside of the test as a part of this."""
    source, joined = stop.source, list[Source]()
    is_in_file = bool(stop.call_path) and stop.frame is not None and stop.call_path[0].path == stop.frame.path
    if source is not None:
        joined = [one for one in stop.test_source if is_in_file and _overlap(one, source)]
    pieces = [_source_text(one) for one in stop.test_source if one not in joined]
    return "\n…\n".join([*pieces, *([_source_text(*joined, source)] if source else [])])


def _overlap(one: Source, other: Source) -> bool:
    return one.start < other.start + len(other.lines) and other.start < one.start + len(one.lines)


def _called_text(functions: list[Function]) -> str:
    return "\n".join(["called:", *map(_function_text, functions)]) if functions else ""


def _function_text(function: Function) -> str:
    head = f"  {_location(function)}"
    return f"{head}\n{number_without_docstring(function.lines, function.line)}" if function.lines else head


def _locals_text(stop: StopAnswer) -> str:
    if not stop.locals:
        return ""
    left_out = [f"  … {stop.locals_omitted} more: `pp locals()`"] if stop.locals_omitted else []
    rows = [f"  {variable.name} = {variable.value}" for variable in stop.locals]
    return "\n".join(["locals:", *rows, *left_out])


def _source_text(*pieces: Source) -> str:
    """Number the lines of a source, or of several that overlap, and mark the current one of each."""
    lines = {number: line for one in pieces for number, line in enumerate(one.lines, one.start)}
    current = {one.current for one in pieces}
    text = "\n".join(
        number_lines([lines[number]], number, current=number if number in current else None)
        for number in sorted(lines)
    )
    more = max(one.start + len(one.lines) + one.more for one in pieces) - max(lines, default=0) - 1
    return f"{text}\n… {plural(more, 'more line')}" if more > 0 and lines else text


def _changes_text(changes: list[Change]) -> str:
    return "\n".join(["changed locals:", *map(_change_line, changes)]) if changes else ""


def _change_line(change: Change) -> str:
    if change.kind == "gone":
        return f"  {change.name} is gone"
    if change.detail:
        return f"  {change.name} = {change.value} ({change.kind}: {change.detail})"
    is_visible = change.old not in (None, change.value)  # else the change lies deeper than the shown part
    suffix = f" (was {change.old})" if is_visible else f" ({change.kind})"
    return f"  {change.name} = {change.value}{suffix}"


def _breakpoints_text(breakpoints: list[Breakpoint] | None) -> str:
    if breakpoints is None:
        return ""
    if not breakpoints:
        return "breakpoints: none"
    return "\n".join(["breakpoints:", *(f"  {breakpoint_line(point)}" for point in breakpoints)])


def _next_step(stop: Stop) -> str:
    if stop.state == "stopped":
        prompt = stop.prompt.strip()
        return "" if prompt == "(Pdb)" else f"pdb asks: {prompt}{_PROMPT_HINTS.get(prompt, '')}"
    return _NEXT_STEPS[stop.state]
