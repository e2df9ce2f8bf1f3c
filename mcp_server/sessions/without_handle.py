"""The session that a call without a handle means: the only one of its owner, which is opened if there is none."""

from __future__ import annotations

from mcp_server.sessions import refusals
from mcp_server.sessions.finding import Finder
from mcp_server.sessions.opening import Opener, new_handle
from mcp_server.sessions.recovery import GONE, Recovery
from mcp_server.sessions.requests import Requests
from mcp_server.sessions.scores import Scores
from mcp_server.sessions.table import SessionTable
from sandbox.concurrency import KeyedLocks
from sandbox.errors import InvalidArgument
from sandbox.opening.request import SessionRequest
from sandbox.session.session import Session, session_key
from tools._tool import Report


class SessionWithoutHandle:
    """Finds or opens the session of calls without a handle."""

    def __init__(
        self,
        table: SessionTable,
        opener: Opener,
        finder: Finder,
        requests: Requests,
        recovery: Recovery,
        scores: Scores,
        locks: KeyedLocks,
        *,
        opens: bool,
        keeps: bool,
        user: str,
    ) -> None:
        """
        Args:
            opens: a caller without any session gets one for our repository (one client a server: stdio).
            keeps: sessions outlive the server.
            user: a hash of the user that the server runs as.
        """
        self._table = table
        self._opener = opener
        self._finder = finder
        self._requests = requests
        self._recovery = recovery
        self._scores = scores
        self._locks = locks
        self._opens = opens
        self._keeps = keeps
        self._user = user

    def is_clear(self, owner: str) -> bool:
        """True if a call of `owner` without a handle means its only session: clients of that owner are no others."""
        return self._opens or owner != self._user

    def opens_anew(self, owner: str) -> bool:
        """True if a call opens a session, though earlier servers may have had some for it."""
        return self.may_be_per_call() and not self._recovery.lost_handles(owner)

    def may_be_per_call(self) -> bool:
        """True for a server for one client that has had no session yet: the client may start one for each call."""
        return self._opens and not self._keeps and not self._table.had_sessions

    @property
    def is_for_next_server(self) -> bool:
        """True if sessions of the one client are kept for later servers of it: it may start one for each call."""
        return self._opens and self._keeps

    async def find(self, owner: str, report: Report, within_s: float | None) -> Session:
        """The only session of `owner`: open here, lost with its edits kept, kept by an earlier server, or a new one.

        Raises:
            InvalidArgument: there is none and none is opened, or there are several.
            PdboxError: as `open` does.
        """
        if (session := self._get_open(owner)) is not None:
            return session
        if not self._opens:
            await self._refuse(owner)
        async with self._locks.hold(f"only {owner}"):
            if (session := self._get_open(owner)) is not None:
                return session
            for slot in [one for one in self._table if one.owner == owner and one.is_over]:
                await slot.gone.wait()
            return await self._make(owner, report, within_s)

    async def _make(self, owner: str, report: Report, within_s: float | None) -> Session:
        request, lost = SessionRequest(), self._recovery.lost_handles(owner)
        if len(lost) > 1:
            raise refusals.ambiguous(len(lost), "lost")
        if lost:
            return await self._opener.reopen(owner, request, report, lost[0], within_s)
        if not self._requests.has_default:
            raise InvalidArgument("There is no session yet.", "`start_session` with `repo` opens one.")
        if self._scores.has_finished(owner):
            raise refusals.FINISHED
        kept = await self._finder.find_kept(owner) if self._keeps else None
        return kept or await self._opener.open(owner, request, report, new_handle(), within_s)

    def _get_open(self, owner: str) -> Session | None:
        return self._finder.get_only(owner) if self.is_clear(owner) else None

    async def _refuse(self, owner: str) -> None:
        """Raise the reason why a call of `owner` needs a handle."""
        lost = self._recovery.lost_handles(owner) if self.is_clear(owner) else []
        key = session_key(lost[0]) if len(lost) == 1 else ""
        if told := await self._recovery.explain(owner, key, GONE, reopens=False):
            raise told
        raise InvalidArgument("Which session? session_id is missing.", "`start_session` gives one.")
