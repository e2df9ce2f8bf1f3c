"""`checkpoint` over MCP: a test under pytest goes back, and nothing is left of it after an edit or `q`."""

from __future__ import annotations

import os
import re
import select
from pathlib import Path

import anyio.to_thread
import pytest

from tests.bubblewrap import UNSAFE
from tests.e2e.client import Session, pdbox
from tests.repository import repository

pytestmark = pytest.mark.anyio

FILES = {
    "shop.py": """\
def drain(stock):
    taken = []
    while stock:
        print("taking", stock[-1])
        taken.append(stock.pop())
    return taken
""",
    "test_shop.py": """\
import shop


def test_drain():
    stock = [1, 2, 3]
    assert shop.drain(stock) == [1, 2, 3]
    assert stock == []
""",
}


async def processes(session: Session) -> tuple[int, int]:
    """The process that runs and the one that waits at its checkpoint."""
    reply = (await session.call("pdb", command="p [__import__('os').getpid(), __import__('os').getppid()]"))[
        "reply"
    ]
    found = re.search(r"\[(\d+), (\d+)\]", reply)
    assert found, reply
    return int(found[1]), int(found[2])


def are_gone(*pids: int) -> bool:
    """True if all these processes have ended; waits for them."""
    for pid in pids:
        try:
            held = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        ended = select.select([held], [], [], 60)[0]
        os.close(held)
        if not ended:
            return False
    return True


async def test_a_test_goes_back_and_its_processes_end_with_the_run(tmp_path: Path) -> None:
    repo = repository(tmp_path / "shop", FILES)
    async with pdbox("--repo", str(repo), *UNSAFE) as session:
        start = "pytest -q -p no:cacheprovider test_shop.py"
        await session.call("pdb", command="b shop.py:6\nb shop.py:2\nc\nc\nc", entrypoint=start)
        await session.call("pdb", command="q")
        stop = await session.call("pdb", command="cl 1\nc", entrypoint=start)
        assert stop["frame"]["line"] == 2
        made = await session.text("pdb", command="checkpoint")
        assert "Checkpoint 1: shop.py:2 in drain" in made
        failed = await session.call("pdb", command="c")
        assert failed["reason"] == "post_mortem"
        back = await session.text("pdb", command="restart 1")
        assert back == (
            "stopped at shop.py:2 in drain · stop 6\n"
            "Back at checkpoint 1. What is outside of the process (files, sockets) is not restored."
        )
        assert "[1, 2, 3]" in await session.text("pdb", command="p stock")
        again = await session.call("pdb", command="c")
        assert again["reason"] == "post_mortem"
        one, two = await processes(session)
        await session.call("pdb", command="q")
        assert await anyio.to_thread.run_sync(are_gone, one, two)

        await session.call("pdb", command="c\ncheckpoint")
        one, two = await processes(session)
        await session.call("rewrite", path="shop.py", old_code="return taken", new_code="return taken[::-1]")
        ended = await session.text("pdb", command="c\nc")
        assert await anyio.to_thread.run_sync(are_gone, one, two)
        assert "it was restarted" in ended
