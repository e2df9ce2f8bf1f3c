"""Engines that hang on one container: a proxy of the real engine leaves requests about it without an answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
import pytest
from anyio.abc import ByteStream

from sandbox.docker import backend as docker_backend
from sandbox.docker.attach import Endpoint
from sandbox.docker.backend import DockerBackend
from sandbox.errors import SandboxLost
from sandbox.spec import SandboxInfo
from tests.sandbox.conftest import Place, quiet

pytestmark = pytest.mark.docker


class HangingEngine:
    """Forwards connections to an engine until a request has the text `held`, which then stays unanswered."""

    def __init__(self, engine: Endpoint) -> None:
        self._engine = engine
        self.held = b""

    async def serve(self, client: ByteStream) -> None:
        """Forward one connection."""
        engine = await self._engine.dial()
        async with client, engine, anyio.create_task_group() as tasks:
            tasks.start_soon(self._forward, engine, client)
            await self._forward(client, engine, is_request=True)

    async def _forward(self, source: ByteStream, sink: ByteStream, is_request: bool = False) -> None:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            async for data in source:
                if is_request and self.held and self.held in data:
                    await anyio.sleep_forever()
                await sink.send(data)
            await sink.send_eof()


@asynccontextmanager
async def _hanging(place: Place) -> AsyncIterator[tuple[HangingEngine, DockerBackend]]:
    """The proxy, and a backend that uses it."""
    direct = DockerBackend(place.environ)
    socket = Path(place.environ["XDG_RUNTIME_DIR"], "engine.sock")
    async with direct.lifespan():
        proxy = HangingEngine((await direct.engine()).endpoint())
        async with await anyio.create_unix_listener(socket) as listener, anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, proxy.serve)
            backend = DockerBackend({**place.environ, "DOCKER_HOST": f"unix://{socket}"})
            async with backend.lifespan():
                yield proxy, backend
            tasks.cancel_scope.cancel()


async def test_calls_about_a_container_that_hangs_keep_no_other_waiting_and_can_be_cancelled(
    docker_place: Place,
) -> None:
    async with _hanging(docker_place) as (proxy, backend):
        sandbox = await backend.start(docker_place.spec(), quiet)
        first = await sandbox.connect()
        proxy.held = sandbox.place.encode()
        async with anyio.create_task_group() as callers:
            for _ in range(20):
                callers.start_soon(sandbox.connect)
            await anyio.wait_all_tasks_blocked()
            with anyio.fail_after(10):
                other = await backend.start(docker_place.spec(), quiet)
            callers.cancel_scope.cancel()
        proxy.held = b""
        await other.aclose()
        await anyio.aclose_forcefully(first)
        await sandbox.aclose()


@pytest.mark.parametrize("held", ["containers", "exec"])
async def test_a_container_to_which_the_engine_opens_no_connection_is_lost(
    docker_place: Place, monkeypatch: pytest.MonkeyPatch, held: str
) -> None:
    async with _hanging(docker_place) as (proxy, backend):
        sandbox = await backend.start(docker_place.spec(), quiet)
        first = await sandbox.connect()
        monkeypatch.setattr(docker_backend, "HANG_S", 0.5)
        proxy.held = f"/{held}/".encode()
        with anyio.fail_after(10), pytest.raises(SandboxLost, match="opens no connection"):
            await sandbox.connect()
        proxy.held = b"/json"
        with anyio.fail_after(10), pytest.raises(SandboxLost, match="opens no connection"):
            await backend.adopt(SandboxInfo("key", sandbox.place, 0.0))
        proxy.held = b""
        await anyio.aclose_forcefully(first)
        await sandbox.aclose()
