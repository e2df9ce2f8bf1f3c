"""What a verification tells of tests that don't do what their task says, and of programs that don't end."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcp_server.tasks.folder import Task, TaskContent, write_task
from mcp_server.tasks.opening import Sandboxes
from mcp_server.tasks.verifying import verify_task
from tests.mcp_server.tasks.conftest import FACTS, FILES, GOLD
from tests.repository import repository

pytestmark = pytest.mark.anyio


def write(tmp_path: Path, **facts: object) -> Task:
    """A task of the files in `conftest.py`, with other facts."""
    source = repository(tmp_path / "source", FILES)
    content = TaskContent("test/double", "Mend it.", FACTS.model_copy(update=facts), source, GOLD)
    return write_task(tmp_path / "double", content)


async def test_tests_that_are_listed_wrongly_are_named(sandboxes: Sandboxes, tmp_path: Path) -> None:
    two, three = "tests/test_app.py::test_two", "tests/test_app.py::test_three"
    task = write(tmp_path, fail_to_pass=[two, three], pass_to_pass=["tests/test_app.py::test_none"])
    verified = await verify_task(sandboxes, task, print)
    assert not verified.before.ok
    assert verified.before.text == (
        f"1 of 2 fail, 0 of 1 pass; passes already: {two}; does not pass: tests/test_app.py::test_none"
    )


async def test_a_program_that_does_not_end_is_interrupted_in_a_time_that_its_tests_suggest(
    sandboxes: Sandboxes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp_server.tasks.verifying._LEAST_S", 0.5)
    task = write(tmp_path, debug_entrypoint='python -c "while True: pass"')
    verified = await verify_task(sandboxes, task, print)
    assert verified.ok and verified.stop.text.startswith("interrupt at "), verified
