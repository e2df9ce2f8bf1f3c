"""Sandboxes that are started ahead of their session: nobody's until they are assigned, on every backend."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from dataclasses import replace

import anyio
import pytest
from anyio.abc import TaskGroup

from sandbox.backend import Backend, Sandbox
from sandbox.errors import SandboxLost
from sandbox.spec import Lifetime, SandboxSpec
from sandbox.transport.connection import GuestConnection
from tests.polling import pause
from tests.sandbox.conftest import Place, quiet, shell

Connect = Callable[[Sandbox], Awaitable[GuestConnection]]


def ahead(place: Place, user: str, **changes: object) -> SandboxSpec:
    return replace(place.spec(), key="", owner="", user=user, pooled=True, **changes)


async def test_a_sandbox_is_its_owners_alone_once_it_is_assigned(
    backend: Backend, place: Place, connect: Connect
) -> None:
    user, key, stranger = uuid.uuid4().hex, uuid.uuid4().hex, uuid.uuid4().hex
    sandbox = await backend.start(ahead(place, user), quiet)
    try:
        await connect(sandbox)
        assert [one.pooled for one in await backend.of_user(user)] == [True]
        assert await backend.find("") == []
        await sandbox.assign(key, place.owner, "5e")
        (found,) = await place.backend().find(place.owner, key)
        assert (found.owner, found.user, found.source, found.pooled) == (place.owner, user, "5e", False)
        assert await backend.find(stranger, key) == []
        assert await backend.of_user(stranger) == []
    finally:
        await sandbox.aclose()
    assert await backend.of_user(user) == []


async def test_no_time_runs_out_before_the_session_begins_and_none_is_lost_after(
    backend: Backend, place: Place, connect: Connect
) -> None:
    user = uuid.uuid4().hex
    short = Lifetime(idle_s=0.001, max_age_s=0.001, grace_s=0.001)
    sandbox = await backend.start(ahead(place, user, lifetime=short), quiet)
    try:
        guest = await connect(sandbox)
        await guest.request("load")
        assert guest.lost is None
        await guest.request("lifetime", {"start": True})
        with anyio.fail_after(60):
            await guest.ended.wait()
        assert "closed itself" in str(guest.lost)
    finally:
        await sandbox.aclose()


async def test_an_unused_one_ends_with_the_connection_of_its_server(
    backend: Backend, place: Place, connect: Connect
) -> None:
    user = uuid.uuid4().hex
    sandbox = await backend.start(ahead(place, user), quiet)
    try:
        await (await connect(sandbox)).aclose()
        with anyio.fail_after(60):
            while await backend.of_user(user):
                await pause()
    finally:
        await sandbox.aclose()


async def test_what_is_past_its_maximum_age_is_not_found_and_is_swept_however_busy(
    backend: Backend, place: Place, connect: Connect, tasks: TaskGroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = uuid.uuid4().hex
    sandbox = await backend.start(place.spec(user=user, lifetime=Lifetime(max_age_s=20)), quiet)
    try:
        guest = await connect(sandbox)
        # Being busy, the guest does not end by itself yet.
        tasks.start_soon(_sleep, guest)
        with anyio.fail_after(60):
            while await backend.find(place.owner):
                await pause()
        assert len(await backend.of_user(user)) == 1
        monkeypatch.setattr("sandbox.backend.OVERTIME_S", 0)
        await backend.sweep(user)
        assert await backend.of_user(user) == []
    finally:
        await sandbox.aclose()


async def _sleep(guest: GuestConnection) -> None:
    with pytest.raises(SandboxLost):
        await shell(guest, "sleep 1000", 1000)
