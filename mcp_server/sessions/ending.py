"""Ends of sessions: the causes, and the work that is done then.

A session ends when
- its client closes or finishes it (`SessionEnds.close`),
- its time is over, idle or in all (`_until_over`),
- its sandbox is lost (`_until_lost`), or a call finds that it is (`SessionEnds.check`),
- the server ends (`SessionStore.aclose`), which may leave its sandbox to the next server.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

import anyio

from mcp_server.errors import contain
from mcp_server.redaction.redactor import Redactor
from mcp_server.sessions.admission import Admission
from mcp_server.sessions.recovery import EXPIRED, Recovery
from mcp_server.sessions.refusals import START
from mcp_server.sessions.slot import SessionSlot
from mcp_server.sessions.table import SessionTable
from sandbox.errors import (
    NotFound,
    PdboxError,
    ProtocolViolation,
    SandboxError,
    SandboxLost,
    SessionExpired,
)
from sandbox.session.session import Session

if TYPE_CHECKING:
    from mcp_server.trajectories.recorder import Reason, Recorder

log = logging.getLogger(__name__)

LAST_CALL_S = 60.0
"""Time that a call may continue after its session has reached the maximum age."""
IDLE_REPLY_S = 5.0
"""Time in which a guest that is alive replies if it was idle."""
_MAX_SLEEP_S = 3600.0


class SessionEnds:
    """Ends sessions, and does what is left to do then."""

    def __init__(
        self,
        table: SessionTable,
        admission: Admission,
        recovery: Recovery,
        recorder: Recorder | None,
        *,
        redactor: Callable[[Session], Redactor],
        unknown: Callable[[], NotFound],
    ) -> None:
        """
        Args:
            redactor: gives the redactor for the record of a session.
            unknown: gives the refusal of a call whose session has expired.
        """
        self._table = table
        self._admission = admission
        self._recovery = recovery
        self._recorder = recorder
        self._redactor = redactor
        self._unknown = unknown

    async def close(self, session: Session) -> None:
        """End the session and remove its sandbox: calls that it still serves are refused, for the session was closed."""
        session.closed = True
        await self._end(session)

    async def abandon(self, session: Session) -> None:
        """Close the session, but keep its edits: its client has not been shown its changes."""
        session.is_abandoned = True
        await self.close(session)

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
            raise NotFound("The session was closed while this call ran.", START)
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
                raise SandboxLost(f"The session is unusable: {lost.message}", START) from exc

    async def wind_up(self, slot: SessionSlot, session: Session) -> None:
        """Do the last work of a session: its record, its edits, its sandbox."""
        slot.is_over = True
        self._admission.wake()
        if self._recorder is not None:
            await contain("the end of a record", self._end_record(self._recorder, slot, session))
        # First: while its sandbox is removed, a call must find that it was closed, or what it lost.
        await contain("the end of edits", self._end_edits(slot, session))
        if slot.kept:
            await session.disconnect()
        else:
            await session.aclose()

    async def _end(self, session: Session) -> None:
        slot = self._table.find(session.key)
        if slot is not None:
            slot.end()
            await slot.gone.wait()

    async def _end_edits(self, slot: SessionSlot, session: Session) -> None:
        if slot.kept:
            self._recovery.leave(session)
        else:
            lost = session.is_abandoned or not (session.closed or slot.server_ended)
            await self._recovery.end(slot.owner, session, lost=lost, apart=slot.is_apart)

    async def _end_record(self, recorder: Recorder, slot: SessionSlot, session: Session) -> None:
        reason = _reason(slot, session)
        recorder.end(session, reason, await recorder.take_final_patch(session), self._redactor(session))


def _reason(slot: SessionSlot, session: Session) -> Reason:
    if session.closed:
        return "closed"
    if session.expiry.over:
        return "expired"
    if slot.kept:
        return "kept"
    return "server ended" if slot.server_ended else "sandbox lost"


async def wait_for_end(slot: SessionSlot, session: Session) -> None:
    """Wait until somebody ends the session, its time is over, or its sandbox is gone."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_until_over, slot, session)
        tasks.start_soon(_until_lost, slot, session)
        await slot.ending.wait()
        tasks.cancel_scope.cancel()


async def _until_over(slot: SessionSlot, session: Session) -> None:
    clock = session.expiry
    while clock.age_left_s > 0:
        left_s = min(clock.idle_left_s, clock.age_left_s)
        if left_s > 0:
            await anyio.sleep(min(left_s, _MAX_SLEEP_S))
        elif await _end_if_idle(session):
            break
    slot.is_over = clock.over = True
    with anyio.move_on_after(LAST_CALL_S):
        await clock.quiet()
    slot.end()


async def _until_lost(slot: SessionSlot, session: Session) -> None:
    """It is known from the connection's end, without being asked for."""
    lost = await session.lost()
    log.info("session dropped: %s", lost)
    session.expiry.over = session.expiry.over or isinstance(lost, SessionExpired)
    slot.end()


async def _end_if_idle(session: Session) -> bool:
    try:
        with anyio.move_on_after(IDLE_REPLY_S):
            return await session.ended_idle()
    except PdboxError as exc:
        log.info("session dropped: %s", exc)
    return True
