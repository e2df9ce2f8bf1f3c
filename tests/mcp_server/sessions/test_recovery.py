"""Edits that were acknowledged survive the loss of a sandbox."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from mcp import Client

from mcp_server import backends
from mcp_server.commands.serve import defaults, policy
from mcp_server.connection_options import ConnectionOptions
from mcp_server.server import build_server, owner_of
from mcp_server.sessions.admission import SessionLimits
from mcp_server.sessions.kept_edits import KeptEdits
from mcp_server.sessions.store import SessionStore
from mcp_server.settings import Settings
from sandbox.session.session import session_key
from tests.e2e.client import Session, ToolFailed

pytestmark = pytest.mark.anyio
ME = owner_of()


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """The folder of kept edits."""
    return tmp_path / "state" / "edits"


@asynccontextmanager
async def served(
    repo: Path, state: Path, *, one_client: bool = False, **settings: Any
) -> AsyncIterator[Session]:
    """A client of a server that keeps edits in `state`."""
    whole = Settings(repo=repo, backend="process", unsafe_no_isolation=True, answers="both", **settings)
    store = SessionStore(
        partial(backends.open_backend, whole),
        policy(whole, repo),
        defaults(whole, repo),
        allowed=SessionLimits(10),
        default_session=one_client,
        user=owner_of(),
        edits=KeptEdits(state),
    )
    async with store, Client(build_server(store, defaults=ConnectionOptions.of(whole))) as client:
        yield Session(client)


def kept(state: Path) -> list[Path]:
    """All files that are there."""
    return [path for path in state.rglob("*") if path.is_file()]


async def lose(client: Session, **of: str) -> None:
    """Kill the supervisor of a session, and wait until its processes are gone."""
    place = next(
        one["place"]
        for one in (await client.call("list_sessions"))["sessions"]
        if of.get("session_id") in (None, one["session_id"])
    )
    descriptor = os.pidfd_open(int(place))
    os.kill(int(place), signal.SIGKILL)
    await anyio.wait_readable(descriptor)
    os.close(descriptor)


async def failure(client: Session, tool: str, **arguments: Any) -> str:
    """The text of a call that fails."""
    with pytest.raises(ToolFailed) as caught:
        await client.call(tool, **arguments)
    return str(caught.value)


async def next_text(client: Session, tool: str, **arguments: Any) -> str:
    """The text of a call after a loss. If it is the first to meet it, it says so, and the next one goes well."""
    try:
        return await client.text(tool, **arguments)
    except ToolFailed as exc:
        if "kept: app.py. Anything else in it is lost. The next call opens it again" not in str(exc):
            raise
        return await client.text(tool, **arguments)


async def test_a_lost_session_is_resumed_with_its_edits_under_the_same_id(repo: Path, state: Path) -> None:
    (repo / "data.txt").write_bytes("é\r\n".encode("latin-1"))
    async with served(repo, state) as client:
        opened = await client.call("start_session", env=["COLOUR=red"], entrypoint="python app.py")
        of = {"session_id": opened["session_id"]}
        await client.call("rewrite", path="app.py", old_code="n * 2", new_code="n * 3", **of)
        await client.call("rewrite", path="app.py", old_code="n * 3", new_code="n * 4", **of)
        await client.call(
            "rewrite",
            edits=[{"path": "data.txt", "new_code": "ü\n"}, {"path": "new/x.py", "new_code": "x = 1\n"}],
            **of,
        )
        await client.call("pdb", command="b app.py:3, n > 1\ntbreak app.py:5", **of)
        await client.call("rewrite", path="app.py", start=1, end=0, new_code="# top", **of)
        patch = (await client.call("diff", **of))["patch"]
        await client.call("bash", command="echo y > y.py", **of)
        await lose(client, **of)
        told = await failure(client, "bash", command="true", **of)
        assert "3 edited files are kept: app.py, data.txt, new/x.py. Anything else in it is lost." in told
        assert "`start_session` with resume=SESSION_ID" in told
        told = await failure(client, "view", path="app.py", **of)
        assert told.startswith("The sandbox of this session is gone. 3 edited files are kept: app.py, ")
        again = await client.call("start_session", resume=opened["session_id"])
        assert again["session_id"] == opened["session_id"]
        assert again["entrypoint"] == "python app.py"
        (notice,) = [one for one in again["notices"] if "gone" in one]
        assert "3 edited files are back: app.py, data.txt, new/x.py." in notice
        assert "The breakpoints were: b app.py:4, n > 1; tbreak app.py:6." in notice
        assert "Its environment had COLOUR: give `env` again." in notice
        assert (await client.call("diff", **of))["patch"] == patch
        assert (await client.call("eval", **of))["output"] == "84"


async def test_the_only_session_of_a_client_is_resumed_by_the_next_call_which_says_so(
    repo: Path, state: Path
) -> None:
    async with served(repo, state, one_client=True) as client:
        await client.call("rewrite", path="app.py", old_code="n * 2", new_code="n * 3")
        await lose(client)
        text = await next_text(client, "view", path="app.py")
        assert (
            "note: This session's sandbox was gone; this is a new one. 1 edited file is back: app.py." in text
        )
        assert "n * 3" in text
        await client.call("rewrite", path="app.py", old_code="n * 3", new_code="n * 4")
        await lose(client)
        (repo / "app.py").write_text("print('another version')\n")
        text = await next_text(client, "diff")
        assert "Edited in another version than the repository has now, so see `diff`: app.py." in text
        assert "+    result = n * 4" in text
        assert "note:" not in await client.text("listdir")


async def test_edits_are_forgotten_when_the_session_is_closed_and_when_its_server_ends(
    repo: Path, state: Path
) -> None:
    async with served(repo, state) as client:
        first, second = [await client.call("start_session") for _ in range(2)]
        for one in (first, second):
            await client.call("rewrite", path="app.py", new_code="x = 1\n", session_id=one["session_id"])
        assert {path.name for path in kept(state)} == {
            session_key(one["session_id"]) for one in (first, second)
        }
        assert {path.stat().st_mode & 0o777 for path in kept(state)} == {0o600}
        assert {path.stat().st_mode & 0o777 for path in (state, state / ME)} == {0o700}
        await client.call("close_session", session_id=first["session_id"])
        assert len(kept(state)) == 1
        assert "unknown or has expired" in await failure(client, "diff", session_id=first["session_id"])
        assert "No edits of such a session" in await failure(
            client, "start_session", resume=first["session_id"]
        )
        assert "still there" in await failure(client, "start_session", resume=second["session_id"])
    assert not kept(state)


async def test_edits_of_one_owner_are_not_there_for_another(repo: Path, state: Path) -> None:
    async with served(repo, state) as client:
        handle = (await client.call("start_session"))["session_id"]
        await client.call("rewrite", path="app.py", new_code="x = 1\n", session_id=handle)
        await lose(client)
        await failure(client, "diff", session_id=handle)
        (file,) = kept(state)
        (state / "somebody").mkdir()
        file.rename(state / "somebody" / file.name)
        assert "unknown or has expired" in await failure(client, "diff", session_id=handle)
        assert "No edits of such a session" in await failure(client, "start_session", resume=handle)


async def test_edits_that_can_not_be_kept_are_made_all_the_same_and_the_answer_says_so(
    repo: Path, state: Path
) -> None:
    async with served(repo, state) as client:
        handle = (await client.call("start_session"))["session_id"]
        kept(state)[0].unlink()
        text = await client.text("rewrite", path="app.py", new_code="x = 1\n", session_id=handle)
        assert "note: this edit would be lost with the sandbox, for it can't be kept" in text
        assert "+x = 1" in text


async def test_a_session_of_another_repository_is_not_resumed_for_this_one(
    repo: Path, state: Path, tmp_path: Path
) -> None:
    (other := repo / "part").mkdir()
    async with served(repo, state) as client:
        handle = (await client.call("start_session"))["session_id"]
        await lose(client)
        assert "opens a new" in await failure(client, "diff", session_id=handle)
        assert "another repository" in await failure(client, "start_session", resume=handle, repo=str(other))
        assert (await client.call("start_session", resume=handle, repo=str(repo)))["session_id"] == handle
