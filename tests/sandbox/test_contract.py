"""What every backend promises. A new one is one more parameter of `place`."""

from __future__ import annotations

import signal
import sys
from collections.abc import Awaitable, Callable

import anyio
import pytest

from sandbox.backend import Backend, Sandbox
from sandbox.errors import BackendUnavailable, SandboxLost
from sandbox.guest.protocol import PROTOCOL
from sandbox.spec import Lifetime
from sandbox.transport.connection import GuestConnection
from tests.sandbox.conftest import Place, ended, marked, quiet, send_signal, shell

Connect = Callable[[Sandbox], Awaitable[GuestConnection]]


async def test_probe_says_what_programs_run_on(backend: Backend, place: Place) -> None:
    line = await backend.probe()
    assert {"docker": "Docker", "bubblewrap": "bubblewrap", "process": "no isolation"}[place.name] in line


async def test_a_started_sandbox_greets_and_answers(sandbox: Sandbox, connect: Connect) -> None:
    guest = await connect(sandbox)
    assert guest.hello.protocol == PROTOCOL
    assert guest.hello.python.startswith("3.")
    assert await guest.request("ping") == ({}, b"")


async def test_each_connection_gets_its_own_answers(sandbox: Sandbox, connect: Connect) -> None:
    guests = [await connect(sandbox) for _ in range(4)]
    outputs: dict[int, str] = {}

    async def ask(number: int) -> None:
        outputs[number] = (await shell(guests[number], f"echo {number}"))[1]

    async with anyio.create_task_group() as group:
        for number in range(4):
            group.start_soon(ask, number)
    assert outputs == {number: f"{number}\n" for number in range(4)}


async def test_a_large_answer_arrives_whole(sandbox: Sandbox, connect: Connect) -> None:
    guest = await connect(sandbox)
    answer, _ = await guest.request(
        "exec",
        {"command": "head -c 1000000 /dev/zero | tr '\\0' x", "timeout_s": 60, "max_output": 1_000_000},
    )
    assert answer["output"] == "x" * 1_000_000


async def test_the_environment_asked_for_is_there(backend: Backend, place: Place, connect: Connect) -> None:
    sandbox = await backend.start(place.spec(env={"COLOUR": "sea green"}), quiet)
    try:
        assert await shell(await connect(sandbox), "echo $COLOUR") == (0, "sea green\n")
    finally:
        await sandbox.aclose()


async def test_another_server_adopts_what_a_dropped_connection_left(
    place: Place, sandbox: Sandbox, backend: Backend, connect: Connect
) -> None:
    guest = await connect(sandbox)
    await guest.request("meta.set", {"meta": {"colour": "red"}})
    await shell(guest, "echo kept > note")
    await guest.aclose()

    other = place.backend()
    async with other.lifespan():
        (found,) = await other.find(place.owner)
        adopted = await other.adopt(found)
        again = await connect(adopted)
        assert again.hello.meta == {"colour": "red"}
        assert await shell(again, "cat note") == (0, "kept\n")
        assert adopted.isolation == sandbox.isolation
        assert adopted.place == sandbox.place == found.place


async def test_a_killed_server_leaves_its_sandbox_to_the_next(place: Place, connect: Connect) -> None:
    script = (
        "import anyio, os, signal\n"
        "from tests.sandbox.conftest import Place, quiet\n"
        "async def main():\n"
        f"    place = Place({place.name!r}, dict(os.environ), {place.owner!r})\n"
        "    backend = place.backend()\n"
        "    async with backend.lifespan():\n"
        "        sandbox = await backend.start(place.spec('abcdef0123456789'), quiet)\n"
        "        stream = await sandbox.connect()\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "anyio.run(main)\n"
    )
    killed = await anyio.run_process([sys.executable, "-c", script], env=place.environ, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()

    backend = place.backend()
    async with backend.lifespan():
        (found,) = await backend.find(place.owner, "abcdef0123456789")
        sandbox = await backend.adopt(found)
        assert await (await connect(sandbox)).request("ping") == ({}, b"")
        await sandbox.aclose()


async def test_find_gives_only_the_owners_own(backend: Backend, place: Place) -> None:
    first = await backend.start(place.spec("a" * 32), quiet)
    second = await backend.start(place.spec("b" * 32), quiet)
    try:
        assert {found.key for found in await backend.find(place.owner)} == {"a" * 32, "b" * 32}
        (found,) = await backend.find(place.owner, "b" * 32)
        assert (found.key, found.place) == ("b" * 32, second.place)
        assert found.created > 1_600_000_000
        assert await backend.find("somebody else") == []
        assert await backend.find("somebody else", "b" * 32) == []
    finally:
        await first.aclose()
        await second.aclose()


async def test_killing_the_guest_ends_its_streams(
    backend: Backend, sandbox: Sandbox, connect: Connect
) -> None:
    guest, other = await connect(sandbox), await connect(sandbox)
    with anyio.fail_after(60), pytest.raises(SandboxLost):
        async with anyio.create_task_group() as group:
            group.start_soon(send_signal, backend, sandbox, signal.SIGKILL)
            await guest.ended.wait()
        await guest.request("ping")
    with anyio.fail_after(60), pytest.raises(SandboxLost):
        await other.request("ping")


async def test_nothing_is_left_after_closing_and_closing_twice_is_fine(
    backend: Backend, place: Place, connect: Connect
) -> None:
    spec = place.spec()
    sandbox = await backend.start(spec, quiet)
    guest = await connect(sandbox)
    await shell(guest, "(setsid sleep 1000 >/dev/null 2>&1 </dev/null &)")
    (found,) = await backend.find(place.owner)
    with anyio.fail_after(60):
        await sandbox.aclose()
        await sandbox.aclose()
    assert await backend.find(place.owner) == []
    assert marked(spec.key) == []
    with pytest.raises(SandboxLost):
        await sandbox.connect()
    with pytest.raises(SandboxLost):
        await backend.adopt(found)


async def test_a_guest_that_hangs_is_removed_all_the_same(
    sandbox: Sandbox, backend: Backend, place: Place, connect: Connect
) -> None:
    guest = await connect(sandbox)
    (found,) = await backend.find(place.owner)
    await send_signal(backend, sandbox, signal.SIGSTOP)
    with anyio.move_on_after(1) as waited:
        await guest.request("ping")
    assert waited.cancelled_caught, "the guest still answers"
    with anyio.fail_after(60):
        await sandbox.aclose()
    assert await backend.find(place.owner) == []
    assert marked(found.key) == []


async def test_cancelling_a_start_leaves_nothing(backend: Backend, place: Place) -> None:
    for moment in (0.0, 0.02, 0.1):
        with anyio.move_on_after(moment) as scope:
            await (await backend.start(place.spec(), quiet)).aclose()
        assert scope.cancelled_caught or moment
    assert await backend.find(place.owner) == []


async def test_a_sandbox_ends_by_itself_when_no_server_comes_back(
    backend: Backend, place: Place, connect: Connect
) -> None:
    sandbox = await backend.start(place.spec(lifetime=Lifetime(grace_s=0.2)), quiet)
    guest = await connect(sandbox)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(ended, backend, sandbox.place)
            await guest.aclose()
    assert await backend.find(place.owner) == []
    await sandbox.aclose()


async def test_an_image_that_is_not_to_be_had_is_refused_and_nothing_is_left(
    backend: Backend, place: Place
) -> None:
    with pytest.raises(BackendUnavailable) as refused:
        await backend.start(place.spec(image="pdbox.invalid/nobody/nothing:0"), quiet)
    assert refused.value.message
    assert await place.leftovers() == []
