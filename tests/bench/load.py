"""Many sessions at once on one server: each is stepped by a client of its own, and every answer is checked to be that client's.

`python -m tests.bench.load` alone prints its rows; `--worker` is one of the processes that the clients are spread over.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from anyio.streams.buffered import BufferedByteReceiveStream
from mcp.client.client import Client

from tests.bench.measure import Row, Timing, table
from tests.e2e.served import serving

PROGRAM = """\
import sys

tag, count = sys.argv[1], 0
while True:
    count += 1
"""
WORKERS = 5
"""Processes that the clients are spread over, so that the clients are not what is measured."""
OPENING = 4
"""Sessions that are opened at the same time by one worker."""


@dataclass(frozen=True)
class Told:
    """What one worker saw: milliseconds of each call, and what was wrong."""

    times: list[float]
    errors: list[str]


def program(folder: Path) -> Path:
    """A repository with the program that is stepped."""
    folder.mkdir()
    (folder / "count.py").write_text(PROGRAM)
    return folder


async def load(repo: Path, clients: int, seconds: float) -> list[Row]:
    """Latencies of `clients` clients that step their own sessions for `seconds`, and what the server needs for them."""
    limits = ["--max-sessions", str(clients), "--memory", "256MiB", "--root", str(program(repo))]
    with serving("--backend", "docker", *limits) as server:
        url, pid = server.url, server.process.pid
        await _one(url, repo)  # what the server loads at its first session is not the sessions' own
        base = private_memory(pid)
        told: list[Told] = []
        idle: list[float] = []
        async with anyio.create_task_group() as tasks:
            ready = [anyio.Event() for _ in range(WORKERS)]
            go = anyio.Event()
            for number in range(WORKERS):
                share = [f"c{index}" for index in range(number, clients, WORKERS)]
                tasks.start_soon(_work, url, repo, share, seconds, ready[number], go, told)
            for event in ready:
                await event.wait()
            idle.append((private_memory(pid) - base) / clients)
            go.set()
        busy = private_memory(pid) / (1 << 20)
        await server.end()
    return _rows(told, clients, seconds, idle[0], busy)


async def _one(url: str, repo: Path) -> None:
    async with Client(url) as client:
        session = await _open(client, repo, "warm-up")
        await client.call_tool("close_session", {"session_id": session})


async def _work(
    url: str,
    repo: Path,
    tags: list[str],
    seconds: float,
    ready: anyio.Event,
    go: anyio.Event,
    told: list[Told],
) -> None:
    command = [sys.executable, "-m", "tests.bench.load", "--worker", url, str(repo), str(seconds), *tags]
    async with await anyio.open_process(command, stderr=None) as worker:
        assert worker.stdout is not None and worker.stdin is not None
        lines = BufferedByteReceiveStream(worker.stdout)
        await lines.receive_until(b"\n", 1 << 16)
        ready.set()
        await go.wait()
        await worker.stdin.send(b"go\n")
        told.append(Told(**json.loads(await lines.receive_until(b"\n", 64 << 20))))


def _rows(told: list[Told], clients: int, seconds: float, idle: float, busy: float) -> list[Row]:
    times = sorted(time for one in told for time in one.times)
    errors = [error for one in told for error in one.errors]
    for error in errors[:10]:
        sys.stderr.write(f"load: {error}\n")
    at = partial(_percentile, times)
    what = f"a step, {clients} clients at once over HTTP for {seconds:g} s"
    counted = (
        f"{len(times) / seconds:.0f} calls/s, p95 {at(0.95):.1f}, p99 {at(0.99):.1f}, most {times[-1]:.1f} ms"
    )
    rows = [
        Row(what, Timing(statistics.median(times), at(0.9), len(times)), counted),
        Row("… wrong or failed answers", Timing(len(errors), len(errors), len(times)), "", "0", not errors),
    ]
    megabytes = idle / (1 << 20)
    memory = Timing(megabytes, megabytes, clients)
    rows.append(
        Row(
            "server memory of one idle session, MB",
            memory,
            f"all of it busy: {busy:.0f} MB",
            "1",
            megabytes <= 1,
        )
    )
    return rows


def _percentile(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def private_memory(pid: int) -> int:
    """Bytes that only this process has."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    return sum(int(size) for size in re.findall(r"^Private_\w+:\s+(\d+) kB", text, re.MULTILINE)) << 10


# One of the workers.


async def work(url: str, repo: Path, seconds: float, tags: list[str]) -> None:
    """Open a session for each tag, say so, and on a line of stdin step them all at once."""
    opening = anyio.Semaphore(OPENING)
    told = Told([], [])
    ready = [anyio.Event() for _ in tags]
    go = anyio.Event()
    async with anyio.create_task_group() as tasks:
        for tag, event in zip(tags, ready, strict=True):
            tasks.start_soon(_step_one, url, repo, tag, seconds, opening, event, go, told)
        for event in ready:
            await event.wait()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await anyio.to_thread.run_sync(sys.stdin.readline)
        go.set()
    sys.stdout.write(json.dumps({"times": told.times, "errors": told.errors}) + "\n")


async def _step_one(
    url: str,
    repo: Path,
    tag: str,
    seconds: float,
    opening: anyio.Semaphore,
    ready: anyio.Event,
    go: anyio.Event,
    told: Told,
) -> None:
    async with Client(url) as client:
        async with opening:
            session = await _open(client, repo, tag)
        ready.set()
        await go.wait()
        end, count = time.perf_counter() + seconds, 0
        while time.perf_counter() < end:
            count += 1
            await _step(client, session, tag, count, told)
        await client.call_tool("close_session", {"session_id": session})


async def _open(client: Client, repo: Path, tag: str) -> str:
    opened = await _call(client, "start_session", repo=str(repo))
    session = opened["session_id"]
    # At the last line of the loop, about to count for the first time.
    arguments = {"command": "b 5\nc", "entrypoint": f"python count.py {tag}", "session_id": session}
    stop = await _call(client, "pdb", **arguments)
    assert stop["frame"]["line"] == 5, stop
    return session


async def _step(client: Client, session: str, tag: str, count: int, told: Told) -> None:
    """Go round the loop once and ask who and where we are: two calls."""
    for command in ("c", "p tag, count"):
        begin = time.perf_counter()
        try:
            stop = await _call(client, "pdb", command=command, session_id=session)
        except RuntimeError as exc:
            told.errors.append(f"{tag}: {command}: {exc}")
            return
        told.times.append((time.perf_counter() - begin) * 1000)
        if stop["state"] != "stopped" or (stop["frame"] or {}).get("line") != 5:
            told.errors.append(f"{tag}: {command} answered {stop['state']} at {stop['frame']}")
        elif command != "c" and stop["reply"].strip() != repr((tag, count)):
            told.errors.append(f"{tag}: wanted {(tag, count)}, got {stop['reply']!r}")


async def _call(client: Client, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments)
    if result.is_error:
        raise RuntimeError(str(result.content)[:300])
    return result.structured_content


async def main(arguments: argparse.Namespace) -> None:
    """The rows of this part alone."""
    with tempfile.TemporaryDirectory() as folder:
        rows = await load(Path(folder) / "load", arguments.clients, arguments.seconds)
    sys.stdout.write(table(rows) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.bench.load", description=__doc__)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--worker", nargs="+", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.worker:
        anyio.run(work, chosen.worker[0], Path(chosen.worker[1]), float(chosen.worker[2]), chosen.worker[3:])
    else:
        anyio.run(main, chosen)
