"""Diagnoses of small repositories, in the Python under test."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox.guest.supervisor.processes import diagnosis, trace
from sandbox.session.diagnosis import Diagnosis
from sandbox.session.trace import Trace
from tests.guest.operations.conftest import Call, State

PYTHON = shlex.quote(os.environ.get("PDBOX_TEST_PYTHON", sys.executable))
Diagnose = Callable[..., Diagnosis]


ODD = """\
class Meta(type):
    def __eq__(cls, other): raise RuntimeError("eq of the class")
    def __hash__(cls): raise RuntimeError("hash of the class")
    def __getattribute__(cls, name): raise RuntimeError("attribute of the class")

class Odd(metaclass=Meta):
    def __getattribute__(self, name): raise RuntimeError("attribute")
    def __eq__(self, other): raise RuntimeError("eq")
    __hash__ = None
    def __repr__(self): raise RuntimeError("repr")
    def __len__(self): raise RuntimeError("len")
    def __bool__(self): raise RuntimeError("bool")

"""
"""Source of a class whose objects raise whatever is done with them."""


@pytest.fixture
def state(tmp_path: Path) -> Iterator[State]:
    """A supervisor's state, with an empty workspace."""
    root, home = tmp_path / "workspace", tmp_path / "home"
    root.mkdir()
    home.mkdir()
    state = State(root, home)
    yield state
    state.children.kill_everything()


def write(state: State, files: dict[str, str]) -> None:
    """Write `files` into the workspace."""
    for name, text in files.items():
        path = Path(state.workdir) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def diagnose(state: State) -> Diagnose:
    """Writes files, and diagnoses a test of them or a program; with `mutate=True` also by changes of the code."""

    def run(
        files: dict[str, str], test: str | None = None, command: str = f"{PYTHON} -m unittest", **args: Any
    ) -> Diagnosis:
        write(state, files)
        asked = {"command": command, "test": test, "timeout_s": 120, **args}
        return Diagnosis.model_validate(diagnosis.diagnose(asked, b"", Call(state))[0])

    return run


Traced = Callable[..., Trace]


@pytest.fixture
def traced(state: State) -> Traced:
    """Writes files, and traces a run of their tests, or of a program."""

    def run(files: dict[str, str], *of: str, command: str = f"{PYTHON} -m unittest", **args: Any) -> Trace:
        write(state, files)
        asked = {"command": command, "of": list(of), "timeout_s": 120, **args}
        answer = trace.trace(asked, b"", Call(state))[0]
        return Trace.model_validate(json.loads(json.dumps(answer)))

    return run
