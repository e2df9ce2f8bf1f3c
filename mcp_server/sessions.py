"""The sessions of this server: opened by handle, found again by handle, closed with the server."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Self

import anyio
from anyio.abc import TaskGroup, TaskStatus

from mcp_server import logs
from mcp_server.redaction import Redactor
from sandbox.base import Backend, Found
from sandbox.errors import Conflict, InvalidArgument, NotFound, PdboxError, SandboxError, SandboxLost
from sandbox.opening import Policy, SessionRequest, adopt_session, open_session
from sandbox.session import Session, SessionInfo, session_key
from tools._tool import OwnSession, Report

log = logging.getLogger(__name__)

CLOSE_S = 1.8
"""How long closing all sessions may take. Clients kill a server 2 s after they closed its stdin."""

_CLOSING = Conflict("The server is closing.")
_UNKNOWN = ("This session_id is unknown or has expired.", "`start_session` opens a new session.")


@dataclass(eq=False)
class _Place:
    """Where one session lives, from the moment it is asked for until its sandbox is removed."""

    owner: str
    session: Session | None = None
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    leave: anyio.Event = field(default_factory=anyio.Event)
    gone: anyio.Event = field(default_factory=anyio.Event)


@dataclass
class _Lock:
    lock: anyio.Lock = field(default_factory=lambda: anyio.Lock(fast_acquire=True))
    users: int = 0


Make = Callable[[Backend, TaskGroup], Awaitable[Session]]


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
        max_sessions: int,
        default_session: bool,
        redact: bool = True,
    ) -> None:
        """`default_session`: a caller without any session gets one for `defaults.repo` (one client a server: stdio).

        `redact`: mask what looks like a secret.
        """
        self._redact = redact
        self._open_backend = backend
        self._policy = policy
        self._defaults = defaults
        self._max_sessions = max_sessions
        self._default_session = default_session
        self._backend: Backend | None = None
        self._places: set[_Place] = set()
        self._held: dict[str, _Place] = {}
        self._locks: dict[str, _Lock] = {}
        self._closing = False

    async def __aenter__(self) -> Self:
        self._tasks = await anyio.create_task_group().__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        with anyio.CancelScope(shield=True):
            await self.aclose()
        self._tasks.cancel_scope.cancel()
        await self._tasks.__aexit__(None, None, None)

    async def aclose(self) -> None:
        """Close every session, within `CLOSE_S`."""
        self._closing = True
        with anyio.move_on_after(CLOSE_S) as deadline:
            for place in self._places:
                place.leave.set()
                if place.session is None:
                    place.scope.cancel()
            await self._all_gone()
        if deadline.cancelled_caught:
            log.error("%d sandboxes were not removed in time; they end by themselves", len(self._places))

    def redactor(self, session: Session | None = None) -> Redactor:
        """What masks the secrets in text about `session`, those of the operator's settings included."""
        redactor = Redactor(self._redact)
        redactor.learn(self._defaults.env)
        if session is not None:
            redactor.learn(session.memory.env)
            redactor.learn(session.sandbox.environ)
        return redactor

    async def open(self, owner: str, request: SessionRequest, report: Report) -> Session:
        """Open a session of `owner`; what `request` leaves out is as the operator configured it.

        Raises:
            Conflict: there are as many as there may be.
            PdboxError: what `open_session` raises.
        """
        handle = secrets.token_urlsafe(24)

        async def make(backend: Backend, tasks: TaskGroup) -> Session:
            return await open_session(
                backend, self._completed(request), self._policy, handle, owner, report, tasks
            )

        return await self._placed(owner, make)

    async def get(self, owner: str, handle: str | None, report: Report) -> Session:
        """The session of that handle; without one, the only session of `owner`.

        Raises:
            NotFound: unknown, expired or another's, all with the same text.
            InvalidArgument: no handle, and none or several sessions.
        """
        if handle is None:
            return await self._only(owner, report)
        key = session_key(handle)
        # Two calls with the handle of a session to adopt must not adopt it twice.
        async with self._locked(key):
            return self._of(owner, key) or await self._adopt(owner, handle, key)

    async def listed(self, owner: str) -> list[OwnSession]:
        """Sessions of `owner`: those held here, and those that other servers left."""
        own = [await _described(session) for session in self.held(owner)]
        backend = await self._opened()
        strange = [one for one in await backend.find(owner) if one.key not in self._held]
        return [*own, *map(_left, sorted(strange, key=lambda one: one.created))]

    def held(self, owner: str) -> list[Session]:
        """Sessions of `owner` that are open here, at once; the oldest first."""
        return [
            place.session
            for place in self._held.values()
            if place.owner == owner and place.session is not None
        ]

    async def close(self, session: Session) -> None:
        """End the session and remove its sandbox."""
        place = self._held.pop(session.key, None)
        if place is not None:
            place.leave.set()
            await place.gone.wait()

    async def check(self, session: Session) -> None:
        """Drop the session if its sandbox is really gone, rather than one connection to it."""
        try:
            await session.connect()
        except SandboxLost as exc:
            log.info("session dropped: %s", exc)
            await self.close(session)

    async def probe(self) -> str:
        """One line on the backend, if it answers.

        Raises:
            BackendUnavailable: it doesn't.
        """
        return await (await self._opened()).probe()

    async def _only(self, owner: str, report: Report) -> Session:
        if not self._default_session:
            raise InvalidArgument("Which session? session_id is missing.", "`start_session` gives one.")
        async with self._locked(f"only {owner}"):
            own = self.held(owner)
            if len(own) > 1:
                raise InvalidArgument(
                    f"{len(own)} sessions are open, so session_id must say which is meant.",
                    "`list_sessions` shows them.",
                )
            if own:
                return own[0]
            if self._defaults.repo is None:
                raise InvalidArgument("There is no session yet.", "`start_session` with `repo` opens one.")
            return await self.open(owner, SessionRequest(), report)

    def _of(self, owner: str, key: str) -> Session | None:
        place = self._held.get(key)
        if place is not None and place.owner != owner:
            raise NotFound(*_UNKNOWN)
        return place.session if place is not None else None

    async def _adopt(self, owner: str, handle: str, key: str) -> Session:
        found = await (await self._opened()).find(owner, key)
        if not found:
            raise NotFound(*_UNKNOWN)

        async def make(backend: Backend, tasks: TaskGroup) -> Session:
            return await adopt_session(backend, found[0], handle, tasks)

        try:
            return await self._placed(owner, make)
        except SandboxLost as exc:
            raise NotFound(*_UNKNOWN) from exc

    async def _placed(self, owner: str, make: Make) -> Session:
        if self._closing:
            raise _CLOSING
        if len(self._places) >= self._max_sessions:
            raise Conflict(
                f"{self._max_sessions} sessions are open, and there may be no more.",
                "`list_sessions` shows yours; `close_session` ends one.",
            )
        place = _Place(owner)
        self._places.add(place)
        try:
            return await self._tasks.start(self._live, place, make)
        finally:
            if place.session is None:
                # Its task may have ended before its first step.
                self._places.discard(place)

    async def _live(self, place: _Place, make: Make, *, task_status: TaskStatus[Session]) -> None:
        """One session from opening to closing."""
        failure: PdboxError | None = None
        try:
            backend = await self._opened()
            with place.scope:
                async with anyio.create_task_group() as tasks:
                    try:
                        place.session = await make(backend, tasks)
                    except PdboxError as exc:
                        failure = exc  # raised outside of the group, which would wrap it
                    else:
                        await self._hold(place, place.session, task_status)
                    tasks.cancel_scope.cancel()
        except ExceptionGroup as group:
            if place.session is None:
                raise
            # A fault of ours in one session, which must not end the others.
            log.error("a session failed", exc_info=group)
        finally:
            self._places.discard(place)
            place.gone.set()
        if failure is not None or place.session is None:
            raise failure or _CLOSING

    async def _hold(self, place: _Place, session: Session, task_status: TaskStatus[Session]) -> None:
        self._held[session.key] = place
        try:
            task_status.started(session)
            await place.leave.wait()
        finally:
            if self._held.get(session.key) is place:
                del self._held[session.key]
            with anyio.CancelScope(shield=True):
                await session.aclose()

    async def _opened(self) -> Backend:
        """The backend, opened at its first use."""
        async with self._locked("backend"):
            backend = self._backend or await self._tasks.start(self._serve_backend)
            self._backend = backend
            return backend

    async def _serve_backend(self, *, task_status: TaskStatus[Backend]) -> None:
        async with self._open_backend() as backend:
            task_status.started(backend)
            try:
                await anyio.sleep_forever()
            finally:
                # Whatever ends the server: sessions need their backend to be removed.
                with anyio.move_on_after(CLOSE_S, shield=True):
                    await self._all_gone()

    async def _all_gone(self) -> None:
        for place in list(self._places):
            await place.gone.wait()

    def _completed(self, request: SessionRequest) -> SessionRequest:
        ours = self._defaults
        return replace(
            request,
            repo=request.repo or ours.repo,
            ref=request.ref or (ours.ref if request.repo in (None, ours.repo) else None),
            image=request.image or ours.image,
            python=request.python or ours.python,
            entrypoint=request.entrypoint or ours.entrypoint,
            debug_entrypoint=request.debug_entrypoint or ours.debug_entrypoint,
            setup=ours.setup if request.setup is None else request.setup,
            env={**ours.env, **request.env},
        )

    @asynccontextmanager
    async def _locked(self, key: str) -> AsyncGenerator[None]:
        entry = self._locks.setdefault(key, _Lock())
        entry.users += 1
        try:
            async with entry.lock:
                yield
        finally:
            entry.users -= 1
            if not entry.users:
                del self._locks[key]


@dataclass(frozen=True)
class OwnersSessions:
    """One caller's view of the store, as tools get it."""

    store: SessionStore
    owner: str

    async def open(self, request: SessionRequest, report: Report) -> Session:
        session = await self.store.open(self.owner, request, report)
        logs.about(session)
        return session

    async def info(self, session: Session) -> SessionInfo:
        return await session.info()

    async def listed(self) -> list[OwnSession]:
        return await self.store.listed(self.owner)

    async def close(self, session: Session) -> None:
        await self.store.close(session)


async def _described(session: Session) -> OwnSession:
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


def _left(found: Found) -> OwnSession:
    age_s = max(0, round(time.time() - found.created))
    return OwnSession(
        session_id=None, state="left by another server", age_s=age_s, place=found.place, image=found.image
    )
