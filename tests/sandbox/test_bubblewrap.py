"""Attacks from inside a bubblewrap sandbox, each with what stops it."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

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
        "read-only interpreter": 'touch "$(dirname "$(realpath "$(command -v python)")")/x"',
        "read-only environment": "touch /run/venv/x || touch /run/venv/bin/x",
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


async def test_no_setting_of_the_kernel_can_be_written(guest: GuestConnection) -> None:
    # Asked, not tried: where a server runs as root, a write would reach the whole machine.
    code, output = await shell(
        guest,
        "find /proc -maxdepth 1 ! -name '[0-9]*' ! -name '*self' ! -path /proc -type d -exec find {} -type f -writable \\; 2>&1"
        " | grep -v 'Permission denied'; find /proc -maxdepth 1 -xtype f -writable",
    )
    assert (code, output) == (0, "")


async def test_nothing_of_the_kernel_or_the_server_that_is_hidden_can_be_read(guest: GuestConnection) -> None:
    code, output = await shell(
        guest,
        "for name in keys key-users timer_list sched_debug kcore slabinfo vmallocinfo kpagecount; do"
        " head -c 1 /proc/$name 2>/dev/null; done; ls /proc/acpi /proc/scsi 2>/dev/null | grep -v :; cat /proc/1/environ 2>/dev/null; true",
    )
    assert (code, output.strip()) == (0, "")


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


async def test_the_choice_of_an_interpreter_imports_nothing_of_the_working_directory(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without packages it imports nothing when it starts, so that all names are still to be found.
    environment = tmp_path / "environment"
    await anyio.run_process([sys.executable, "-m", "venv", "--without-pip", str(environment)])
    mark = tmp_path / "mark"
    (tmp_path / "importlib").mkdir()
    (tmp_path / "importlib" / "__init__.py").write_text(f"open({str(mark)!r}, 'w')\n")
    monkeypatch.chdir(tmp_path)
    environ = {**place.environ, "VIRTUAL_ENV": str(environment), "PATH": "/nonexistent"}
    await BubblewrapBackend(environ).choose(ImageRequest(), quiet)
    assert not mark.exists()


async def test_shims_of_version_managers_find_no_files_of_the_working_directory(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shims, repo, mark = tmp_path / "shims", tmp_path / "repo", tmp_path / "mark"
    shims.mkdir()
    repo.mkdir()
    for name in ("python", "python3"):
        # It runs what a file of the working directory names, as such shims do.
        shim = shims / name
        shim.write_text(f'#!/bin/sh\n[ -x ./mine ] && exec ./mine "$@"\nexec {sys.executable} "$@"\n')
        shim.chmod(0o755)
    (repo / "mine").write_text(f"#!/bin/sh\ntouch {mark}\n")
    (repo / "mine").chmod(0o755)
    monkeypatch.chdir(repo)
    environ = {**place.environ, "PATH": f"{shims}:{place.environ['PATH']}"}
    backend = BubblewrapBackend(environ)
    chosen = await backend.choose(ImageRequest(), quiet)
    await backend._inspect(str(shims / "python3"))
    assert chosen.image and not mark.exists()


def make_wheel(folder: Path, version: int) -> Path:
    """A wheel of `colour`, with a command."""
    info = f"colour-{version}.dist-info"
    wheel = folder / f"colour-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("colour.py", f"def main():\n    print('colour {version}')\n")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: colour\nVersion: {version}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/entry_points.txt", "[console_scripts]\ncolour = colour:main\n")
        archive.writestr(f"{info}/RECORD", "")
    return wheel


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The user's virtual environment, in a repository that is installed in it as editable; with `colour` 1."""
    repo = tmp_path_factory.mktemp("user") / "repo"
    (repo / "src").mkdir(parents=True)
    (repo / "src/project.py").write_text("x = 'of the user'\n")
    subprocess.run([sys.executable, "-m", "venv", str(repo / ".venv")], check=True)
    python = str(repo / ".venv/bin/python")
    wheel = str(make_wheel(repo, 1))
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-index", wheel], check=True)
    (packages,) = (repo / ".venv").glob("lib/python*/site-packages")
    (packages / "project.pth").write_text(f"{repo}/src\n")
    # As setuptools does it for packages beside the configuration.
    (packages / "finder.py").write_text(f"import sys; sys.modules['found'] = {str(repo / 'src')!r}\n")
    (packages / "pytest.py").touch()
    (packages / "__editable__.found.pth").write_text("import finder\n")
    return repo / ".venv"


def content(folder: Path) -> dict[str, int]:
    """All files of a folder, with the time of their last change."""
    return {str(path): path.lstat().st_mtime_ns for path in folder.rglob("*")}


async def run(
    place: Place, connect: Connect, commands: list[str], **changes: Any
) -> list[tuple[int | None, str]]:
    """Run commands in a new sandbox."""
    backend = place.backend()
    async with backend.lifespan():
        sandbox = await backend.start(place.spec(**changes), quiet)
        try:
            guest = await connect(sandbox)
            return [await shell(guest, command) for command in commands]
        finally:
            await sandbox.aclose()


async def test_pip_installs_over_the_users_environment_and_changes_nothing_in_it(
    place: Place, connect: Connect, environment: Path, tmp_path: Path
) -> None:
    make_wheel(tmp_path, 2)
    before = content(environment)
    install = "pip install -q --no-index /wheels/colour-2*.whl"
    old, _, new, again, _, gone = await run(
        place,
        connect,
        [
            "colour",
            install,
            "colour && python -c 'import colour; colour.main()'",
            f"{install} --force-reinstall",
            "pip uninstall -y colour",
            "python -c 'import colour; colour.main()'",
        ],
        image=str(environment / "bin/python"),
        mounts=((str(tmp_path), "/wheels"),),
    )
    assert (old, new) == ((0, "colour 1\n"), (0, "colour 2\ncolour 2\n"))
    assert again[0] == 0, again
    assert gone == (0, "colour 1\n"), "what lies below is the user's own"
    assert content(environment) == before


async def test_pip_installs_into_the_home_where_the_python_is_no_environment(
    place: Place, connect: Connect, tmp_path: Path
) -> None:
    make_wheel(tmp_path, 2)
    python = f"{sys.base_prefix}/bin/python3"
    before = content(Path(sysconfig.get_path("purelib", vars={"base": sys.base_prefix})))
    for option in ("", "--user"):
        install = f"python3 -m pip install -q --no-index {option} /wheels/colour-2*.whl"
        said = await run(
            place, connect, [f"{install} && colour"], image=python, mounts=((str(tmp_path), "/wheels"),)
        )
        assert said == [(0, "colour 2\n")]
    assert content(Path(sysconfig.get_path("purelib", vars={"base": sys.base_prefix}))) == before


async def test_an_editable_installation_of_the_user_leads_to_the_copy(
    place: Place, connect: Connect, environment: Path
) -> None:
    backend = BubblewrapBackend({**place.environ, "VIRTUAL_ENV": str(environment), "PATH": "/nonexistent"})
    other = await backend.choose(ImageRequest(folder=environment.parent / "src"), quiet)
    assert other.origin, "a part of it"
    assert (await backend.choose(ImageRequest(folder=Path("/nowhere")), quiet)).origin == ""
    chosen = await backend.choose(ImageRequest(folder=environment.parent), quiet)
    said = await run(
        place,
        connect,
        [
            "mkdir src; echo 'x = 1' > src/project.py; cd /tmp",
            "python -c 'import project; print(project.__file__, project.x)'",
            "python -c 'import sys, os; print(os.path.realpath(sys.modules[\"found\"]))'",
            "ls -a " + str(environment.parent),
        ],
        image=chosen.image,
        origin=chosen.origin,
    )
    assert said[1:3] == [(0, "/workspace/src/project.py 1\n"), (0, "/workspace/src\n")], said
    assert ".venv" in said[3][1].split()
