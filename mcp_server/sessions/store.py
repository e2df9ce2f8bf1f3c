"""The sessions of this server: opened by handle, found again by handle, closed with the server.

`SessionStore` composes the parts: requests (requests.py) are admitted (admission.py), opened (opening.py) and run
(running.py) until they end (ending.py); calls find them in the table (finding.py, without_handle.py, table.py).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import anyio

from mcp_server.redaction.redactor import Redactor
from mcp_server.sessions import refusals
from mcp_server.sessions.admission import Admission, SessionLimits
from mcp_server.sessions.ending import SessionEnds
from mcp_server.sessions.finding import Finder
from mcp_server.sessions.kept_edits import KeptEdits
from mcp_server.sessions.lazy_backend import LazyBackend
from mcp_server.sessions.listing import describe, describe_left_behind
from mcp_server.sessions.opening import Opener, new_handle, plan_default
from mcp_server.sessions.pool import Pool
from mcp_server.sessions.recovery import Recovery
from mcp_server.sessions.requests import FindTask, Requests
from mcp_server.sessions.running import SessionRunner
from mcp_server.sessions.scores import Scores
from mcp_server.sessions.slot import CLOSE_S
from mcp_server.sessions.table import SessionTable
from mcp_server.sessions.without_handle import SessionWithoutHandle
from sandbox.backend import Backend
from sandbox.concurrency import KeyedLocks
from sandbox.errors import NotFound, SandboxError
from sandbox.opening.policy import Policy
from sandbox.opening.request import SessionRequest
from sandbox.session.session import Session, session_key
from tools._tool import OwnSession, Report, ignore_progress

if TYPE_CHECKING:
    from mcp_server.tasks.scoring import Verdict
    from mcp_server.trajectories.recorder import Recorder

log = logging.getLogger(__name__)


class SessionStore:
    """Every session this server holds. `async with` it: leaving closes them all."""

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
        self.requests = Requests(defaults, policy, find_task)
        """Of clients for sessions."""
        self._allowed = allowed
        self._queue_s = queue_s
        self.default_session = default_session
        self._user = user
        self._pool_size = pool
        self._has_leftovers = has_leftovers
        self.recorder = recorder
        self._recovery = Recovery(edits)
        self._lifetime = policy.lifetime
        self._table = SessionTable()
        self._locks = KeyedLocks()
        self._closing = False

    async def __aenter__(self) -> Self:
        self._tasks = await anyio.create_task_group().__aenter__()
        self._compose()
        return self

    def _compose(self) -> None:
        """Make the parts that run tasks, each of those before it."""
        table, requests, recovery, locks = self._table, self.requests, self._recovery, self._locks
        recorder, user, tasks = self.recorder, self._user, self._tasks
        backend = self._backend = LazyBackend(
            self._open_backend,
            user,
            tasks,
            sweep_edits=recovery.sweep,
            wait_until_gone=table.wait_until_gone,
        )
        self.scores = Scores(backend.get, requests, user, recorder, self.spawn)
        self._pool = Pool(self._pool_size, backend.get, partial(plan_default, requests, user), tasks)
        self._admission = Admission(table, backend, self._allowed, self._lifetime, self._queue_s)
        self._ends = SessionEnds(
            table, self._admission, recovery, recorder, redactor=self.redactor, unknown=self._unknown
        )
        runner = SessionRunner(tasks, backend, table, self._admission, self._ends, recorder)
        self._opener = Opener(
            runner,
            table,
            backend,
            requests,
            recovery,
            self._pool,
            recorder,
            locks,
            user=user,
            unknown=self._unknown,
        )
        self._finder = Finder(table, self._opener, backend, requests, recovery, locks, unknown=self._unknown)
        self._without_handle = SessionWithoutHandle(
            table,
            self._opener,
            self._finder,
            requests,
            recovery,
            self.scores,
            locks,
            opens=self.default_session,
            keeps=self._lifetime.kept,
            user=user,
        )

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
            self._tasks.start_soon(self._backend.open_if_needed, self._has_leftovers)
            self._has_leftovers = None

    async def aclose(self) -> None:
        """Close every session, or leave those that are to be kept, within `CLOSE_S`."""
        self._closing = True
        self._admission.close()
        self.scores.cancel()
        with anyio.move_on_after(CLOSE_S) as deadline:
            for slot in self._table:
                slot.end_with_server(keep=self._lifetime.kept)
            await self._pool.aclose()
            await self._table.wait_until_gone()
            await self.scores.wait_until_gone()
            await self._backend.aclose()
            if self.recorder is not None:
                await self.recorder.aclose()
        if deadline.cancelled_caught and len(self._table):
            log.error("%d sandboxes were not removed in time; they end by themselves", len(self._table))

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
            session = await self._opener.resume(owner, request, report, within_s)
            session.notice = ""  # `info` has it, too
            return session
        return await self._opener.open(owner, request, report, handle or new_handle(), within_s)

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
        return await self._opener.reopen(owner, request, report, handle, within_s)

    async def forget(self, owner: str, handle: str) -> None:
        """Remove the edits of a session that was lost: its client wants it no more."""
        await self._recovery.forget(owner, session_key(handle))

    async def get(
        self, owner: str, handle: str | None, report: Report, within_s: float | None = None
    ) -> Session:
        """The session of that handle; without one, the only session of `owner`, which is opened if there is none.

        Raises:
            NotFound: unknown, expired or another's, all with the same text.
            InvalidArgument: no handle, and none or several sessions.
        """
        session = await (
            self._without_handle.find(owner, report, within_s)
            if handle is None
            else self._finder.find(owner, handle)
        )
        session.expiry.touch()
        return session

    async def list_own(self, owner: str) -> list[OwnSession]:
        """Sessions of `owner`: those held here, and those that other servers left."""
        own = [await describe(session) for session in self.list_held(owner)]
        strange = [one for one in await self._admission.list_foreign() if one.owner == owner]
        return [*own, *map(describe_left_behind, sorted(strange, key=lambda one: -one.created))]

    def may_omit_handle(self, owner: str) -> bool:
        """True if a call of `owner` without a handle means its only session: clients of that owner are no others."""
        return self._without_handle.is_clear(owner)

    def opens_anew(self, owner: str) -> bool:
        """True if a call without a handle opens a session, though earlier servers may have had some for it."""
        return self._without_handle.opens_anew(owner)

    @property
    def is_for_next_server(self) -> bool:
        """True if sessions of the one client are kept for later servers of it: it may start one for each call."""
        return self._without_handle.is_for_next_server

    def set_apart(self, session: Session) -> None:
        """Have no call without a handle mean this session: its clients name it in another way."""
        if (slot := self._table.find(session.key)) is not None:
            slot.is_apart = True

    async def wait_until_gone(self, handle: str) -> None:
        """Wait until a session that has ended is removed."""
        if (slot := self._table.find(session_key(handle))) is not None and slot.is_over:
            await slot.gone.wait()

    @property
    def opens_by_itself(self) -> bool:
        """True if the first call of a client opens a session."""
        return self.default_session and self.requests.has_default

    def list_held(self, owner: str) -> list[Session]:
        """Sessions of `owner` that are open here, at once; the oldest first."""
        return self._table.list_held(owner)

    def is_holding(self, session: Session) -> bool:
        """True if calls still reach this session here."""
        return self._table.is_holding(session)

    async def close(self, session: Session) -> None:
        """End the session and remove its sandbox: calls that it still serves are refused, for the session was closed."""
        await self._ends.close(session)

    async def abandon(self, owner: str, session: Session, reason: str, *, by_handle: bool) -> str:
        """End a session whose sandbox answers no more, and keep its edits as those of a lost one.

        Args:
            reason: why its changes can't be read.
            by_handle: the call that ends it named it by its handle.

        Returns:
            The reason, with the edits that are kept and the way to get them.
        """
        slot = self._table.find(session.key)
        reopens = not by_handle and (self.default_session or (slot is not None and slot.is_apart))
        await self._ends.abandon(session)
        told = await self._recovery.explain(owner, session.key, reason, reopens=reopens)
        return reason if told is None else str(told)

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
            raise refusals.FINISHED

    async def check(
        self, owner: str, session: Session, lost: SandboxError | None = None, *, reopens: bool = False
    ) -> None:
        """Drop the session if its sandbox is really gone.

        Raises:
            NotFound, SandboxLost: as `SessionEnds.check` does, which has the arguments.
        """
        await self._ends.check(owner, session, lost, reopens=reopens)

    async def probe(self) -> str:
        """One line on the backend, if it answers.

        Raises:
            BackendUnavailable: it doesn't.
        """
        return await (await self._backend.get()).probe()

    def _unknown(self) -> NotFound:
        return refusals.unknown(per_call=self._without_handle.may_be_per_call())
