"""Connections of HTTP clients: limits for their number and for the time to send a request."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from mcp_server.bodies import MAX_BYTES
from mcp_server.settings import Settings

log = logging.getLogger(__name__)

CONNECTION = "pdbox.connection"
"""Key of the connection in the extensions of a request's scope."""
BACKLOG = 64
"""Connections that may wait to be accepted. asyncio accepts them all before it looks at the first of them, so that for a
moment there are more than the limit allows."""
DESCRIPTORS_SHARE = 3
"""Part of the process's file descriptors that connections may take: sandboxes need some, and those just accepted."""
ADDRESS_SHARE = 0.9
"""Part of all connections that one address may have by default. All clients have the same one behind a proxy."""


@dataclass(frozen=True)
class Limits:
    """Limits for open connections, and for the time that a request takes to arrive."""

    total: int
    each: int
    """From one address."""
    request_s: float

    @property
    def backlog(self) -> int:
        """Number of connections that may wait to be accepted."""
        return max(1, min(BACKLOG, self.total // 4))

    @property
    def requests(self) -> int:
        """Requests of one principal at once; it must leave connections to others that come from its address."""
        return max(1, self.each // 2)


def limits_of(settings: Settings) -> Limits:
    """The limits that are set, or fewer connections where the process has few file descriptors."""
    total = min(settings.max_connections, max(1, _descriptors() // DESCRIPTORS_SHARE))
    each = settings.max_connections_per_address or max(1, int(total * ADDRESS_SHARE))
    return Limits(total, min(each, total), settings.request_timeout_s)


def _descriptors() -> int:
    if sys.platform == "win32":
        return sys.maxsize
    import resource  # not on Windows

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft


class Connection(H11Protocol):
    """One connection. uvicorn bounds the time between two requests, but not the time that a request takes to arrive."""

    open: ClassVar[Connections]
    address = ""
    has_served = False
    """Has it got an answer already?"""
    waiting_since = 0.0
    """When it was opened, or the last answer was complete."""
    is_lost = False
    is_reset = False
    """The client ended it without having read all that was sent."""
    _overdue: asyncio.TimerHandle | None = None

    @property
    def is_waiting(self) -> bool:
        """Is (the rest of) a request still to come?"""
        cycle: Any = self.cycle  # None before the first request, though uvicorn's annotation denies it
        return cycle is None or cycle.response_complete or cycle.more_body

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] - as uvicorn's
        """Take part if there is room, or can be made."""
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        self._expect_request()
        self.open.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Leave the room to others."""
        self.is_lost, self.is_reset = True, isinstance(exc, ConnectionResetError)
        self.open.discard(self)
        if self._overdue is not None:
            self._overdue.cancel()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Read what has arrived. The task that answers a request begins after this."""
        super().handle_events()
        scope: Any = self.scope  # None before the first request
        if scope is not None:
            scope.setdefault("extensions", {})[CONNECTION] = self
        if self._chunk_size() > MAX_BYTES and not self.transport.is_closing():
            log.info("refused a request from %s: a chunk of its body is too large", self.address)
            self.send_400_response(f"A chunk of the body is larger than {MAX_BYTES:,} bytes.")

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP, and close. uvicorn's own fails if the request before was answered, or will be."""
        cycle: Any = self.cycle
        if cycle is not None:
            cycle.disconnected = True  # its task sends nothing more
            cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.close()

    def _chunk_size(self) -> int:
        """Bytes that are still to come of the body's chunk. h11 tells it nowhere, and passes on each byte as it arrives."""
        return getattr(getattr(self.conn, "_reader", None), "_bytes_in_chunk", 0)

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self.has_served = True
        self._expect_request()
        super().on_response_complete()

    def drop(self) -> None:
        """Close it at once."""
        self.open.discard(self)
        self.transport.abort()

    def _expect_request(self) -> None:
        if self._overdue is not None:
            self._overdue.cancel()
        self.waiting_since = self.loop.time()
        self._overdue = self.loop.call_later(self.open.limits.request_s, self._drop_if_waiting)

    def _drop_if_waiting(self) -> None:
        if self.is_waiting:
            log.info("closed a connection from %s: its request did not arrive in time", self.address)
            self.drop()


class Connections:
    """All open connections of one server."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._open: dict[Connection, None] = {}

    def protocol(self) -> type[Connection]:
        """The class whose instances take part in these."""
        return type("LimitedConnection", (Connection,), {"open": self})

    def add(self, new: Connection) -> None:
        """Add a connection; at the limit, one that waits for a request is closed, or `new` where none does.

        Clients lose least by the end of one that was never used: the oldest of these goes first, then the one idle longest.
        """
        count = Counter(one.address for one in self._open)
        crowded = count[new.address] >= self.limits.each
        if crowded or len(self._open) >= self.limits.total:
            idle = [
                one for one in self._open if one.is_waiting and (not crowded or one.address == new.address)
            ]
            log.warning(
                "connections are at their limit, %d in all and %d from %s: closing %s",
                len(self._open),
                count[new.address],
                new.address,
                "one that waits for a request" if idle else "the new one",
            )
            if not idle:
                new.transport.abort()
                return
            min(idle, key=lambda one: (-count[one.address], one.has_served, one.waiting_since)).drop()
        self._open[new] = None

    def discard(self, old: Connection) -> None:
        """Remove a connection, if it is there."""
        self._open.pop(old, None)
