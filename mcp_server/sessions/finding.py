"""Search for the session that a call means: by its handle, or the only one of its owner."""

from __future__ import annotations

import logging
from collections.abc import Callable

from mcp_server.sessions.lazy_backend import LazyBackend
from mcp_server.sessions.opening import Opener
from mcp_server.sessions.recovery import GONE, Recovery
from mcp_server.sessions.refusals import ambiguous
from mcp_server.sessions.requests import Requests
from mcp_server.sessions.table import SessionTable
from sandbox.concurrency import KeyedLocks
from sandbox.errors import NotFound, ProtocolViolation, SandboxLost
from sandbox.opening.request import SessionRequest
from sandbox.session.session import Session, session_key
from sandbox.spec import SandboxInfo

log = logging.getLogger(__name__)


class Finder:
    """Finds sessions that are held here, and adopts those that earlier servers left."""

    def __init__(
        self,
        table: SessionTable,
        opener: Opener,
        backend: LazyBackend,
        requests: Requests,
        recovery: Recovery,
        locks: KeyedLocks,
        *,
        unknown: Callable[[], NotFound],
    ) -> None:
        """
        Args:
            locks: those of the opener.
            unknown: gives the refusal of a handle that is not found.
        """
        self._table = table
        self._opener = opener
        self._backend = backend
        self._requests = requests
        self._recovery = recovery
        self._locks = locks
        self._unknown = unknown

    async def find(self, owner: str, handle: str) -> Session:
        """The session with this handle.

        Raises:
            NotFound: unknown, expired or another's, all with the same text; or lost, with its edits kept.
        """
        key = session_key(handle)
        try:
            # Two calls with the handle of a session to adopt must not adopt it twice.
            async with self._locks.hold(key):
                session = self._get_own(owner, key) or await self._opener.adopt(owner, handle, key)
        except NotFound as exc:
            raise await self._recovery.explain(owner, key, GONE, reopens=False) or exc from None
        session.handle = handle  # not known yet, if it was found without
        return session

    def get_only(self, owner: str) -> Session | None:
        """The only session of `owner` that is open here and has no name.

        Raises:
            InvalidArgument: there are several.
        """
        slots = (self._table.find(session.key) for session in self._table.list_held(owner))
        own = [slot.session for slot in slots if slot is not None and not slot.is_apart]
        if len(own) > 1:
            raise ambiguous(len(own), "open")
        return own[0] if own else None

    async def find_kept(self, owner: str) -> Session | None:
        """The only session of `owner` for our repository that an earlier server kept; None if it can't be taken over.

        Raises:
            InvalidArgument: there are several.
        """
        from sandbox.opening.plan import source_of

        source = source_of((await self._requests.complete(SessionRequest()))[0])
        running = await self._backend.list_running()
        found = [one for one in running if one.kept and (one.owner, one.source) == (owner, source)]
        if len(found) > 1:
            raise ambiguous(len(found), "kept for this repository")
        if not found:
            return None
        (one,) = found
        try:
            # A call with its handle may be taking it over just now.
            async with self._locks.hold(one.key):
                if (session := self._get_own(owner, one.key)) is not None:
                    return session
                session = await self._opener.adopt_found(owner, one, None)
        except (SandboxLost, NotFound):
            return None  # it went meanwhile
        except ProtocolViolation as exc:
            log.warning("A kept session can't be taken over, so a new one opens: %s", exc.message)
            return None
        session.notice = _resume_notice(one)
        return session

    def _get_own(self, owner: str, key: str) -> Session | None:
        slot = self._table.find(key)
        if slot is not None and (slot.owner != owner or slot.is_over):
            raise self._unknown()
        return slot.session if slot is not None else None


def _resume_notice(found: SandboxInfo) -> str:
    return (
        f"this is the session that was opened for this repository {found.age_s // 60} min ago; it was kept. "
        "`start_session` opens a new one."
    )
