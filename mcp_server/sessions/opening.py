"""Opening of sessions: new ones, lost ones again with their edits, and those that earlier servers left."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import anyio
from anyio.abc import TaskGroup

from mcp_server.sessions.kept_edits import Kept, Opened
from mcp_server.sessions.lazy_backend import LazyBackend
from mcp_server.sessions.pool import Pool
from mcp_server.sessions.recovery import Recovery
from mcp_server.sessions.refusals import START
from mcp_server.sessions.requests import Requests
from mcp_server.sessions.running import SessionRunner
from mcp_server.sessions.table import SessionTable
from sandbox.backend import Backend
from sandbox.concurrency import KeyedLocks
from sandbox.errors import Conflict, InvalidArgument, NotFound, ProtocolViolation, SandboxLost
from sandbox.opening.request import SessionRequest
from sandbox.session.session import Session, session_key
from sandbox.spec import Identity, SandboxInfo, SandboxSpec
from tools._tool import Report

if TYPE_CHECKING:
    from mcp_server.trajectories.recorder import Recorder

log = logging.getLogger(__name__)

_NOTHING_KEPT = (
    "No edits of such a session are kept: the session_id is unknown, or was closed, or is too old."
)


class Opener:
    """Opens sessions, which the runner then runs."""

    def __init__(
        self,
        runner: SessionRunner,
        table: SessionTable,
        backend: LazyBackend,
        requests: Requests,
        recovery: Recovery,
        pool: Pool,
        recorder: Recorder | None,
        locks: KeyedLocks,
        *,
        user: str,
        unknown: Callable[[], NotFound],
    ) -> None:
        """
        Args:
            locks: one for the key of each session that is looked for: no two calls may adopt the same.
            user: a hash of the user that the server runs as.
            unknown: gives the refusal of a handle for which there is no sandbox.
        """
        self._runner = runner
        self._table = table
        self._backend = backend
        self._requests = requests
        self._recovery = recovery
        self._pool = pool
        self._recorder = recorder
        self._locks = locks
        self._user = user
        self._unknown = unknown

    async def open(
        self,
        owner: str,
        request: SessionRequest,
        report: Report,
        handle: str,
        within_s: float | None,
        kept: Kept | None = None,
    ) -> Session:
        """Open a session in a new sandbox, with the edits that are `kept`.

        Raises:
            Conflict: there is no place for it, and none became free in time.
            PdboxError: what `open_session` raises.
        """
        from sandbox.opening.open import open_session  # a server starts without all that opens sessions
        from sandbox.opening.plan import source_of

        identity = Identity(handle, owner, self._user)
        completed, policy = await self._requests.complete(request)
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
            session.task = self._requests.task_of(request)
            if completed.in_place:
                session.notice = f"isolation: {session.sandbox.isolation}"
            if self._recorder is not None:
                self._recorder.note_request(session, completed)
            return session

        try:
            return await self._runner.start_new(owner, session_key(handle), make, report, within_s)
        finally:
            self._pool.refill()

    async def resume(
        self, owner: str, request: SessionRequest, report: Report, within_s: float | None
    ) -> Session:
        """Open the lost session that `request` names again, with its edits.

        Raises:
            NotFound: no edits of it are kept.
            Conflict: it is still there; or as `open` does.
        """
        handle = request.resume or ""
        key = session_key(handle)
        async with self._locks.hold(key):
            kept = await self._recovery.load(owner, key)
            if kept is None:
                raise NotFound(_NOTHING_KEPT, START)
            if await self._is_alive(owner, handle, key):
                raise Conflict(
                    "This session is still there, with all its edits.", "Go on with its session_id."
                )
            return await self.open(owner, kept.opened.merge(request), report, handle, within_s, kept)

    async def reopen(
        self, owner: str, request: SessionRequest, report: Report, handle: str, within_s: float | None
    ) -> Session:
        """Open a session with a handle that had one: with its edits if it was lost, else anew.

        Raises:
            PdboxError: as `open` does.
        """
        if await self._recovery.load(owner, session_key(handle)) is None:
            return await self.open(owner, request, report, handle, within_s)
        return await self.resume(owner, replace(request, resume=handle), report, within_s)

    async def adopt(self, owner: str, handle: str, key: str) -> Session:
        """Take over the session with this handle from the server that held it.

        Raises:
            NotFound: it has no sandbox, or one that breaks the protocol.
        """
        found = await (await self._backend.get()).find(owner, key)
        if not found:
            raise self._unknown()
        try:
            return await self.adopt_found(owner, found[0], handle)
        except SandboxLost as exc:
            raise self._unknown() from exc
        except ProtocolViolation as exc:
            raise NotFound(f"The session can't be taken over: {exc.message}", exc.hint or START) from exc

    async def adopt_found(self, owner: str, found: SandboxInfo, handle: str | None) -> Session:
        """Take over the session in this sandbox.

        Raises:
            SandboxLost: it is gone. ProtocolViolation: it breaks the protocol.
        """

        from sandbox.opening.open import adopt_session

        async def make(backend: Backend, tasks: TaskGroup) -> Session:
            lifetime = self._requests.policy.lifetime
            session = await adopt_session(backend, found, handle, lifetime, tasks)
            await self._recovery.follow(found.owner, session)
            return session

        return await self._runner.start_adopted(owner, found.key, make)

    async def _is_alive(self, owner: str, handle: str, key: str) -> bool:
        """Look for a sandbox that answers. One that doesn't is removed: there must not be two of one key."""
        slot = self._table.find(key)
        if slot is not None and not slot.is_over:
            return True
        if slot is not None:
            await slot.gone.wait()
        try:
            await self.adopt(owner, handle, key)
            return True
        except NotFound:
            backend = await self._backend.get()
            for one in await backend.find(owner, key):
                await backend.remove(one)
            return False


async def plan_default(requests: Requests, user: str, backend: Backend) -> SandboxSpec:
    """Plan the sandbox of a session for which the client says nothing, for the pool."""
    from sandbox.opening.plan import find_source, plan_session

    request, policy = await requests.complete(SessionRequest())
    source = find_source(request, policy)
    plan = await plan_session(backend, request, source, policy, log.debug)
    return replace(plan.spec, user=user, pooled=True)


def new_handle() -> str:
    """A handle of 160 random bits, hexadecimal: base64 could begin with `-`, which command lines take for an option."""
    return secrets.token_hex(20)
