"""A session: one sandbox with a copy of a repository, its workspace and its debugger."""

from __future__ import annotations

import hashlib
import json
import math
import re
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

import anyio
from anyio.abc import TaskGroup
from pydantic import BaseModel, ConfigDict, Field, field_validator

from sandbox.backend import Sandbox
from sandbox.errors import (
    InvalidArgument,
    PdboxError,
    ProtocolViolation,
    SandboxError,
    SandboxLost,
    SessionExpired,
)
from sandbox.guest.protocol.operations import OPERATIONS
from sandbox.host_files import in_thread
from sandbox.ignore_rules import Rules
from sandbox.session.debugger import Debugger, Long, Number, Seconds, Short, validate
from sandbox.session.diagnosis import Diagnosis
from sandbox.session.outcomes import compare
from sandbox.session.output import Output
from sandbox.session.trace import Trace
from sandbox.session.workspace import Workspace
from sandbox.spec import Lifetime
from sandbox.transport.connection import GuestConnection, OnProgress

MAX_OUTPUT = 1 << 20
MAX_WORDS = 1 << 14
MAX_OUTCOMES = 2 << 20
"""Maximum bytes of JSON for the outcomes of earlier test runs, which the sandbox holds in memory."""
_MAX_NOTICES = 64
_MAX_LOSSES = 3
"""Maximum consecutive connections that the guest ends without answering on them."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_COUNTED = {
    "passed": "passed",
    "failed": "failed",
    "errors": "error",
    "skipped": "skipped",
    "xfailed": "xfailed",
    "xpassed": "xpassed",
}


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class ExecResult(_Data):
    """Result of a finished command. `output` is stdout and stderr in the order of arrival."""

    exit_code: Number | None
    signal: Short | None = None
    timed_out: bool = False
    output: Long = ""
    omitted: Number = 0
    """Bytes of output that were left out."""
    gap: Annotated[int, Field(ge=0, le=1 << 20)] | None = None
    """The character of `output` before which they are missing."""
    kept: Number | None = None
    """Number under which `Output` stores it in full; None for a short one."""
    killed: Number = 0
    """Number of processes killed at its end or deadline."""
    duration_s: Seconds = 0.0
    full: Short = ""
    """After a failure: the folders that are full, and the next step."""


class TestResult(_Data):
    """One test: its id as the runner writes it, its outcome, and the reason of a failure."""

    __test__ = False  # tells pytest that this is not a test class

    id: Short
    outcome: Literal["passed", "failed", "error", "skipped", "xfailed", "xpassed"]
    duration_s: Seconds = 0.0
    message: Short = ""
    frames: Annotated[list[Short], Field(max_length=64)] = []
    """Of a failing test, or one that ran at the deadline: a line for each frame, from the test down to the failure."""
    output: Short = ""
    """Output that the runner has captured, of a failing test."""


class Evaluation(ExecResult):
    """Result of a test run: counts, each test, and the differences from the run before."""

    passed: int = 0
    failed: int = 0
    errors: int = 0
    skipped: int = 0
    xfailed: int = 0
    xpassed: int = 0
    not_run: Number = 0
    """Number of tests that were collected but did not start before the run ended."""
    not_run_ids: Annotated[list[Short], Field(max_length=64)] = []
    """The first of them, if the runner has named them."""
    running: Annotated[list[Short], Field(max_length=64)] = []
    """Tests that were running when the run was ended, or their process died."""
    captured: bool = False
    """True if the runner has captured the output of all tests."""
    timeout_s: Seconds = 0.0
    tests: Annotated[list[TestResult], Field(max_length=100_000)] = []
    counts: Annotated[dict[Short, Number], Field(max_length=16)] = {}
    """Number of tests with each outcome."""
    fixed: list[Short] = []
    """Tests that failed when they were last run and pass now; modules that can be collected again."""
    broken: list[Short] = []
    """Tests that passed when they were last run and fail now; modules with such tests that can't be collected."""
    runner: Short | None = None
    restored: Annotated[list[Short], Field(max_length=100_000)] = []
    """Read-only files that the program had changed, put back before the run."""


class SessionInfo(_Data):
    """Description of a session for a client."""

    isolation: str
    image: str
    python: str
    workdir: str
    entrypoint: str | None
    debug_entrypoint: str | None
    expires_in_s: float
    age_s: float
    place: str
    state: str
    notices: list[str]


@dataclass(frozen=True)
class SessionMetadata:
    """Session metadata stored in the sandbox, for the next server that takes the session over."""

    env: dict[str, str] = field(default_factory=dict[str, str])
    entrypoint: str | None = None
    debug_entrypoint: str | None = None
    notices: tuple[str, ...] = ()
    outcomes: dict[str, str] = field(default_factory=dict[str, str])
    """Test id to outcome, as last run."""
    untested_rewrites: Number = 0
    """Number of rewrites since the last test run that was counted."""
    failed_rewrites: Number = 0
    """Number of rewrites after which a test run failed."""

    @property
    def first_failing(self) -> str | None:
        """The first test that failed when it was last run."""
        return next((name for name, outcome in self.outcomes.items() if outcome in ("failed", "error")), None)


def session_key(handle: str) -> str:
    """Hash a handle for the label of a sandbox, so that the label does not reveal the handle."""
    return hashlib.sha256(handle.encode()).hexdigest()


class Expiry:
    """Idle and age deadlines of a session, measured by the host's clocks and not by the guest's."""

    def __init__(self, idle_s: float = math.inf, ends: float = math.inf) -> None:
        """`ends`: time of its maximum age, in seconds since the epoch."""
        self._idle_s = idle_s
        self._ends = ends
        self._users = 0
        self._used = time.monotonic()
        self._quiet: anyio.Event | None = None
        self.over = False
        """True once the session was found to be expired."""

    def touch(self, left_s: float = math.inf) -> None:
        """Record a use now, or one so long ago that `left_s` of the idle time are left."""
        self._used = time.monotonic() - max(0.0, self._idle_s - left_s)

    @contextmanager
    def running(self) -> Generator[None]:
        """Count the session as in use, and so not idle, during the body."""
        self._users += 1
        try:
            yield
        finally:
            self._users -= 1
            self._used = time.monotonic()
            if not self._users and self._quiet is not None:
                self._quiet.set()
                self._quiet = None

    async def quiet(self) -> None:
        """Wait until no call uses the session."""
        if self._users:
            self._quiet = self._quiet or anyio.Event()
            await self._quiet.wait()

    @property
    def is_in_use(self) -> bool:
        """True while a call uses the session."""
        return self._users > 0

    @property
    def idle_left_s(self) -> float:
        """Seconds until the idle limit, if the session is not used."""
        return self._idle_s if self._users else self._used + self._idle_s - time.monotonic()

    @property
    def age_left_s(self) -> float:
        """Seconds until its maximum age."""
        return self._ends - time.time()


class Session:
    """An open session. `open_session` and `adopt_session` make one."""

    def __init__(
        self,
        sandbox: Sandbox,
        handle: str | None,
        tasks: TaskGroup,
        *,
        key: str = "",
        connection: GuestConnection | None = None,
    ) -> None:
        """`handle`: None if only its hash `key` is known, because the session was not found by its handle."""
        self.sandbox = sandbox
        self.handle = handle
        self.key = key if handle is None else session_key(handle)
        self.expiry = Expiry()
        self.created = time.time()
        self.notice = ""
        """Notice about the session itself, for the next answer."""
        self.closing = False
        """True if closing was requested but postponed, because the patch was not available."""
        self.task: str | None = None
        """Name by which its task is found, if it was opened here for one."""
        self.instruction = ""
        """Text of its task, if it was opened here for one."""
        self.rules = Rules()
        """Rules for its files, if it was opened here."""
        self.shown_patch = b""
        """Hash of the last patch that its client was shown as a whole."""
        self.closed = False
        """True if its client closed it. Calls that were still running are refused with this reason."""
        self.metadata = SessionMetadata()
        self.debugger = Debugger(self.request)
        self.output = Output(self.request)
        self.workspace = Workspace(self.request, PurePosixPath("/workspace"))
        self._tasks = tasks
        self._connecting = anyio.Lock()
        self._connection = connection
        self._losses = 0

    async def request(
        self,
        op: str,
        args: dict[str, Any] | None = None,
        payload: bytes = b"",
        *,
        timeout_s: float = 30.0,
        on_progress: OnProgress | None = None,
    ) -> tuple[dict[str, Any], bytes]:
        """Send a request to the guest. A connection that broke since the last request is opened again."""
        connection = await self.connect()
        if not OPERATIONS[op].counts_as_use:
            return await connection.request(op, args, payload, timeout_s=timeout_s, on_progress=on_progress)
        with self.expiry.running():
            answer = await connection.request(op, args, payload, timeout_s=timeout_s, on_progress=on_progress)
        self._losses = 0
        if full := answer[0].get("full"):
            self.notice = str(full)[:1000]
        return answer

    async def connect(self) -> GuestConnection:
        """Return the connection to the guest, opened again if it broke.

        Raises:
            SandboxLost: the sandbox is gone, or broke the protocol; SessionExpired: it reached its time limit.
        """
        if self._connection is not None and self._connection.lost is None:
            return self._connection
        async with self._connecting:
            old = self._connection
            if old is not None and old.lost is None:
                return old
            if old is not None:
                self._refuse(old.lost)
            # A guest may take long to start, but one that has answered before has no reason to be slow.
            timeout_s = 30.0 if old is None else 10.0
            stream = await self.sandbox.connect()
            self._connection = await GuestConnection.open(stream, self._tasks, timeout_s)
            return self._connection

    def _refuse(self, lost: PdboxError | None) -> None:
        """Raise if connecting again can't help."""
        if isinstance(lost, SessionExpired):
            raise lost
        if isinstance(lost, ProtocolViolation):
            raise SandboxLost(f"The session is unusable: {lost.message}", "start_session opens a new one.")
        self._losses += 1
        if self._losses > _MAX_LOSSES:
            raise SandboxLost(
                "The sandbox ends each connection to it.", "start_session opens a new one."
            ) from lost

    async def lost(self) -> SandboxError:
        """Wait until the sandbox is lost, and return the reason.

        A connection that only broke is opened again.
        """
        try:
            while True:
                connection = await self.connect()
                await connection.ended.wait()
        except SandboxError as exc:
            return exc

    async def live(self, lifetime: Lifetime, *, created: float | None = None, start: bool = False) -> None:
        """Apply the limits of `lifetime` here and in the sandbox.

        Args:
            created: start time, if another server started the session; it keeps the maximum age set then.
            start: True if the sandbox was started ahead, so that its time begins now.
        """
        self.created = created or time.time()
        ends = self.created + lifetime.max_age_s
        times = {"idle_s": lifetime.idle_s, "grace_s": lifetime.grace_s}
        if start:
            times["max_age_s"] = lifetime.max_age_s
        if start or created is not None:
            await self.request("lifetime", {**times, "start": start})
        self.expiry = Expiry(lifetime.idle_s, ends)

    async def ended_idle(self) -> bool:
        """End the session if no client of any server has used it for its idle time. False if one has."""
        answer, _ = await self.request("end_if_idle", timeout_s=5)
        left_s = validate(_Left, answer).left_s
        self.expiry.touch(left_s)
        return left_s <= 0

    @property
    def entrypoint(self) -> str | None:
        """Command that `eval` runs."""
        return self.metadata.entrypoint

    @property
    def python(self) -> str:
        """Version of the sandbox's Python; empty while there is no connection to it."""
        return self._connection.hello.python[:50] if self._connection is not None else ""

    @property
    def debug_entrypoint(self) -> str | None:
        """Command that `pdb` starts."""
        return self.metadata.debug_entrypoint

    async def info(self) -> SessionInfo:
        """Describe the session for a client."""
        hello = (await self.connect()).hello
        state = await self.debugger.state()
        return SessionInfo(
            isolation=self.sandbox.isolation,
            image=self.sandbox.image,
            python=hello.python[:50],
            workdir=str(self.workspace.root),
            entrypoint=self.entrypoint,
            debug_entrypoint=self.debug_entrypoint,
            expires_in_s=max(0.0, min(self.expiry.idle_left_s, self.expiry.age_left_s)),
            age_s=max(0.0, time.time() - self.created),
            place=self.sandbox.place,
            state=state.state,
            notices=list(self.metadata.notices),
        )

    async def run(
        self,
        command: str,
        *,
        timeout_s: float,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        on_progress: OnProgress | None = None,
    ) -> ExecResult:
        """Run a shell command. Processes that it leaves running are ended with it.

        Raises:
            InvalidArgument: an empty command, or a bad name in `env`.
        """
        if not command.strip():
            raise InvalidArgument("The command is empty.")
        args = {
            "command": command,
            "cwd": self.workspace.path(cwd or "."),
            "env": {**self.metadata.env, **validate_env(env or {})},
            "timeout_s": timeout_s,
            "max_output": MAX_OUTPUT,
        }
        return validate(
            ExecResult, (await self.request("exec", args, timeout_s=timeout_s, on_progress=on_progress))[0]
        )

    async def evaluate(
        self,
        *,
        entrypoint: str | None = None,
        tests: Sequence[str] = (),
        timeout_s: float,
        on_progress: OnProgress | None = None,
    ) -> Evaluation:
        """Run the tests, without the debugger, and compare with the last run.

        Raises:
            InvalidArgument: there is no entry point, or it does not allow to select `tests`.
        """
        command = entrypoint or self.entrypoint
        if not command:
            raise InvalidArgument(
                "This session has no entry point: the repository does not look like pytest.",
                "Give `entrypoint`, for example `python -m unittest -v` or `python check.py`.",
            )
        restored = await self.restore()
        args = {
            "command": command,
            "tests": list(tests),
            "env": self.metadata.env,
            "timeout_s": timeout_s,
            "max_output": MAX_OUTPUT,
        }
        answer, _ = await self.request("eval", args, timeout_s=timeout_s, on_progress=on_progress)
        return await self._compare(
            validate(Evaluation, {**answer, "restored": restored, "timeout_s": timeout_s})
        )

    async def protect(self, rules: Rules) -> None:
        """From now on, `rules` say which files tools don't show, and which ones `restore` puts back as they are now."""
        for_tools = await in_thread(rules.for_tools)
        await self.request("files.protect", {"rules": for_tools}, timeout_s=60)

    async def restore(self, *, new: bool = False) -> list[str]:
        """Put back read-only files that were changed; `new`: also remove ones that were not there. Returns their paths."""
        answer, _ = await self.request("files.restore", {"new": new}, timeout_s=60)
        return validate(_Restored, answer).restored

    async def diagnose(
        self,
        *,
        command: str,
        test: str | None,
        timeout_s: float,
        in_order: bool = False,
        against: str | None = None,
    ) -> Diagnosis:
        """Run a failing test again in separate processes that observe it, to find where its values came from.

        Args:
            command: a command line that runs `test`, or a program that fails without tests (`test` is None).
            in_order: True if the test fails only after the tests that `command` runs before it.
            against: a passing test to compare with ("auto" for the nearest), or a command if `test` is None.
        """
        args = {
            "command": command,
            "test": test,
            "env": self.metadata.env,
            "timeout_s": timeout_s,
            "in_order": in_order,
            "against": against,
        }
        answer, _ = await self.request("diagnose", args, timeout_s=timeout_s)
        return validate(Diagnosis, answer)

    async def trace(
        self,
        *,
        command: str,
        test: str | None,
        of: Sequence[str],
        expressions: Sequence[str],
        max_events: int,
        timeout_s: float,
    ) -> Trace:
        """Run a test or program in a separate process that tells its calls, lines or changes.

        Args:
            command: a command line that runs `test`, or a program (`test` is None).
            of: functions, files, lines and attributes.
        """
        args = {
            "command": command,
            "test": test,
            "of": list(of),
            "expressions": list(expressions),
            "max_events": max_events,
            "env": self.metadata.env,
            "timeout_s": timeout_s,
        }
        answer, _ = await self.request("trace", args, timeout_s=timeout_s)
        return await in_thread(validate, Trace, answer)

    async def command_of_test(self, test: str, command: str | None = None) -> str:
        """Return the command line that runs `test` alone, as `command` (the entry point) runs tests."""
        if not (command or self.entrypoint):
            return test
        args = {"command": command or self.entrypoint, "test": test}
        return validate(_TestCommand, (await self.request("diagnose.command", args))[0]).command or test

    async def save_metadata(self, metadata: SessionMetadata) -> None:
        """Set the metadata and store it in the sandbox."""
        self.metadata = metadata
        await self.request("meta.set", {"meta": asdict(metadata)})

    def load_metadata(self, root: str, meta: dict[str, Any] | None = None) -> None:
        """Set the root of the workspace, and the metadata if the sandbox has any.

        Raises:
            ProtocolViolation: the metadata is malformed.
        """
        if meta is not None:
            self.metadata = validate(_Stored, {"metadata": meta}).metadata
        self.workspace.root = PurePosixPath(root)

    async def aclose(self) -> None:
        """End the sandbox and all its processes; at most 2 s."""
        if self._connection is not None:
            # Removing many containers at once can take an engine too long: told to shut down, they end by
            # themselves.
            with anyio.move_on_after(0.2, shield=True):
                await self._connection.tell("shutdown")
        await self.disconnect()
        await self.sandbox.aclose()

    async def disconnect(self) -> None:
        """Leave the sandbox running, for another server."""
        if self._connection is not None:
            await self._connection.aclose()

    async def _compare(self, run: Evaluation) -> Evaluation:
        counts = {kind: run.counts.get(outcome, 0) for kind, outcome in _COUNTED.items()}
        changes = compare(self.metadata.outcomes, {test.id: test.outcome for test in run.tests})
        await self.save_metadata(replace(self.metadata, outcomes=_latest(changes.outcomes)))
        return run.model_copy(update={**counts, "fixed": changes.fixed, "broken": changes.broken})


class _Restored(_Data):
    restored: Annotated[list[Short], Field(max_length=100_000)] = []


class _TestCommand(_Data):
    command: Long | None = None


class _Left(_Data):
    left_s: Seconds


class _Stored(_Data):
    metadata: SessionMetadata

    @field_validator("metadata")
    @classmethod
    def _check_bounds(cls, metadata: SessionMetadata) -> SessionMetadata:
        """Limit the size: programs in the sandbox can forge the metadata."""
        words = (*metadata.notices, metadata.entrypoint or "", metadata.debug_entrypoint or "")
        if any(len(word) > MAX_WORDS for word in words) or len(metadata.notices) > _MAX_NOTICES:
            raise ValueError("too long")
        return metadata


def _latest(outcomes: dict[str, str]) -> dict[str, str]:
    """Return the last of `outcomes` that fit into MAX_OUTCOMES."""
    left, kept = MAX_OUTCOMES, len(outcomes)
    for name in reversed(outcomes):
        left -= len(json.dumps(name)) + 16
        if left < 0:
            break
        kept -= 1
    return dict(islice(outcomes.items(), kept, None))


def validate_env(env: dict[str, str]) -> dict[str, str]:
    """Return `env` if every name and value is valid.

    Raises:
        InvalidArgument: one is not; the message names it.
    """
    for name, value in env.items():
        if not _VARIABLE.fullmatch(name) or "\0" in value:
            raise InvalidArgument(
                f"{name!r} is not the name of an environment variable, or its value has a NUL."
            )
    return env
