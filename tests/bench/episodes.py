"""Episodes on the shipped tasks over one HTTP server: how many a minute, what the server needs for them, and whether all are right."""

from __future__ import annotations

import sys
import time

import anyio
from mcp.client.client import Client

from tests.bench.load import private_memory
from tests.bench.measure import Row, Timing, since, timing
from tests.e2e.served import STREAMABLE, Server, serving
from tests.interop.episodes.script import NAMES, calls_of


async def episodes(count: int, at_once: int) -> list[Row]:
    """Run `count` episodes, `at_once` of them at the same time, each in a session of its own that its URL names."""
    with serving("--backend", "docker", "--max-sessions", str(at_once)) as server:
        places = anyio.CapacityLimiter(at_once)
        times: list[float] = []
        errors: list[str] = []
        memory: list[float] = []

        async def one(number: int) -> None:
            async with places:
                began = time.perf_counter()
                if error := await _episode(server, f"episode-{number}", NAMES[number % len(NAMES)]):
                    errors.append(error)
                times.append(since(began))
                memory.append(private_memory(server.process.pid) / (1 << 20))

        await _episode(server, "warm-up", NAMES[0])
        before = private_memory(server.process.pid) / (1 << 20)
        began = time.perf_counter()
        async with anyio.create_task_group() as tasks:
            for number in range(count):
                tasks.start_soon(one, number)
        minutes = (time.perf_counter() - began) / 60
    for error in errors[:10]:
        sys.stderr.write(f"episodes: {error}\n")
    what = f"an episode (open, stop, look, mend, test, close), {at_once} at once over HTTP"
    wrong = Timing(len(errors), len(errors), count)
    most = Timing(max(memory), max(memory), count)
    return [
        Row(what, timing(times), f"{count / minutes:.1f} episodes a minute"),
        Row("… not right", wrong, "", "0", not errors),
        Row("… server memory, most, MB", most, f"before: {before:.0f} MB"),
    ]


async def _episode(server: Server, name: str, task: str) -> str:
    """Do one; returns what was wrong with it, empty if nothing."""
    calls = calls_of(task)
    answers: list[str] = []
    query = f"?session={name}&task={task}"
    async with Client(f"{server.url}{query}") as client:
        for tool, arguments in [*calls, ("diff", {})]:
            result = await client.call_tool(tool, arguments)
            answers.append("".join(block.text for block in result.content if block.type == "text"))
            if result.is_error:
                return f"{name}: {tool}: {answers[-1][:300]}"
    async with server.http(**STREAMABLE) as http:
        ended = await http.delete(f"/mcp?session={name}")
    stop, _, rewrite, tests, diff = answers
    new = [f"+{line}" for line in calls[2][1]["new_code"].splitlines()]
    faults = {
        f"no stop: {stop}": "breakpoint 1" not in stop,
        f"not mended: {rewrite}": not all(line in diff for line in new),
        f"tests fail: {tests}": "(exit code 0)" not in tests.partition("\n")[0],
        f"not ended: {ended.status_code}": ended.status_code != 204,
    }
    return "; ".join(f"{name}: {fault[:300]}" for fault, is_so in faults.items() if is_so)
