"""Client of the debugger in a sandbox: its requests and the models of its answers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from sandbox.errors import InvalidArgument
from sandbox.session.guest_data import GuestData, Long, Number, Request, Short, validate

MAX_COMMAND = 64 << 10
State = Literal["not_started", "stopped", "running", "waiting_for_input", "exited"]
Command = Annotated[str, Field(max_length=MAX_COMMAND)]

MAX_EXPRESSION = 8 << 10
INSPECT_S = 10.0
END_OF_INPUT = "\x04"
_LINE_END = re.compile("\r\n|\r|\n")


class Frame(GuestData):
    """A place in the program. `path` is relative to the repository when it lies inside."""

    path: Short
    line: Number
    function: Short


class Thread(GuestData):
    """The thread that stopped."""

    id: Number
    name: Short
    main: bool


class ProgramProcess(GuestData):
    """The process that stopped, in a program with several processes. Number 1 is the program itself."""

    number: Number
    pid: Number
    parent: Number
    program: Short


class Source(GuestData):
    """Lines around the current one; `start` is the number of the first."""

    start: Number
    lines: Annotated[list[Short], Field(max_length=64)]
    current: Number
    more: Number = 0
    """Lines of the function that follow."""


class Change(GuestData):
    """A local variable that changed since the last stop in this frame."""

    name: Short
    kind: Literal["new", "changed", "mutated", "gone"]
    value: Short | None = None
    old: Short | None = None
    detail: Short | None = None
    """The difference in a mutated one, if `value` does not show all of it."""


class Call(Frame):
    """One line of the path from a test or script to a failure."""

    text: Short
    """The line of source."""
    skipped: Number = 0
    """Frames left out before this one, mostly those of libraries."""
    repeated: Number = 1
    """Repetitions of this frame, together with its neighbours of the same number: a recursion."""


class Variable(GuestData):
    """A variable of the frame shown, or an attribute of one."""

    name: Short
    value: Short


class Function(Frame):
    """A function of the repository; `line` is that of its `def`."""

    lines: Annotated[list[Short], Field(max_length=64)] = []
    """Its source, if that is short."""


class Cause(GuestData):
    """An exception behind the exception."""

    type: Short
    message: Short
    relation: Literal["cause", "context"]
    raised_at: Frame | None = None
    """The innermost place in the repository that it has passed."""


class Raised(GuestData):
    """The exception at a stop."""

    type: Short
    message: Short
    chain: Annotated[list[Cause], Field(max_length=64)] = []


class Breakpoint(GuestData):
    """One breakpoint, as stored in the sandbox. `state` is the result of the last edit."""

    id: Number
    path: Short
    line: Number
    function: Short | None = None
    condition: Command | None = None
    ignore: Number = 0
    hits: Number = 0
    """Times reached, as pdb counts them: includes those with a false condition."""
    temporary: bool = False
    enabled: bool = True
    commands: Annotated[list[Command], Field(max_length=MAX_COMMAND)] = []
    text: Short = ""
    scope: Short = ""
    state: Literal["ok", "moved", "fuzzy", "lost", "pending"] = "ok"


class Stop(GuestData):
    """Position of the program, and events since the last answer.

    Fields without a default are in every answer of a tool.
    """

    state: State
    stop: Number
    reason: Short | None
    frame: Frame | None
    reply: Long
    output: Long
    source: Source | None
    changed: Annotated[list[Change], Field(max_length=512)]
    exception: Raised | None
    exit_code: Number | None
    breakpoints: Annotated[list[Breakpoint], Field(max_length=1024)] | None
    notices: Annotated[list[Short], Field(max_length=64)]
    breakpoint: Number | None = None
    stopped_frame: Frame | None = None
    """Frame of the stop, when `frame` is another one of the stack (`up`, `down`)."""
    project_frame: Frame | None = None
    thread: Thread | None = None
    process: ProgramProcess | None = None
    task: Short | None = None
    run: Number = 0
    prompt: Short = "(Pdb) "
    return_value: Short | None = None
    signal: Short | None = None
    native_stack: Long | None = None
    test: Short | None = None
    call_path: Annotated[list[Call], Field(max_length=64)] = []
    test_source: Annotated[list[Source], Field(max_length=2)] = []
    """The failing test up to its line, in two pieces if it is long, as far as it isn't in `source`."""
    locals: Annotated[list[Variable], Field(max_length=512)] = []
    locals_omitted: Number = 0
    called: Annotated[list[Function], Field(max_length=64)] = []
    """Functions that the failing line names."""
    stale: Annotated[list[Short], Field(max_length=256)] = []
    not_run: Annotated[list[Short], Field(max_length=256)] = []


class StopReply(Stop):
    """A stop as it comes out of the sandbox, with what was left out there."""

    reply_omitted: Number = 0
    reply_kept: Number | None = None
    """Number under which `Output` stores the reply in full; None for a short one."""
    output_omitted: Number = 0


class DebuggerState(GuestData):
    """The state alone, without waiting for anything."""

    state: State
    stop: Number = 0
    run: Number = 0
    frame: Frame | None = None


class Part(GuestData):
    """One element, entry or attribute of a value, with its own parts if they were asked for.

    `name` is the text after the value's own expression: `[0]`, `['key']`, an attribute's name; `{0}` in a
    set.
    """

    name: Short
    type: Short
    repr: Short
    length: Number | None = None
    total: Number = 0
    children: Annotated[list[Part], Field(max_length=200)] = []


class Value(GuestData):
    """A value and one page of its parts, from part `start` on; it has `total` of them."""

    expression: Short
    type: Short
    repr: Short
    length: Number | None = None
    start: Number = 0
    total: Number = 0
    children: Annotated[list[Part], Field(max_length=200)] = []


class Debugger:
    """The pdb process of a session. It is started by the first command and lives between calls."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self.breakpoints: dict[int, Breakpoint] = {}
        """By number, as this server was last told; another one may have set more."""

    def note_breakpoints(self, points: Sequence[Breakpoint]) -> None:
        """Take down breakpoints that an edit has moved."""
        self.breakpoints |= {point.id: point for point in points}

    async def command(
        self,
        command: str,
        *,
        entrypoint: str | None = None,
        timeout_s: float = 30.0,
        expect_stop: int | None = None,
        running_after_s: float | None = None,
    ) -> StopReply:
        """Send one or more lines to pdb. Returns at its next prompt, the program's end, or after `timeout_s`.

        Args:
            running_after_s: shorter limit after which a resumed program is left running; not for evaluations.

        Raises:
            InvalidArgument: no command, or an entry point that can't be started.
            StaleStop: the program has moved on from `expect_stop`.
            Conflict: the program runs or has exited.
        """
        if len(command) > MAX_COMMAND:
            raise InvalidArgument(
                f"The pdb command has {len(command)} characters, the limit is {MAX_COMMAND}."
            )
        args = {
            "lines": _lines(command),
            "entrypoint": entrypoint or None,
            "timeout_s": timeout_s,
            "running_after_s": running_after_s,
            "expect_stop": expect_stop,
        }
        return await self._ask("debug.command", args, timeout_s)

    async def wait(
        self, *, timeout_s: float = 30.0, interrupt: bool = False, stdin: str | None = None
    ) -> StopReply:
        """Wait until the program stops, exits or reads; `interrupt` stops it where it is, `stdin` feeds it first.

        As at a terminal, Ctrl-D at the end of `stdin` is its end.
        """
        eof = stdin is not None and stdin.endswith(END_OF_INPUT)
        text = stdin.removesuffix(END_OF_INPUT) if stdin is not None else None
        args = {"timeout_s": timeout_s, "interrupt": interrupt, "stdin": text, "eof": eof}
        return await self._ask("debug.wait", args, timeout_s)

    async def inspect(
        self, expression: str, *, frame: int = 0, start: int = 0, count: int = 50, depth: int = 1
    ) -> Value:
        """Inspect a value in the frame `frame` steps outwards from the current one, without running its `__repr__`.

        Raises:
            InvalidArgument: the expression can't be evaluated there, or there is no such frame.
            Conflict: the program isn't stopped, or it took over 10 s.
        """
        if not expression.strip():
            raise InvalidArgument("The expression is empty.", "Say for example `order.items` or `locals()`.")
        if len(expression) > MAX_EXPRESSION:
            raise InvalidArgument(
                f"The expression has {len(expression)} characters, the limit is {MAX_EXPRESSION}."
            )
        args = {
            "expression": expression,
            "frame": frame,
            "start": start,
            "count": count,
            "depth": depth,
            "timeout_s": INSPECT_S,
        }
        return validate(Value, (await self._request("debug.inspect", args, timeout_s=INSPECT_S))[0])

    async def kill(self) -> StopReply:
        """End the program."""
        return await self._ask("debug.kill", {}, 30.0)

    async def _ask(self, op: str, args: dict[str, Any], timeout_s: float) -> StopReply:
        stop = validate(StopReply, (await self._request(op, args, timeout_s=timeout_s))[0])
        if stop.breakpoints is not None:
            self.breakpoints = {point.id: point for point in stop.breakpoints}
        return stop

    async def state(self) -> DebuggerState:
        """Return the present state of the program at once."""
        return validate(DebuggerState, (await self._request("debug.state"))[0])


def _lines(command: str) -> list[str]:
    """Split a command into lines. Form feeds and the like do not end a line."""
    lines = _LINE_END.split(command)
    return lines[:-1] if len(lines) > 1 and not lines[-1] else lines
