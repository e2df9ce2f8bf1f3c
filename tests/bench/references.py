"""What pdbox is measured beside, on the same machine in the same run."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import docker
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.bench.measure import Timing, repeat, since

NOOP = Path(__file__).with_name("noop_server.py")


@asynccontextmanager
async def noop_client() -> AsyncIterator[Client]:
    """A client on the server that does nothing."""
    async with Client(
        stdio_client(StdioServerParameters(command=sys.executable, args=[str(NOOP)]))
    ) as client:
        yield client


@asynccontextmanager
async def noop_http_client() -> AsyncIterator[Client]:
    """A client on the server that does nothing, over streamable HTTP."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    async with await anyio.open_process([sys.executable, str(NOOP), str(port)], stderr=None) as server:
        try:
            await _listens(port)
            async with Client(f"http://127.0.0.1:{port}/mcp") as client:
                yield client
        finally:
            server.terminate()


async def _listens(port: int) -> None:
    with anyio.fail_after(30):
        while True:
            try:
                await (await anyio.connect_tcp("127.0.0.1", port)).aclose()
                return
            except OSError:
                await anyio.sleep(0.05)


async def server_start(command: list[str]) -> float:
    """From spawning a server to its answer to the first request."""
    begin = time.perf_counter()
    async with Client(stdio_client(StdioServerParameters(command=command[0], args=command[1:]))) as client:
        started = since(begin)
        await client.list_tools()
    return started


async def docker_exec(image: str, runs: int) -> Timing:
    """`docker exec` of `true`, once per command, through the SDK."""
    client: Any = docker.from_env()
    container = client.containers.run(
        image, ["sleep", "600"], detach=True, auto_remove=True, network_mode="none"
    )
    try:
        return await repeat(lambda: anyio.to_thread.run_sync(container.exec_run, ["true"]), runs)
    finally:
        container.remove(force=True)


async def bare_start(engine: Any, image: str) -> float:
    """Create and start of a container that only sleeps."""
    begin = time.perf_counter()
    container = await anyio.to_thread.run_sync(
        lambda: engine.containers.create(image, ["sleep", "600"], auto_remove=True, network_mode="none")
    )
    await anyio.to_thread.run_sync(container.start)
    started = since(begin)
    await anyio.to_thread.run_sync(partial(container.remove, force=True))
    return started


async def docker_cp(image: str, folder: Path) -> float:
    """`docker cp` of `folder` into a new container."""
    created = await _docker("create", "--network", "none", image, "sleep", "600")
    try:
        begin = time.perf_counter()
        await _docker("cp", "--quiet", f"{folder}/.", f"{created}:/mnt")
        return since(begin)
    finally:
        await _docker("rm", "--force", created)


async def _docker(*arguments: str) -> str:
    return (await anyio.run_process(["docker", *arguments])).stdout.decode().strip()


async def stock_pdb(program: Path, runs: int) -> Timing:
    """`p x` to stock pdb on a pipe, on this machine, read up to its prompt."""
    process = subprocess.Popen(  # noqa: ASYNC220 - nothing else runs in this loop meanwhile
        [sys.executable, "-m", "pdb", str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    )
    assert process.stdin is not None and process.stdout is not None
    stdin, stdout = process.stdin, process.stdout

    def ask(command: bytes) -> None:
        stdin.write(command + b"\n")
        seen = b""
        while not seen.endswith(b"(Pdb) "):
            seen += stdout.read(4096)

    async def call() -> None:
        ask(b"p x")

    try:
        ask(b"x = 1")
        return await repeat(call, runs, 20)
    finally:
        process.kill()
        process.wait()
