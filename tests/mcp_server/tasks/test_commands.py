from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from mcp_server.cli import main
from mcp_server.tasks.catalog import SHIPPED
from mcp_server.tasks.folder import Task, TaskContent, write_task
from mcp_server.tasks.model import TaskFacts
from tests.e2e.client import PDBOX
from tests.mcp_server.conftest import Connect
from tests.mcp_server.tasks.conftest import GOLD
from tests.mcp_server.tasks.test_folder import foreign
from tests.repository import repository

PROCESS = ("--backend", "process", "--unsafe-no-isolation")


def pdbox(*words: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run a subcommand in a process of its own."""
    return subprocess.run([PDBOX, *map(str, words)], input=stdin, capture_output=True, text=True, check=False)


def as_json(done: subprocess.CompletedProcess[str]) -> Any:
    """Its output, which `--json` asked for."""
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def test_the_tasks_that_ship_hold_but_for_the_one_in_docker() -> None:
    names = [
        folder.name for folder in SHIPPED.iterdir() if folder.is_dir() and folder.name != "shop_discount"
    ]
    done = pdbox("tasks", "verify", *names, *PROCESS, "--json")
    results = {one["task"]: one for one in as_json(done)["tasks"]}
    assert done.returncode == 0, results
    assert set(results) == set(names)
    assert all(
        one["ok"] and one["stop"]["text"].startswith("post_mortem at tests/") for one in results.values()
    )


@pytest.mark.docker
def test_a_task_that_ships_and_one_of_anybody_hold_in_docker(tmp_path: Path) -> None:
    files = {
        "environment/Dockerfile": "FROM pdbox-sandbox:3.11\nWORKDIR /app\n",
        "environment/data.txt": "4",
        "tests/test.sh": "#!/bin/sh\npython /tests/check.py && echo 1 > /logs/verifier/reward.txt\n",
        "tests/check.py": 'assert open("/app/out.txt").read() == open("/app/data.txt").read() * 2\n',
        "solution/solve.sh": "#!/bin/sh\ncat /app/data.txt /app/data.txt > out.txt\n",
    }
    folder = foreign(tmp_path / "twice", **files)
    done = pdbox("tasks", "verify", "shop_discount", folder, "--backend", "docker")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 of 2 tasks hold." in done.stdout
    assert "reward none; test.sh left none (exit code 1)" in done.stdout
    patch = "--- /dev/null\n+++ b/out.txt\n@@ -0,0 +1 @@\n+44\n\\ No newline at end of file\n"
    scored = pdbox("score", folder, "-", "--backend", "docker", stdin=patch)
    assert (scored.returncode, scored.stdout) == (0, "twice: resolved (reward 1.0)\n")


def test_a_task_that_does_not_hold_is_told(task: Task) -> None:
    (task.solution_folder / "gold.patch").write_text(GOLD.replace("n * 2", "n * 3"))
    done = pdbox("tasks", "verify", task.folder, *PROCESS)
    assert done.returncode == 1
    assert done.stderr.startswith("[1/1] double: FAILED (")
    assert "0 of 1 tasks hold." in done.stdout
    assert "no: 0 of 1 FAIL_TO_PASS passed" in done.stdout
    assert "\033" not in done.stdout


def test_tasks_are_listed_and_shown(task: Task, capsys: pytest.CaptureFixture[str]) -> None:
    root = task.folder.parent
    foreign(root / "broken", "[[steps]]\nname = 'a'")
    assert main(["tasks", "list", "--tasks", str(root)]) == 1
    listed = capsys.readouterr()
    assert "broken: Task broken: " in listed.err
    assert {"double", "shop_discount"} <= {line.split()[0] for line in listed.out.splitlines()}
    assert main(["tasks", "show", "double", "--tasks", str(root)]) == 0
    shown = capsys.readouterr().out
    assert "  tests: 1 to fix, 1 to keep\n" in shown
    assert shown.endswith("  | Make `double` double.\n")
    assert main(["tasks", "show", "double", "--tasks", str(root), "--json"]) == 0
    (data,) = json.loads(capsys.readouterr().out)["tasks"]
    assert data["facts"]["fail_to_pass"] == ["tests/test_app.py::test_three"]
    assert main(["tasks", "show", "nope"]) == 1
    assert "There is no task 'nope'." in capsys.readouterr().err


def test_exit_codes_of_score(task: Task) -> None:
    resolved = pdbox("score", task.folder, "-", *PROCESS, "--json", stdin=GOLD)
    assert (resolved.returncode, as_json(resolved)["resolved"]) == (0, True)
    unresolved = pdbox("score", task.folder, os.devnull, *PROCESS)
    assert unresolved.returncode == 1
    assert "double: not resolved (0 of 1 FAIL_TO_PASS passed, " in unresolved.stdout
    assert "  failed: tests/test_app.py::test_three\n" in unresolved.stdout
    for words in ((task.folder, "/no/such/patch"), ("nope", os.devnull), (task.folder, "--session", "abc")):
        failed = pdbox("score", *words, *PROCESS)
        assert (failed.returncode, failed.stdout) == (2, "")


async def test_the_patch_of_a_running_session_is_scored(connect: Connect, task: Task) -> None:
    async with connect(repo=None, entrypoint=None, task=str(task.folder)) as client:
        started = await client.call_tool("start_session", {})
        assert started.structured_content is not None
        handle = started.structured_content["session_id"]
        edit = {"path": "app.py", "old_code": "n + 2", "new_code": "n * 2", "session_id": handle}
        await client.call_tool("rewrite", edit)

        done = await anyio.to_thread.run_sync(
            lambda: pdbox("score", task.folder, "--session", handle, *PROCESS)
        )
        assert (done.returncode, done.stdout.partition(" (")[0]) == (0, "double: resolved"), done.stderr
        again = await client.call_tool("diff", {"session_id": handle})
        assert not again.is_error


def test_a_test_that_fails_only_after_others_stops_in_the_run_of_all(tmp_path: Path) -> None:
    tests = (
        "seen = []\n\ndef test_one():\n    seen.append(1)\n\ndef test_two():\n    assert len(seen) != LIMIT\n"
    )
    program, mended = "LIMIT = 1\n", "LIMIT = 2\n"
    files = {"app.py": program, "conftest.py": "", "tests/test_app.py": f"from app import LIMIT\n\n{tests}"}
    facts = TaskFacts(
        entrypoint="python -m pytest -q",
        fail_to_pass=["tests/test_app.py::test_two"],
        pass_to_pass=["tests/test_app.py::test_one"],
    )
    gold = f"--- a/app.py\n+++ b/app.py\n@@ -1 +1 @@\n-{program}+{mended}"
    source = repository(tmp_path / "source", files)
    task = write_task(tmp_path / "ordered", TaskContent("test/ordered", "Mend it.", facts, source, gold))
    # Tasks may stand behind options.
    done = pdbox("tasks", "verify", *PROCESS, "--jobs", "1", "--json", task.folder)
    (result,) = as_json(done)["tasks"]
    assert done.returncode == 0, result
    assert result["stop"]["text"] == "post_mortem at tests/test_app.py:9"
