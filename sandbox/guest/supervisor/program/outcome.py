"""Waits for the outcome of a command: a stop, the program's end, a read of stdin, or the deadline."""

from __future__ import annotations

import time

from .process import DebuggedProcess
from .reports import Reports
from .requests import Requests
from .state import EXITED, RUNNING, STOPPED, WAITING, ProgramState, seconds_until
from .stops import Stops
from .streams import Streams

END_GRACE_S = 2.0
QUIT_GRACE_S = 1.0
RETURN_S = 0.1
"""After it a program that was stopped in a read is back in that read, of which the debugger sends no event.
"""
LOOK_S = 0.25
"""Pause before the first check, and growing pauses before later ones, for a read that no debugger reports: by
a child, or in C code.
"""
_LOOK_SHARE = 20
FADE_S = 0.5
"""Time that the descendants of a program are given to end after it."""
_LEFT_RUNNING = (
    "It has left processes running that no debugger leads, breakpoints are not hit in them: pid %s. `q` kills them. A daemon is"
    " debugged in the foreground."
)


class Outcome:
    """Waits until a command has an outcome to report."""

    def __init__(
        self, state: ProgramState, reports: Reports, stops: Stops, requests: Requests, streams: Streams
    ) -> None:
        self._state = state
        self._reports = reports
        self._stops = stops
        self._requests = requests
        self._streams = streams

    def await_reply(
        self, target: DebuggedProcess, number: int, running_at: float, deadline: float, call
    ) -> str | None:
        """Wait for the outcome of the request `number`; leave a resumed program running at `running_at`.

        At the deadline, and when the call is cancelled, what has to be stopped is stopped: returns the native
        stacks if that failed. Leaves notes on the outcome with the reports.
        """
        settled = self._await_outcome(target, number, min(running_at, deadline), call)
        if not settled and seconds_until(deadline):
            if not (self._state.processes.current.resumed or call.cancelled.is_set()):
                settled = self._await_outcome(target, number, deadline, call)
        stacks = None if settled else self._at_deadline(deadline, call)
        left_running = self.find_left_running(deadline)
        if left_running:
            self._reports.note(*left_running)
        return stacks

    def await_not_running(self, deadline: float, call) -> None:
        """Wait until the program stops, ends or waits for input."""

        def settled_within(seconds: float) -> bool:
            return self._await(lambda: self._state.name != RUNNING or call.cancelled.is_set(), seconds)

        if not self._await_looking(settled_within, deadline):
            self._streams.look_for_reading()

    def await_gone(self) -> None:
        """Wait a moment for the end of the program. Holds the lock."""
        self._state.changed.wait_for(lambda: self._state.process_tree_gone, QUIT_GRACE_S)

    def find_left_running(self, deadline: float) -> list:
        """Notes on processes that still run after a program has ended by itself since the last answer."""
        state = self._state
        if state.run is None or not state.unreported_end or state.quit or state.restart is not None:
            return []
        pids = state.run.child.find_left(min(seconds_until(deadline), FADE_S))
        return [_LEFT_RUNNING % ", ".join(map(str, pids[:5]))] if pids else []

    def kill_left_running(self) -> int:
        """Kill the processes that the program left running when it exited; returns their number."""
        with self._state.changed:
            run = self._state.run if self._state.name == EXITED else None
        return run.kill() if run is not None else 0

    def _is_settled(self, target: DebuggedProcess, number: int) -> bool:
        state = self._state
        return bool(
            state.process_tree_gone
            or target.pending_request != number
            or state.processes.current is not target
            and state.name == STOPPED
            or state.name == WAITING
            or state.restart
            or state.ending
            or state.quit
        )

    def _await_outcome(self, target: DebuggedProcess, number: int, deadline: float, call) -> bool:
        """Wait until `deadline`; True if the command has an outcome to report."""
        state = self._state

        def settled_within(seconds: float) -> bool:
            return self._await(lambda: self._is_settled(target, number) or call.cancelled.is_set(), seconds)

        if state.was_reading:
            settled_within(min(RETURN_S, seconds_until(deadline)))
            self._streams.look_for_reading()
        settled = self._await_looking(settled_within, deadline)
        if settled and not (state.quit or state.ending or call.cancelled.is_set()):
            return True
        with state.changed:
            if state.quit:
                self._end_all(target)
            elif state.ending and not state.process_tree_gone:
                self._await_end(deadline, call)
            return settled and not (call.cancelled.is_set() and not self._is_settled(target, number))

    def _await_looking(self, settled_within, deadline: float) -> bool:
        """True if `settled_within(seconds)` becomes true until `deadline`.

        Meanwhile, checks at intervals for a read of stdin.
        """
        pause = LOOK_S
        while not settled_within(min(pause, max(0.0, deadline - time.monotonic()))):
            if not seconds_until(deadline):
                return False
            began = time.monotonic()
            self._streams.look_for_reading(idle=True)
            pause = max(2 * pause, _LOOK_SHARE * (time.monotonic() - began))  # many processes take their time
        return True

    def _await(self, done, seconds: float) -> bool:
        """Wait until `done()`; another stopped process becomes current when the present one takes too long."""
        deadline = time.monotonic() + seconds
        with self._state.changed:
            while True:
                if self._state.processes.waiting:
                    self._stops.advance()
                if done():
                    return True
                if time.monotonic() >= deadline:
                    return False
                patience, rest = self._state.processes.patience(), seconds_until(deadline)
                self._state.changed.wait(rest if patience is None else min(rest, patience))

    def _end_all(self, target: DebuggedProcess) -> None:
        """End the program with all that it has started, after `q` was given to `target`."""
        state = self._state
        if target is state.processes.main and not state.main_gone:
            state.changed.wait_for(
                lambda: state.main_gone or state.process_tree_gone, QUIT_GRACE_S
            )  # with its own exit code
        killed = state.present_run().kill()
        if killed:
            text = "Processes that the program had started and that were killed with it: %d."
            self._reports.note(text % killed)
        self.await_gone()

    def _await_end(self, deadline: float, call) -> None:
        state = self._state

        # A post-mortem stop may follow the report of the end, or that of a child.
        def done() -> bool:
            told = state.process_tree_gone or state.name in (STOPPED, WAITING)
            return told or call.cancelled.is_set()

        if self._await(done, min(END_GRACE_S, seconds_until(deadline))):
            return
        # The interpreter frees its objects and runs functions registered for its exit: with many objects that
        # takes time.
        run = state.present_run()
        only_ends = run.only_ends()
        if not (only_ends and self._await(done, seconds_until(deadline))):
            text = "The program's main part has finished (exit code %s), but %s."
            self._reports.note(text % ((state.ended or {}).get("exit_code"), run.remainder(only_ends)))

    def _at_deadline(self, deadline: float, call) -> str | None:
        """Handle the deadline or a cancelled call.

        Interrupts only an evaluation, or a program without a waiting caller.

        Returns the stacks when that failed.
        """
        cancelled = call.cancelled.is_set()
        if self._state.processes.current.resumed and not cancelled:
            self._streams.look_for_reading()
            self._streams.show_captured()
            return None
        stopped, why, stacks = self._requests.break_in(deadline)
        if cancelled:
            self._reports.note("The call was cancelled.")
        else:
            self._reports.note("The command was interrupted at its deadline.")
        if not stopped:
            self._reports.note(str(why))
        return stacks
