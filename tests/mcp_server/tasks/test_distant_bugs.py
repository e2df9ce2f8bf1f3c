"""The distant bugs are tasks that hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.distant import find_place
from tests.distant_bugs import NAMES, UNSEEN, changed_functions, unpack
from tests.mcp_server.tasks.test_commands import pdbox


@pytest.mark.parametrize("name", NAMES)
def test_each_is_a_task_whose_patch_changes_functions(name: str, tmp_path: Path) -> None:
    task = unpack(name, tmp_path)
    assert task.facts.fail_to_pass and task.facts.pass_to_pass
    source = task.facts.source
    assert source is not None and source.licence
    patch = (task.folder / "solution" / "gold.patch").read_text("utf-8")
    assert changed_functions(task.folder / "environment" / "repo", patch)


def test_the_unseen_ones_are_among_them() -> None:
    assert set(UNSEEN) < set(NAMES)


@pytest.mark.docker
def test_two_of_them_hold_in_docker(tmp_path: Path) -> None:
    folders = [unpack(name, tmp_path).folder for name in ("hl7_assign", "simpy_cancel")]
    done = pdbox("tasks", "verify", *folders, "--backend", "docker")
    assert "2 of 2 tasks hold." in done.stdout, done.stdout + done.stderr


def test_the_place_at_which_an_answer_names_a_function(tmp_path: Path) -> None:
    wanted = {("hl7/containers.py", "Message.create_ack"), ("hl7/util.py", "split")}
    assert find_place("stopped at tests/test_containers.py:9 in test_it\n", wanted) == -1
    text = "called:\n  hl7/containers.py:7 in create_ack\n  9 x\n"
    assert text[: find_place(text, wanted)].endswith("in create_ack")
    text = "way back:\n  ← hl7/util.py:3 split(): x\n"
    assert text[: find_place(text, wanted)].endswith("split(): x")
    assert find_place("hl7/util.py:3 split_all()", wanted) == -1
    task = unpack("hl7_assign", tmp_path)
    patch = (task.folder / "solution" / "gold.patch").read_text("utf-8")
    assert changed_functions(task.folder / "environment" / "repo", patch) == {
        ("hl7/containers.py", "Segment.assign_field")
    }
