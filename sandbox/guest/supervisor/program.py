"""The debugged program of a session: its states, and whose turn it is to talk to it.

    not_started -> stopped <-> running <-> waiting_for_input        any -> exited -> stopped (a new run)

One command at a time (`_turn`); waiting, interrupting and input go past it. What the debugger reports comes in a thread of the
`Debuggee` and is put under `_changed`; whoever waits for it waits there.
"""

from __future__ import annotations

import os
import time

from . import lines as pdb_lines
from .debuggee import Debuggee
from .entrypoint import FORMS, parse
from .errors import GuestError
from .interpreter import check_version
from .reports import Reports
from .stop import Place, stop_of

EVALUATION_GRACE_S = 2.0
END_GRACE_S = 2.0
QUIT_GRACE_S = 1.0
PYTEST_USAGE_ERROR = 4
_WAIT = "`wait` waits for it, `wait` with interrupt=true stops it where it is."


class Program(Reports):
    """The debuggee of a session, through all its runs."""

    def __init__(self, state) -> None:
        super().__init__(state)
        self._turn_taken = False
        self._numbers = 0
        self._entrypoint: str | None = None
        self._env: dict = {}
        self._path: list = []
        self._just_my_code = True

    # What operations call.

    def configure(self, entrypoint: str | None, env: dict, just_my_code: bool, path: list) -> None:
        """The session's own debug entry point, environment, and folders in front of PATH."""
        with self._changed:
            if entrypoint:
                self._entrypoint, self._good = entrypoint, None
            self._env = dict(env)
            self._just_my_code = just_my_code
            self._path = list(path)

    def command(
        self, lines: list, entrypoint: str | None, timeout_s: float, expect_stop: int | None, env: dict, call
    ) -> dict:
        """Give pdb `lines`, starting the program when there is none. Gives the `Stop`.

        Raises GuestError: stale_stop, conflict (running, exited), invalid and not_found (entry point), cancelled.
        """
        deadline = time.monotonic() + timeout_s
        self._take_turn(deadline, call)
        try:
            self._check_stop(expect_stop)
            call.on_cancel(self._wake)
            with self._changed:
                self._take_unseen()
            lines, extra = self._prepare(lines, entrypoint, env, deadline, call)
            return self._feed(lines, deadline, call) if extra is None else extra
        finally:
            with self._changed:
                self._turn_taken = False
                self._changed.notify_all()

    def wait(self, timeout_s: float, interrupt: bool, stdin: str | None, eof: bool, call) -> dict:
        """Wait until the program stops, exits or reads its stdin; feed it or stop it first. Gives the `Stop`."""
        deadline = time.monotonic() + timeout_s
        call.on_cancel(self._wake)
        if stdin or eof:
            self._write(stdin or "", eof)
        stuck = None
        if interrupt:
            stuck = self._interrupt(min(deadline, time.monotonic() + EVALUATION_GRACE_S))
        if stuck is None:
            with self._changed:
                self._changed.wait_for(
                    lambda: self.state not in ("running",) or call.cancelled.is_set(), _left(deadline)
                )
            self._look_for_reading()
        with self._changed:
            # A command that is still being served gets its own reply.
            replies = [] if self._turn_taken else self._prompts
            if replies:
                self._prompts = []
            return self._answer(
                replies, native_stack=stuck, reason="deadline" if self.state == "running" else None
            )

    def inspect(self, args: dict, timeout_s: float, call) -> dict:
        """Have the debugger look at a value; gives what it says.

        Raises GuestError: conflict when the program isn't stopped, invalid when it can't be evaluated.
        """
        deadline = time.monotonic() + timeout_s
        self._take_turn(deadline, call)
        try:
            call.on_cancel(self._wake)
            with self._changed:
                self._require_stopped()
            reply = self._ask(dict(args, op="inspect"), deadline, call)
            if reply is None:
                raise GuestError(
                    "conflict",
                    "The value could not be read within %g s." % timeout_s,
                    "Try a smaller part of it.",
                )
            return reply
        finally:
            with self._changed:
                self._turn_taken = False
                self._changed.notify_all()

    def kill(self) -> dict:
        """Kill the program and all that it started. Gives the `Stop`."""
        self._kill()
        with self._changed:
            self._prompts = []
            return self._answer([])

    def output(self, since: int, size: int) -> dict:
        """Kept output of this run from byte `since` on."""
        debuggee = self._debuggee
        if debuggee is None:
            return {"text": "", "next": 0, "omitted": 0}
        debuggee.output.drain()
        text, following, omitted = debuggee.output.read(since, size)
        return {"text": text, "next": following, "omitted": omitted}

    # Turns and checks.

    def _take_turn(self, deadline: float, call) -> None:
        call.on_cancel(self._wake)
        with self._changed:
            self._changed.wait_for(lambda: not self._turn_taken or call.cancelled.is_set(), _left(deadline))
            if call.cancelled.is_set():
                raise GuestError("cancelled", "The command was cancelled before its turn came.")
            if self._turn_taken:
                raise GuestError("conflict", "The program is running: another command is under way.", _WAIT)
            self._turn_taken = True

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _check_stop(self, expect_stop: int | None) -> None:
        with self._changed:
            if expect_stop is None:
                return
            if expect_stop == self.stop and self.state in ("stopped", "not_started"):
                return
            now = "at stop %d" % self.stop if self.state == "stopped" else self.state.replace("_", " ")
            raise GuestError(
                "stale_stop",
                "The command was meant for stop %d, but the program is %s." % (expect_stop, now),
                "Look at the present stop first (`w`), then repeat the command with its number.",
            )

    def _require_stopped(self) -> None:
        if self.state in ("running", "waiting_for_input"):
            what = "waits for input" if self.state == "waiting_for_input" else "is running"
            raise GuestError("conflict", "The program %s." % what, _WAIT)
        if self.state == "not_started":
            raise GuestError(
                "conflict",
                "No program has been started.",
                "Any pdb command starts it, such as `b app.py:3` or `c`.",
            )
        if self.state == "exited":
            raise GuestError(
                "conflict", "The program has exited (%s)." % self._place.how(), "`run` starts it again."
            )

    def _take_unseen(self) -> None:
        """Replies that nobody has fetched belong to earlier commands."""
        stopped = [prompt for prompt in self._prompts if prompt.get("stopped")]
        if stopped and self.state == "stopped":
            frame = self._place.frame or {}
            self._notices.insert(
                0,
                "Since the last answer the program had stopped at %s:%s."
                % (frame.get("path"), frame.get("line")),
            )
        self._prompts = []

    # Before the lines are given: start or restart what is needed.

    def _prepare(self, lines: list, entrypoint: str | None, env: dict, deadline: float, call) -> tuple:
        """(lines that are left to be fed, None), or (_, the answer) when that is all there is to say."""
        with self._changed:
            state, current = self.state, self._debuggee.launch.text if self._debuggee else None
            if state in ("running", "waiting_for_input"):
                self._require_stopped()
        other = entrypoint is not None and current is not None and entrypoint.strip() != current.strip()
        if state == "not_started" or other:
            if other and state == "stopped":
                self._note("The program that was stopped was ended: another entry point was asked for.")
            return self._launch(lines, entrypoint, env, deadline, call)
        if state == "exited":
            return self._start_again(lines, deadline, call)
        return self._refreshed(lines, deadline, call)

    def _start_again(self, lines: list, deadline: float, call) -> tuple:
        word = pdb_lines.first_word(lines[0]) if lines else ""
        if lines and word not in pdb_lines.STARTING:
            with self._changed:
                self._require_stopped()
        self._note("The program had exited (%s); it was started again." % self._place.how())
        return self._launch(lines, None, {}, deadline, call)

    def _refreshed(self, lines: list, deadline: float, call) -> tuple:
        """Restart a stopped program whose source was edited, when the lines would go on in it."""
        moved = self._state.breakpoints.refresh()
        self._tell_moved(moved)
        stale = self._find_stale(deadline, call) if self._may_be_stale(bool(moved)) else self._place.stale
        with self._changed:
            if not self._place.at_pdb_prompt() or not pdb_lines.needs_fresh_code(lines):
                return lines, None
        if stale:
            names = ", ".join(stale[:3]) + (" and %d more" % (len(stale) - 3) if len(stale) > 3 else "")
            self._note(
                "%s changed after the program had loaded it: it was restarted, with its breakpoints." % names
            )
            return self._launch(lines, None, {}, deadline, call)
        if self._state.breakpoints.untold():
            self._tell_breakpoints(deadline, call)
        return lines, None

    def _may_be_stale(self, moved: bool) -> bool:
        """Whether a loaded file may have changed since the last look: each stop tells what changed until then, and while the program
        stands still, files change by other operations or not at all; to be sure, the file that is shown is looked at too.
        """
        before, self._looked = self._looked, self._look()
        return moved or before != self._looked

    def _tell_breakpoints(self, deadline: float, call) -> None:
        request = {"op": "set_breakpoints", "breakpoints": self._state.breakpoints.to_tell()}
        try:
            done = self._ask(request, deadline, call)
        except GuestError:
            done = self._ask(request, deadline, call)  # an interrupt has hit just this
        if done is None:
            self._state.breakpoints.forget_told()
            raise GuestError(
                "conflict", "The moved breakpoints could not be set in time.", "Repeat the command."
            )

    def _find_stale(self, deadline: float, call) -> list:
        try:
            reply = self._ask({"op": "state"}, deadline, call) or {}
        except GuestError:
            reply = {}  # an interrupt has hit just this question; the next command asks again
            self._looked = ()
        with self._changed:
            self._place.stale = [str(path) for path in reply.get("stale") or self._place.stale if reply]
            return self._place.stale

    def _tell_moved(self, moved: list) -> None:
        with self._changed:
            self._table_changed = self._table_changed or bool(moved)
            for point in moved:
                self._notices.append(_moved_text(point))

    def _launch(self, lines: list, entrypoint: str | None, env: dict, deadline: float, call) -> tuple:
        good = self._good
        text = entrypoint or (good.text if good else None) or self._entrypoint
        if not text:
            raise GuestError(
                "invalid", "The session has no debug entry point.", "Give one as `entrypoint`. " + FORMS
            )
        arguments = None
        if lines:
            try:
                arguments = pdb_lines.restart_arguments(lines[0])
            except ValueError as exc:
                raise GuestError(
                    "invalid", "`%s` has a quoting error: %s." % (lines[0].strip(), exc)
                ) from exc
            lines = lines if arguments is None else lines[1:]
        if not env and good is not None and text == good.text:
            env = good.asked_env
        return self._start(text, env, arguments, lines, deadline, call)

    def _start(
        self, text: str, asked_env: dict, arguments: list | None, lines: list, deadline: float, call
    ) -> tuple:
        base = self._environment()
        launch = parse(text, self._state.workdir, dict(base, **asked_env))
        launch.asked_env = asked_env
        if not arguments and self._good is not None and text == self._good.text:
            arguments = self._good.target["args"]  # those of the last `run`, as pdb has it
        if arguments:
            launch.target = dict(launch.target, args=arguments)
        check_version(self._state, launch, dict(base, **asked_env))
        self._kill()
        self._tell_moved(self._state.breakpoints.refresh())
        with self._changed:
            before = self.state, self._place
            self._begin_run()
            message = self._launch_message(launch)
            try:
                env = dict(base, **asked_env)
                env.update(launch.env)
                env["PWD"] = launch.cwd
                self._debuggee = Debuggee(self._state, launch, launch.cwd, env, message, self)
            except GuestError:
                self.state, self._place = before
                raise
            self.run += 1
        return self._await_entry(lines, deadline, call)

    def _begin_run(self) -> None:
        self._place = Place()
        self._prompts = []
        self._replies = {}
        self._ended = self._restart = None
        self._quit = self._gone = False
        self._starting = True
        self._resumed = True
        self.state = "running"

    def _launch_message(self, launch) -> dict:
        return {
            "op": "launch",
            "target": launch.target,
            "workdir": self._state.workdir,
            "breakpoints": self._state.breakpoints.to_tell(),
            "next_breakpoint": self._state.breakpoints.following_number(),
            "options": {
                "just_my_code": self._just_my_code,
                "stop_on_entry": True,
                "engine": "auto",
                "post_mortem": True,
            },
        }

    def _environment(self) -> dict:
        env = dict(os.environ)
        env.update(self._env)
        if self._path:
            env["PATH"] = os.pathsep.join(self._path + [env.get("PATH", os.defpath)])
        return env

    def _await_entry(self, lines: list, deadline: float, call) -> tuple:
        with self._changed:
            self._changed.wait_for(
                lambda: not self._starting or self._gone or call.cancelled.is_set(), _left(deadline)
            )
            if self._starting and self._gone:
                self._refuse_start()
            if self.state == "exited":
                return [], self._answer(self._prompts, not_run=lines)
            if self._starting:
                self._note("The program has not come to its first line yet.")
                return [], self._answer([], not_run=lines, reason="deadline")
            if not lines:
                replies, self._prompts = self._prompts, []
                return [], self._answer(replies)
            self._prompts = []
        return lines, None

    def _refuse_start(self) -> None:
        """The program has ended before its first line: the entry point was wrong, and isn't kept."""
        debuggee, self._debuggee = self._present(), None
        if self._good is debuggee.launch:
            self._good = None
        self.state = "not_started"
        output, _ = debuggee.output.take()
        said = (self._ended or {}).get("text") or (self._ended or {}).get("reply_text") or ""
        text = "\n".join(part for part in (str(said).strip(), output.strip()) if part)
        how, killed = self._place.how(), self._place.signal == "SIGKILL"
        self._place = Place()
        if killed:
            raise GuestError(
                "conflict", "The program was killed before it came to its first line.", "Start it again."
            )
        message = "`%s` can't be debugged: it ended at once (%s)." % (debuggee.launch.text.strip(), how)
        raise GuestError("invalid", message + ("\n" + text[-3000:] if text else ""), FORMS)

    # Giving lines and waiting for what comes of it.

    def _feed(self, lines: list, deadline: float, call) -> dict:
        with self._changed:
            self._numbers += 1
            number = self._numbers
            self._resumed = False
            self._prompts = []
            debuggee = self._present()
        debuggee.send({"op": "command", "id": number, "lines": lines})
        with self._changed:
            self._await_outcome(deadline, call)
            settled = self._settled()
        if not settled:
            if not self._resumed or call.cancelled.is_set():
                self._end_evaluation(call)
            else:
                self._look_for_reading()
        with self._changed:
            restart = self._restart if self._debuggee is debuggee else None
        if restart is not None:
            return self._restarted(restart, deadline, call)
        with self._changed:
            self._refuse_usage_error()
            replies, self._prompts = self._prompts, []
            return self._answer(replies, reason="deadline" if self.state == "running" else None)

    def _refuse_usage_error(self) -> None:
        """pytest that found nothing by the names it was given has not run anything: a wrong entry point."""
        target = self._present().launch.target
        is_pytest = os.path.basename(target["target"]) in ("pytest", "py.test")
        if (
            self._gone
            and is_pytest
            and self._place.exit_code == PYTEST_USAGE_ERROR
            and self.stop == self._entry
        ):
            self._refuse_start()

    def _settled(self) -> bool:
        return bool(
            self._gone
            or self.state == "waiting_for_input"
            or self._restart
            or self._ended
            or self._quit
            or self._prompts
        )

    def _await_outcome(self, deadline: float, call) -> None:
        self._changed.wait_for(lambda: self._settled() or call.cancelled.is_set(), _left(deadline))
        if self._quit and not self._gone:
            self._changed.wait_for(lambda: self._gone, QUIT_GRACE_S)
            if not self._gone:
                self._present().kill()
                self._changed.wait_for(lambda: self._gone, QUIT_GRACE_S)
        elif self._ended is not None and not self._gone:
            self._await_end(min(END_GRACE_S, max(0.0, _left(deadline))))
            if not self._gone and self.state == "running":
                code = self._ended.get("exit_code")
                self._note(
                    "The program's main part has finished (exit code %s), but threads or child processes keep it alive."
                    % code
                )

    def _await_end(self, seconds: float) -> None:
        # A post-mortem stop may come after the end was told.
        self._changed.wait_for(lambda: self._gone or self.state == "stopped", seconds)

    def _end_evaluation(self, call) -> None:
        """The time is over while a command is still evaluating, or the call was cancelled: break in."""
        stuck = self._interrupt(time.monotonic() + EVALUATION_GRACE_S)
        with self._changed:
            if stuck is None:
                self._note(
                    "The call was cancelled."
                    if call.cancelled.is_set()
                    else "The command was interrupted at its deadline."
                )
                return
            self.state = "running"
            self._note("The command can't be interrupted; it goes on.")
            self._place.native_stack = stuck

    def _interrupt(self, deadline: float) -> str | None:
        """Break into the program; None when it has stopped, else the stacks that it is in ("" where they can't be had)."""
        with self._changed:
            debuggee = self._debuggee
            if debuggee is None or self._gone or (self.state == "stopped" and self._prompts):
                return None
            if self.state == "stopped" and not self._turn_taken:
                return None
        if debuggee.interrupt():
            with self._changed:
                self._changed.wait_for(self._stopped, _left(deadline))
                if self._stopped():
                    return None
        stacks = debuggee.stacks() or ""
        with self._changed:
            if self._stopped():
                return None
            self._note(
                "The program could not be stopped: it is inside a call that doesn't return to Python, or is not yet running."
            )
        return stacks

    def _stopped(self) -> bool:
        return self._gone or bool(self._prompts) or (self.state == "stopped" and not self._turn_taken)

    def _look_for_reading(self) -> None:
        debuggee = self._debuggee
        if debuggee is not None and self.state == "running" and debuggee.reads_stdin():
            with self._changed:
                if self.state == "running":
                    self.state = "waiting_for_input"

    def _restarted(self, header: dict, deadline: float, call) -> dict:
        """`run` was given to the debugger itself: a new process, then the lines that were left."""
        self._await_gone(QUIT_GRACE_S)
        launch = self._present().launch
        lines = [str(line) for line in header.get("not_run") or []]
        arguments = header.get("args")
        lines, answer = self._start(launch.text, launch.asked_env, arguments, lines, deadline, call)
        return self._feed(lines, deadline, call) if answer is None else answer

    def _await_gone(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._gone, seconds)

    def _ask(self, request: dict, deadline: float, call) -> dict | None:
        """A request to the debugger at its prompt, and its reply; None when there is none in time.

        Raises GuestError (invalid) for an error in the reply.
        """
        with self._changed:
            self._numbers += 1
            number = self._numbers
            debuggee = self._present()
        debuggee.send(dict(request, id=number))
        with self._changed:
            self._changed.wait_for(
                lambda: number in self._replies or self._gone or call.cancelled.is_set(), _left(deadline)
            )
            reply = self._replies.pop(number, None)
        if reply is None:
            self._abort(debuggee, number)
            return None
        if reply.get("error"):
            error = reply["error"]
            message = error.get("message", "") if isinstance(error, dict) else str(error)
            raise GuestError("invalid", message or "The debugger refused it.")
        return {key: value for key, value in reply.items() if key not in ("event", "id")}

    def _abort(self, debuggee: Debuggee, number: int) -> None:
        """End a request that takes too long; its late reply is dropped."""
        if debuggee.interrupt():
            with self._changed:
                self._changed.wait_for(lambda: number in self._replies or self._gone, EVALUATION_GRACE_S)
                self._replies.pop(number, None)

    def _write(self, stdin: str, eof: bool) -> None:
        with self._changed:
            if self.state in ("not_started", "exited"):
                self._require_stopped()
            debuggee = self._present()
        debuggee.write_stdin(stdin.encode("utf-8", "surrogateescape"), eof)
        with self._changed:
            if self.state == "waiting_for_input":
                self.state = "running"

    def _kill(self) -> None:
        debuggee = self._debuggee
        if debuggee is None:
            return
        debuggee.kill()
        self._await_gone(5.0)

    def _note(self, text: str) -> None:
        with self._changed:
            self._notices.append(text)

    def _answer(self, replies: list, **extra) -> dict:
        """The `Stop` of now; takes what was printed and noticed since the last one. Holds the lock."""
        notices, self._notices = self._notices, []
        table = self._state.breakpoints.table() if self._table_changed else None
        self._table_changed = False
        output = ("", 0)
        if self._debuggee is not None:
            self._debuggee.output.drain()
            output = self._debuggee.output.take()
        extra = {key: value for key, value in extra.items() if value is not None}
        return stop_of(self.state, self.stop, self.run, self._place, replies, output, table, notices, extra)


def _left(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic())


def _moved_text(point: dict) -> str:
    if point["state"] == "lost":
        return (
            "Breakpoint %(id)d (%(path)s:%(line)d) lost its line `%(text)s` to an edit; it is off until it is set again."
            % point
        )
    how = "moved to" if point["state"] == "moved" else "was put to the most similar line,"
    return "Breakpoint %d %s %s:%d `%s`." % (point["id"], how, point["path"], point["line"], point["text"])
