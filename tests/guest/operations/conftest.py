"""Operations of the guest, called directly, on a real folder with real processes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox.guest.protocol.operations import OPERATIONS
from sandbox.guest.supervisor.files import changes, extract, lock, read_write, search
from sandbox.guest.supervisor.files.executed_lines import ExecutedLines
from sandbox.guest.supervisor.files.sole_use import SoleUse
from sandbox.guest.supervisor.files.workspace import Workspace, workspace_of
from sandbox.guest.supervisor.processes import run_command, test_run
from sandbox.guest.supervisor.processes.before_edits import Outcomes
from sandbox.guest.supervisor.processes.process_tree import Children
from sandbox.guest.supervisor.processes.saved_outputs import SavedOutputs
from sandbox.guest.supervisor.program.breakpoints import Breakpoints

OPS = {
    **read_write.OPS,
    **extract.OPS,
    **search.OPS,
    **changes.OPS,
    **lock.OPS,
    **run_command.OPS,
    **test_run.OPS,
}


class State:
    """What the operations need of a supervisor."""

    def __init__(self, workdir: Path, home: Path) -> None:
        self.workdir = str(workdir)
        self.home = str(home)
        self.children = Children()
        self.breakpoints = Breakpoints(self.workdir)
        self.saved_outputs = SavedOutputs(str(home / "output"))
        self.workspace: Workspace | None = None
        self.reported_tests: set[str] = set()
        self.outcomes = Outcomes()
        self.executed_lines: ExecutedLines | None = None
        self.sole_use = SoleUse()
        self.program_runs = False
        self.touched, self.unedited_until = 5, 0


class Call:
    """A request under way."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.operation = OPERATIONS["eval"]
        self.pipe: int | None = None
        self.cancelled = threading.Event()
        self.told: list[dict[str, Any]] = []
        self.pieces: list[bytes] = []
        self.on_progress: Callable[[dict[str, Any]], None] = lambda data: None
        self._callbacks: list[Callable[[], None]] = []

    def progress(self, data: dict[str, Any], payload: bytes = b"") -> None:
        self.told.append(data)
        self.pieces.append(payload)
        self.on_progress(data)

    def on_cancel(self, callback: Callable[[], None]) -> None:
        self._callbacks.append(callback)

    def cancel(self) -> None:
        self.cancelled.set()
        for callback in self._callbacks:
            callback()


class Guest:
    """A workspace and the operations on it."""

    def __init__(self, place: Path) -> None:
        self.root = place / "workspace"
        self.home = place / "home"
        self.root.mkdir()
        self.home.mkdir()
        self.state = State(self.root, self.home)

    def ask(self, op: str, payload: bytes = b"", /, **args: Any) -> dict[str, Any]:
        return self.answer(op, payload, **args)[0]

    def answer(self, op: str, payload: bytes = b"", /, **args: Any) -> tuple[dict[str, Any], bytes]:
        return OPS[op](args, payload, Call(self.state))

    def save(self, data: bytes, /, *, make: bool = False, **file: Any) -> dict[str, Any]:
        """Write one file; gives the answer about it."""
        return self.ask("files.write", data, files=[file], make=make)["files"][0]

    def call(self) -> Call:
        return Call(self.state)

    def write(self, files: dict[str, str | bytes]) -> None:
        for name, content in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())


@pytest.fixture
def guest(tmp_path: Path) -> Iterator[Guest]:
    guest = Guest(tmp_path)
    yield guest
    guest.state.children.kill_everything()
    workspace = workspace_of(guest.state)
    for snapshot in (workspace.baseline, workspace.protected):
        if snapshot is not None:
            snapshot.contents.close()
