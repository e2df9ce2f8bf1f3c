"""Test runs: a command, and the results that its tests report.

The interpreters that the command starts load `hooks/sitecustomize.py`, which has pytest and unittest report
each test on a datagram socket. Their printed output is never parsed.
"""

from __future__ import annotations

import json
import os
import re
import socket
import tempfile
import threading
import time

from ...protocol.signals import DUMP
from ..entrypoints.hooks_path import hooks_environment, with_hooks
from ..entrypoints.test_ids import quote_ids
from ..entrypoints.test_selection import select
from ..errors import GuestError
from ..files.workspace import open_regular, workspace_of
from . import run_command
from .before_edits import BAD as _BAD
from .before_edits import BeforeEdits, environment, time_for
from .failing_tests import Details, FrameLines, stack_frames

OUTCOMES = ("passed", "failed", "error", "skipped", "xfailed", "xpassed")
MAX_TESTS = 100_000
_MAX_JSON = 1_500_000
"""Bytes that the tests may take in the header of the answer."""
_MAX_MESSAGE = 2000
_MAX_ID = 4000
_MAX_RUNS = 1000
_MAX_NAMED = 20
_MAX_STACKS = 1 << 18
_DATAGRAM = 1 << 17
_STACKS = "t"
"""Added to the path of the socket: the file that faulthandler writes the stack of a test process to."""
_PAST_ERRORS = "+"
"""Added to the path of the socket: pytest is to go on past files that can't be collected."""
_STACKS_S = 0.5
_PROGRESS_S = 0.1
_CLOSE_S = 5.0
_UNSAFE = re.compile(r"[^\w.:/\[\]-]")


def evaluate(args: dict, payload: bytes, call) -> tuple[dict, bytes]:
    """{command, tests, env, timeout_s, max_output, past_errors, before} -> the answer of `exec`, and {"tests": [{"id", "outcome",
    "duration_s", "message", "file"?, "line"?, "frames"?, "output"?, "failed_before"?, "as_before"?}], "collected": n|null, "not_run": n,
    "not_run_ids": [], "running": [id], "runner": "pytest"|"unittest"|null, "captured": bool, "counts": {outcome: n},
    "tests_omitted": n}.

    `frames` of a failing test are lines, from the test down to the failure (`FrameLines`), or to where it was when
    the time was over; `output` is what its runner has captured. `captured`: all output of tests was. `running` are
    tests that ran when their process died, `not_run_ids` the first of those that never began, if they are known.

    Ids of pytest are relative to the workspace. Tests are in the order in which they began. One that ran when its
    process died is an error. So are all tests of a run whose runner itself has failed (INTERNALERROR of pytest),
    the one that ran then before the others: its results until then are not reliable. A test without a reported
    outcome is left out if the command has ended with exit code 0, else it is an error. `counts` covers all tests;
    when they are too many for an answer, passed ones are left out of `tests` first. With `past_errors` pytest runs
    its tests though some files can't be collected. With `before`, failing tests have `failed_before` if it is known
    whether they failed before the files were edited, and `as_before` if for the same reason; if it is false, the
    outcomes are only remembered for that.
    Progress: {"tests": n, "of": m|null, "last": id, "outcome"}.
    Raises GuestError as `exec` does, and invalid if `tests` can't be chosen in `command`.
    """
    before = None if args.get("before") is None else BeforeEdits(call)
    run, reports = _run(args, call, _PAST_ERRORS if args.get("past_errors") else "", with_stacks=True)
    answer = run.answer()
    good = answer["exit_code"] == 0 and not answer["timed_out"]
    tests = reports.results(_end_of(answer), good)
    _keep_ids(tests, call.state.reported_tests)
    if before is not None:
        before.remember(reports.finished())
    if before is not None and args["before"]:
        left_s = time_for(run.duration_s, float(args.get("timeout_s") or 0))
        before.mark(tests, lambda call, tests: _run_again(dict(args, tests=tests, timeout_s=left_s), call))
    FrameLines(workspace_of(call.state)).describe([test for test in tests if test["outcome"] in _BAD])
    shown = fitting(tests)
    answer.update(
        tests=shown,
        collected=reports.collected,
        not_run=reports.not_run,
        not_run_ids=reports.not_run_ids() if reports.not_run else [],
        running=reports.running()[:_MAX_NAMED],
        runner=reports.runner,
        captured=reports.captured,
        counts={outcome: sum(test["outcome"] == outcome for test in tests) for outcome in OUTCOMES},
        tests_omitted=len(tests) - len(shown),
    )
    return answer, b""


def _run_again(args: dict, call) -> list:
    """Run some tests of `args` without the edits. Gives those that have an outcome."""
    if args["timeout_s"] < 1:
        return []
    _, reports = _run(dict(args, env=environment(args.get("env"))), call, _PAST_ERRORS, with_stacks=False)
    return reports.finished()


def _run(args: dict, call, wish: str, *, with_stacks: bool) -> tuple:
    """Run the tests of `args`. Returns (the run, its reports). `with_stacks`: at the deadline of what still ran, too."""
    args = dict(args, command=_command(args, call.state))
    reports = Reports(call.progress, call.state.workdir, wish)
    try:
        own = reports.environment(args.get("env") or {})
        ask = reports.ask_for_stacks if with_stacks else None
        return run_command.run(args, call, own, lambda run: None, ask), reports
    finally:
        reports.close()


def _command(args: dict, state):
    command, tests = args.get("command"), args.get("tests")
    if not isinstance(command, str):
        return command
    command = quote_ids(command, state.workdir, state.reported_tests)
    return with_hooks(select(command, tests, state.workdir) if tests else command)


def _keep_ids(tests: list, known: set) -> None:
    """Remember the ids that are not words to a shell, to recognize them in a later command line."""
    if len(known) > MAX_TESTS:
        known.clear()
    known.update(test["id"] for test in tests if _UNSAFE.search(test["id"]))


def _end_of(answer: dict) -> str:
    if answer["timed_out"]:
        return "the time was over"
    if answer["signal"] is not None:
        return "it was killed by {}".format(answer["signal"])
    return "the run ended with exit code {}".format(answer["exit_code"])


def fitting(tests: list) -> list:
    """Select as many of `tests` as fit into an answer, in their order; uninteresting ones are left out first."""
    sizes = [len(json.dumps(test)) + 1 for test in tests]
    if sum(sizes) <= _MAX_JSON and len(tests) <= MAX_TESTS:
        return tests
    left, kept = _MAX_JSON, set()
    for index in sorted(
        range(len(tests)), key=lambda index: tests[index]["outcome"] in ("passed", "skipped", "xfailed")
    ):
        if sizes[index] > left or len(kept) >= MAX_TESTS:
            break
        left -= sizes[index]
        kept.add(index)
    return [test for index, test in enumerate(tests) if index in kept]


class Reports:
    """Receives the reports of tests in a thread."""

    def __init__(self, progress, workdir: str = "/", wish: str = "") -> None:
        """`wish`: the end of the socket's name, by which hooks see how to run tests."""
        self._progress = progress
        self._workdir = os.path.realpath(workdir)
        self._roots: dict = {}
        """Folders that the ids of a run are relative to, if that is not the workspace."""
        self._told = 0.0
        self._collected: dict = {}
        self._running: dict = {}
        self._tests: dict = {}
        self._runs: dict = {}
        self._void: dict = {}
        self._started: dict = {}
        self._collected_ids: dict = {}
        self._details = Details()
        self._stack: list = []
        self.captured = True
        """False if the output of a test may have gone to the output of the command."""
        self._ended: set = set()
        """Runs whose interpreter has exited normally."""
        self.runner = None
        # The name of a unix socket may have 107 bytes, so the folder must not be deeply nested.
        self._folder = tempfile.mkdtemp(prefix="pdbox-")
        self._path = os.path.join(self._folder, "s" + wish)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(self._path)
        self._thread = threading.Thread(target=self._receive, name="reports", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as exc:
            self._remove()
            raise GuestError(
                "conflict", "The sandbox has no room for one more thread.", "Try again when less runs in it."
            ) from exc

    def environment(self, own: dict) -> dict:
        """Variables that the command's environment needs in addition to `own`."""
        return hooks_environment(dict(os.environ, **own), "PDBOX_REPORT", self._path)

    def close(self) -> None:
        """Read the reports that have arrived, and stop."""
        # Datagrams arrive in the order in which they were sent: when this one is read, all earlier ones have
        # been read.
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as last:
            last.settimeout(_CLOSE_S)
            try:
                last.sendto(b"", self._path)
                self._thread.join(_CLOSE_S)  # with a time limit: the socket of that name may be the program's
            except OSError:
                pass  # the program has removed our socket: no more reports can arrive
        self._remove()

    def _remove(self) -> None:
        self._socket.close()
        for remove, path in (
            (os.unlink, self._path),
            (os.unlink, self._path + _STACKS),
            (os.rmdir, self._folder),
        ):
            try:
                remove(path)
            except OSError:
                pass  # the same, or it has put something in there

    def ask_for_stacks(self, child) -> None:
        """Get the stack of the process whose test is running, if it is just one. Takes at most half a second."""
        until = time.monotonic() + _STACKS_S
        pids = {run.partition(".")[0] for run in (self._runs.get(name) for name in self.running()) if run}
        if len(pids) != 1 or DUMP is None:
            return
        (pid,) = pids
        if pid not in map(str, child.descendants(until)):
            return  # a program can report any number
        try:
            os.kill(int(pid), DUMP)
        except OSError:
            return
        self._stack = stack_frames(_read_settled(self._path + _STACKS, until))

    def running(self) -> list:
        """Ids of the tests whose process has not reported their end."""
        return [name for name in list(self._running) if self._runs.get(name) not in self._ended]

    def not_run_ids(self) -> list:
        """The first of the collected tests that never began, as far as they are known."""
        known = [
            self._from_workspace(name, self._roots[run]) if run in self._roots else name
            for run, names in self._collected_ids.items()
            for name in names
        ]
        return [name for name in known if name not in self._tests][:_MAX_NAMED]

    @property
    def not_run(self) -> int:
        """Number of tests that were collected and never began."""
        left = [
            count - self._started.get(run, 0) for run, count in self._collected.items() if count is not None
        ]
        return sum(max(0, count) for count in left)

    @property
    def collected(self):
        """Number of tests that all runs together have collected, None when none has reported it."""
        counts = [count for count in self._collected.values() if count is not None]
        return sum(counts) if counts else None

    def results(self, end: str, good: bool) -> list:
        """All tests. Those without an outcome are errors (`end` is the reason), unless the run is `good`.

        Those whose outcome is void because the runner has failed are the last ones.
        """
        tests, voided = [], []
        for name, test in self._tests.items():
            run = self._runs[name]
            if name in self._running and run not in self._ended:
                duration = max(0.0, time.monotonic() - self._running[name])
                message = f"The test was running when {end}."
                where = {"frames": self._stack} if self._stack else {}
                test = dict(test, outcome="error", duration_s=round(duration, 3), message=message, **where)
            elif test["outcome"] is None and good:
                continue
            elif run in self._void and test["outcome"] not in _BAD:
                (reason, frames), had = self._void[run], test["outcome"]
                message = (
                    f"{reason}; until then the test had {had}." if had else f"{reason} while this test ran."
                )
                test = dict(test, outcome="error", message=message, frames=frames, whole=True)
                if had:
                    voided.append(test)
                    continue
            elif test["outcome"] is None:
                test = dict(test, outcome="error", message="The runner has told no outcome of this test.")
            tests.append(test)
        return tests + voided

    def finished(self) -> list:
        """The tests whose outcome was reported, and is valid."""
        return [
            test
            for name, test in self._tests.items()
            if name not in self._running
            and test["outcome"] is not None
            and self._runs[name] not in self._void
        ]

    def _receive(self) -> None:
        while True:
            try:
                data = self._socket.recv(_DATAGRAM)
            except OSError:
                return
            if not data:
                return
            try:
                message = json.loads(data.decode("utf-8", "replace"))
                if isinstance(message, dict):
                    self._take(message)
            except (ValueError, RecursionError):
                pass  # programs in the sandbox may write anything here

    def _take(self, message: dict) -> None:
        kind, run = message.get("kind"), message.get("run")
        if not isinstance(run, str) or (run not in self._collected and len(self._collected) >= _MAX_RUNS):
            return
        self._collected.setdefault(run, None)
        if message.get("runner") in ("pytest", "unittest"):
            self.runner = self.runner or message["runner"]
            if message["runner"] == "unittest" or message.get("captured") == 0:
                self.captured = False
        if kind == "bye":
            self._ended.add(run)
        elif kind == "root":
            root = os.path.realpath(str(message.get("path"))[:_MAX_ID])
            if root != self._workdir:
                self._roots[run] = root
        elif kind == "collected":
            count = message.get("count")
            if isinstance(count, int) and 0 <= count < 1 << 31:
                self._collected[run] = count
                ids = message.get("ids")
                if isinstance(ids, list) and len(self._collected_ids) < _MAX_NAMED:
                    self._collected_ids[run] = [
                        name for name in ids if isinstance(name, str) and len(name) <= _MAX_ID
                    ]
        elif kind == "void":
            frames = self._details.take(message).get("frames", [])
            self._void[run] = str(message.get("message"))[:_MAX_MESSAGE], frames
        elif kind == "start" or kind == "end" or kind == "result" and message.get("outcome") in OUTCOMES:
            self._take_test(kind, run, message)

    def _take_test(self, kind: str, run: str, message: dict) -> None:
        if run in self._roots:
            for key in ("id", "file"):
                if isinstance(message.get(key), str):
                    message[key] = self._from_workspace(message[key], self._roots[run])
        name = message.get("id")
        if not isinstance(name, str) or not 0 < len(name) <= _MAX_ID:
            return
        known = self._tests.get(name)
        if known is None and (kind == "end" or len(self._tests) >= MAX_TESTS * 2):
            return
        again = self._runs.get(name) == run
        self._runs[name] = run
        if kind == "start":
            self._started[run] = self._started.get(run, 0) + 1
            self._tests.setdefault(name, {"id": name, "outcome": None, "duration_s": 0.0, "message": ""})
            self._running[name] = time.monotonic()
            return
        self._running.pop(name, None)
        if kind == "result":
            # A test that is run twice has failed if it has failed once.
            if not (again and known and known["outcome"] in _BAD):
                self._tests[name] = _check(message)
                if message["outcome"] in _BAD:
                    self._tests[name].update(self._details.take(message))
            self._tell(name, message["outcome"])

    def _from_workspace(self, name: str, root: str) -> str:
        """Make an id of pytest relative to the workspace's root, as entry points are."""
        path, colons, rest = name.partition("::")
        seen = os.path.relpath(os.path.join(root, path), self._workdir)
        return name if seen.startswith(os.pardir) else seen + colons + rest

    def _tell(self, name: str, outcome: str) -> None:
        now = time.monotonic()
        if now - self._told >= _PROGRESS_S:
            self._told = now
            done = len(self._tests) - len(self._running)
            self._progress({"tests": done, "of": self.collected, "last": name, "outcome": outcome})


def _read_settled(path: str, until: float) -> str:
    """Content of a file that another process is writing, once it has stopped growing."""
    size = 0
    while time.monotonic() < until:
        time.sleep(0.02)
        try:
            now = os.lstat(path)
            if now.st_size and now.st_size == size:
                with os.fdopen(open_regular(path, path), "rb", 0) as file:
                    return (file.read(_MAX_STACKS) or b"").decode("utf-8", "backslashreplace")
        except (GuestError, OSError):
            return ""
        size = now.st_size
    return ""


def _check(message: dict) -> dict:
    duration = message.get("duration_s")
    test = {
        "id": message["id"],
        "outcome": message["outcome"],
        "duration_s": round(float(duration), 6)
        if isinstance(duration, (int, float)) and 0 <= duration < 1e9
        else 0.0,
        "message": str(message.get("message") or "")[:_MAX_MESSAGE],
    }
    if isinstance(message.get("file"), str):
        test["file"] = message["file"][:_MAX_ID]
    if isinstance(message.get("line"), int) and 0 <= message["line"] < 1 << 31:
        test["line"] = message["line"]
    return test


OPS = {"eval": evaluate}
