"""Containers that the engine created for a server which was never told so."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest

from sandbox.docker.backend import DockerBackend
from sandbox.docker.engine import Engine
from sandbox.errors import BackendUnavailable
from tests.sandbox.conftest import Place, quiet

pytestmark = pytest.mark.docker


@pytest.fixture
def user() -> str:
    return uuid.uuid4().hex


@pytest.fixture
async def answers_lost(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """The engine creates containers, and no answer arrives."""
    create = Engine.create

    def lose(*args: Any) -> str:
        create(*args)
        raise BackendUnavailable("The connection was cut.")

    monkeypatch.setattr(Engine, "create", lose)
    yield
    monkeypatch.undo()


async def _unstarted(backend: DockerBackend, place: Place) -> int:
    engine = await backend.engine()
    return len(await backend.call(engine.containers, {"pdbox.owner": place.owner}, ("created",)))


async def test_they_are_removed_at_the_end_of_their_server(
    docker_place: Place, user: str, answers_lost: None
) -> None:
    watcher = DockerBackend(docker_place.environ)
    async with watcher.lifespan():
        backend = DockerBackend(docker_place.environ)
        async with backend.lifespan():
            with suppress(BackendUnavailable):
                await backend.start(docker_place.spec(user=user), quiet)
            assert await _unstarted(watcher, docker_place) == 1
        assert await _unstarted(watcher, docker_place) == 0


async def test_the_next_sweep_removes_them_if_their_server_was_killed(
    docker_place: Place, user: str, answers_lost: None
) -> None:
    other = DockerBackend(docker_place.environ)
    async with other.lifespan():
        killed = DockerBackend(docker_place.environ)
        async with killed.lifespan():
            with suppress(BackendUnavailable):
                await killed.start(docker_place.spec(user=user), quiet)
            await other.sweep(user)
            assert await _unstarted(other, docker_place) == 1, (
                "its server lives, and may be about to start it"
            )
            killed.servers.note("anything")  # its file stays, as that of a killed server does
            killed.servers.release()
            await other.sweep(user)
            assert await _unstarted(other, docker_place) == 0
