"""Threads, tasks, children, exit codes, and processes that must not stay behind."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from tests.e2e.regressions.sessions import at, opened, said

pytestmark = [pytest.mark.anyio, pytest.mark.long]


PARALLEL = """\
import asyncio, multiprocessing, subprocess, sys, threading


def in_thread():
    a = 1
    return a


async def in_task(n):
    await asyncio.sleep(0)
    b = n
    return b


async def tasks():
    return await asyncio.gather(in_task(1), in_task(2))


def in_child(n):
    return n * 2


if __name__ == "__main__":
    thread = threading.Thread(target=in_thread, name="worker")
    thread.start()
    thread.join()
    print(asyncio.run(tasks()))
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            print(method, pool.map(in_child, [1, 2]))
    code = "import app; print('sub', app.in_child(21))"
    subprocess.run([sys.executable, "-c", code], check=True)
"""


async def test_threads_and_tasks_stop_at_breakpoints_and_children_never_deadlock(
    tmp_path: Path, backend: list[str]
) -> None:
    async with opened(tmp_path, {"app.py": PARALLEL}, backend) as session:
        stop = await session.call("pdb", command="b app.py:6\nb app.py:12\nc", entrypoint="python app.py")
        assert (at(stop), stop["thread"]["name"]) == (("stopped", "app.py", 6), "worker")
        for n in ("1", "2"):
            stop = await session.call("pdb", command="c")
            assert (at(stop), stop["thread"]["main"]) == (("stopped", "app.py", 12), True)
            assert await said(session, "p n") == n
        with anyio.fail_after(60):
            stop = await session.call("pdb", command="c")
        assert (stop["state"], stop["exit_code"]) == ("exited", 0)
        assert stop["output"] == "[1, 2]\nfork [2, 4]\nspawn [2, 4]\nsub 42\n"


async def test_nothing_is_left_after_50_restarts(tmp_path: Path, backend: list[str]) -> None:
    text = (
        "import os, subprocess, sys\nchild = [sys.executable, '-c', 'import time; time.sleep(600)']\n"
        "process = subprocess.Popen(child, env={**os.environ, 'LEFT': os.getcwd()})\nx = 1\n"
    )
    async with opened(tmp_path, {"app.py": text}, backend) as session:
        await session.call("pdb", command="b 4", entrypoint="python app.py")
        for _ in range(50):
            stop = await session.call("pdb", command="run\nc")
            assert at(stop) == ("stopped", "app.py", 4)
        assert stop["run"] >= 50
        look = (
            "import os\nfound, mark = 0, b'LEFT=' + os.getcwd().encode()\nfor pid in os.listdir('/proc'):\n"
            "    try:\n        found += mark in open(f'/proc/{pid}/environ', 'rb').read().split(b'\\0')\n"
            "    except OSError:\n        continue\nprint(found)\n"
        )
        await session.call("rewrite", path="look.py", new_code=look)
        # The one of the run that is stopped now.
        assert (await session.call("bash", command="python3 look.py"))["output"] == "1\n"


async def test_a_shell_command_leaves_nothing_behind_as_it_says(tmp_path: Path, backend: list[str]) -> None:
    async with opened(tmp_path, {"sub/a.txt": "a\n"}, backend) as session:
        first = (await session.call("bash", command="pwd"))["output"]
        done = await session.call(
            "bash",
            command="cd sub; export LEFT=1; alias l=ls; sleep 600 & echo $LEFT $MINE; pwd",
            env={"MINE": "2"},
        )
        assert done["output"] == f"1 2\n{first.strip()}/sub\n"
        done = await session.call("bash", command="echo [$LEFT$MINE]; pwd")
        assert done["output"] == f"[]\n{first}"
        assert (await session.call("bash", command="cat a.txt", cwd="sub"))["output"] == "a\n"
        tools = {tool.name: tool for tool in (await session.client.list_tools()).tools}
        assert "Stateless" in (tools["bash"].description or "")


ENDS = [
    ("x = 1\n", 0, None),
    ("import sys\nsys.exit(7)\n", 7, None),
    ("import sys\nsys.exit('why')\n", 1, None),
    ("import os\nos._exit(9)\n", 9, None),
    ("import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\n", None, "SIGTERM"),
]


async def test_the_exit_status_is_told_at_the_end(tmp_path: Path, backend: list[str]) -> None:
    names = [f"end_{number}.py" for number in range(len(ENDS))]
    async with opened(
        tmp_path, {name: text for name, (text, _, _) in zip(names, ENDS, strict=True)}, backend
    ) as session:
        for name, (_, code, signal) in zip(names, ENDS, strict=True):
            stop = await session.call("pdb", command="c", entrypoint=f"python {name}")
            assert (stop["state"], stop["exit_code"], stop.get("signal")) == ("exited", code, signal)
