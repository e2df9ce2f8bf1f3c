"""The debugged program of a session, through all its runs.

One command at a time has the turn (`requests.py`); waiting, interrupting, killing and input need no turn.
Events of the debugger arrive in a thread of the `ProgramRun`, or in the one that waits for them
(`events.py`); all parts share a state (`state.py`) and its lock, on which threads wait.
"""

from __future__ import annotations

import time

from .. import pdb_syntax as pdb_lines
from ..errors import GuestError
from .breakpoint_sync import BreakpointSync
from .commands import Commands
from .events import EventHandler
from .launcher import Launcher
from .outcome import Outcome
from .process_selection import ProcessSelection
from .reports import Reports
from .requests import INTERRUPT_S, Requests
from .state import NOT_STARTED, RUNNING, STOPPED, WAITING, ProgramState
from .stops import Stops
from .streams import Streams

_KILLED_LEFT = "Processes that the program had left running, and that were killed now: %d."


class Program:
    """Serves the operations on the program, each with the parts that it needs."""

    def __init__(self, supervisor) -> None:
        breakpoints = supervisor.breakpoints
        state = self._state = ProgramState(supervisor.workdir)
        reports = self._reports = Reports(state, breakpoints)
        stops = Stops(supervisor, state, reports)
        sync = BreakpointSync(state, reports, breakpoints)
        events = EventHandler(state, reports, stops, breakpoints, sync)
        requests = self._requests = Requests(state, reports)
        self._streams = Streams(state)
        self._outcome = Outcome(state, reports, stops, requests, self._streams)
        self._launcher = Launcher(supervisor, state, reports, stops, sync, events, requests)
        selection = ProcessSelection(state, reports, stops, requests)
        self._commands = Commands(state, reports, requests, self._launcher, selection, self._outcome)

    def configure(self, entrypoint: str | None, env: dict) -> None:
        """Set the session's debug entry point and environment."""
        self._launcher.configure(entrypoint, env)

    @property
    def is_running(self) -> bool:
        """True if it runs or waits for input; False at a stop, and when there is none."""
        return self._state.name in (RUNNING, WAITING)

    def command(
        self,
        lines: list,
        entrypoint: str | None,
        timeout_s: float,
        expect_stop: int | None,
        call,
        running_after_s: float,
    ) -> dict:
        """Give pdb `lines`; returns the `Stop`.

        Starts the program if none runs. A running one takes only `q`, which kills it; of one that has exited, `q`
        kills the processes that it left running.

        After `running_after_s` a program that was resumed is left `running`; an evaluation has until
        `timeout_s`.

        Raises GuestError: stale_stop, conflict (running, exited), invalid and not_found (entry point),
        cancelled.
        """
        began = time.monotonic()
        if self._is_kill(lines, expect_stop):
            return self.kill("It was killed while it was running.")
        deadline = began + timeout_s
        self._requests.take_turn(deadline, call)
        try:
            if self._state.starting:
                self._requests.await_start(deadline, call)
            with self._state.changed:
                self._check_stop(expect_stop)
                self._check_lines(lines)
                self._reports.notice_unseen()
            if pdb_lines.ends_program(lines) and (killed := self._outcome.kill_left_running()):
                return self._reports.answer_other([_KILLED_LEFT % killed], call)
            return self._commands.run(lines, entrypoint, deadline, began + running_after_s, call)
        finally:
            self._requests.leave_turn()

    def wait(self, timeout_s: float, interrupt: bool, stdin: str | None, eof: bool, call) -> dict:
        """Wait until the program stops, exits or reads its stdin; feed it or stop it first.

        Returns the `Stop`.
        """
        deadline = time.monotonic() + timeout_s
        call.on_cancel(self._state.wake)
        if stdin or eof:
            self._streams.write(stdin or "", eof)
        stopped, why, stacks = True, None, None
        if interrupt:
            stopped, why, stacks = self._requests.interrupt(min(deadline, time.monotonic() + INTERRUPT_S))
        else:
            self._streams.check_still_reading()
        if stopped:
            self._outcome.await_not_running(deadline, call)
            self._streams.show_captured()
        left_running = self._outcome.find_left_running(deadline)
        with self._state.changed:
            running = self._state.name == RUNNING
            notes = [why] if why and running else left_running
            reason = "deadline" if running else None
            return self._reports.answer_other(notes, call, native_stack=stacks, reason=reason)

    def inspect(self, args: dict, timeout_s: float, call) -> dict:
        """Have the debugger inspect a value; returns its reply.

        Raises GuestError: conflict when the program isn't stopped, invalid when it can't be evaluated.
        """
        deadline = time.monotonic() + timeout_s
        self._requests.take_turn(deadline, call)
        try:
            reply = self._requests.ask(dict(args, op="inspect"), deadline, call)
            if reply is None:
                if call.cancelled.is_set():
                    raise GuestError("cancelled", "`inspect` was cancelled.")
                with self._state.changed:
                    if self._state.process_tree_gone:
                        self._state.require_stopped()
                raise GuestError(
                    "conflict",
                    f"The value could not be read within {timeout_s:g} s.",
                    "Try a smaller part of it.",
                )
            return reply
        finally:
            self._requests.leave_turn()

    def kill(self, note: str | None = None) -> dict:
        """Kill the program and all that it started. Returns the `Stop`."""
        self._requests.kill()
        return self._reports.answer_other([note] if note else [], None)

    def output(self, since: int, size: int) -> dict:
        """Saved output of this run from byte `since` on."""
        run = self._state.run
        if run is None:
            return {"text": "", "next": 0, "omitted": 0, "total": 0}
        run.output.drain()
        text, following, omitted = run.output.read(since, size)
        return {"text": text, "next": following, "omitted": omitted, "total": run.output.total}

    def status(self) -> dict:
        """State, stop, run and frame, read under one lock."""
        state = self._state
        with state.changed:
            frame = state.processes.current.place.frame if state.name == STOPPED else None
            return {"state": state.name, "stop": state.stop, "run": state.runs, "frame": frame}

    def stopped_line(self, path: str) -> dict:
        """{current, loaded_line}: line of `path` at which the program has stopped, or None; and its number in
        the text that the program has loaded if that is another text, else None.
        """
        state = self._state
        with state.changed:
            place = state.processes.current.place
            frame = place.frame if state.name == STOPPED else None
            stopped_at = frame.get("line") if frame and frame.get("path") == path else None
            if not isinstance(stopped_at, int):
                return {"current": None, "loaded_line": None}
            texts, stale = state.texts, path in place.stale
        line, changed = texts.follow(path, stopped_at, stale)
        return {"current": line, "loaded_line": stopped_at if changed else None}

    # Checks.

    def _is_kill(self, lines: list, expect_stop: int | None) -> bool:
        # At a prompt `q` is pdb's own, and goes there.
        with self._state.changed:
            running = self._state.name in (RUNNING, WAITING) and expect_stop is None
            return running and pdb_lines.ends_program(lines)

    def _check_stop(self, expect_stop: int | None) -> None:
        state = self._state
        if expect_stop is None or expect_stop == state.stop and state.name in (STOPPED, NOT_STARTED):
            return
        now = "at stop %d" % state.stop if state.name == STOPPED else state.name.replace("_", " ")
        raise GuestError(
            "stale_stop",
            "The command was meant for stop %d, but the program is %s." % (expect_stop, now),
            "Look at the present stop first (`w`), then repeat the command with its number.",
        )

    def _check_lines(self, lines: list) -> None:
        if not any(line.strip() for line in lines) and self._state.processes.current.place.is_at_pdb_prompt():
            raise GuestError(
                "invalid", "The pdb command is empty.", "Say for example `b app.py:12`, `c` or `p x`."
            )
