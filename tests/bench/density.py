"""Idle sessions in numbers: memory of the machine, threads and descriptors, beside bare boxes that sleep."""

from __future__ import annotations

import asyncio
import re
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import docker

from tests.bench import references
from tests.bench.measure import Row, Timing, repeat
from tests.bench.programs import default_image
from tests.bubblewrap import REASON
from tests.e2e.client import Session
from tests.e2e.served import OVER_HTTP, Server, serving

OPENING = 4
BWRAP = [
    "bwrap",
    "--ro-bind",
    "/",
    "/",
    "--dev",
    "/dev",
    "--proc",
    "/proc",
    "--unshare-all",
    "--die-with-parent",
]


async def density(repo: Path, count: int) -> list[Row]:
    """`count` idle sessions on each backend, each in turns with as many bare boxes; what takes least memory first."""
    image = await default_image(repo)
    rows: list[Row] = []
    if not REASON:
        rows += _row("bare `bwrap … sleep`", count, await _memory(_bare_sandboxes(count)))
        rows += await _sessions("bubblewrap", repo, count)
    rows += _row("bare `docker run … sleep`", count, await _memory(_bare_containers(image, count)))
    rows += await _sessions("docker", repo, count)
    engine: Any = docker.from_env()
    rows.append(
        Row(
            "start and end of a bare container", await repeat(lambda: references.bare_start(engine, image), 8)
        )
    )
    if not REASON:
        alone = await repeat(lambda: anyio.run_process([*BWRAP, "true"]), 20)
        rows.append(Row("start and end of a bare `bwrap true`", alone))
    return rows


def _row(what: str, count: int, megabytes: float) -> list[Row]:
    return [Row(f"{what}: memory of one, MB", Timing(megabytes / count, megabytes / count, count))]


async def _sessions(backend: str, repo: Path, count: int) -> list[Row]:
    limits = ["--max-sessions", str(count + 1), "--max-sessions-per-principal", str(count + 1)]
    with serving("--backend", backend, "--root", str(repo), "--repo", str(repo), *limits) as server:
        async with server.connected(OVER_HTTP[0]) as client:
            opened = await client.call("start_session")  # what the first one imports
            await client.call("close_session", session_id=opened["session_id"])
            threads, descriptors = _of(server)
            handles: list[str] = []
            before = await _settled()
            await _at_once(count, lambda: _open(client, handles))
            taken = before - await _settled()
            more_threads, more_descriptors = _of(server)
            inside = await client.call("bash", command=INSIDE, session_id=handles[0])
            await _at_once(count, lambda: client.call("close_session", session_id=handles.pop()))
    return [
        *_row(f"idle session on {backend}", count, taken),
        _count(f"… threads of the server, {count} sessions", more_threads, f"none: {threads}"),
        _count(f"… descriptors of the server, {count} sessions", more_descriptors, f"none: {descriptors}"),
        _count("… threads inside of one", int(inside["output"]), ""),
    ]


INSIDE = "set -- /proc/[0-9]*/task/*; echo $(($# - 1))"
"""Counts threads, without the one of its own shell."""


def _count(what: str, number: int, beside: str) -> Row:
    return Row(what, Timing(number, number, 1), beside)


async def _open(client: Session, handles: list[str]) -> None:
    handles.append((await client.call("start_session"))["session_id"])


async def _at_once(count: int, call: Callable[[], Awaitable[object]]) -> None:
    limiter = asyncio.Semaphore(OPENING)

    async def one() -> None:
        async with limiter:
            await call()

    async with anyio.create_task_group() as tasks:
        for _ in range(count):
            tasks.start_soon(one)


def _of(server: Server) -> tuple[int, int]:
    """Threads and open descriptors of a server."""
    place = Path(f"/proc/{server.process.pid}")
    return len(list((place / "task").iterdir())), len(list((place / "fd").iterdir()))


def _free() -> float:
    """Memory that is available on this machine, in MB."""
    found = re.search(r"^MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) / 1024


async def _settled() -> float:
    """The same, once what has ended is freed."""
    await anyio.sleep(2)
    return _free()


async def _memory(boxes: Any) -> float:
    before = await _settled()
    async with boxes:
        return before - await _settled()


@asynccontextmanager
async def _bare_containers(image: str, count: int) -> AsyncIterator[None]:
    engine: Any = docker.from_env()
    made: list[Any] = []

    def start() -> None:
        options = {"detach": True, "auto_remove": True, "network_mode": "none"}
        made.append(engine.containers.run(image, ["sleep", "600"], **options))

    try:
        await _at_once(count, lambda: anyio.to_thread.run_sync(start))
        yield
    finally:
        for container in made:
            await anyio.to_thread.run_sync(lambda container=container: container.remove(force=True))


@asynccontextmanager
async def _bare_sandboxes(count: int) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        for _ in range(count):
            box = await anyio.open_process([*BWRAP, "sleep", "600"], stdin=subprocess.DEVNULL)
            stack.push_async_callback(box.aclose)
            stack.callback(box.kill)
        yield
