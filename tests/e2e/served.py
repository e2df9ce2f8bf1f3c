"""`pdbox serve` on HTTP in a process of its own, and real MCP clients of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

import anyio.to_thread
import httpx2
from mcp.client.client import Client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from tests.e2e.client import PDBOX, Session

PATIENCE_S = 120


@dataclass(frozen=True)
class Way:
    """A transport and an era of the protocol."""

    transport: str
    mode: str

    def __str__(self) -> str:
        return f"{self.transport}-{self.mode}"


OVER_HTTP = [Way(transport, mode) for transport in ("http", "sse") for mode in ("auto", "legacy")]


class Server:
    """A running server."""

    def __init__(self, process: subprocess.Popen[str], env: dict[str, str]) -> None:
        self.process = process
        self.env = env
        self.said: list[str] = []
        """Its stderr so far, by lines."""
        assert process.stderr is not None
        for line in process.stderr:
            self.said.append(line)
            if line.startswith("{"):
                break
        else:
            raise AssertionError("".join(self.said))
        self.url: str = json.loads(self.said[-1])["url"]
        self.base = self.url.rpartition("/")[0]
        self._reader = threading.Thread(target=self.said.extend, args=(process.stderr,), daemon=True)
        self._reader.start()

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

    @asynccontextmanager
    async def client(
        self, way: Way, token: str | None = None, query: str = "", **headers: str
    ) -> AsyncIterator[Client]:
        """A connected client; `query` is added to the URL."""
        if way.transport == "sse":
            sent = {**headers, "Authorization": f"Bearer {token}"} if token else headers
            async with Client(sse_client(f"{self.base}/sse{query}", headers=sent), mode=way.mode) as client:
                yield client
        else:
            url = f"{self.base}/mcp{query}"
            async with (
                self.http(token, **headers) as http,
                Client(streamable_http_client(url, http_client=http), mode=way.mode) as client,
            ):
                yield client

    def http(self, token: str | None = None, **headers: str) -> httpx2.AsyncClient:
        """For requests by hand."""
        if token:
            headers["Authorization"] = f"Bearer {token}"
        return httpx2.AsyncClient(base_url=self.base, headers=headers, timeout=PATIENCE_S)

    async def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal; gives the exit code."""
        self.process.send_signal(number)
        return await anyio.to_thread.run_sync(self.process.wait, PATIENCE_S)

    def close(self) -> None:
        """End it if it still runs."""
        self.process.terminate()
        try:
            self.process.wait(PATIENCE_S)
        finally:
            self.process.kill()
            self.process.wait()
        self._reader.join()
        assert self.process.stderr is not None
        self.process.stderr.close()


@contextmanager
def serving(*arguments: str, program: Sequence[str] = (str(PDBOX),), **env: str) -> Iterator[Server]:
    """A server on a free port. What it prints after its URL is in `said`.

    Unless `arguments` say otherwise, answers have text and data.
    """
    form = [] if "--answers" in arguments else ["--answers", "both"]
    transport = [] if "--transport" in arguments else ["--transport", "http"]
    with tempfile.TemporaryDirectory(prefix="pdbox-test-", ignore_cleanup_errors=True) as runtime:
        env = {**os.environ, "XDG_RUNTIME_DIR": runtime, "TMPDIR": runtime, **env}
        process = subprocess.Popen(
            [*program, "serve", "--port", "0", "--json", *transport, *form, *arguments],
            env=env,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        server = Server(process, env)
        try:
            yield server
        finally:
            server.close()


def initialize(era: str = "2025-11-25") -> dict[str, Any]:
    """The first message of the older era."""
    client = {"name": "t", "version": "1"}
    params = {"protocolVersion": era, "capabilities": {}, "clientInfo": client}
    return {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}


STREAMABLE = {"Accept": "application/json, text/event-stream"}
