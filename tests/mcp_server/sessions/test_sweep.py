"""When servers look for what others left behind."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from mcp_server.commands.serve import stdio_store
from mcp_server.server import owner_of
from mcp_server.sessions.store import SessionStore
from mcp_server.settings import Settings
from sandbox.process import ProcessBackend
from sandbox.spec import SandboxSpec
from tests.polling import pause

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]


@pytest.fixture
async def store(repo: Path) -> AsyncIterator[SessionStore]:
    """That of a server on the process backend."""
    async with stdio_store(Settings(repo=repo, backend="process", unsafe_no_isolation=True)) as store:
        yield store


async def leave_behind() -> ProcessBackend:
    """A sandbox that never ends by itself, and whose server has been gone for an hour."""
    backend = ProcessBackend()
    sandbox = await backend.start(SandboxSpec("ab" * 16, owner_of(), user=owner_of()), lambda line: None)
    os.kill(int(sandbox.place), signal.SIGSTOP)
    await (await sandbox.connect()).aclose()
    backend.servers.release()
    let_an_hour_pass()
    return backend


def let_an_hour_pass() -> None:
    then = time.time() - 3600
    for file in Path(os.environ["XDG_STATE_HOME"], "pdbox", "servers").iterdir():
        os.utime(file, times=(then, then))


async def removed(backend: ProcessBackend) -> None:
    while await backend.of_user(owner_of()):
        await pause()


async def test_a_server_sweeps_at_its_start_what_a_dead_one_left(store: SessionStore) -> None:
    left = await leave_behind()
    store.warm()
    await removed(left)


async def test_a_server_without_a_dead_one_does_not_open_its_backend_at_the_start(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("mcp_server.backends.create_backend", opened.append)
    async with stdio_store(Settings(repo=repo)) as store:
        store.warm()
        with anyio.move_on_after(0.5):
            await anyio.sleep_forever()
    assert opened == []


async def test_a_server_sweeps_again_while_it_runs(
    store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp_server.sessions.lazy_backend.SWEEP_EVERY_S", 0.2)
    await store.probe()
    await removed(await leave_behind())
