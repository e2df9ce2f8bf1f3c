"""The files of the baseline in the place of edited ones, while failing tests run again."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from sandbox.guest.supervisor.errors import GuestError
from sandbox.guest.supervisor.files.changes import changes_of
from sandbox.guest.supervisor.files.unedited import Unedited
from sandbox.guest.supervisor.files.workspace import workspace_of
from sandbox.guest.supervisor.processes import before_edits
from sandbox.guest.supervisor.processes.test_run import evaluate
from tests.guest.operations.conftest import Call, Guest

TEST = """
import app, pathlib, time
def test_a():
    if app.SLOW:
        pathlib.Path({began!r}).touch()
        time.sleep(600)
    assert 0
"""


def take_baseline(guest: Guest, **rules: Any) -> None:
    guest.ask("files.snapshot", rules=rules)
    workspace_of(guest.state).baseline.wait(lambda: False)  # it is taken after the answer


class Running:
    """An `eval` whose run without the edits has begun."""

    def __init__(self, guest: Guest, place: Path, threads: ThreadPoolExecutor) -> None:
        self.threads = threads
        self.app = guest.root / "app.py"
        began = place / "began"
        guest.write({"app.py": "SLOW = True\n", "test_a.py": TEST.format(began=str(began))})
        take_baseline(guest)
        self.app.write_text("SLOW = False\n")
        self.call = Call(guest.state)
        args = {
            "command": f"{sys.executable} -m pytest -q",
            "timeout_s": 900,
            "before": True,
            "env": {"PYTEST_ADDOPTS": "-p no:cacheprovider"},
        }
        self.answer: Future[tuple[dict[str, Any], bytes]] = threads.submit(evaluate, args, b"", self.call)
        while not began.exists():
            assert not self.answer.done(), self.answer.result()
        assert self.app.read_text() == "SLOW = True\n", "its test runs without the edit"


@pytest.fixture
def running(guest: Guest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(before_edits, "_MIN_S", 600)  # so that it does not end by itself
    monkeypatch.setattr(before_edits, "_MAX_S", 600)
    with ThreadPoolExecutor() as threads:
        running = Running(guest, tmp_path, threads)
        yield running
        running.call.cancel()


def test_another_request_interrupts_the_run_and_finds_the_edited_files(
    guest: Guest, running: Running
) -> None:
    uses = guest.state.sole_use
    uses.enter()
    running.threads.submit(uses.wait, lambda: False).result(10)
    assert running.app.read_text() == "SLOW = False\n"
    uses.leave()
    (test,) = running.answer.result(10)[0]["tests"]
    assert test["outcome"] == "failed" and "failed_before" not in test, "its own outcome, and no other"


def test_cancelling_the_run_leaves_the_edits_in_place(guest: Guest, running: Running) -> None:
    running.call.cancel()
    (test,) = running.answer.result(10)[0]["tests"]  # the server refuses it: the call was cancelled
    assert "failed_before" not in test
    assert running.app.read_text() == "SLOW = False\n"
    assert sorted(path.name for path in guest.root.iterdir() if "__" not in path.name) == [
        "app.py",
        "test_a.py",
    ]


def test_nothing_is_undone_while_others_use_files_or_the_program_runs(guest: Guest) -> None:
    guest.write({"app.py": "A = 1\n", "test_a.py": "def test_a(): assert 0\n"})
    take_baseline(guest)
    guest.write({"app.py": "A = 2\n"})
    command = f"{sys.executable} -m pytest -q"

    def known() -> bool:
        (test,) = guest.ask("eval", command=command, timeout_s=60, before=True)["tests"]
        return "failed_before" in test

    guest.state.program_runs = True
    assert not known()
    guest.state.program_runs = False
    for _ in range(2):
        guest.state.sole_use.enter()
    assert not known()
    guest.state.sole_use.leave()
    assert known()


def test_an_edit_of_an_ignored_file_can_not_be_undone_so_nothing_is_said(guest: Guest) -> None:
    guest.write({"app.py": "A = 1\n", "made.py": "B = 1\n", "test_a.py": "def test_a(): assert 0\n"})
    take_baseline(guest, ignore=[["made\\.py$", True]])
    guest.write({"app.py": "A = 2\n"})
    digest = guest.ask("files.read", path="made.py")["digest"]
    guest.save(b"B = 2\n", path="made.py", expect_digest=digest)
    answer = guest.ask("eval", command=f"{sys.executable} -m pytest -q", timeout_s=60, before=True)
    assert "failed_before" not in answer["tests"][0]


def test_compiled_code_of_the_edited_file_is_not_taken_for_that_of_the_original(guest: Guest) -> None:
    guest.write({"app.py": "A = 1\n", "test_a.py": "import app\ndef test_a(): assert app.A == 1\n"})
    take_baseline(guest, ignore=[["__pycache__/$", True]])
    info = (guest.root / "app.py").stat()
    guest.write({"app.py": "A = 2\n"})  # as long as before
    os.utime(guest.root / "app.py", ns=(info.st_atime_ns, info.st_mtime_ns))
    env = {"PYTHONDONTWRITEBYTECODE": ""}
    answer = guest.ask("eval", command=f"{sys.executable} -m pytest -q", timeout_s=60, before=True, env=env)
    assert list(guest.root.glob("__pycache__/app.*")), "the code of the edited file is kept"
    assert answer["tests"][0]["failed_before"] is False


def _kinds_of_changes(guest: Guest) -> None:
    guest.write({"kept": "1", "edited": "1", "deleted": "1", "d/in_folder": "1"})
    (guest.root / "link").symlink_to("kept")
    take_baseline(guest)
    guest.write({"edited": "2", "added/new": "2"})
    (guest.root / "deleted").unlink()
    (guest.root / "d" / "in_folder").unlink()
    (guest.root / "d").rmdir()
    (guest.root / "d").write_text("a file now")
    (guest.root / "link").unlink()
    (guest.root / "link").symlink_to("edited")
    (guest.root / "edited").chmod(0o755)


def _files(folder: Path) -> dict[str, Any]:
    """Path to content and time of each file, or target of each link."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        if ".pdbox-edits" in str(path):
            continue
        if path.is_symlink():
            found[str(path.relative_to(folder))] = str(path.readlink())
        elif path.is_file():
            info = path.stat()
            found[str(path.relative_to(folder))] = path.read_text(), info.st_mtime_ns, oct(info.st_mode)
    return found


def _nothing(root: Path) -> None:
    pass


def _remove_all(root: Path) -> None:
    for path in sorted(root.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()


def _folders_instead(root: Path) -> None:
    for name in ("edited", "link", "deleted"):
        (root / name).unlink()
        (root / name / "sub").mkdir(parents=True)


@pytest.mark.parametrize("harm", [_nothing, _remove_all, _folders_instead])
def test_each_kind_of_change_is_undone_and_made_again_whatever_a_program_does_meanwhile(
    guest: Guest, harm: Callable[[Path], None]
) -> None:
    _kinds_of_changes(guest)
    workspace, edited = workspace_of(guest.state), _files(guest.root)
    changes = changes_of(workspace, workspace.baseline)
    with Unedited(workspace, changes):
        assert {
            name: value if isinstance(value, str) else value[0] for name, value in _files(guest.root).items()
        } == {"kept": "1", "edited": "1", "deleted": "1", "d/in_folder": "1", "link": "kept"}
        harm(guest.root)
    now = _files(guest.root)
    if harm is _remove_all:
        del edited["kept"]  # no edit: any test may remove it
        assert {name: value[0] for name, value in now.items()} == {
            name: value[0] for name, value in edited.items()
        }
    else:
        assert now == edited, "with the same times, so that nobody takes them for new"
    assert not list(guest.root.glob(".pdbox*"))


def test_what_can_not_be_undone_is_left_as_it_is(guest: Guest) -> None:
    guest.write({"a": "1", "b": "1"})
    take_baseline(guest)
    guest.write({"b": "2"})
    (guest.root / "a").unlink()
    guest.write({"a/new": "2"})  # a file has become a folder
    edited, workspace = _files(guest.root), workspace_of(guest.state)
    with (
        pytest.raises(GuestError, match="a has become a folder"),
        Unedited(workspace, changes_of(workspace, workspace.baseline)),
    ):
        pass
    assert _files(guest.root) == edited and not list(guest.root.glob(".pdbox*"))
