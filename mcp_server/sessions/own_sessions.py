"""Sessions of one caller, as tools get them."""

from __future__ import annotations

from dataclasses import dataclass

from mcp_server.observability import logs
from mcp_server.sessions.opening import new_handle
from mcp_server.sessions.store import SessionStore
from mcp_server.trajectories.recent import Ongoing
from sandbox.opening.request import SessionRequest
from sandbox.session.session import Session
from tools._tool import OwnSession, Report


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

    async def abandon(self, session: Session, reason: str) -> str:
        now = self.ongoing
        return await self.store.abandon(now.owner, session, reason, by_handle=now.handle is not None)

    async def finish(self, session: Session) -> None:
        await self.store.finish(self.ongoing.owner, session)
