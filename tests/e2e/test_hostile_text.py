"""Text that takes long to compute over: another principal's calls are answered while it is."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest

from tests.bubblewrap import LOCAL
from tests.e2e.client import Session, ToolFailed
from tests.e2e.served import Way, serving

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(180)]

HTTP = Way("http", "auto")
ALICE, BOB = "a" * 32, "b" * 32
SHUFFLED = random.Random(1)


def lines_alike(count: int) -> str:
    return "".join("".join(SHUFFLED.sample("ab" * 99, 198)) + "\n" for _ in range(count))


def make(folder: Path, **files: str) -> Path:
    folder.mkdir()
    for name, text in {"app.py": "n = 42\n", **files}.items():
        (folder / name).write_text(text)
    return folder


async def start(session: Session, repo: Path) -> str:
    return (await session.call("start_session", repo=str(repo)))["session_id"]


async def toml(session: Session, place: Path) -> None:
    await start(session, make(place, **{"pyproject.toml": "a." * 60_000 + "a=1\n"}))


async def blanks(session: Session, place: Path) -> None:
    await start(session, make(place, **{"setup.cfg": "[a]\nx" + " " * 200_000 + "y\n"}))


async def ignored(session: Session, place: Path) -> None:
    repo = make(place, **{".gitignore": ("*a*a*a/" * 30)[:900] + "x\n"})
    (repo / "/".join(["a" * 250] * 12)).mkdir(parents=True)
    await start(session, repo)


async def hidden(session: Session, place: Path) -> None:
    own = await start(session, make(place, **{".debugignore": ("*a*a*a/" * 30)[:900] + "x\n"}))
    with pytest.raises(ToolFailed, match="No such file"):
        await session.call("view", path="/".join(["a" * 250] * 12), session_id=own)


async def rewritten(session: Session, place: Path) -> None:
    own = await start(session, make(place, big="".join(f"x{n % 199}\n" for n in range(20_000))))
    new = "".join(f"x{n * 7 % 199}\n" for n in range(20_000))
    await session.call("rewrite", path="big", new_code=new, session_id=own)


async def absent(session: Session, place: Path) -> None:
    own = await start(session, make(place, big=lines_alike(5000)))
    with pytest.raises(ToolFailed, match="does not occur in"):
        await session.call("rewrite", path="big", old_code=lines_alike(1), new_code="x", session_id=own)


@pytest.mark.parametrize("attack", [toml, blanks, ignored, hidden, rewritten, absent])
async def test_others_are_answered_and_the_call_ends(
    tmp_path: Path, attack: Callable[[Session, Path], Awaitable[None]]
) -> None:
    tokens = tmp_path / "tokens"
    tokens.touch(mode=0o600)
    tokens.write_text(f"alice {ALICE}\nbob {BOB}\n")
    quiet = make(tmp_path / "quiet")
    with serving("--root", str(tmp_path), "--token-file", str(tokens), *LOCAL) as server:
        async with server.connected(HTTP, ALICE) as alice, server.connected(HTTP, BOB) as bob:
            own, answered = await start(bob, quiet), 0
            async with anyio.create_task_group() as tasks:

                async def hostile() -> None:
                    await attack(alice, tmp_path / "hostile")
                    tasks.cancel_scope.cancel()

                tasks.start_soon(hostile)
                while True:
                    await bob.call("view", path="app.py", session_id=own)
                    answered += 1
            assert answered
