"""Admission of new sessions: limits for their number, and the wait for a place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mcp_server.sessions.lazy_backend import LazyBackend
from mcp_server.sessions.places import PlaceQueue, Refusal
from mcp_server.sessions.slot import CLOSING, SessionSlot
from mcp_server.sessions.table import SessionTable
from sandbox.errors import Conflict
from sandbox.spec import Lifetime, SandboxInfo
from tools._tool import Report

_FULL = "`list_sessions` shows yours; `close_session` ends one."
_FULL_OF_KEPT = "`close_session` ends one; those of earlier servers end {:.0f} min after their last call."
MAX_PER_MACHINE = 100
"""Sandboxes of one user that may run at once, of all servers; for servers whose sessions outlive them."""


@dataclass(frozen=True)
class SessionLimits:
    """Limits for the number of sessions."""

    total: int
    each: int | None = None
    """Of one owner; None: as many as in total."""
    machine: int = MAX_PER_MACHINE
    """Of all servers of this user, where sessions are kept; never less than `total`."""


class Admission:
    """Gives new sessions their places in the table, as long as there are some."""

    def __init__(
        self,
        table: SessionTable,
        backend: LazyBackend,
        allowed: SessionLimits,
        lifetime: Lifetime,
        queue_s: float,
    ) -> None:
        """
        Args:
            queue_s: seconds that a new session waits for a place, if there are as many as there may be.
        """
        self._table = table
        self._backend = backend
        self._allowed = allowed
        self._lifetime = lifetime
        self._queue_s = queue_s
        self._queue = PlaceQueue()
        self._closed = False

    async def wait_for_place(self, slot: SessionSlot, report: Report, within_s: float | None) -> None:
        """Give a new session a place, or have it wait for one, `within_s` seconds at most.

        Raises:
            Conflict: there are as many as there may be, and none ended in time.
        """
        keep = self._lifetime.kept
        foreign = list(await self.list_foreign()) if keep else []

        async def refresh() -> None:
            foreign[:] = await self.list_foreign()

        await self._queue.take(
            slot.owner,
            lambda: self._take(slot, foreign),
            within_s=self._queue_s if within_s is None else min(self._queue_s, within_s),
            report=report,
            refresh=refresh if keep else None,
        )

    def admit_adopted(self, slot: SessionSlot) -> None:
        """Give a place to a session whose sandbox is running already.

        Raises:
            Conflict: this server holds as many as it may.
        """
        if (refusal := self._take(slot, ())) is not None:
            raise refusal.error

    def remove(self, slot: SessionSlot) -> None:
        """Free the place of a session that is gone, or that could not be opened."""
        self._table.remove(slot)
        self.wake()

    def wake(self) -> None:
        """Give free places to those that wait: a session has ended."""
        self._queue.wake()

    def close(self) -> None:
        """Admit none any more: the server ends."""
        self._closed = True
        self._queue.refuse_all(CLOSING)

    async def list_foreign(self) -> Sequence[SandboxInfo]:
        """Sessions of this server's user that it neither holds nor is about to."""
        running = await self._backend.list_running()
        own = {slot.key for slot in self._table}
        return [one for one in running if one.key not in own]

    def _take(self, slot: SessionSlot, foreign: Sequence[SandboxInfo]) -> Refusal | None:
        if self._closed:
            raise CLOSING
        refusal = self._find_refusal(slot.owner, foreign)
        if refusal is None:
            self._table.add(slot)
        return refusal

    def _find_refusal(self, owner: str, foreign: Sequence[SandboxInfo]) -> Refusal | None:
        """Return why `owner` can have no further session now. One counts from the request for it until its time is over.

        Of the `foreign`, those of the owner count that were left for a later server. Others are limited by the
        server that holds them.
        """
        owners = [slot.owner for slot in self._table if not slot.is_over]
        running = len(owners) + len(foreign)
        kept = [one for one in foreign if one.kept and one.owner == owner]
        hint = _FULL_OF_KEPT.format(self._lifetime.idle_s / 60) if kept else _FULL
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
