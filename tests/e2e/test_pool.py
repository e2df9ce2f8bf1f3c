"""`--pool`: sandboxes that are ready before anybody asks for one."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.bubblewrap import LOCAL
from tests.docker_client import docker
from tests.e2e.client import PDBOX, Session, ToolFailed, pdbox
from tests.polling import pause

pytestmark = [pytest.mark.anyio, pytest.mark.docker]


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    """A folder that is mounted in the sandboxes of this test alone: others on this machine have theirs."""
    folder = tmp_path / "mark"
    folder.mkdir()
    return folder


def marked(mark: Path) -> list[str]:
    """Flags of a server whose sandboxes are found by `mark`."""
    return ["--mount", f"{mark}:/mark"]


def pooled(mark: Path) -> dict[str, str]:
    """Containers that were started ahead, used or not: id to name."""
    filters = ["--filter", "label=pdbox.pool=1", "--filter", f"volume={mark}"]
    lines = docker("ps", "--no-trunc", *filters, "--format", "{{.ID}} {{.Names}}").splitlines()
    return {number[:12]: name for number, name in (line.split() for line in lines)}


def unused(mark: Path) -> set[str]:
    return {number for number, name in pooled(mark).items() if name.startswith("pdbox-pool-")}


async def filled(mark: Path, before: Iterable[str], count: int) -> set[str]:
    """The ready sandboxes that are there besides `before`, once they are so many."""
    with anyio.fail_after(120):
        while len(fresh := await anyio.to_thread.run_sync(unused, mark) - set(before)) < count:
            await pause()
    return fresh


async def vanished(mark: Path, places: Iterable[str]) -> None:
    with anyio.fail_after(120):
        while (await anyio.to_thread.run_sync(pooled, mark)).keys() & set(places):
            await pause()


@asynccontextmanager
async def ready(mark: Path, *arguments: str, count: int = 1) -> AsyncIterator[tuple[Session, set[str]]]:
    """A server whose pool is full, and what is in it."""
    flags = ["--backend", "docker", "--pool", str(count), *marked(mark)]
    async with pdbox(*flags, *arguments) as session:
        await session.client.list_tools()
        yield session, await filled(mark, (), count)


async def place_of(session: Session, handle: str) -> str:
    own = (await session.call("list_sessions"))["sessions"]
    return next(one["place"] for one in own if one["session_id"] == handle)


async def test_a_session_takes_a_ready_sandbox_and_another_one_is_started(repo: Path, mark: Path) -> None:
    async with ready(mark, "--repo", str(repo)) as (session, there):
        listed = (await session.call("list_sessions"))["sessions"]
        assert not there & {one["place"] for one in listed}
        opened = await session.call("start_session")
        place = await place_of(session, opened["session_id"])
        assert {place} == there
        key = hashlib.sha256(opened["session_id"].encode()).hexdigest()
        assert pooled(mark)[place].split("-")[1] == key
        assert 1000 < opened["expires_in_s"] <= 1800
        stop = await session.call(
            "pdb", command="b app.py:3\nc", entrypoint="python app.py", session_id=opened["session_id"]
        )
        assert stop["state"] == "stopped"
        others = await filled(mark, there, 1)
        await session.call("close_session", session_id=opened["session_id"])
        assert place not in pooled(mark)
    await vanished(mark, others)


async def test_a_repository_that_wants_something_else_gets_a_sandbox_of_its_own(
    repo: Path, tmp_path: Path, mark: Path
) -> None:
    guarded = tmp_path / "guarded"
    guarded.mkdir()
    (guarded / "app.py").write_text("print(1)\n")
    (guarded / ".debugreadonly").write_text("app.py\n")
    wishes: list[dict[str, Any]] = [{"python": "3.9"}, {"network": True}, {"repo": str(guarded)}]
    async with ready(mark, "--repo", str(repo), "--root", str(tmp_path), "--network") as (session, there):
        for wish in wishes:
            opened = await session.call("start_session", **wish)
            assert await place_of(session, opened["session_id"]) not in pooled(mark), wish
            await session.call("close_session", session_id=opened["session_id"])
        assert there <= unused(mark)


async def test_after_kill_9_a_session_out_of_the_pool_is_its_owners_and_the_unused_ones_are_gone(
    repo: Path, tmp_path: Path, mark: Path
) -> None:
    pid_file = tmp_path / "pid"
    command = ["pdbox", "serve", "--repo", str(repo), "--pool", "2", "--answers", "both", *marked(mark)]
    write_pid = f"open({str(pid_file)!r}, 'w').write(str(os.getpid()))"
    wrapper = f"import os; {write_pid}; os.execv({str(PDBOX)!r}, {command!r})"
    parameters = StdioServerParameters(command=sys.executable, args=["-c", wrapper])
    handle, place, there = "", "", set[str]()
    with pytest.raises(Exception):  # noqa: B017 - the client's way of saying that its server died differs by version
        async with Client(stdio_client(parameters)) as client:
            session = Session(client)
            await client.list_tools()
            there = await filled(mark, (), 2)
            handle = (await session.call("start_session"))["session_id"]
            await session.call("bash", command="echo mine > note", session_id=handle)
            place = await place_of(session, handle)
            os.kill(int(pid_file.read_text()), signal.SIGKILL)
            await session.call("list_sessions")
    await vanished(mark, there - {place})
    async with pdbox("--repo", str(repo)) as session:
        listed = (await session.call("list_sessions"))["sessions"]
        assert place in [one["place"] for one in listed]
        assert (await session.call("bash", command="cat note", session_id=handle))["output"] == "mine\n"
        with pytest.raises(ToolFailed, match="unknown or has expired"):
            await session.call("bash", command="cat note", session_id=handle[:-1])
        await session.call("close_session", session_id=handle)
    assert place not in pooled(mark)


async def test_ready_sandboxes_are_listed_as_such_and_end_with_their_server(
    tmp_path: Path, runtime: str
) -> None:
    (tmp_path / "app.py").write_text("print(1)\n")
    flags = [*LOCAL]
    env = {**os.environ, "XDG_RUNTIME_DIR": runtime}

    async def listed(action: str = "list") -> list[str]:
        command = [str(PDBOX), "sessions", action, "--json", *flags]
        done = await anyio.run_process(command, env=env)
        return [one["kind"] for one in json.loads(done.stdout)["sessions"]]

    async with pdbox(
        "--repo", str(tmp_path), "--pool", "1", *flags, env={"XDG_RUNTIME_DIR": runtime}
    ) as session:
        await session.client.list_tools()
        with anyio.fail_after(120):
            while await listed() != ["pool"]:
                await pause()
        await session.call("start_session")
        with anyio.fail_after(120):
            while sorted(await listed()) != ["pool", "session"]:
                await pause()
        assert sorted(await listed("reap")) == ["pool", "session"]
        assert "session" not in await listed()
    assert await listed() == []


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with one program."""
    folder = tmp_path / "repo"
    folder.mkdir()
    (folder / "app.py").write_text(
        "def double(n):\n    result = n * 2\n    return result\n\nprint(double(21))\n"
    )
    return folder
