"""Attacks from inside a bubblewrap sandbox, each with what stops it."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import anyio
import pytest

from sandbox.backend import Sandbox
from sandbox.bubblewrap.backend import BubblewrapBackend
from sandbox.errors import SandboxLost
from sandbox.spec import ImageRequest
from sandbox.transport.connection import GuestConnection
from tests.bubblewrap import REASON
from tests.sandbox.conftest import Place, place_of, quiet, shell

pytestmark = pytest.mark.skipif(bool(REASON), reason=REASON or "it works")
Connect = Callable[[Sandbox], Awaitable[GuestConnection]]


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    """Bubblewrap only."""
    async with place_of("bubblewrap") as place:
        yield place


async def test_what_a_program_tries_is_stopped(
    guest: GuestConnection, sandbox: Sandbox, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of the host", encoding="utf-8")
    attacks = {
        "hidden by the mount namespace": f"cat {secret}",
        "no docker socket": "ls /var/run/docker.sock || ls /run/docker.sock",
        "no other process": f"kill -0 {os.getpid()}",
        "no route": "python -c 'import socket; socket.create_connection((\"1.1.1.1\", 53), 5)'",
        "read-only interpreter": 'touch "$(dirname "$(command -v python)")/x"',
        "read-only system": "touch /usr/x || touch /x || touch /dev/x || touch /etc/x",
        "no new namespaces": "unshare -U true || unshare -m true",
        "a full /tmp": "head -c 40000000 /dev/zero > /tmp/big",
        "vsock": "python -c 'import socket; socket.socket(40, 1)'",
        "no capabilities": "chown 0 /workspace || mount -t tmpfs x /tmp",
    }
    passed = [name for name, attack in attacks.items() if (await shell(guest, attack))[0] == 0]
    assert passed == []
    _, said = await shell(guest, "i=0; while [ $i -lt 200 ]; do sleep 1000 & i=$((i + 1)); done")
    assert "Resource temporarily unavailable" in said
    assert await guest.request("ping") == ({}, b"")


async def test_a_link_in_the_place_of_the_socket_is_not_followed(
    guest: GuestConnection, sandbox: Sandbox
) -> None:
    await shell(guest, "rm /run/pdbox/socket; ln -s /var/run/docker.sock /run/pdbox/socket")
    with pytest.raises(SandboxLost):
        await sandbox.connect()


@pytest.mark.parametrize("has_it", [True, False])
async def test_the_python_of_the_active_environment_is_taken_if_it_has_pytest(
    place: Place, tmp_path: Path, has_it: bool
) -> None:
    environment = tmp_path / "environment"
    await anyio.run_process([sys.executable, "-m", "venv", "--without-pip", str(environment)])
    if has_it:
        (packages,) = environment.glob("lib/python*/site-packages")
        (packages / "pytest.py").touch()
    environ = {**place.environ, "VIRTUAL_ENV": str(environment), "PATH": "/nonexistent"}
    choice = await BubblewrapBackend(environ).choose(ImageRequest(), quiet)
    assert choice.image == (str(environment / "bin" / "python") if has_it else sys.executable)
