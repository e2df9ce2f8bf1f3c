"""Slot of one session, from the request for it until its sandbox is removed."""

from __future__ import annotations

from dataclasses import dataclass, field

import anyio

from sandbox.errors import Conflict
from sandbox.session.session import Session

CLOSE_S = 1.8
"""Time limit for closing all sessions. Clients kill a server 2 s after they closed its stdin."""
CLOSING = Conflict("The server is closing.")


@dataclass(eq=False)
class SessionSlot:
    """One session of `owner`, or the one that is being opened."""

    owner: str
    key: str
    """Key by which its sandbox is found."""
    session: Session | None = None
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    ending: anyio.Event = field(default_factory=anyio.Event)
    """Set when it is to end."""
    gone: anyio.Event = field(default_factory=anyio.Event)
    """Set when its sandbox is removed or left."""
    is_over: bool = False
    """No call gets in any more."""
    kept: bool = False
    """Its sandbox is left running, for another server."""
    server_ended: bool = False
    """It ends, or was ending, when the server did."""
    is_apart: bool = False
    """A call without a handle never means it."""

    def end(self) -> None:
        """Have it end, and its sandbox with it."""
        self._end(keep=False)

    def end_with_server(self, *, keep: bool) -> None:
        """Have it end, and its sandbox with it unless that is to be kept and has time left."""
        self.server_ended = True
        self._end(keep=keep and not (self.session is not None and self.session.expiry.over))

    def _end(self, *, keep: bool) -> None:
        self.is_over = True
        self.kept = keep
        self.ending.set()
        if self.session is None:
            self.scope.cancel()
