"""The sessions of this server: opened by handle, found again by handle, closed with the server."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup, TaskStatus

from mcp_server.errors import contain
from mcp_server.observability import logs
from mcp_server.redaction.redactor import Redactor
from mcp_server.sessions.kept_edits import Kept, KeptEdits, Opened
from mcp_server.sessions.places import PlaceQueue, Refusal
from mcp_server.sessions.pool import Pool
from mcp_server.sessions.recovery import EXPIRED, GONE, Recovery
from mcp_server.sessions.requests import FindTask, Requests
from mcp_server.sessions.scores import Scores
from mcp_server.sessions.slot import SessionSlot
from mcp_server.trajectories.recent import Ongoing
from mcp_server.trajectories.recorder import Reason, Recorder
from sandbox.backend import Backend
from sandbox.concurrency import KeyedLocks
from sandbox.errors import (
    Conflict,
    InvalidArgument,
    NotFound,
    PdboxError,
    ProtocolViolation,
    SandboxError,
    SandboxLost,
    SessionExpired,
)
from sandbox.host_files import PrincipalThreads
from sandbox.opening.open import adopt_session, open_session
from sandbox.opening.plan import find_source, plan_session, source_of
from sandbox.opening.policy import Policy
from sandbox.opening.request import SessionRequest
from sandbox.server_files import BEAT_S
from sandbox.session.session import Session, session_key
from sandbox.spec import Identity, SandboxInfo, SandboxSpec
from tools._tool import OwnSession, Report, ignore_progress

if TYPE_CHECKING:
    from mcp_server.tasks.scoring import Verdict

log = logging.getLogger(__name__)

SWEEP_EVERY_S = 3600.0
"""Interval at which sandboxes that other servers left behind are looked for."""
CLOSE_S = 1.8
"""Time limit for closing all sessions. Clients kill a server 2 s after they closed its stdin."""

_CLOSING = Conflict("The server is closing.")
_FINISHED = Conflict("The task is finished, and its session has ended.")
_UNKNOWN = "This session_id is unknown or has expired."
_START = "`start_session` opens a new session."
_SERVER_PER_CALL = (
    f"{_START} If it was opened by an earlier call, this client starts a server for each call: sessions then need"
    " a server that is started with `--keep-sessions`."
)
_NOTHING_KEPT = (
    "No edits of such a session are kept: the session_id is unknown, or was closed, or is too old."
)
_FULL = "`list_sessions` shows yours; `close_session` ends one."
_FULL_OF_KEPT = "`close_session` ends one; those of earlier servers end {:.0f} min after their last call."
MAX_PER_MACHINE = 100
"""Sandboxes of one user that may run at once, of all servers; for servers whose sessions outlive them."""

Make = Callable[[Backend, TaskGroup], Awaitable[Session]]


@dataclass(frozen=True)
class SessionLimits:
    """Limits for the number of sessions."""

    total: int
    each: int | None = None
    """Of one owner; None: as many as in total."""
    machine: int = MAX_PER_MACHINE
    """Of all servers of this user, where sessions are kept; never less than `total`."""


class SessionStore:
    """Every session this server holds. `async with` it: leaving closes them all.

    Each session lives in a task of the store, for a task group can't be entered in one call and left in another.
    """

    def __init__(
        self,
        backend: Callable[[], AbstractAsyncContextManager[Backend]],
        policy: Policy,
        defaults: SessionRequest,
        *,
        allowed: SessionLimits,
        default_session: bool,
        redact: bool = True,
        redact_names: bool = False,
        user: str = "",
        pool: int = 0,
        recorder: Recorder | None = None,
        find_task: FindTask | None = None,
        has_leftovers: Callable[[], bool] | None = None,
        edits: KeptEdits | None = None,
        queue_s: float = 0.0,
    ) -> None:
        """
        Args:
            queue_s: seconds that a new session waits for a place, if there are as many as there may be.
            default_session: a caller without any session gets one for `defaults.repo` (one client a server: stdio).
            user: a hash of the user that the server runs as, who may see and remove all that it starts.
            pool: how many sandboxes are kept ready.
            recorder: writes the calls on each session to a file.
            find_task: loads one of the tasks that clients may name.
            has_leftovers: tells whether other servers may have left sandboxes, without asking the backend.
            edits: where the edits of sessions are kept, in case their sandboxes are lost.
            redact: mask what looks like a secret; `redact_names`: going by the names of values, too.
        """
        self._redact = redact
        self._redact_names = redact_names
        self._open_backend = backend
        self._policy = policy
        self.requests = Requests(defaults, policy, find_task)
        """Of clients for sessions."""
        self._allowed = allowed
        self.default_session = default_session
        self._user = user
        self._pool_size = pool
        self._has_leftovers = has_leftovers
        self.recorder = recorder
        self._recovery = Recovery(edits)
        self._keep = policy.lifetime.kept
        """Sessions outlive the server, and those that earlier ones left are found again."""
        self.scores = Scores(self._ensure_backend, self.requests, user, recorder, self.spawn)
        self._backend: Backend | None = None
        self._backend_closed = anyio.Event()
        self._slots: set[SessionSlot] = set()
        self._by_key: dict[str, SessionSlot] = {}
        self._queue = PlaceQueue()
        self._queue_s = queue_s
        self._locks = KeyedLocks()
        self._threads = PrincipalThreads()
        self._closing = False
        self._used = False

    async def __aenter__(self) -> Self:
        self._tasks = await anyio.create_task_group().__aenter__()
        self._pool = Pool(self._pool_size, self._ensure_backend, self._default_spec, self._tasks)
        return self

    async def __aexit__(self, *exc: object) -> None:
        with anyio.CancelScope(shield=True):
            await self.aclose()
        self._tasks.cancel_scope.cancel()
        await self._tasks.__aexit__(None, None, None)

    def spawn(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run `work` in a task that the end of the store cancels."""
        self._tasks.start_soon(work)

    def warm(self) -> None:
        """Begin to make sandboxes ready, if that is asked for. Called once a client is served: its start comes first.

        If another server ended and left sandboxes, the backend is opened, too: that looks for them.
        """
        self._pool.start()
        if self._has_leftovers is not None and not self._closing:
            self._tasks.start_soon(self._sweep_at_start, self._has_leftovers)
            self._has_leftovers = None

    async def aclose(self) -> None:
        """Close every session, or leave those that are to be kept, within `CLOSE_S`."""
        self._closing = True
        self._queue.refuse_all(_CLOSING)
        self.scores.cancel()
        with anyio.move_on_after(CLOSE_S) as deadline:
            for slot in self._slots:
                slot.end(keep=self._keep)
            await self._pool.aclose()
            await self._wait_until_gone()
            await self.scores.wait_until_gone()
            if self._backend is not None:
                self._backend_scope.cancel()
                await self._backend_closed.wait()
            if self.recorder is not None:
                await self.recorder.aclose()
        if deadline.cancelled_caught and self._slots:
            log.error("%d sandboxes were not removed in time; they end by themselves", len(self._slots))

    def redactor(self, session: Session | None = None) -> Redactor:
        """A redactor for text about `session`; it knows the secrets of the operator's settings, too."""
        redactor = Redactor(self._redact, self._redact_names)
        redactor.learn(self.requests.defaults.env)
        if session is not None:
            redactor.learn(session.metadata.env)
            redactor.learn(session.sandbox.environ)
        return redactor

    async def open(
        self,
        owner: str,
        request: SessionRequest,
        report: Report,
        handle: str | None = None,
        within_s: float | None = None,
    ) -> Session:
        """Open a session of `owner`. The operator's settings complete `request`; `handle` comes from `new_handle`.

        `within_s`: seconds that the call may take; it waits no longer for a place.

        Raises:
            Conflict: there are as many as there may be, and none ended in time.
            NotFound: there is nothing to resume.
            PdboxError: what `open_session` raises.
        """
        if request.resume is not None:
            session = await self._resume(owner, request, report, within_s)
            session.notice = ""  # `info` has it, too
            return session
        return await self._open(owner, request, report, handle or new_handle(), within_s)

    async def reopen(
        self,
        owner: str,
        request: SessionRequest,
        report: Report,
        handle: str,
        within_s: float | None = None,
    ) -> Session:
        """Open a session with a handle that had one: with its edits if it was lost, which its notice says, else anew.

        Raises:
            PdboxError: as `open` does.
        """
        if await self._recovery.load(owner, session_key(handle)) is None:
            return await self._open(owner, request, report, handle, within_s)
        return await self._resume(owner, replace(request, resume=handle), report, within_s)

    async def forget(self, owner: str, handle: str) -> None:
        """Remove the edits of a session that was lost: its client wants it no more."""
        await self._recovery.forget(owner, session_key(handle))

    async def _resume(
        self, owner: str, request: SessionRequest, report: Report, within_s: float | None
    ) -> Session:
        handle = request.resume or ""
        key = session_key(handle)
        async with self._locks.hold(key):
            kept = await self._recovery.load(owner, key)
            if kept is None:
                raise NotFound(_NOTHING_KEPT, _START)
            if await self._is_alive(owner, handle, key):
                raise Conflict(
                    "This session is still there, with all its edits.", "Go on with its session_id."
                )
            return await self._open(owner, kept.opened.merge(request), report, handle, within_s, kept)

    async def _is_alive(self, owner: str, handle: str, key: str) -> bool:
        """Look for a sandbox that answers. One that doesn't is removed: there must not be two of one key."""
        slot = self._by_key.get(key)
        if slot is not None and not slot.is_over:
            return True
        if slot is not None:
            await slot.gone.wait()
        try:
            await self._adopt(owner, handle, key)
            return True
        except NotFound:
            backend = await self._ensure_backend()
            for one in await backend.find(owner, key):
                await backend.remove(one)
            return False

    async def _open(
        self,
        owner: str,
        request: SessionRequest,
        report: Report,
        handle: str,
        within_s: float | None,
        kept: Kept | None = None,
    ) -> Session:
        identity = Identity(handle, owner, self._user)
        completed, policy = await self.requests.complete(request)
        opened = Opened.of(request, source_of(completed))
        if kept is not None and kept.opened.source != opened.source:
            raise InvalidArgument(
                "This session was opened for another repository.", "Leave `repo`, `ref` and `image` out."
            )

        restore = None if kept is None else partial(self._recovery.restore, kept=kept, request=request)

        async def make(backend: Backend, tasks: TaskGroup) -> Session:
            async with self._recovery.beginning(owner, session_key(handle), opened, new=kept is None):
                session = await open_session(
                    backend, completed, policy, identity, report, tasks, self._pool.take, restore
                )
            try:
                await self._recovery.follow(owner, session)
            except BaseException:  # cancellation: no sandbox without a session
                with anyio.CancelScope(shield=True):
                    await session.aclose()
                raise
            session.task = self.requests.task_of(request)
            if completed.in_place:
                session.notice = f"isolation: {session.sandbox.isolation}"
            if self.recorder is not None:
                self.recorder.note_request(session, completed)
            return session

        try:
            foreign = await self._list_foreign() if self._keep else ()
            wait_s = self._queue_s if within_s is None else min(self._queue_s, within_s)
            return await self._open_in_slot(owner, session_key(handle), make, foreign, wait_s, report)
        finally:
            self._pool.refill()

    async def get(
        self, owner: str, handle: str | None, report: Report, within_s: float | None = None
    ) -> Session:
        """The session of that handle; without one, the only session of `owner`, which is opened if there is none.

        Raises:
            NotFound: unknown, expired or another's, all with the same text.
            InvalidArgument: no handle, and none or several sessions.
        """
        session = await (
            self._find_only(owner, report, within_s)
            if handle is None
            else self._find_by_handle(owner, handle)
        )
        session.expiry.touch()
        return session

    async def list_own(self, owner: str) -> list[OwnSession]:
        """Sessions of `owner`: those held here, and those that other servers left."""
        own = [await _describe(session) for session in self.list_held(owner)]
        strange = [one for one in await self._list_foreign() if one.owner == owner]
        return [*own, *map(_describe_left_behind, sorted(strange, key=lambda one: -one.created))]

    def may_omit_handle(self, owner: str) -> bool:
        """True if a call of `owner` without a handle means its only session: clients of that owner are no others."""
        return self.default_session or owner != self._user

    def set_apart(self, session: Session) -> None:
        """Have no call without a handle mean this session: its clients name it in another way."""
        if (slot := self._by_key.get(session.key)) is not None:
            slot.is_apart = True

    async def wait_until_gone(self, handle: str) -> None:
        """Wait until a session that has ended is removed."""
        if (slot := self._by_key.get(session_key(handle))) is not None and slot.is_over:
            await slot.gone.wait()

    @property
    def opens_by_itself(self) -> bool:
        """True if the first call of a client opens a session."""
        return self.default_session and self.requests.has_default

    def list_held(self, owner: str) -> list[Session]:
        """Sessions of `owner` that are open here, at once; the oldest first."""
        return [
            slot.session
            for slot in self._by_key.values()
            if slot.owner == owner and slot.session is not None and not slot.is_over
        ]

    def is_holding(self, session: Session) -> bool:
        """True if calls still reach this session here."""
        slot = self._by_key.get(session.key)
        return slot is not None and slot.session is session and not slot.is_over

    async def close(self, session: Session) -> None:
        """End the session and remove its sandbox: calls that it still serves are refused, for the session was closed."""
        session.closed = True
        await self._end(session)

    async def finish(self, owner: str, session: Session) -> None:
        """Have the changes of a session with a task scored, and end it; nothing else of it can be scored again.

        Raises:
            Conflict: it has no task. PdboxError: its patch is not available.
        """
        begin = await self.scores.take(session, owner)
        await self.close(session)
        begin()

    async def score(self, owner: str, handle: str) -> Verdict:
        """Score the session of that handle: as it is now, or as it was when it was finished.

        Raises:
            NotFound: unknown, expired or another's. Conflict: it has no task. PdboxError: it can't be scored.
        """
        finished = await self.scores.wait(owner, session_key(handle))
        return finished or await self.scores.score(await self.get(owner, handle, ignore_progress))

    def check_unfinished(self, key: str) -> None:
        """Check that a new session may take the place of the one with this key.

        Raises:
            Conflict: that one was finished.
        """
        if self.scores.is_finished(key):
            raise _FINISHED

    async def _end(self, session: Session) -> None:
        slot = self._by_key.get(session.key)
        if slot is not None:
            slot.end()
            await slot.gone.wait()

    async def check(
        self, owner: str, session: Session, lost: SandboxError | None = None, *, reopens: bool = False
    ) -> None:
        """Drop the session if its sandbox is really gone, rather than one connection to it.

        Args:
            lost: the reason, as a call on it came to know it.
            reopens: the next call opens the session again.

        Raises:
            NotFound: it is gone, and its edits are kept; its time was over; or it was closed meanwhile.
            SandboxLost: the guest broke the protocol.
        """
        if session.closed:
            raise NotFound("The session was closed while this call ran.", _START)
        try:
            await session.connect()
        except (SandboxLost, ProtocolViolation) as exc:
            log.info("session dropped: %s", exc)
            await self._end(session)
            expired = session.expiry.over or isinstance(exc, SessionExpired)
            reason = EXPIRED if expired else (lost or exc).message
            if told := await self._recovery.explain(owner, session.key, reason, reopens=reopens):
                raise told from exc
            if expired:
                raise self._unknown() from exc
            if isinstance(lost, ProtocolViolation):
                raise SandboxLost(f"The session is unusable: {lost.message}", _START) from exc

    async def _find_by_handle(self, owner: str, handle: str) -> Session:
        key = session_key(handle)
        try:
            # Two calls with the handle of a session to adopt must not adopt it twice.
            async with self._locks.hold(key):
                session = self._get_own(owner, key) or await self._adopt(owner, handle, key)
        except NotFound as exc:
            raise await self._recovery.explain(owner, key, GONE, reopens=False) or exc from None
        session.handle = handle  # not known yet, if it was found without
        return session

    async def probe(self) -> str:
        """One line on the backend, if it answers.

        Raises:
            BackendUnavailable: it doesn't.
        """
        return await (await self._ensure_backend()).probe()

    async def _find_only(self, owner: str, report: Report, within_s: float | None) -> Session:
        if (session := self._get_only(owner)) is not None:
            return session
        if not self.default_session:
            lost = self._recovery.lost_handles(owner) if self.may_omit_handle(owner) else []
            key = session_key(lost[0]) if len(lost) == 1 else ""
            if told := await self._recovery.explain(owner, key, GONE, reopens=False):
                raise told
            raise InvalidArgument("Which session? session_id is missing.", "`start_session` gives one.")
        async with self._locks.hold(f"only {owner}"):
            if (session := self._get_only(owner)) is not None:
                return session
            for slot in [one for one in self._slots if one.owner == owner and one.is_over]:
                await slot.gone.wait()
            lost = self._recovery.lost_handles(owner)
            if len(lost) > 1:
                raise _ambiguity(len(lost), "lost")
            if lost:
                return await self.reopen(owner, SessionRequest(), report, lost[0], within_s)
            if not self.opens_by_itself:
                raise InvalidArgument("There is no session yet.", "`start_session` with `repo` opens one.")
            if self.scores.has_finished(owner):
                raise _FINISHED
            kept = await self._resume_kept(owner)
            return kept or await self.open(owner, SessionRequest(), report, within_s=within_s)

    def _get_only(self, owner: str) -> Session | None:
        """The session that a call of `owner` without a handle means, if it is open here.

        Raises:
            InvalidArgument: it may mean several.
        """
        if not self.may_omit_handle(owner):
            return None
        own = [session for session in self.list_held(owner) if not self._by_key[session.key].is_apart]
        if len(own) > 1:
            raise _ambiguity(len(own), "open")
        return own[0] if own else None

    async def _resume_kept(self, owner: str) -> Session | None:
        """The only session of `owner` for our repository that an earlier server kept."""
        if not self._keep:
            return None
        source = source_of((await self.requests.complete(SessionRequest()))[0])
        running = await self._list_running()
        found = [one for one in running if one.kept and (one.owner, one.source) == (owner, source)]
        if len(found) > 1:
            raise _ambiguity(len(found), "kept for this repository")
        if not found:
            return None
        (one,) = found
        try:
            # A call with its handle may be taking it over just now.
            async with self._locks.hold(one.key):
                if (session := self._get_own(owner, one.key)) is not None:
                    return session
                session = await self._open_in_slot(owner, one.key, self._make_adopter(one, None))
        except (SandboxLost, NotFound):
            return None  # it went meanwhile
        session.notice = _resume_notice(one)
        return session

    def _get_own(self, owner: str, key: str) -> Session | None:
        slot = self._by_key.get(key)
        if slot is not None and (slot.owner != owner or slot.is_over):
            raise self._unknown()
        return slot.session if slot is not None else None

    def _unknown(self) -> NotFound:
        """The same refusal for an unknown handle, an expired one and another owner's."""
        # A server for one client that has had no session yet: most likely the client starts one for each call.
        per_call = self.default_session and not self._keep and not self._used
        return NotFound(_UNKNOWN, _SERVER_PER_CALL if per_call else _START)

    async def _list_foreign(self) -> Sequence[SandboxInfo]:
        """Sessions of this server's user that it neither holds nor is about to."""
        running = await self._list_running()
        own = {slot.key for slot in self._slots}
        return [one for one in running if one.key not in own]

    async def _list_running(self) -> Sequence[SandboxInfo]:
        """List all sessions of this server's user, held by any server."""
        found = await (await self._ensure_backend()).of_user(self._user)
        return [one for one in found if not one.pooled and one.left_s > 0]

    async def _adopt(self, owner: str, handle: str, key: str) -> Session:
        found = await (await self._ensure_backend()).find(owner, key)
        if not found:
            raise self._unknown()
        try:
            return await self._open_in_slot(owner, key, self._make_adopter(found[0], handle))
        except (SandboxLost, ProtocolViolation) as exc:
            raise self._unknown() from exc

    def _make_adopter(self, found: SandboxInfo, handle: str | None) -> Make:
        async def make(backend: Backend, tasks: TaskGroup) -> Session:
            session = await adopt_session(backend, found, handle, self._policy.lifetime, tasks)
            await self._recovery.follow(found.owner, session)
            return session

        return make

    async def _open_in_slot(
        self,
        owner: str,
        key: str,
        make: Make,
        foreign: Sequence[SandboxInfo] = (),
        wait_s: float = 0.0,
        report: Report = ignore_progress,
    ) -> Session:
        slot, known = SessionSlot(owner, key), list(foreign)

        def take() -> Refusal | None:
            if self._closing:
                raise _CLOSING
            if (refusal := self._find_refusal(owner, known)) is None:
                self._slots.add(slot)
            return refusal

        async def refresh() -> None:
            known[:] = await self._list_foreign()

        try:
            await self._queue.take(
                owner, take, within_s=wait_s, report=report, refresh=refresh if self._keep else None
            )
            with self._threads.of(owner):
                session = await self._tasks.start(self._run_session, slot, make)
            self._used = True
            return session
        finally:
            if slot.session is None:
                # Its task may have ended before its first step, or was never started.
                self._slots.discard(slot)
                slot.gone.set()
                self._queue.wake()

    def _find_refusal(self, owner: str, foreign: Sequence[SandboxInfo]) -> Refusal | None:
        """Return why `owner` can have no further session now. One counts from the request for it until its time is over.

        Of the `foreign`, those of the owner count that were left for a later server. Others are limited by the
        server that holds them.
        """
        owners = [slot.owner for slot in self._slots if not slot.is_over]
        running = len(owners) + len(foreign)
        kept = [one for one in foreign if one.kept and one.owner == owner]
        hint = _FULL_OF_KEPT.format(self._policy.lifetime.idle_s / 60) if kept else _FULL
        allowed = self._allowed
        if allowed.each is not None and owners.count(owner) + len(kept) >= allowed.each:
            text = f"You have {allowed.each} sessions open, and may have no more."
            return Refusal(Conflict(text, hint), is_own=True)
        if len(owners) + len(kept) >= allowed.total:
            text = f"{allowed.total} sessions are open, and there may be no more."
            return Refusal(Conflict(text, hint), is_own=bool(kept))
        if running >= max(allowed.machine, allowed.total):
            return Refusal(
                Conflict(
                    f"{running} sandboxes of this user are running on this machine, and there may be no more.",
                    "`pdbox sessions list` shows them, `pdbox sessions reap` removes all of them.",
                )
            )
        return None

    async def _run_session(self, slot: SessionSlot, make: Make, *, task_status: TaskStatus[Session]) -> None:
        """One session from opening to closing."""
        failure: PdboxError | None = None
        try:
            backend = await self._ensure_backend()
            with slot.scope:
                async with anyio.create_task_group() as tasks:
                    try:
                        slot.session = await make(backend, tasks)
                    except PdboxError as exc:
                        failure = exc  # raised outside of the group, which would wrap it
                    else:
                        if self.recorder is not None:
                            tasks.start_soon(self.recorder.follow, slot.session)
                        await self._hold(slot, slot.session, task_status)
                    tasks.cancel_scope.cancel()
        except ExceptionGroup as group:
            if slot.session is None:
                raise
            # A fault of ours in one session, which must not end the others.
            log.error("a session failed", exc_info=group)
        finally:
            self._slots.discard(slot)
            slot.gone.set()
            self._queue.wake()
        if failure is not None or slot.session is None:
            raise failure or _CLOSING

    async def _hold(self, slot: SessionSlot, session: Session, task_status: TaskStatus[Session]) -> None:
        self._by_key[session.key] = slot
        try:
            task_status.started(session)
            await slot.hold(session)
        finally:
            # Until its sandbox is gone it must not be found there and adopted.
            with anyio.CancelScope(shield=True):
                slot.is_over = True
                self._queue.wake()
                if self.recorder is not None:
                    await contain("the end of a record", self._end_record(self.recorder, slot, session))
                # First: while its sandbox is removed, a call must find that it was closed, or what it lost.
                await contain("the end of edits", self._end_edits(slot, session))
                await slot.release(session)
            if self._by_key.get(session.key) is slot:
                del self._by_key[session.key]

    async def _end_edits(self, slot: SessionSlot, session: Session) -> None:
        if slot.kept:
            self._recovery.leave(session)
        else:
            lost = not (session.closed or self._closing)
            await self._recovery.end(slot.owner, session, lost=lost, apart=slot.is_apart)

    async def _end_record(self, recorder: Recorder, slot: SessionSlot, session: Session) -> None:
        reason: Reason = "sandbox lost"
        if session.closed:
            reason = "closed"
        elif session.expiry.over:
            reason = "expired"
        elif slot.kept:
            reason = "kept"
        elif self._closing:
            reason = "server ended"
        recorder.end(session, reason, await recorder.take_final_patch(session), self.redactor(session))

    async def _ensure_backend(self) -> Backend:
        """The backend, opened at its first use."""
        if self._backend is not None:
            return self._backend
        async with self._locks.hold("backend"):
            backend = self._backend or await self._tasks.start(self._serve_backend)
            self._backend = backend
            return backend

    async def _serve_backend(self, *, task_status: TaskStatus[Backend]) -> None:
        with anyio.CancelScope() as self._backend_scope:
            async with self._open_backend() as backend:
                task_status.started(backend)
                try:
                    await self._look_after(backend)
                finally:
                    # Whatever ends the server: sessions need their backend to be removed.
                    with anyio.move_on_after(CLOSE_S, shield=True):
                        await self._wait_until_gone()
        self._backend_closed.set()

    async def _sweep_at_start(self, has_leftovers: Callable[[], bool]) -> None:
        try:
            if await anyio.to_thread.run_sync(has_leftovers):
                await self._ensure_backend()
        except PdboxError as exc:
            log.info("what earlier servers left was not looked for: %s", exc)

    async def _look_after(self, backend: Backend) -> None:
        """Remove what other servers left, now and at intervals, and show that this one lives."""
        while True:
            await contain("the sweep", self._sweep(backend))
            await contain("the sweep of edits", self._recovery.sweep())
            until = anyio.current_time() + SWEEP_EVERY_S
            while (left_s := until - anyio.current_time()) > 0:
                await anyio.sleep(min(BEAT_S, left_s))
                await contain("the sign of life", backend.beat())

    async def _sweep(self, backend: Backend) -> None:
        try:
            await backend.sweep(self._user)
        except PdboxError as exc:
            log.warning("what earlier servers left was not looked for: %s %s", exc, exc.details)

    async def _wait_until_gone(self) -> None:
        for slot in list(self._slots):
            await slot.gone.wait()

    async def _default_spec(self, backend: Backend) -> SandboxSpec:
        """The sandbox of a session for which the client says nothing."""
        request, policy = await self.requests.complete(SessionRequest())
        source = find_source(request, policy)
        plan = await plan_session(backend, request, source, policy, log.debug)
        return replace(plan.spec, user=self._user, pooled=True)


def new_handle() -> str:
    """A handle of 160 random bits, hexadecimal: base64 could begin with `-`, which command lines take for an option."""
    return secrets.token_hex(20)


@dataclass(frozen=True)
class OwnersSessions:
    """One caller's view of the store, as tools get it."""

    store: SessionStore
    ongoing: Ongoing

    async def open(self, request: SessionRequest, report: Report) -> Session:
        # Known before there is a sandbox: an answer in time tells it.
        now = self.ongoing
        now.handle = request.resume or new_handle()
        session = await self.store.open(now.owner, request, report, now.handle, now.limit_s)
        self.ongoing.opened = session
        logs.note_session(session)
        return session

    async def list_own(self) -> list[OwnSession]:
        return await self.store.list_own(self.ongoing.owner)

    async def close(self, session: Session) -> None:
        await self.store.close(session)

    async def finish(self, session: Session) -> None:
        await self.store.finish(self.ongoing.owner, session)


async def _describe(session: Session) -> OwnSession:
    try:
        info = await session.info()
    except SandboxError as exc:
        return OwnSession(
            session_id=session.handle, state=f"lost: {exc.message}", age_s=0, place=session.sandbox.place
        )
    return OwnSession(
        session_id=session.handle,
        state=info.state,
        age_s=round(info.age_s),
        place=info.place,
        image=info.image,
        isolation=info.isolation,
    )


def _ambiguity(number: int, what: str) -> InvalidArgument:
    return InvalidArgument(
        f"{number} sessions are {what}, so session_id must say which is meant.",
        "`list_sessions` shows them.",
    )


def _resume_notice(found: SandboxInfo) -> str:
    return (
        f"this is the session that was opened for this repository {found.age_s // 60} min ago; it was kept. "
        "`start_session` opens a new one."
    )


def _describe_left_behind(found: SandboxInfo) -> OwnSession:
    return OwnSession(
        session_id=None,
        state="left by another server",
        age_s=found.age_s,
        place=found.place,
        image=found.image,
    )
