"""A session: one sandbox with a copy of a repository, its workspace and its debugger."""

from __future__ import annotations

import hashlib
import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import anyio
from anyio.abc import TaskGroup
from pydantic import Field

from sandbox.backend import Sandbox
from sandbox.concurrency import open_task_group
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
from sandbox.session.debugger import Debugger
from sandbox.session.expiry import Expiry
from sandbox.session.guest_data import GuestData, Long, Seconds, Short, validate
from sandbox.session.metadata import SessionMetadata, latest_outcomes, parse_metadata
from sandbox.session.outcomes import compare, find_test
from sandbox.session.output import Output
from sandbox.session.results import Evaluation, ExecResult
from sandbox.session.workspace import Workspace
from sandbox.spec import Lifetime
from sandbox.transport.connection import PING_S, GuestConnection, OnProgress

if TYPE_CHECKING:  # a server starts without these models
    from sandbox.session.diagnosis import Diagnosis
    from sandbox.session.trace import Trace

MAX_OUTPUT = 1 << 20
LOCK_S = 120.0
_TRUST = "if command -v git; then git config --global --add safe.directory '*'; fi"
_MAX_LOSSES = 3
"""Maximum consecutive connections that the guest ends without answering on them."""
_PING_EACH_S = 1.0
_MAX_MISSED = 2
"""Consecutive pings without an answer after which a sandbox is given up: 11 s in all."""
_SILENT = "The sandbox doesn't answer any more."
_T = TypeVar("_T")
log = logging.getLogger(__name__)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_COUNTED = {
    "passed": "passed",
    "failed": "failed",
    "errors": "error",
    "skipped": "skipped",
    "xfailed": "xfailed",
    "xpassed": "xpassed",
}


@dataclass(frozen=True)
class SessionInfo:
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


def session_key(handle: str) -> str:
    """Hash a handle for the label of a sandbox, so that the label does not reveal the handle."""
    return hashlib.sha256(handle.encode()).hexdigest()


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
        self.diagnosed: str | None = None
        """The test whose failure was diagnosed last."""
        self.newly_diagnosed: list[str] = []
        """The same and others that its diagnosis saw fail, each until a run after an edit has told its outcome."""
        self.edited_since_diagnosis = False
        """True if a file was edited since."""
        self.debugger = Debugger(self.request)
        self.output = Output(self.request)
        self.workspace = Workspace(self.request, PurePosixPath("/workspace"))
        self._tasks = tasks
        self.is_abandoned = False
        """True if it was closed without its changes, because its sandbox was lost."""
        self._is_silent = False
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
            SandboxLost: the sandbox is gone, broke the protocol, or is silent; SessionExpired: it reached its time limit.
        """
        if self._is_silent:
            raise SandboxLost(_SILENT, "start_session opens a new one.")
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

    async def while_answering(self, work: Callable[[], Awaitable[_T]]) -> _T:
        """Do `work` with the sandbox for as long as that answers pings, as it does during a slow request.

        Raises:
            SandboxLost: it answered nothing, and nothing more is asked of it.
        """
        silence = anyio.CancelScope()
        async with open_task_group() as tasks:
            tasks.start_soon(self._cancel_on_silence, silence)
            with silence:
                return await work()
        self._is_silent = True
        raise SandboxLost(_SILENT, "start_session opens a new one.")

    async def _cancel_on_silence(self, scope: anyio.CancelScope) -> None:
        missed = 0
        while missed < _MAX_MISSED:
            await anyio.sleep(_PING_EACH_S)
            missed = 0 if await self._answers() else missed + 1
        scope.cancel()

    async def _answers(self) -> bool:
        with anyio.move_on_after(PING_S):
            try:
                await self.request("ping")
            except PdboxError as exc:  # a refusal is an answer; a loss ends the other request, too
                log.debug("ping: %s", exc)
            return True
        return False

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
        to_file: bool = False,
        with_pipe: bool = False,
    ) -> ExecResult:
        """Run a shell command. Processes that it leaves running are ended with it.

        `to_file`: save a long output in a file, too, so that the next command can read it.
        `with_pipe`: also find the exit codes of all parts of its last pipe.

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
            "to_file": to_file,
            "with_pipe": with_pipe,
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
        past_errors: bool = False,
        before: bool | None = None,
    ) -> Evaluation:
        """Run the tests, without the debugger, and compare with the last run.

        `past_errors`: also where pytest would end because it can't collect some files. Graders want it to end.
        `before`: tell which failing tests failed before the first edit too. Unless that is known, they run again while
        the edits are undone. False: only remember the outcomes, for a later run; None: not even that. Never in files
        that others work on.

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
            "past_errors": past_errors,
            "before": None if self.sandbox.is_in_place else before,
        }
        answer, _ = await self.request("eval", args, timeout_s=timeout_s, on_progress=on_progress)
        return await self._compare(
            validate(Evaluation, {**answer, "restored": restored, "timeout_s": timeout_s})
        )

    async def protect(self, rules: Rules) -> None:
        """From now on, `rules` say which files tools don't show, and which ones `restore` puts back as they are now."""
        for_tools = await in_thread(rules.for_tools)
        await self.request("files.protect", {"rules": for_tools}, timeout_s=60)

    async def lock(self, rules: Rules) -> None:
        """Keep programs from changing the files that `rules` name as read-only. Needs `Sandbox.is_guarded`."""
        aside = f".pdbox-{secrets.token_hex(8)}"
        for_tools = await in_thread(rules.for_tools)
        begin = {"step": "begin", "aside": aside, "rules": for_tools}
        await self.request("files.lock", begin, timeout_s=LOCK_S)
        await self.sandbox.make_roots(f"{aside}/first")
        await self.request("files.lock", {"step": "end", "aside": aside}, timeout_s=LOCK_S)
        # The workspace belongs to root, and git refuses another user's folder unless it is declared safe.
        await self.run(_TRUST, timeout_s=30)

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
            # Changed code may do what the program would not: here it reaches nothing but a copy.
            "mutate": not self.sandbox.is_in_place and not self.sandbox.has_network,
        }
        from sandbox.session.diagnosis import Diagnosis

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
        from sandbox.session.trace import Trace

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
            self.metadata = parse_metadata(meta)
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

    def note_diagnosis(self, test: str | None, others: Sequence[str]) -> None:
        """Remember a diagnosed test, and others that its diagnosis saw fail."""
        self.diagnosed, self.edited_since_diagnosis = test, False
        self.newly_diagnosed = [*([test] if test else []), *others]

    async def _compare(self, run: Evaluation) -> Evaluation:
        counts = {kind: run.counts.get(outcome, 0) for kind, outcome in _COUNTED.items()}
        now, before = {test.id: test.outcome for test in run.tests}, self.metadata.outcomes
        # Others may have failed for their order alone: without an edit nothing has fixed them.
        told = [one for one in self.newly_diagnosed if one == self.diagnosed or self.edited_since_diagnosis]
        found = {name: test for name in told if (test := find_test(name, now)) is not None}
        failed = {
            test: "failed" for name, test in found.items() if name == self.diagnosed or test not in before
        }
        before = {**before, **failed}
        self.newly_diagnosed = [name for name in self.newly_diagnosed if name not in found]
        changes = compare(before, now)
        await self.save_metadata(replace(self.metadata, outcomes=latest_outcomes(changes.outcomes)))
        return run.model_copy(update={**counts, "fixed": changes.fixed, "broken": changes.broken})


class _Restored(GuestData):
    restored: Annotated[list[Short], Field(max_length=100_000)] = []


class _TestCommand(GuestData):
    command: Long | None = None


class _Left(GuestData):
    left_s: Seconds


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
