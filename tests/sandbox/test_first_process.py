"""The supervisor as the first process of its sandbox: neither a program nor a careless command reaches it."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anyio
import anyio.to_thread
import pytest

from sandbox.backend import Backend, Sandbox
from sandbox.errors import Conflict
from sandbox.guest.supervisor.processes.proc import parent_of
from sandbox.transport.connection import GuestConnection
from tests.bubblewrap import BUBBLEWRAP
from tests.docker_client import docker
from tests.sandbox.conftest import DOCKER, Place, ended, place_of, shell

Connect = Callable[[Sandbox], Awaitable[GuestConnection]]
PROGRAM = "def double(n):\n    return n * 2\n\n\nprint(double(21))\n"
TRACE = f"""\
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for request in (16, 0x4206):  # PTRACE_ATTACH, PTRACE_SEIZE
    assert libc.ptrace(request, 1, None, None) == -1 and ctypes.get_errno() == {errno.EPERM}, request
for name in ("mem", "environ", "fd/1"):
    try:
        open("/proc/1/" + name, "rb")
    except PermissionError:
        continue
    raise AssertionError(name)
"""


@pytest.fixture(params=[BUBBLEWRAP, DOCKER])
async def place(request: pytest.FixtureRequest) -> AsyncIterator[Place]:
    """Each backend that isolates."""
    async with place_of(request.param) as place:
        yield place


async def debug(guest: GuestConnection, *lines: str) -> dict[str, Any]:
    """Give the program commands; the stop."""
    args = {"lines": list(lines), "timeout_s": 60, "entrypoint": "python app.py"}
    return (await guest.request("debug.command", args, timeout_s=60))[0]


@pytest.fixture
async def stopped(guest: GuestConnection) -> GuestConnection:
    """A connection into a sandbox whose program is at a breakpoint."""
    await shell(guest, f"cat > app.py <<'END'\n{PROGRAM}END")
    assert (await debug(guest, "b app.py:2", "c"))["frame"]["line"] == 2
    return guest


@pytest.mark.parametrize("name", ["KILL", "STOP", "TERM INT HUP", "QUIT ABRT USR1 USR2 TSTP ALRM"])
async def test_signals_to_the_supervisor_change_nothing(stopped: GuestConnection, name: str) -> None:
    commands = [f"kill -{one} $PPID" for one in name.split()]
    assert await shell(stopped, " && ".join([*commands, "echo sent"])) == (0, "sent\n")
    assert (await debug(stopped, "p n"))["reply"] == "21\n"


async def test_the_supervisor_can_be_neither_traced_nor_read(stopped: GuestConnection) -> None:
    assert await shell(stopped, f"python3 - <<'END'\n{TRACE}END") == (0, "")
    assert (await debug(stopped, "p n"))["reply"] == "21\n"


@pytest.mark.parametrize("command", ["pkill -f python", "pkill -9 python", "pkill -9 -f pdbox", "kill -9 -1"])
async def test_killing_all_processes_ends_the_program_and_its_breakpoint_stays(
    stopped: GuestConnection, command: str
) -> None:
    await shell(stopped, command)
    assert await shell(stopped, "echo fine") == (0, "fine\n")
    stop: dict[str, Any] = {"state": "exited"}
    with anyio.fail_after(60):
        while stop["state"] == "exited":  # that of the killed one is told first, or refuses the command
            with contextlib.suppress(Conflict):
                stop = await debug(stopped, "c")
    assert (stop["state"], stop["frame"]["line"]) == ("stopped", 2)


async def test_ps_shows_a_short_line_for_the_supervisor_and_programs_as_they_were_started(
    guest: GuestConnection,
) -> None:
    _, shown = await shell(guest, "ps -ef; ps aux")
    lines = [line.rstrip("\r") for line in shown.splitlines() if "pdbox supervisor" in line]
    assert [line.partition("pdbox supervisor")[2] for line in lines] == ["", ""]
    assert "First program" not in shown
    assert await shell(guest, "cat /proc/1/comm") == (0, "pdbox\n")
    own = "import sys; print(open('/proc/self/cmdline').read().split(chr(0))[2:], sys.argv)"
    code, output = await shell(guest, f'python3 -c "{own}" a "b c"')
    assert (code, output) == (0, f"{[own, 'a', 'b c', '']} ['-c', 'a', 'b c']\n")


async def test_orphans_are_reaped(guest: GuestConnection) -> None:
    await shell(guest, "for i in $(seq 40); do (setsid true &); done")
    with anyio.fail_after(60):
        while (await shell(guest, "cat /proc/[0-9]*/status | grep 'State:.Z'"))[1]:
            pass


async def test_it_ends_at_once_and_says_so_when_it_is_told_to_from_outside(
    sandbox: Sandbox, place: Place, backend: Backend, guest: GuestConnection
) -> None:
    with anyio.fail_after(8):  # an engine kills after 10 seconds
        if place.name == "docker":
            await anyio.to_thread.run_sync(docker, "stop", sandbox.place)
        else:
            os.kill(int(sandbox.place), signal.SIGRTMIN + 3)
        await guest.ended.wait()
    assert "The sandbox closed itself: SIGTERM" in str(guest.lost)
    await ended(backend, sandbox.place)


async def test_it_ends_with_the_process_that_started_it(
    place: Place, backend: Backend, sandbox: Sandbox
) -> None:
    if place.name == "docker":
        pytest.skip("the engine's own business")
    os.kill(parent_of(int(sandbox.place)), signal.SIGKILL)
    with anyio.fail_after(60):
        await ended(backend, sandbox.place)
