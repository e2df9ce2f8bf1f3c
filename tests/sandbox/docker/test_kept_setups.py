"""Results of set-up commands that are kept for later sessions."""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.concurrency import open_task_group
from sandbox.docker.backend import DockerBackend
from sandbox.errors import InvalidArgument, SandboxError
from sandbox.opening.kept_setups import KeptSetups
from sandbox.opening.open import open_session
from sandbox.opening.policy import Policy
from sandbox.opening.request import SessionRequest
from sandbox.session.session import Session
from sandbox.spec import Identity
from tests.sandbox.conftest import SMALL, Place, quiet

pytestmark = pytest.mark.docker
KEPT = "Set-up kept from an earlier session: its commands did not run again."
RUN_ID = "cat /proc/sys/kernel/random/uuid"
"""Prints something else each time that it runs."""
SETUP = (f"{RUN_ID} > ~/run",)

Open = Callable[..., AbstractAsyncContextManager[Session]]


@pytest.fixture
def place(docker_place: Place) -> Place:
    """Docker alone."""
    return docker_place


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A small repository."""
    folder = tmp_path / "repo"
    (folder / "pkg").mkdir(parents=True)
    (folder / "pkg" / "mod.py").write_text("n = 1\n")
    (folder / "requirements.txt").write_text("a==1\n")
    (folder / "old.txt").write_text("old\n")
    return folder


@pytest.fixture
def kept(tmp_path: Path) -> KeptSetups:
    """An empty store."""
    return KeptSetups(tmp_path / "setups", 64 << 20, worth_s=0)


@pytest.fixture
def opened(backend: DockerBackend, place: Place, repo: Path, kept: KeptSetups) -> Open:
    """Opens a session of this owner."""

    @asynccontextmanager
    async def opened(
        *setup: str, owner: str = "", configured: bool = False, **changes: object
    ) -> AsyncGenerator[Session]:
        identity = Identity(uuid.uuid4().hex, owner or place.owner, place.owner)
        policy = replace(Policy(roots=(repo,), limits=SMALL, setups=kept), **changes)
        chosen = None if configured else setup or SETUP
        request = SessionRequest(repo=str(repo), python="3.11", setup=chosen)
        async with open_task_group() as tasks:
            session = await open_session(backend, request, policy, identity, quiet, tasks)
            try:
                yield session
            finally:
                await session.aclose()
                tasks.cancel_scope.cancel()

    return opened


async def output(session: Session, command: str) -> str:
    """Its output, once it has succeeded."""
    result = await session.run(command, timeout_s=60)
    assert result.exit_code == 0, result.output
    return result.output


async def run_of(opened: AbstractAsyncContextManager[Session]) -> tuple[str, bool]:
    """The run of the set-up that a session begins with, and whether it is said to be an earlier one."""
    async with opened as session:
        return await output(session, "cat ~/run"), KEPT in session.metadata.notices


async def test_the_same_set_up_of_the_same_files_does_not_run_again(opened: Open, repo: Path) -> None:
    first, said = await run_of(opened())
    assert not said
    os.utime(repo / "pkg" / "mod.py", (0, 0))  # times don't matter
    assert await run_of(opened()) == (first, True)


async def test_the_repositorys_own_set_up_does_not_run_again_either(opened: Open, repo: Path) -> None:
    (repo / "pyproject.toml").write_text(f'[tool.pdbox]\nsetup = "{SETUP[0]}"\n')
    first, said = await run_of(opened(configured=True))
    assert not said
    assert await run_of(opened(configured=True)) == (first, True)
    (repo / "old.txt").write_text("new\n")
    assert (await run_of(opened(configured=True)))[0] != first


async def test_a_set_up_begins_with_all_that_it_changed(opened: Open) -> None:
    setup = (
        "python3 -m venv --without-pip ~/venv && rm old.txt && echo 'n = 2' > pkg/mod.py && chmod 600 pkg/mod.py",
        "mkdir -p pkg/made ~/bin /tmp/deep && ln pkg/mod.py pkg/made/hard && ln -s /tmp/deep ~/link && echo t > /tmp/deep/t",
        "printf '#!/bin/sh\\necho tool\\n' > ~/bin/tool && chmod 755 ~/bin/tool && touch -d 2001-01-01 pkg/made/hard",
        "rm requirements.txt && mkdir requirements.txt && chmod 555 requirements.txt",
    )
    look = (
        "find . ~ /tmp -not -path '*/.git*' -not -name . -printf '%p %y %m %n %l %TY-%Tm-%Td\\n' | sort | grep -v '^/tmp d'; "
        "cat pkg/mod.py ~/link/t; ~/bin/tool; ~/venv/bin/python -c 'import sys; print(sys.prefix)'"
    )
    async with opened(*setup) as session:
        first = await output(session, look)
        assert KEPT not in session.metadata.notices
    async with opened(*setup) as session:
        assert KEPT in session.metadata.notices
        assert await output(session, look) == first
    assert "tool\n/home/sandbox/venv\n" in first and "old.txt" not in first and "2001-01-01" in first


@pytest.mark.parametrize("name", ["requirements.txt", "pkg/mod.py", "new.txt"])
async def test_a_set_up_runs_again_when_a_file_has_changed(opened: Open, repo: Path, name: str) -> None:
    first, _ = await run_of(opened())
    (repo / name).write_text("b==2\n")
    second, said = await run_of(opened())
    assert second != first and not said


async def test_a_set_up_is_that_of_its_owner_commands_limits_and_network(opened: Open) -> None:
    ways = [
        {},
        {"owner": uuid.uuid4().hex},
        {"limits": replace(SMALL, home_bytes=17 << 20)},
        {"setup_network": True},
    ]
    found = [await run_of(opened(**way)) for way in ways]
    found.append(await run_of(opened(*SETUP, "true")))
    assert len(set(found)) == len(found) and not any(said for _, said in found)


async def test_a_set_up_that_failed_or_knew_a_secret_is_not_kept(opened: Open, kept: KeptSetups) -> None:
    with pytest.raises(InvalidArgument):
        async with opened(*SETUP, "false"):
            pass
    for command in ("# https://me:word@host/", "rm /tmp/.pdbox-setup"):
        assert not (await run_of(opened(*SETUP, command)))[1]
    assert not list(kept.folder.glob("*"))


async def test_what_a_hostile_set_up_leaves_is_never_that_of_another(
    opened: Open, repo: Path, kept: KeptSetups
) -> None:
    """It may write what it likes: into the archive of its own key alone."""
    first, _ = await run_of(opened())
    forge = (
        "echo forged > ~/run; (while :; do echo forged > ~/run; done) & ln -sf / ~/root; ln -s /etc pkg/up"
    )
    await run_of(opened(forge))
    assert len(list(kept.folder.glob("*"))) == 2
    assert await run_of(opened()) == (first, True)
    async with opened(forge) as session:
        assert KEPT in session.metadata.notices
    assert (repo / "pkg" / "mod.py").read_text() == "n = 1\n" and not (repo / "pkg" / "up").exists()


async def test_an_archive_that_is_damaged_is_removed_and_the_commands_run(
    opened: Open, kept: KeptSetups
) -> None:
    first, _ = await run_of(opened())
    (file,) = kept.folder.glob("*")
    data = file.read_bytes()
    file.write_bytes(b"?" * 700 + data[700:])
    with pytest.raises(SandboxError, match="can't be used; it is removed now"):
        await run_of(opened())
    second, said = await run_of(opened())
    assert second != first and not said


async def test_a_set_up_that_is_as_quick_as_its_archive_runs_again(opened: Open, kept: KeptSetups) -> None:
    hours = replace(kept, worth_s=3600)
    assert not (await run_of(opened(setups=hours)))[1]
    assert not list(kept.folder.glob("*"))


async def test_what_is_too_large_is_not_kept(opened: Open, kept: KeptSetups) -> None:
    small = replace(kept, max_bytes=1 << 20)
    large = "head -c 2M /dev/zero > ~/large"
    for _ in range(2):
        assert not (await run_of(opened(*SETUP, large, setups=small)))[1]
    assert not list(kept.folder.glob("*"))
