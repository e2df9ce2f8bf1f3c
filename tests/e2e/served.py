"""`pdbox serve` on HTTP in a process of its own, and real MCP clients of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import httpx2
from mcp.client.client import Client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from tests.e2e.client import PDBOX, Session

PATIENCE_S = 60


@dataclass(frozen=True)
class Way:
    """A transport and an era of the protocol."""

    transport: str
    mode: str

    def __str__(self) -> str:
        return f"{self.transport}-{self.mode}"


OVER_HTTP = [
    Way("http", "auto"),
    Way("http", "legacy"),
    Way("sse", "auto"),
    Way("sse", "legacy"),
]


class Server:
    """A running server."""

    def __init__(self, process: anyio.abc.Process, base: str, log: Path) -> None:
        self.process = process
        self.base = base
        self.log = log

    def client(self, way: Way, token: str | None = None) -> Client:
        """A client, not yet connected."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        if way.transport == "sse":
            return Client(sse_client(self.base + "/sse", headers=headers), mode=way.mode)
        http = httpx2.AsyncClient(headers=headers, timeout=PATIENCE_S)
        return Client(streamable_http_client(self.base + "/mcp", http_client=http), mode=way.mode)

    @asynccontextmanager
    async def connected(self, way: Way, token: str | None = None) -> AsyncIterator[Session]:
        """A connected client's calls. What fails in there is raised as it is, outside of the client's task groups."""
        failure: Exception | None = None
        async with self.client(way, token) as client:
            try:
                yield Session(client)
            except Exception as exc:
                failure = exc
        if failure is not None:
            raise failure

    async def end(self, number: signal.Signals) -> int:
        """Send a signal; the exit code."""
        self.process.send_signal(number)
        with anyio.fail_after(PATIENCE_S):
            return await self.process.wait()


@asynccontextmanager
async def serving(folder: Path, *arguments: str) -> AsyncIterator[Server]:
    """Start a server on a free port; its stderr goes to a file in `folder`. Killed in the end, if it still runs."""
    log = folder / "server.log"
    with log.open("wb") as stderr:
        process = await anyio.open_process(
            [str(PDBOX), "serve", "--port", "0", "--json", *_transport(arguments)],
            stdin=subprocess.DEVNULL,
            stdout=stderr,
            stderr=stderr,
            env={**os.environ},
        )
    try:
        with anyio.fail_after(PATIENCE_S):
            url = await _url(process, log)
        yield Server(process, url.rpartition("/")[0], log)
    finally:
        if process.returncode is None:
            process.kill()
        with anyio.CancelScope(shield=True):
            await process.wait()


def _transport(arguments: tuple[str, ...]) -> list[str]:
    return [*arguments] if "--transport" in arguments else ["--transport", "http", *arguments]


async def _url(process: anyio.abc.Process, log: Path) -> str:
    while True:
        text = await anyio.Path(log).read_text()
        for line in text.splitlines():
            if line.startswith("{"):
                return json.loads(line)["url"]
        assert process.returncode is None, text
        await anyio.sleep(0.02)
