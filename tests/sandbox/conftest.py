"""Backends, sandboxes and connections for the tests; each test must leave nothing behind."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from anyio.abc import TaskGroup

from sandbox.backend import Backend, Sandbox
from sandbox.bubblewrap.backend import BubblewrapBackend
from sandbox.docker import images
from sandbox.docker.backend import DockerBackend
from sandbox.docker.container import OWNER
from sandbox.process import CHILD_MARK, MARK, ProcessBackend
from sandbox.spec import Limits, SandboxSpec
from sandbox.transport.connection import GuestConnection
from tests.bubblewrap import BUBBLEWRAP
from tests.docker_client import docker

DOCKER = pytest.param("docker", marks=pytest.mark.docker)
BACKENDS = {"docker": DockerBackend, "bubblewrap": BubblewrapBackend, "process": ProcessBackend}
SMALL = Limits(
    memory_bytes=256 << 20,
    cpus=1,
    pids=64,
    workspace_bytes=64 << 20,
    tmp_bytes=16 << 20,
    home_bytes=16 << 20,
)


@dataclass
class Place:
    """A backend of one kind, with an owner of its own and the means to open another one."""

    name: str
    environ: dict[str, str]
    owner: str = field(default_factory=lambda: uuid.uuid4().hex)

    def backend(self) -> Backend:
        """One that knows nothing of the sandboxes of others, like that of another server."""
        return BACKENDS[self.name](self.environ)

    def spec(self, key: str | None = None, **changes: Any) -> SandboxSpec:
        """A sandbox for a test."""
        image = images.reference("3.11") if self.name == "docker" else ""
        spec = SandboxSpec(key or uuid.uuid4().hex, self.owner, image=image, limits=SMALL)
        return replace(spec, **changes)

    async def leftovers(self) -> Sequence[str]:
        """What is still there of this owner's sandboxes."""
        if self.name == "docker":
            backend = DockerBackend(self.environ)
            async with backend.lifespan():
                engine = await backend.engine()
                found = await backend.call(engine.containers, {OWNER: self.owner})
            return [container.id for container in found]
        folder = Path(self.environ["XDG_RUNTIME_DIR"], "pdbox")
        return await anyio.to_thread.run_sync(lambda: [str(file) for file in folder.glob("*")])


def quiet(line: str) -> None:
    """Progress that nobody reads."""


@pytest.fixture(params=["process", BUBBLEWRAP, DOCKER])
async def place(request: pytest.FixtureRequest) -> AsyncIterator[Place]:
    """Each backend in turn."""
    async with place_of(request.param) as place:
        yield place


@pytest.fixture
async def docker_place() -> AsyncIterator[Place]:
    """Docker, for what only it promises."""
    async with place_of("docker") as place:
        yield place


@asynccontextmanager
async def place_of(name: str) -> AsyncIterator[Place]:
    # Short: the path of a Unix socket has 108 bytes at most, which pytest's tmp_path nearly fills.
    runtime = tempfile.mkdtemp(prefix="pdbox-test-")
    place = Place(name, {**os.environ, "XDG_RUNTIME_DIR": runtime, "XDG_STATE_HOME": f"{runtime}/state"})
    yield place
    left = await place.leftovers()
    shutil.rmtree(runtime)
    assert left == []


@pytest.fixture
async def backend(place: Place) -> AsyncIterator[Backend]:
    """An open backend."""
    opened = place.backend()
    async with opened.lifespan():
        yield opened


@pytest.fixture
async def tasks() -> AsyncIterator[TaskGroup]:
    """Where connections are read; ends with the test."""
    async with anyio.create_task_group() as group:
        yield group
        group.cancel_scope.cancel()


@pytest.fixture
async def sandbox(backend: Backend, place: Place) -> AsyncIterator[Sandbox]:
    """A small one, removed after the test."""
    started = await backend.start(place.spec(), quiet)
    yield started
    await started.aclose()


@pytest.fixture
def connect(tasks: TaskGroup) -> Callable[[Sandbox], Awaitable[GuestConnection]]:
    """Opens connections that are read for as long as the test runs."""

    async def opened(sandbox: Sandbox) -> GuestConnection:
        return await GuestConnection.open(await sandbox.connect(), tasks)

    return opened


@pytest.fixture
async def guest(
    sandbox: Sandbox, connect: Callable[[Sandbox], Awaitable[GuestConnection]]
) -> GuestConnection:
    """A connection into a small sandbox."""
    return await connect(sandbox)


async def shell(guest: GuestConnection, command: str, timeout_s: float = 60) -> tuple[int | None, str]:
    """Run a command in the sandbox; its exit code and what it printed."""
    args = {"command": command, "timeout_s": timeout_s, "max_output": 100_000}
    answer, _ = await guest.request("exec", args, timeout_s=timeout_s)
    return answer["exit_code"], answer["output"]


async def send_signal(backend: Backend, sandbox: Sandbox, number: signal.Signals) -> None:
    """Send the supervisor a signal from outside: where it is the first process, none comes from inside."""
    if isinstance(backend, DockerBackend):
        await anyio.to_thread.run_sync(docker, "kill", "-s", number.name, sandbox.place)
    else:
        os.kill(int(sandbox.place), number)


async def ended(backend: Backend, place: str) -> None:
    """Wait until the first process of a sandbox has ended."""
    if isinstance(backend, DockerBackend):
        # Waiting fails for one that is gone already: that has ended, too.
        await anyio.run_process(["docker", "wait", place], check=False)
        return
    with suppress(ProcessLookupError):
        descriptor = os.pidfd_open(int(place))
        try:
            await anyio.wait_readable(descriptor)
        finally:
            os.close(descriptor)


def marked(key: str) -> Sequence[int]:
    """Processes on this machine that belong to the sandbox of this key."""
    found: list[int] = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            variables = entry.read_bytes().decode("utf-8", "replace").split("\0")
            if any(variable.startswith((f"{MARK}={key}", f"{CHILD_MARK}={key}.")) for variable in variables):
                found.append(int(entry.parent.name))
        except OSError:
            continue
    return found
