"""Writes the calls on each session to a file of its own (`--record`), in a thread that no call waits for."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import os
import platform
import queue
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path, PurePosixPath
from typing import Any, Literal
from weakref import WeakKeyDictionary

import anyio
from mcp.types import CallToolResult, TextContent

from mcp_server.connection_options import ConnectionOptions
from mcp_server.redaction.redactor import Redactor
from mcp_server.trajectories.recent import Ongoing
from mcp_server.trajectories.record import FORMAT, MAX_ARGUMENTS, MAX_DATA, MAX_PATCH, MAX_TEXT, VERSION
from sandbox.errors import InvalidArgument, PdboxError
from sandbox.opening.request import SessionRequest
from sandbox.session.session import Session, session_key
from tools._tool import SESSION_ID
from tools._truncation import Answer, data_of

log = logging.getLogger(__name__)

HANDLE = "<session_id>"
"""Written in place of each handle: it is a secret."""
QUEUE = 512
"""Lines that may wait for the disk. Further ones are lost, rather than kept in memory or waited for."""
FLUSH_S = 0.5
"""Time in which a server that ends waits for the lines that are left."""
PATCH_S = 1.0
"""Time in which the final patch must be there: a server that ends has 2 s for everything."""
UNHURRIED_S = 30.0
"""The same while the server goes on."""
QUIET_S = 30.0
"""Time without a call after which the patch is taken: a sandbox that has expired gives none."""
_KEY = 12
_MAX_ID = 200
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
_CALL_IDS = ("toolcallid", "tooluseid", "callid")

Reason = Literal["closed", "kept", "server ended", "expired", "sandbox lost"]


@dataclass(frozen=True)
class Origin:
    """Facts about the client of a request."""

    client: Mapping[str, str] | None = None
    protocol: str = ""
    traceparent: str | None = None
    tool_call_id: str | None = None
    answers: str = "text"
    answer_within_s: float | None = None
    profile: str = "debug"

    @classmethod
    def of(
        cls, client: Any, protocol: str, meta: Mapping[str, Any] | None, options: ConnectionOptions
    ) -> Origin:
        """Read the `_meta` of a request, whose keys for the id of a call differ by client, and the client's introduction."""
        named = (
            {"name": str(client.name)[:_MAX_ID], "version": str(client.version)[:_MAX_ID]} if client else None
        )
        texts = {key: value for key, value in (meta or {}).items() if isinstance(value, str)}
        ids = [value for key, value in texts.items() if _plain(key) in _CALL_IDS]
        trace = texts.get("traceparent")
        return cls(
            named,
            protocol,
            trace and trace[:_MAX_ID],
            ids[0][:_MAX_ID] if ids else None,
            options.answers,
            options.answer_within_s,
            options.profile,
        )


@dataclass(frozen=True)
class FinalPatch:
    """The patch at the end of a session, as far as it could be taken."""

    text: str | None = None
    omitted: int = 0
    missing: str = ""


@dataclass(eq=False)
class _Recording:
    """The file of one session. The thread has `descriptor`, `size` and the counts; the rest is the event loop's."""

    path: Path
    header: Callable[[], dict[str, Any]]
    redactor: Redactor
    handles: frozenset[str] = frozenset()
    number: int = 0
    patch: FinalPatch | None = None
    """The patch as it was after call `patched`."""
    patched: int = 0
    end: tuple[Reason, FinalPatch] | None = None
    """Set when the session has ended, while calls on it have not been answered yet."""
    is_ended: bool = False
    descriptor: int | None = None
    size: int = 0
    calls: int = 0


@dataclass(frozen=True)
class Environment:
    """Facts about the server, for the headers."""

    version: str = ""
    tools: Callable[[], list[dict[str, Any]]] = field(default=list[dict[str, Any]])
    """Lists the tools. Called in the thread."""


class Recorder:
    """Records all sessions of a server in `folder`."""

    def __init__(self, folder: Path, environment: Environment) -> None:
        self._folder = folder
        self._environment = environment
        self._requests: WeakKeyDictionary[Session, SessionRequest] = WeakKeyDictionary()
        self._recordings: WeakKeyDictionary[Session, _Recording] = WeakKeyDictionary()
        self._ending: set[_Recording] = set()
        self._jobs: queue.Queue[Callable[[], object]] = queue.Queue(QUEUE)
        self._thread: threading.Thread | None = None
        self._has_complained = False

    @classmethod
    def open(cls, folder: Path, environment: Environment) -> Recorder:
        """Make the folder if it is not there.

        Raises:
            InvalidArgument: nothing can be written there.
        """
        folder = folder.expanduser().absolute()
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as exc:
            raise InvalidArgument(f"--record {folder}: {exc.strerror}.") from exc
        if not os.access(folder, os.W_OK | os.X_OK):
            raise InvalidArgument(f"--record {folder}: nothing can be written there.")
        return cls(folder, environment)

    def note_request(self, session: Session, request: SessionRequest) -> None:
        """Remember how `session` was opened, for its header."""
        self._requests[session] = request

    def note(
        self,
        call: Ongoing,
        result: CallToolResult | None,
        origin: Origin,
        sessions: Iterable[Session],
        redactor: Redactor,
    ) -> None:
        """Record a call that was answered; `result` is None when it was cancelled.

        Args:
            sessions: those of the caller. A call that was refused before it got to its session belongs to the only one.
        """
        own = list(sessions)
        session = call.session or call.opened or _find(call, own)
        if session is None:
            return
        recording = self._recordings.get(session) or self._begin(session, origin, redactor)
        recording.handles |= {one.handle for one in (session, *own) if one.handle}
        if recording.is_ended:
            return
        recording.number += 1
        # As they are now: the work of a call may go on after its answer.
        number, answer, ended = recording.number, call.answer, call.ended

        def write() -> None:
            line = _line_of_call(number, call, result, answer, ended, origin, redactor)
            if self._write(recording, line):
                recording.calls += 1

        self._put(write)
        if recording.end is not None and not session.expiry.is_in_use:
            self._write_end(recording)

    def end(self, session: Session, reason: Reason, patch: FinalPatch, redactor: Redactor) -> None:
        """Record the end of a session, after the answers of the calls that still run."""
        recording = self._recordings.get(session)
        if recording is None or recording.end is not None:
            return
        recording.end = (reason, patch)
        recording.redactor = redactor
        self._ending.add(recording)
        if not session.expiry.is_in_use:
            self._write_end(recording)

    def note_score(self, session: Session, verdict: Mapping[str, Any]) -> None:
        """Record the score of a session, which may have ended."""
        recording = self._recordings.get(session)
        if recording is None:
            return

        def write() -> None:
            line = {
                "kind": "score",
                "time": _time(datetime.now(UTC)),
                **recording.redactor.data(dict(verdict)),
            }
            if recording.descriptor is not None or not recording.size:
                self._write(recording, line)
                return
            try:
                with recording.path.open("ab") as file:
                    file.write(_dump(line, recording.handles))
            except OSError as exc:
                self._complain(exc.strerror or type(exc).__name__)

        self._put(write)

    async def follow(self, session: Session) -> None:
        """Take the patch whenever there has been no call for a while, until this is cancelled."""
        quiet_s, seen = min(QUIET_S, session.expiry.idle_left_s / 4), 0
        while True:
            await anyio.sleep(quiet_s)
            recording = self._recordings.get(session)
            if recording is None or session.expiry.is_in_use:
                continue
            if recording.number == seen != recording.patched:
                recording.patch, recording.patched = await self._take_patch(session, UNHURRIED_S), seen
            seen = recording.number

    async def take_final_patch(self, session: Session) -> FinalPatch:
        """Take the patch, or the one that was taken since the last call, if the sandbox is gone."""
        recording = self._recordings.get(session)
        if recording is None:
            return FinalPatch()
        found = await self._take_patch(session, UNHURRIED_S if session.closed else PATCH_S)
        earlier = recording.patch
        is_usable = found.text is None and earlier is not None and recording.patched == recording.number
        return earlier if is_usable and earlier is not None else found

    async def _take_patch(self, session: Session, limit_s: float) -> FinalPatch:
        try:
            with anyio.fail_after(limit_s):
                found = await session.workspace.diff(MAX_PATCH)
        except TimeoutError:
            return FinalPatch(missing="It took too long.")
        except PdboxError as exc:
            return FinalPatch(missing=exc.message[:500])
        return FinalPatch(found.text, found.omitted_bytes + found.cut_bytes)

    async def flush(self) -> None:
        """Wait until all lines are written."""
        done, loop = anyio.Event(), asyncio.get_running_loop()
        self._put(lambda: loop.call_soon_threadsafe(done.set))
        await done.wait()

    async def aclose(self) -> None:
        """Write the lines that are left."""
        for recording in list(self._ending):
            self._write_end(recording)
        if self._thread is not None:
            with anyio.move_on_after(FLUSH_S):
                await self.flush()

    def _begin(self, session: Session, origin: Origin, redactor: Redactor) -> _Recording:
        now = datetime.now(UTC)
        key = session.key[:_KEY]
        redactor = replace(redactor)
        redactor.learn(session.metadata.env)
        redactor.learn(session.sandbox.environ)
        request = self._requests.get(session)
        facts = {
            "session": key,
            "protocol": origin.protocol,
            "client": origin.client,
            "backend": session.sandbox.backend,
            "isolation": session.sandbox.isolation,
            "image": session.sandbox.image,
            "sandbox_python": session.python,
            "workdir": str(session.workspace.root),
            "repository": _name_of(request.repo) if request is not None and request.repo else "",
            "task": request.task if request is not None else None,
            "entrypoint": session.entrypoint,
            "debug_entrypoint": session.debug_entrypoint,
            "answers": origin.answers,
            "answer_within_s": origin.answer_within_s,
            "profile": origin.profile,
            "request": None
            if request is None
            else {**asdict(request), "setup": request.setup and [*request.setup]},
        }

        def header() -> dict[str, Any]:
            versions = {
                "pdbox": self._environment.version,
                "python": platform.python_version(),
                "mcp": _version_of("mcp"),
            }
            start = {"kind": "header", "format": FORMAT, "version": VERSION, "time": _time(now)}
            return {**start, **versions, **redactor.data(facts), "tools": self._environment.tools()}

        path = self._folder / f"{now:%Y%m%dT%H%M%S}.{now.microsecond // 1000:03}Z-{key}.jsonl"
        recording = self._recordings[session] = _Recording(path, header, redactor)
        return recording

    def _write_end(self, recording: _Recording) -> None:
        assert recording.end is not None
        recording.is_ended = True
        self._ending.discard(recording)
        reason, patch = recording.end

        def finish() -> None:
            end = {
                "kind": "end",
                "time": _time(datetime.now(UTC)),
                "reason": reason,
                "calls": recording.number,
                "lost": recording.number - recording.calls,
                **_describe_patch(patch, recording.redactor),
            }
            self._write(recording, end)
            if recording.descriptor is not None:
                os.close(recording.descriptor)
                recording.descriptor = None

        self._put(finish)

    def _put(self, job: Callable[[], object]) -> None:
        if self._thread is None:
            # A daemon: a disk that does not answer must not keep the process.
            self._thread = threading.Thread(target=self._work, name="recorder", daemon=True)
            self._thread.start()
        try:
            self._jobs.put_nowait(job)
        except queue.Full:
            self._complain("the disk is too slow")

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            try:
                job()
            except (TypeError, ValueError, RecursionError, RuntimeError) as exc:
                self._complain(f"{type(exc).__name__}: {exc}")

    def _complain(self, why: str) -> None:
        """Log the first loss: what follows is the same, for each call."""
        if not self._has_complained:
            self._has_complained = True
            log.warning("calls are missing in the records in %s: %s", self._folder, why)

    def _write(self, recording: _Recording, line: dict[str, Any]) -> bool:
        """Append a line, the first time after the header. False if it could not be written."""
        lines = [line] if recording.size else [recording.header(), line]
        data = b"".join(_dump(one, recording.handles) for one in lines)
        try:
            if recording.descriptor is None:
                recording.descriptor = os.open(recording.path, _FLAGS, 0o600)
            _write_whole(recording.descriptor, data, recording.size)
        except OSError as exc:
            self._complain(exc.strerror or type(exc).__name__)
            return False
        recording.size += len(data)
        return True


def _find(call: Ongoing, own: list[Session]) -> Session | None:
    """The session of a call that did not get as far as to it, such as one with wrong arguments."""
    given = call.arguments.get(SESSION_ID)
    if isinstance(given, str) and given:
        key = session_key(given.encode("utf-8", "replace").decode())
        return next((one for one in own if one.key == key), None)
    return own[0] if len(own) == 1 else None


def _dump(line: dict[str, Any], handles: Iterable[str]) -> bytes:
    text = json.dumps(line, separators=(",", ":"), ensure_ascii=False, default=str)
    for handle in handles:
        text = text.replace(handle, HANDLE)
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:  # half of a surrogate pair, which no reader of JSON should have to take
        return text.encode("utf-8", "replace") + b"\n"


def _describe_patch(patch: FinalPatch, redactor: Redactor) -> dict[str, Any]:
    facts: dict[str, Any] = {"patch_omitted": patch.omitted, "patch_missing": patch.missing}
    if patch.text is None:
        return {"patch": None, **facts}
    text = redactor.text(patch.text, source=True)
    facts["patch_redacted"] = text != patch.text
    try:
        text.encode()
    except UnicodeEncodeError:
        return {"patch_base64": base64.b64encode(text.encode("utf-8", "surrogateescape")).decode(), **facts}
    return {"patch": text, **facts}


def _write_whole(descriptor: int, data: bytes, before: int) -> None:
    """Append a line, or nothing: of one that does not fit on the disk the beginning is taken back."""
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(descriptor, view) :]
    except OSError:
        with suppress(OSError):
            os.ftruncate(descriptor, before)
        raise


def _line_of_call(
    number: int,
    call: Ongoing,
    result: CallToolResult | None,
    answer: Answer | None,
    ended: float,
    origin: Origin,
    redactor: Redactor,
) -> dict[str, Any]:
    arguments = redactor.data(call.shown_arguments)
    arguments_size = len(json.dumps(arguments))
    text = "" if result is None else _text_of(result)
    data = _data_of(answer, result)
    data_size = 0 if data is None else len(json.dumps(data))
    state, stop = (data or {}).get("state"), (data or {}).get("stop")
    return {
        "kind": "call",
        "number": number,
        "time": _time(datetime.fromtimestamp(call.at, UTC)),
        "tool": call.tool[:_MAX_ID],
        "arguments": arguments if arguments_size <= MAX_ARGUMENTS else {},
        "arguments_omitted": arguments_size if arguments_size > MAX_ARGUMENTS else 0,
        "text": text[:MAX_TEXT],
        "text_characters": len(text),
        "text_omitted": max(0, len(text) - MAX_TEXT),
        "structured": data if data_size <= MAX_DATA else None,
        "structured_omitted": data_size if data_size > MAX_DATA else 0,
        "is_error": result is not None and bool(result.is_error),
        "cancelled": result is None,
        "state": state if isinstance(state, str) else None,
        "stop": stop if isinstance(stop, int) else None,
        "duration_ms": round(1000 * max(0.0, ended - call.began), 1),
        "traceparent": origin.traceparent,
        "tool_call_id": origin.tool_call_id,
    }


def _data_of(answer: Answer | None, result: CallToolResult | None) -> dict[str, Any] | None:
    """The structured form of an answer, also where the client gets the text alone."""
    if result is None:
        return None
    return result.structured_content or (data_of(answer) if answer is not None else None)


def _text_of(result: CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


def _name_of(repo: str) -> str:
    return PurePosixPath(repo.rstrip("/")).name[:_MAX_ID]


def _plain(key: str) -> str:
    """`claudecode/toolUseId` and `tool_use_id` are one."""
    return key.rpartition("/")[2].rpartition(".")[2].replace("_", "").replace("-", "").lower()


def _version_of(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _time(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds")
