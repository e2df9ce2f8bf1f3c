"""Episodes on the shipped tasks over one HTTP server: how many a minute, what the server needs for them, and whether all are right.

Beside them debug-gym's own loop on the same tasks, image and engine.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from mcp.client.client import Client

from mcp_server.tasks.folder import load_task
from tests.bench.load import private_memory
from tests.bench.measure import Row, Timing, since, timing
from tests.e2e.served import STREAMABLE, Server, serving
from tests.interop.environments import (
    DEBUG_GYM,
    SYSTEM_CERTIFICATES,
    Environments,
    NotMade,
    cache_folder,
)
from tests.interop.episodes.script import NAMES, TASKS, calls_of

IMAGE = "pdbox-sandbox:3.11"
PATIENCE_S = 1800


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
        await anyio.to_thread.run_sync(_debug_gym, -(-count // 4), at_once),
    ]


def _debug_gym(count: int, at_once: int) -> Row:
    """Run a part of them, since they take longer, in debug-gym's loop."""
    what = f"… in debug-gym's loop (reset, stop, look, mend, test, close), {at_once} at once"
    with ThreadPoolExecutor(1) as pool:
        try:
            python = Environments(pool, cache_folder(os.environ), [DEBUG_GYM]).python(DEBUG_GYM)
        except (NotMade, RuntimeError) as exc:
            (first, *_) = str(exc).splitlines()
            return Row(what, Timing(0, 0, 0), f"not installed: {first[:200]}")
    tasks = list(islice(cycle(map(_for_debug_gym, NAMES)), count))
    # Its model library asks the network for prices otherwise.
    env = {**os.environ, **SYSTEM_CERTIFICATES, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    program = Path(__file__).with_name("debug_gym_episodes.py")
    done = subprocess.run(
        [python, program, IMAGE, str(at_once)],
        input=json.dumps(tasks),
        capture_output=True,
        text=True,
        env=env,
        timeout=PATIENCE_S,
        check=False,
    )
    if done.returncode:
        sys.stderr.write(f"debug-gym: {done.stderr[-2000:]}\n")
        return Row(what, Timing(0, 0, 0), f"ended with {done.returncode}")
    found = json.loads(done.stdout.strip().rpartition("\n")[2])
    for fault in found["wrong"][:10]:
        sys.stderr.write(f"debug-gym: {fault}\n")
    rate = f"{count / found['took'] * 60:.1f} episodes a minute, {len(found['wrong'])} not right"
    return Row(what, timing([seconds * 1000 for seconds in found["times"]]), rate)


def _for_debug_gym(name: str) -> dict[str, Any]:
    """The same task and calls, as debug-gym's environment and tools take them."""
    task = load_task(TASKS / name)
    (_, stop), _, (_, change), _ = calls_of(name)
    place = stop["command"].splitlines()[0].removeprefix("b ")
    path = place.rpartition(":")[0]
    repository = task.repository
    assert repository is not None
    text = (repository / path).read_text("utf-8")
    first = text[: text.index(change["old_code"])].count("\n") + 1
    last = first + change["old_code"].count("\n")
    command = task.facts.debug_entrypoint or task.facts.entrypoint or ""
    # Its debugger reads from the program's terminal, which pytest keeps to itself without -s.
    command = command.removeprefix("python -m ").replace("pytest", "pytest -s")
    return {
        "repo": str(repository),
        "entrypoint": task.facts.entrypoint,
        "debug_entrypoint": f"python -m pdb -m {command}",
        "calls": [
            ("pdb", {"command": f"b {place}"}),
            ("pdb", {"command": "c"}),
            ("pdb", {"command": "where"}),
            ("edit", {"path": path, "start": first, "end": last, "new_code": change["new_code"]}),
            ("eval", {}),
        ],
        "stopped": path,
        "mended": [f"+{added}" for added in change["new_code"].split("\n")],
    }


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
