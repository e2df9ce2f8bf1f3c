"""Serving over stdin and stdout."""

from __future__ import annotations

from contextvars import Context
from types import TracebackType
from typing import Any, NoReturn, Self

import anyio
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage

from mcp_server.lifecycle import live
from mcp_server.server import build_server
from mcp_server.sessions import SessionStore


async def serve(store: SessionStore) -> NoReturn:
    """Serve one client until it closes our stdin or a signal comes, then end the process."""
    server = build_server(store)
    # `run_stdio_async` does the same without `_Watched`.
    lowlevel = server._lowlevel_server  # pyright: ignore[reportPrivateUsage]

    async def work(over: anyio.Event) -> None:
        async with stdio_server() as (messages, answers):
            options = lowlevel.create_initialization_options()
            await lowlevel.run(_Watched(messages, over), answers, options)

    async with store:
        await live(work, store.aclose)


class _Watched:
    """The client's messages, with an event for their end: the SDK then waits for calls, one of which may be stuck."""

    def __init__(self, messages: Any, ended: anyio.Event) -> None:
        self._messages = messages
        self._ended = ended

    @property
    def last_context(self) -> Context | None:
        return self._messages.last_context

    async def receive(self) -> SessionMessage | Exception:
        try:
            return await self._messages.receive()
        except anyio.EndOfStream:
            self._ended.set()
            raise

    async def aclose(self) -> None:
        await self._messages.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        await self.aclose()
