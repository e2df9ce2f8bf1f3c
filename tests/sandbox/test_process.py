"""What only guests without isolation need."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox.errors import BackendUnavailable, InvalidArgument
from sandbox.local_guests import runtime_folder, start_time
from sandbox.process import ProcessBackend
from sandbox.spec import ImageRequest
from tests.sandbox.conftest import quiet


def test_a_process_is_told_from_another_with_its_id() -> None:
    with subprocess.Popen(["sleep", "1000"]) as child:
        began = start_time(child.pid)
        assert began
        assert began == start_time(child.pid)
        child.kill()
    assert start_time(child.pid) == ""
    assert start_time(os.getpid()) != start_time(1)


def test_a_dead_process_that_nobody_has_reaped_is_dead() -> None:
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert start_time(child.pid) == ""
    child.wait()


def test_the_folder_of_records_is_this_users_alone(tmp_path: Path) -> None:
    folder = runtime_folder({"XDG_RUNTIME_DIR": str(tmp_path)})
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o777)
    with pytest.raises(BackendUnavailable, match="not a folder of this user alone"):
        runtime_folder({"XDG_RUNTIME_DIR": str(tmp_path)})


def test_a_link_is_no_folder_of_records(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "pdbox").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BackendUnavailable):
        runtime_folder({"XDG_RUNTIME_DIR": str(tmp_path)})


async def test_records_that_are_none_are_passed_over(tmp_path: Path) -> None:
    folder = runtime_folder({"XDG_RUNTIME_DIR": str(tmp_path)})
    for name, text in (("a", "{"), ("b", "[]"), ("c", '{"key": 1}')):
        (folder / name).mkdir()
        (folder / name / "sandbox.json").write_text(text, encoding="utf-8")
    assert await ProcessBackend({"XDG_RUNTIME_DIR": str(tmp_path)}).find("me") == []


async def test_our_own_python_unless_another_is_there() -> None:
    backend = ProcessBackend()
    own = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert (await backend.choose(ImageRequest(), quiet)).image == sys.executable
    assert (await backend.choose(ImageRequest(python=own), quiet)).notice == ""
    chosen = await backend.choose(ImageRequest(python="3.2"), quiet)
    assert chosen.image == sys.executable
    assert "Python 3.2 was asked for" in chosen.notice
    with pytest.raises(InvalidArgument):
        await backend.choose(ImageRequest(image="python:3.12"), quiet)
