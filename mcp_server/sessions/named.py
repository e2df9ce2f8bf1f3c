"""Sessions that clients name in the URL of a connection, or in a header: opened by the first call, ended by HTTP DELETE."""

from __future__ import annotations

import hashlib
from collections import OrderedDict

from mcp_server.sessions.store import SessionStore
from sandbox.concurrency import KeyedLocks
from sandbox.errors import NotFound
from sandbox.opening.request import SessionRequest
from sandbox.session.session import Session, session_key
from tools._tool import Report, ignore_progress

_MAX_REMEMBERED = 10_000
_ANEW = "the session of this name had ended, and its changes with it; this is a new one."


def handle_of(owner: str, name: str) -> str:
    """The handle of the session that `owner` calls `name`: the same in each server, so that a kept one is found again."""
    return hashlib.sha256(f"pdbox session {owner} {name}".encode()).hexdigest()[:40]


class NamedSessions:
    """The sessions of a store that have names."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._locks = KeyedLocks()
        self._opened: OrderedDict[str, None] = OrderedDict()
        """Handles of those that were opened here and not ended by a client, the oldest first."""

    async def get(
        self,
        owner: str,
        name: str,
        request: SessionRequest,
        report: Report,
        within_s: float | None = None,
    ) -> Session:
        """The session that `owner` calls `name`; opened as `request` says if there is none.

        Raises:
            PdboxError: it can't be opened.
        """
        handle = handle_of(owner, name)
        async with self._locks.hold(handle):
            try:
                session = await self._store.get(owner, handle, report)
            except NotFound:
                self._store.check_unfinished(session_key(handle))
                await self._store.wait_until_gone(handle)
                session = await self._store.reopen(owner, request, report, handle, within_s)
                session.notice = session.notice or (_ANEW if handle in self._opened else "")
        self._store.set_apart(session)
        self._opened[handle] = None
        if len(self._opened) > _MAX_REMEMBERED:
            self._opened.popitem(last=False)
        return session

    async def end(self, owner: str, name: str) -> bool:
        """Close the session that `owner` calls `name`; False if there is none."""
        handle = handle_of(owner, name)
        async with self._locks.hold(handle):
            self._opened.pop(handle, None)
            try:
                await self._store.close(await self._store.get(owner, handle, ignore_progress))
            except NotFound:
                await self._store.forget(owner, handle)
                return False
        return True
