"""Observes whether the answers of HTTP requests reach their clients."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mcp_server.observability.receipts import current_receipt
from mcp_server.transports.tcp_connections import CONNECTION, Connection


class _Delivery:
    """The way of one answer."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._request = connection.cycle
        self._is_whole = False
        self._is_written = False
        self._has_begun = False
        self._rest: list[Callable[[], None]] = []

    def note(self, message: Message) -> None:
        """Note a part of the answer before it is written."""
        if message["type"] == "http.response.start":
            self._has_begun = True
            headers = dict(message.get("headers", ()))
            self._is_whole = headers.get(b"content-type", b"").startswith(b"application/json")
        elif message.get("body") and not self._connection.is_lost:
            self._is_written = True

    def is_lost(self) -> bool:
        """True if the connection ended before the answer was written, or was reset before the client had read it.

        The end of an event stream is left unread by some clients, which resets the connection too, so that tells nothing.
        """
        if not self._is_written:
            return self._connection.is_lost
        return self._is_whole and self._connection.is_reset and self._connection.cycle is self._request

    def when_written(self, work: Callable[[], None]) -> None:
        """Do `work` once the answer is written, or will not be any more; at once if it is a part of a stream."""
        self._rest.append(work)
        if self._has_begun:
            self.end()

    def end(self) -> None:
        """Note that the response is written; what waits for that is done before the next request is read."""
        self._has_begun = True
        rest, self._rest = self._rest, []
        for work in rest:
            asyncio.get_running_loop().call_soon(work)


class DeliveryMiddleware:
    """Gives each request a receipt."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        connection = scope.get("extensions", {}).get(CONNECTION) if scope["type"] == "http" else None
        if not isinstance(connection, Connection):
            await self._app(scope, receive, send)
            return
        delivery = _Delivery(connection)

        async def noted(message: Message) -> None:
            delivery.note(message)
            await send(message)
            if message["type"] == "http.response.body" and not message.get("more_body"):
                delivery.end()

        token = current_receipt.set(delivery)
        try:
            await self._app(scope, receive, noted)
        finally:
            current_receipt.reset(token)
            delivery.end()
