"""Serving over stdin and stdout."""

from __future__ import annotations

from typing import NoReturn

from mcp_server.lifecycle import live
from mcp_server.server import build_server
from mcp_server.sessions import SessionStore


async def serve(store: SessionStore) -> NoReturn:
    """Serve one client until it closes our stdin or a signal comes, then end the process."""
    async with store:
        await live(build_server(store).run_stdio_async, store.aclose)
