"""Calls that go on after an answer in time (`--answer-within`): `wait` gives their own answers later.

Clients of several frameworks give up on a call after 5 or 10 s, whatever it is doing. A call that is not done in time is
answered with `running`, as an ordinary result, and its work goes on in a task of the session store.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio
from mcp.types import CallToolResult, TextContent

from mcp_server.connection_options import ConnectionOptions
from mcp_server.errors import refusal
from mcp_server.observability import logs
from mcp_server.observability.receipts import current_receipt
from mcp_server.sessions.store import SessionStore
from mcp_server.sessions.undelivered import GRACE_S
from mcp_server.trajectories.recent import Ongoing
from sandbox.errors import Conflict, NotFound
from sandbox.session.session import session_key
from tools._catalog import catalog
from tools._tool import Tool

START, CLOSE, WAIT, PDB = "start_session", "close_session", "wait", "pdb"
MAX_CALLS = 100
"""Of one owner, answers that nobody fetched included: the oldest of those are dropped first."""
_TRANSIT_S = 0.5
"""Longest time that an answer is on its way to the client; a tenth of a short limit."""
_TOOL_SHARE = 0.9
"""Of the time for an answer, for tools that can answer `running` by themselves."""
_ENDS = (
    "If this client starts a server for each call, the call has ended with its server: call it again from a server "
    "without `--answer-within`, with a longer limit of the client's own."
)
"""Said by the first call of a server whose sessions are kept for the next one."""


@dataclass(eq=False)
class PendingCall:
    """A call whose work goes on in a task of its own."""

    ongoing: Ongoing
    activity: Callable[[], str]
    """The last report of its progress."""
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    done: anyio.Event = field(default_factory=anyio.Event)
    result: CallToolResult | None = None
    """None: it is not done, or was stopped."""

    @property
    def key(self) -> str:
        """Key of its session; empty until the first call on stdio has opened one."""
        if self.ongoing.session is not None:
            return self.ongoing.session.key
        return session_key(self.ongoing.handle) if self.ongoing.handle is not None else ""

    @property
    def is_blocking(self) -> bool:
        """It runs programs in its session."""
        tool = catalog().get(self.ongoing.tool)
        return tool is not None and _runs_programs(tool, self.ongoing) and not self.done.is_set()

    @property
    def age_s(self) -> int:
        return round(time.perf_counter() - self.ongoing.began)

    async def run(self, work: Callable[[], Awaitable[CallToolResult]]) -> None:
        """Do the work, unless somebody cancels the scope."""
        try:
            with self.scope:
                self.result = await work()
        finally:
            self.done.set()


class PendingCalls:
    """All calls of a server that have been answered with `running`."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._calls: list[PendingCall] = []
        self._has_answered = False

    async def answer(
        self,
        ongoing: Ongoing,
        work: Callable[[], Awaitable[CallToolResult]],
        activity: Callable[[], str],
        options: ConnectionOptions,
    ) -> CallToolResult:
        """The result of `work`; when the connection's limit comes before it, that it is running. Cancelling cancels the work."""
        if options.answer_within_s is None:
            return await self._finish(ongoing, work, activity)
        is_first, self._has_answered = not self._has_answered, True
        limit_s = options.answer_within_s - min(_TRANSIT_S, options.answer_within_s / 10)
        ongoing.limit_s = limit_s * _TOOL_SHARE
        call = PendingCall(ongoing, activity)
        self._store.spawn(partial(call.run, work))
        try:
            with anyio.move_on_after(limit_s):
                await call.done.wait()
        except anyio.get_cancelled_exc_class():
            await _stop(call)
            raise
        if not call.done.is_set():
            ends = is_first and self._store.is_for_next_server
            return self._leave_running(call, options, _ENDS if ends else "")
        return call.result or refusal("The server is closing.")

    async def _finish(
        self, ongoing: Ongoing, work: Callable[[], Awaitable[CallToolResult]], activity: Callable[[], str]
    ) -> CallToolResult:
        """The result of `work`, which goes on for a moment if its connection is lost: it may be about to end."""
        tool = catalog().get(ongoing.tool)
        if current_receipt.get() is None or (tool is not None and tool.read_only):
            return await work()
        call = PendingCall(ongoing, activity)
        self._store.spawn(partial(call.run, work))
        try:
            await call.done.wait()
        except anyio.get_cancelled_exc_class():
            await _stop(call)
            raise
        return call.result or refusal("The server is closing.")

    async def answer_earlier(
        self, ongoing: Ongoing, arguments: Mapping[str, Any], options: ConnectionOptions
    ) -> CallToolResult | None:
        """The answer of an earlier call for the `wait` that is `ongoing`; None: `wait` is about the debugger.

        A call that is done comes first, then the oldest; the start of the session last, for others wait for it.
        """
        if has_schemas(options):
            return None  # the schema of `wait` fits no answer of another tool
        calls = self._calls_of(ongoing) if arguments["stdin"] is None else []
        calls.sort(key=lambda call: call.ongoing.tool == START)
        if not calls:
            return None
        call = next((one for one in calls if one.done.is_set()), calls[0])
        if arguments["interrupt"]:
            call.scope.cancel()
        with anyio.move_on_after(min(arguments["timeout_s"], time_left(ongoing) or arguments["timeout_s"])):
            await call.done.wait()
        if not call.done.is_set():
            return _running_answer(call, options)
        self._drop(call)
        if call.result is None and call.ongoing.tool == PDB:
            return None  # the debugger says where that left the program
        return call.result or _stopped_answer(call, options)

    def refuse_second(self, tool: Tool, ongoing: Ongoing) -> None:
        """Refuse to run programs while a pending call of the same session runs some.

        Raises:
            Conflict: there is one.
        """
        if not _runs_programs(tool, ongoing):
            return
        for call in self._calls_of(ongoing):
            if call.is_blocking:
                raise Conflict(
                    f"`{call.ongoing.tool}` is still running in this session, for {call.age_s} s.",
                    "`wait` waits for its answer; `wait` with interrupt=true stops it.",
                )

    async def wait_until_open(self, ongoing: Ongoing) -> None:
        """Wait until the session of a call is open, if an earlier call is still opening it.

        Raises:
            NotFound: it could not be opened; said once.
        """
        for call in [one for one in self._calls_of(ongoing) if one.ongoing.tool == START]:
            await call.done.wait()
            self._drop(call)
            if call.result is None or call.result.is_error:
                raise NotFound(
                    f"The session could not be opened. {_text(call.result)}".strip(),
                    "`start_session` opens another one.",
                )

    def _calls_of(self, ongoing: Ongoing) -> list[PendingCall]:
        """The pending calls of the session that a call is about, oldest first."""
        self._calls = [call for call in self._calls if not self._is_over(call)]
        own = [call for call in self._calls if call.ongoing.owner == ongoing.owner]
        if ongoing.handle is not None:
            key = session_key(ongoing.handle)
            return [call for call in own if call.key == key]
        if not own or not self._store.may_omit_handle(ongoing.owner):
            return []
        keys = {call.key for call in own} | {session.key for session in self._store.list_held(ongoing.owner)}
        return own if len(keys - {""}) <= 1 else []

    def _is_over(self, call: PendingCall) -> bool:
        """Answers go with their session, but for that of its closing, with the patch, and a failure that says why it was lost."""
        session = call.ongoing.session
        if not call.done.is_set() or call.ongoing.tool == CLOSE or session is None:
            return False
        failed = call.result is not None and call.result.is_error
        return session.closed or not (failed or self._store.is_holding(session))

    def _leave_running(self, call: PendingCall, options: ConnectionOptions, note: str) -> CallToolResult:
        own = [one for one in self._calls if one.ongoing.owner == call.ongoing.owner]
        if len(own) >= MAX_CALLS:
            finished = next((one for one in own if one.done.is_set()), None)
            if finished is None:
                call.scope.cancel()
                logs.note_outcome("refused")
                return refusal(f"{len(own)} earlier calls are still running: this one was stopped.")
            self._drop(finished)
        self._calls.append(call)
        logs.note_outcome("running")
        return _running_answer(call, options, note)

    def _drop(self, call: PendingCall) -> None:
        if call in self._calls:
            self._calls.remove(call)


async def _stop(call: PendingCall) -> None:
    """Cancel a call and wait for its end; where its connection was lost, a little later, for its answer may be asked for again."""
    receipt = current_receipt.get()
    with anyio.CancelScope(shield=True):
        if receipt is not None and receipt.is_lost():
            with anyio.move_on_after(GRACE_S):
                await call.done.wait()
        call.scope.cancel()
        await call.done.wait()


def has_schemas(options: ConnectionOptions) -> bool:
    """True if tools are listed with output schemas, by which clients check answers: `running` would fit none."""
    return options.answers != "text" and options.answer_within_s is None


def time_left(ongoing: Ongoing) -> float | None:
    """Seconds that a tool has to answer `running` by itself; None: as long as it likes.

    One that begins when the time is over, since its session had to be opened first, has the whole time once more.
    """
    if ongoing.limit_s is None:
        return None
    left_s = ongoing.began + ongoing.limit_s - time.perf_counter()
    return left_s if left_s > ongoing.limit_s / 5 else ongoing.limit_s


def _runs_programs(tool: Tool, ongoing: Ongoing) -> bool:
    return tool.slow and tool.needs_session and tool.name != WAIT and tool.runs(ongoing.arguments)


def _running_answer(call: PendingCall, options: ConnectionOptions, note: str = "") -> CallToolResult:
    tool, handle = call.ongoing.tool, call.ongoing.handle if call.ongoing.tool == START else None
    activity = f" ({call.activity()})" if call.activity() else ""
    lines = [f"session_id: {handle}"] if handle else []
    lines.append(f"running: `{tool}` has not ended after {call.age_s} s{activity} and goes on.")
    if handle:
        lines.append("Calls with this session_id wait until the session is open.")
    lines += ["`wait` gives its answer; `wait` with interrupt=true stops it.", *([note] if note else [])]
    data = {"state": "running", "tool": tool, "running_s": call.age_s, "activity": call.activity()}
    return _result(options, "\n".join(lines), {**data, "session_id": handle} if handle else data)


def _stopped_answer(call: PendingCall, options: ConnectionOptions) -> CallToolResult:
    text = f"`{call.ongoing.tool}` was stopped after {call.age_s} s."
    return _result(options, text, {"state": "stopped", "tool": call.ongoing.tool, "running_s": call.age_s})


def _result(options: ConnectionOptions, text: str, data: dict[str, Any]) -> CallToolResult:
    return CallToolResult(
        content=[TextContent(type="text", text=text)],
        structured_content=None if options.answers == "text" else data,
    )


def _text(result: CallToolResult | None) -> str:
    return (
        "\n".join(block.text for block in result.content if isinstance(block, TextContent)) if result else ""
    )
