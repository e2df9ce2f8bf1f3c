"""Memory of all processes of a sandbox together, where there are no control groups."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from sandbox.backend import Backend, Sandbox
from sandbox.bubblewrap import backend as bubblewrap
from sandbox.bubblewrap.memory_watch import WatchedSandbox, can_watch, check
from sandbox.errors import SandboxLost
from sandbox.local_guests import start_time
from sandbox.transport.connection import GuestConnection
from tests.bubblewrap import REASON
from tests.sandbox.conftest import Place, ended, place_of, quiet, shell

pytestmark = pytest.mark.skipif(not can_watch(), reason="this kernel does not tell the children of a process")
MB = 1 << 20
Start = Callable[[str], WatchedSandbox]
PRIVATE = "held = bytearray(40 << 20)"
SHARED = "import mmap; held = mmap.mmap(-1, 40 << 20); held.write(bytes(40 << 20))"
THREE = """\
import os, sys
for number in range(3):
    if not os.fork():
        %s
        print(os.getpid(), flush=True)
        sys.stdin.read()
print(0, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a family of four processes; returns once each has what it holds."""
    started: list[subprocess.Popen[str]] = []

    def begin(source: str) -> WatchedSandbox:
        process = subprocess.Popen(
            [sys.executable, "-c", source], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        assert process.stdout is not None
        for _ in range(4):
            assert process.stdout.readline()
        return WatchedSandbox(process.pid, start_time(process.pid), 0)

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def living(family: WatchedSandbox) -> int:
    """Number of processes of the family that have not ended."""
    children = Path(f"/proc/{family.pid}/task/{family.pid}/children").read_text().split()
    return sum(bool(start_time(int(pid))) for pid in [family.pid, *children])


def settle(family: WatchedSandbox, left: int) -> None:
    """Check until so many processes live; then nothing more is killed."""
    while living(family) > left:
        check(family)
    check(family)
    assert (family.kills, living(family)) == (0, left)


@pytest.mark.parametrize("held", [PRIVATE, SHARED])
def test_the_largest_processes_end_until_the_rest_keeps_the_limit(start: Start, held: str) -> None:
    family = start(THREE % held)
    family.limit = 110 * MB
    assert check(family) < 0.5
    assert family.kills == 1
    settle(family, 3)


def test_what_processes_share_counts_once(start: Start) -> None:
    source = "held = bytearray(60 << 20)\n" + THREE % "pass"
    family = start(source)
    family.limit = 110 * MB
    settle(family, 4)
    family.limit = 40 * MB
    check(family)
    assert family.kills == 1


def test_a_sandbox_ends_when_kills_do_not_help(start: Start) -> None:
    family = start(THREE % "pass")
    family.limit, family.kills = 1, 20
    check(family)
    os.waitpid(family.pid, 0)


def test_a_process_id_that_is_anothers_now_is_left_alone(start: Start) -> None:
    family = start(THREE % PRIVATE)
    family.limit, family.started = 1, "another"
    check(family)
    assert living(family) == 4


@pytest.fixture
async def place(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Place]:
    """Bubblewrap of a user who can make no control groups."""
    monkeypatch.setattr(bubblewrap, "make_groups", lambda *_: [])
    async with place_of("bubblewrap") as place:
        yield place


@pytest.mark.skipif(bool(REASON), reason=REASON or "it works")
async def test_programs_that_use_up_memory_together_are_killed_and_the_session_lives(
    backend: Backend, place: Place, sandbox: Sandbox, guest: GuestConnection
) -> None:
    assert "256 MiB memory," in sandbox.isolation
    neighbour = await backend.start(place.spec(), quiet)
    source = """
import mmap, os, time
for _ in range(4):
    if not os.fork():
        held = mmap.mmap(-1, 100 << 20)
        held.write(bytes(100 << 20))
        time.sleep(600)
print(os.waitstatus_to_exitcode(os.wait()[1]))
"""
    try:
        assert await shell(guest, f"python3 -c '{source}'") == (0, "-9\n")
        assert await guest.request("ping") == ({}, b"")
        assert start_time(int(neighbour.place))
    finally:
        await neighbour.aclose()


MAKE_FILES = """
import os, sys
for number in range(int(sys.argv[2])):
    os.close(os.open(sys.argv[1] + str(number), os.O_CREAT))
print("made")
"""


def write_files(folder: str, number: int) -> str:
    return f"python3 -c '{MAKE_FILES}' {folder}/ {number}"


@pytest.mark.skipif(bool(REASON), reason=REASON or "it works")
async def test_empty_files_count_as_memory(sandbox: Sandbox, guest: GuestConnection) -> None:
    assert await shell(guest, write_files("/tmp", 70_000)) == (0, "made\n")
    hog = """python3 -c 'import time; held = b"x" * (160 << 20); time.sleep(600)'"""
    assert (await shell(guest, f"{hog}; echo $?"))[1].endswith("137\n")
    assert await guest.request("ping") == ({}, b"")


@pytest.mark.skipif(bool(REASON), reason=REASON or "it works")
@pytest.mark.parametrize("folder", ["/tmp", "/dev/shm", "/home/sandbox", "/workspace"])
async def test_more_empty_files_than_its_memory_end_the_sandbox(
    backend: Backend, place: Place, sandbox: Sandbox, guest: GuestConnection, folder: str
) -> None:
    neighbour = await backend.start(place.spec(), quiet)
    try:
        with pytest.raises(SandboxLost):
            await shell(guest, write_files(folder, 1_000_000))
        await ended(backend, sandbox.place)
        assert start_time(int(neighbour.place))
    finally:
        await neighbour.aclose()
