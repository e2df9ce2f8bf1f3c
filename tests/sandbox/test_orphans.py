"""Sandboxes whose supervisor does not run, so that they never end by themselves."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest
from anyio.abc import TaskGroup

from sandbox.backend import Backend, Sandbox
from sandbox.server_files import has_dead_servers
from sandbox.spec import Lifetime
from sandbox.transport.connection import GuestConnection
from tests.bubblewrap import BUBBLEWRAP
from tests.sandbox.conftest import Place, place_of, quiet, send_signal

Connect = Callable[[Sandbox], Awaitable[GuestConnection]]

GRACE_S = 5000.0
LIFETIME = Lifetime(grace_s=GRACE_S, idle_s=2 * GRACE_S)


def let_pass(place: Place, seconds: float) -> None:
    """Have all servers of this place been seen last so long ago."""
    then = time.time() - seconds
    for file in server_files(place):
        os.utime(file, times=(then, then))


def server_files(place: Place) -> list[Path]:
    return list(Path(place.environ["XDG_STATE_HOME"]).glob("pdbox/servers/*"))


def release(backend: Backend) -> None:
    """What the end of a server does, killed or not."""
    assert backend.server_files is not None
    backend.server_files.release()


@pytest.fixture
def user() -> str:
    return uuid.uuid4().hex


@pytest.fixture
async def immortal(backend: Backend, place: Place, user: str, connect: Connect, tasks: TaskGroup) -> Sandbox:
    """A sandbox whose supervisor stands still."""
    sandbox = await backend.start(place.spec(user=user, lifetime=LIFETIME), quiet)
    guest = await connect(sandbox)
    await send_signal(backend, sandbox, signal.SIGSTOP)
    stands_still = False
    while not stands_still:  # its threads stop one after the other, and one may still answer
        with anyio.move_on_after(1) as stopped:
            await guest.request("ping")
        stands_still = stopped.cancelled_caught
    return sandbox


async def test_it_is_swept_when_its_server_is_gone_for_its_grace_and_not_before(
    backend: Backend, place: Place, user: str, immortal: Sandbox
) -> None:
    other = place.backend()
    async with other.lifespan():
        let_pass(place, 10 * GRACE_S)
        await other.sweep(user)
        assert len(await other.of_user(user)) == 1, "its server lives"
        release(backend)
        assert has_dead_servers(place.environ)
        let_pass(place, GRACE_S)
        await other.sweep(user)
        assert len(await other.of_user(user)) == 1, "its grace is not over"
        let_pass(place, GRACE_S + 600)
        await other.sweep(uuid.uuid4().hex)
        assert len(await other.of_user(user)) == 1, "it is of another user"
        await other.sweep(user)
        assert await other.of_user(user) == []


async def test_one_that_another_server_has_adopted_lasts_as_long_as_that_server(
    backend: Backend, place: Place, user: str, immortal: Sandbox
) -> None:
    keeper, other = place.backend(), place.backend()
    async with keeper.lifespan(), other.lifespan():
        (found,) = await keeper.of_user(user)
        await keeper.keep(found, LIFETIME)
        release(backend)
        let_pass(place, 10 * GRACE_S)
        await other.sweep(user)
        assert len(await other.of_user(user)) == 1, "it is in use"
        release(keeper)
        let_pass(place, GRACE_S + 600)
        await other.sweep(user)
        assert await other.of_user(user) == []


async def test_one_of_a_server_that_is_unknown_here_is_left_alone(
    backend: Backend, place: Place, user: str, immortal: Sandbox
) -> None:
    stranger = Place(place.name, {**place.environ, "XDG_STATE_HOME": place.environ["XDG_STATE_HOME"] + "2"})
    other = stranger.backend()
    async with other.lifespan():
        release(backend)
        let_pass(place, 10 * GRACE_S)
        await other.sweep(user)
        (found,) = await other.of_user(user)
        await other.remove(found)


async def test_a_server_that_leaves_nothing_leaves_no_file(backend: Backend, place: Place, user: str) -> None:
    sandbox = await backend.start(place.spec(user=user), quiet)
    assert not has_dead_servers(place.environ)
    await sandbox.aclose()
    release(backend)
    assert not server_files(place)


NEVER_RECORDED = """\
import threading, anyio
from sandbox.local_guests import Record
from sandbox.spec import Lifetime
from tests.sandbox.conftest import BACKENDS, Place

def hang(record):
    print("started", flush=True)
    threading.Event().wait()

async def main():
    place = Place({name!r}, {environ!r})
    backend = place.backend()
    async with backend.lifespan():
        await backend.start(place.spec(lifetime=Lifetime(idle_s=0.1, grace_s=0.1)), print)

Record.write = hang
anyio.run(main)
"""


def workspaces(folder: Path) -> list[Path]:
    """Workspaces of the process backend below a folder for temporary files."""
    return list(folder.glob("pdbox-workspace-*"))


@pytest.mark.parametrize("name", ["process", BUBBLEWRAP])
async def test_what_a_killed_server_was_starting_is_swept_and_what_a_living_one_starts_is_not(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with place_of(name) as place:
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        environ = {**place.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
        program = NEVER_RECORDED.format(name=name, environ=environ)
        other = place.backend()
        async with (
            other.lifespan(),
            await anyio.open_process([sys.executable, "-c", program], env=environ, stderr=None) as server,
        ):
            assert server.stdout is not None
            assert await server.stdout.receive() == b"started\n"
            await other.sweep("")
            assert len(await place.leftovers()) == 1
            assert len(workspaces(tmp_path)) == (name == "process")
            server.kill()
            await server.wait()
            while await place.leftovers():  # what it had started still writes, until it ends
                await other.sweep("")
            assert not workspaces(tmp_path)
