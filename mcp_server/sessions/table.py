"""The sessions that this server holds, and those that it is opening."""

from __future__ import annotations

from collections.abc import Iterator

from mcp_server.sessions.slot import SessionSlot
from sandbox.session.session import Session


class SessionTable:
    """Slots of all sessions, from the request for one until its sandbox is removed; open ones by their keys."""

    def __init__(self) -> None:
        self._slots: set[SessionSlot] = set()
        self._open: dict[str, SessionSlot] = {}
        self.had_sessions = False
        """True once a session was open."""

    def __iter__(self) -> Iterator[SessionSlot]:
        return iter(tuple(self._slots))

    def __len__(self) -> int:
        return len(self._slots)

    def add(self, slot: SessionSlot) -> None:
        """Count a session from now on."""
        self._slots.add(slot)

    def remove(self, slot: SessionSlot) -> None:
        """Count it no more: its sandbox is gone, or there was none."""
        self._slots.discard(slot)
        slot.gone.set()

    def publish(self, slot: SessionSlot, session: Session) -> None:
        """Let calls find an open session."""
        self._open[session.key] = slot
        self.had_sessions = True

    def withdraw(self, slot: SessionSlot, session: Session) -> None:
        """Let no call find it any more, so that its key is free."""
        if self._open.get(session.key) is slot:
            del self._open[session.key]

    def find(self, key: str) -> SessionSlot | None:
        """The slot of the session with this key, if it is open, or over and not removed yet."""
        return self._open.get(key)

    def list_held(self, owner: str) -> list[Session]:
        """Sessions of `owner` that are open here, at once; the oldest first."""
        return [
            slot.session
            for slot in self._open.values()
            if slot.owner == owner and slot.session is not None and not slot.is_over
        ]

    def is_holding(self, session: Session) -> bool:
        """True if calls still reach this session here."""
        slot = self._open.get(session.key)
        return slot is not None and slot.session is session and not slot.is_over

    async def wait_until_gone(self) -> None:
        """Wait until all that are there now are removed."""
        for slot in self:
            await slot.gone.wait()
