"""Each test runs once per interpreter (`PDBOX_TEST_PYTHONS`)."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tests.guest.debugger.driver import Program, pythons

Start = Callable[..., Program]


@pytest.fixture(params=pythons(), ids=lambda name: name.split("/")[-3] if name.count("/") > 2 else name)
def python(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def version(python: str) -> tuple[int, int]:
    return _version_of(python)


@cache
def _version_of(python: str) -> tuple[int, int]:
    code = "import sys; print(*sys.version_info[:2])"
    major, minor = subprocess.run(
        [python, "-c", code], capture_output=True, check=True, text=True
    ).stdout.split()
    return int(major), int(minor)


@pytest.fixture
def start(python: str, tmp_path: Path) -> Iterator[Start]:
    """Write `app.py` and start it: `start(text, "first command", ...)`, or `start(text, target={...})`."""
    programs: list[Program] = []

    def start(text: str, *commands: str, target: dict[str, Any] | None = None, **options: Any) -> Program:
        (tmp_path / "app.py").write_text(dedent(text).lstrip("\n"), encoding="utf-8")
        program = Program(python, target or {"mode": "script", "target": "app.py"}, tmp_path, **options)
        programs.append(program)
        program.first = program.answer()
        for command in commands:
            program.last = program.do(command)
        return program

    yield start
    for program in programs:
        program.__exit__()
