"""Read-only files on their way into a workspace that is root's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from sandbox.guest.supervisor.errors import GuestError
from sandbox.ignore_rules import Rules
from sandbox.transport.guest_bundle import lock_readonly_arguments
from tests.guest.operations.conftest import Guest

FILES = {
    "tests/test_a.py": "a",
    "tests/deep/test_b.py": "b",
    "tests/deep/.git/test_config": "git",
    ".git/test_index": "git",
    "tests/helpers.py": "helpers",
    "app/code.py": "code",
}


def fill(guest: Guest) -> dict[str, Any]:
    """Write the files, and give the rules that make tests read-only."""
    for name, text in FILES.items():
        path = guest.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Rules(read_only=("test_*", "/empty/")).for_tools()


def move(guest: Guest, folder: str) -> subprocess.CompletedProcess[str]:
    """Do what root does in a sandbox."""
    arguments = lock_readonly_arguments(PurePosixPath(guest.root), folder)
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)


def contents(folder: Path) -> dict[str, str]:
    """The files below a folder."""
    found = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    return {path.relative_to(folder).as_posix(): path.read_text() for path in found}


def test_all_is_in_its_place_again_and_read_only_files_and_their_folders_are_new(guest: Guest) -> None:
    rules = fill(guest)
    (guest.root / "tests/test_link").symlink_to("../app/code.py")
    (guest.root / "empty").mkdir()
    os.mkfifo(guest.root / "test_pipe")
    (guest.root / "tests/test_a.py").chmod(0o700)
    os.link(guest.root / "tests/test_a.py", guest.root / "other")
    old = {path: path.lstat().st_ino for path in guest.root.rglob("*")}
    guest.ask("files.lock", step="begin", aside=".aside", rules=rules)
    assert list(guest.root.iterdir()) == [guest.root / ".aside"]
    assert move(guest, ".aside/first").stdout == "done\n"
    guest.ask("files.lock", step="end", aside=".aside")
    assert contents(guest.root) == {**FILES, "other": "a"}
    assert (guest.root / "tests/test_link").readlink() == Path("../app/code.py")
    assert {
        path.relative_to(guest.root).as_posix() for path, inode in old.items() if path.lstat().st_ino != inode
    } == {"tests", "tests/test_a.py", "tests/test_link", "tests/deep", "tests/deep/test_b.py", "empty"}
    assert (guest.root / "tests/test_a.py").stat().st_mode & 0o7777 == 0o555
    assert (guest.root / "tests/deep/test_b.py").stat().st_mode & 0o7777 == 0o444
    assert (guest.root / "tests/deep").stat().st_mode & 0o7777 == 0o1777


@pytest.mark.parametrize("name", [".aside", ".aside/first", ".aside/first/tests"])
def test_no_link_in_place_of_a_folder_is_followed(guest: Guest, tmp_path: Path, name: str) -> None:
    guest.ask("files.lock", step="begin", aside=".aside", rules=fill(guest))
    outside = tmp_path / "outside"
    (guest.root / name).rename(outside)
    (guest.root / name).symlink_to(outside)
    before = contents(outside)
    moved = move(guest, ".aside/first")
    assert contents(outside) == before
    if name == ".aside/first/tests":
        assert (guest.root / "tests").readlink() == outside
    else:
        assert moved.returncode and "done" not in moved.stdout


def test_what_came_in_the_way_meanwhile_is_an_error(guest: Guest) -> None:
    guest.ask("files.lock", step="begin", aside=".aside", rules=fill(guest))
    (guest.root / "app").write_text("in the way")
    with pytest.raises(GuestError, match="came into the workspace"):
        guest.ask("files.lock", step="end", aside=".aside")
