"""A program on asyncio through a real MCP client: await stacks, `await` at the prompt, steps, and deadlines."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.client import pdbox

pytestmark = pytest.mark.anyio

APP = """import asyncio

async def fetch(n):
    await asyncio.sleep(0.01)
    return n * 2

async def hang():
    await asyncio.Event().wait()

async def main():
    job = asyncio.create_task(hang(), name="background")
    first = await fetch(1)
    second = await asyncio.gather(fetch(2), fetch(3))
    return first, second

print(asyncio.run(main()))
"""


async def test_tasks_are_seen_and_awaited_for_at_a_stop(tmp_path: Path, backend: list[str]) -> None:
    (tmp_path / "app.py").write_text(APP)
    async with pdbox("--repo", str(tmp_path), *backend) as session:
        stop = await session.call("pdb", command="b app.py:12\nc", entrypoint="python app.py")
        assert (stop["frame"]["line"], stop["task"]) == (12, "Task-1")
        stop = await session.call("pdb", command="n")
        assert (stop["frame"]["line"], stop["frame"]["function"]) == (13, "main")
        stop = await session.call("pdb", command="w tasks")
        assert "> Task-1\n    app.py(13)main()\n" in stop["reply"]
        assert "  background\n    app.py(8)hang() -> await asyncio.Event().wait()\n" in stop["reply"]
        stop = await session.call("pdb", command="p await fetch(21)")
        assert (stop["state"], stop["reply"]) == ("stopped", "42\n")
        value = await session.call("inspect", expression="await asyncio.gather(fetch(1), fetch(first))")
        assert [part["repr"] for part in value["children"]] == ["2", "4"]
        stop = await session.call("pdb", command="p await hang()", timeout_s=0.5)
        assert (stop["state"], stop["reply"]) == ("stopped", "*** KeyboardInterrupt\n")
        assert "The command was interrupted at its deadline." in stop["notices"]
        stop = await session.call("pdb", command="n")
        assert (stop["frame"]["line"], stop["task"]) == (14, "Task-1")
        stop = await session.call("pdb", command="c")
        assert (stop["state"], stop["output"]) == ("exited", "(2, [4, 6])\n")
