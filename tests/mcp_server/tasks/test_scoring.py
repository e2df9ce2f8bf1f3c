from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from mcp_server.tasks.folder import Task, TaskContent, load_task, write_task
from mcp_server.tasks.judging import Outcomes, canonical
from mcp_server.tasks.model import TaskFacts, TaskLimits
from mcp_server.tasks.opening import Sandboxes
from mcp_server.tasks.patched_paths import named_files
from mcp_server.tasks.scoring import Verdict, parse_rewards, score
from sandbox.errors import BackendUnavailable, InvalidArgument
from sandbox.session.results import TestResult
from tests.mcp_server.tasks.conftest import FACTS, FILES, GOLD
from tests.mcp_server.tasks.test_folder import foreign
from tests.repository import repository

PASS = "import pytest\n@pytest.hookimpl(tryfirst=True)\ndef pytest_pyfunc_call(pyfuncitem): return True\n"


def added(files: Mapping[str, str]) -> str:
    """A patch that adds files."""
    return "".join(
        f"diff --git a/{name} b/{name}\nnew file mode 100644\n--- /dev/null\n+++ b/{name}\n"
        f"@@ -0,0 +1,{len(text.splitlines())} @@\n" + "".join(f"+{line}\n" for line in text.splitlines())
        for name, text in files.items()
    )


def replaced(name: str, old: str, new: str) -> str:
    """A patch that replaces a whole file."""
    before, after = old.splitlines(), new.splitlines()
    body = [*(f"-{line}" for line in before), *(f"+{line}" for line in after)]
    head = (
        f"diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n@@ -1,{len(before)} +1,{len(after)} @@\n"
    )
    return head + "\n".join(body) + "\n"


async def scored(sandboxes: Sandboxes, task: Task, patch: str) -> Verdict:
    return await score(sandboxes, task, patch.encode(), lambda line: None)


async def test_the_gold_patch_resolves_and_nothing_does_not(sandboxes: Sandboxes, task: Task) -> None:
    before = await scored(sandboxes, task, "")
    assert not before.resolved
    assert before.fail_to_pass.failed == ["tests/test_app.py::test_three"]
    assert before.reason == "0 of 1 FAIL_TO_PASS passed, 1 of 1 PASS_TO_PASS passed"
    after = await scored(sandboxes, task, GOLD)
    assert (after.resolved, after.applied, after.put_back) == (True, True, [])
    broken = await scored(sandboxes, task, GOLD.replace("n * 2", "6"))
    assert not broken.resolved
    assert (broken.fail_to_pass.passed, broken.pass_to_pass.failed) == (1, ["tests/test_app.py::test_two"])


@pytest.mark.parametrize(
    ("patch", "put_back"),
    [
        (replaced("tests/test_app.py", FILES["tests/test_app.py"], "def test_two(): pass\ndef test_three(): pass"),
         ["tests/test_app.py"]),
        (added({"tests/conftest.py": PASS}), ["tests/conftest.py"]),
        (added({"pytest.ini": "[pytest]\naddopts = -p cheat\n", "cheat.py": PASS}), ["pytest.ini"]),
        (added({"pytest.py": "raise SystemExit(0)\n"}), ["pytest.py"]),
        (replaced("app.py", FILES["app.py"], "import os\nprint('2 passed', flush=True)\nos._exit(0)\n"), []),
    ],
    ids=["edits the test", "adds a conftest", "configures pytest", "takes the runner's place", "prints and exits"],
)  # fmt: skip
async def test_a_patch_that_cheats_is_not_resolved(
    sandboxes: Sandboxes, task: Task, patch: str, put_back: list[str]
) -> None:
    verdict = await scored(sandboxes, task, patch)
    assert (verdict.resolved, verdict.applied, verdict.put_back) == (False, True, put_back)
    assert verdict.fail_to_pass.passed == 0


async def test_a_patch_that_edits_the_tests_and_is_right_counts(sandboxes: Sandboxes, task: Task) -> None:
    verdict = await scored(sandboxes, task, GOLD + added({"tests/test_more.py": "def test_more(): pass\n"}))
    assert verdict.resolved


async def test_a_patch_that_does_not_apply_is_told(sandboxes: Sandboxes, task: Task) -> None:
    verdict = await scored(sandboxes, task, GOLD.replace("n + 2", "n + 3"))
    assert (verdict.resolved, verdict.applied) == (False, False)
    assert verdict.reason.startswith("the patch can't be applied: ")
    assert "app.py" in verdict.reason
    assert verdict.fail_to_pass.missing == ["tests/test_app.py::test_three"]


async def test_hidden_tests_come_after_the_patch(sandboxes: Sandboxes, tmp_path: Path) -> None:
    hidden = added(
        {"tests/test_hidden.py": "from app import double\ndef test_four():\n    assert double(4) == 8\n"}
    )
    facts = FACTS.model_copy(
        update={"fail_to_pass": ["tests/test_hidden.py::test_four"], "read_only": ["tests/"]}
    )
    source = repository(tmp_path / "source", {**FILES, ".debugreadonly": "tests/\n"})
    task = write_task(tmp_path / "t", TaskContent("org/t", "Do it.", facts, source, GOLD, hidden))
    own = added({"tests/test_hidden.py": "def test_four(): pass\n"})
    cheat = await scored(sandboxes, task, own)
    assert (cheat.resolved, cheat.put_back) == (False, ["tests/test_hidden.py"])
    assert cheat.fail_to_pass.failed == ["tests/test_hidden.py::test_four"]
    assert (await scored(sandboxes, task, GOLD + own)).resolved


async def test_a_task_whose_own_test_patch_is_broken_is_an_error(sandboxes: Sandboxes, task: Task) -> None:
    hidden = replaced("tests/test_app.py", "nothing", "something")
    content = TaskContent("org/t", "Do it.", FACTS, task.repository, GOLD, hidden)
    broken = write_task(task.folder.parent / "broken", content)
    with pytest.raises(InvalidArgument, match="its own test patch can't be applied"):
        await scored(sandboxes, broken, "")


async def test_tests_that_do_not_end_in_time_are_missing(sandboxes: Sandboxes, task: Task) -> None:
    facts = FACTS.model_copy(update={"limits": TaskLimits(timeout_s=3)})
    slow = write_task(
        task.folder.parent / "slow", TaskContent("org/t", "Do it.", facts, task.repository, GOLD)
    )
    verdict = await scored(sandboxes, slow, replaced("app.py", FILES["app.py"], "while True: pass"))
    assert not verdict.resolved
    assert "the tests did not end within 3 s" in verdict.reason


async def test_without_a_list_of_tests_the_exit_code_decides(sandboxes: Sandboxes, task: Task) -> None:
    facts = TaskFacts(entrypoint="python -c 'import app; assert app.double(3) == 6'")
    script = write_task(
        task.folder.parent / "x", TaskContent("org/t", "Do it.", facts, task.repository, GOLD)
    )
    assert not (await scored(sandboxes, script, "")).resolved
    assert (await scored(sandboxes, script, GOLD)).resolved


async def test_a_script_of_harbor_is_not_run_without_a_container(
    sandboxes: Sandboxes, tmp_path: Path
) -> None:
    task = foreign(tmp_path / "t", **{"environment/Dockerfile": "FROM x\n", "tests/test.sh": "exit\n"})
    with pytest.raises(BackendUnavailable, match="needs a container"):
        await scored(sandboxes, load_task(task), "")


def outcomes(**tests: str) -> Outcomes:
    """Of tests with these names."""
    return Outcomes(
        TestResult.model_validate({"id": name, "outcome": outcome}) for name, outcome in tests.items()
    )


def test_ids_that_a_benchmark_cut_are_found_by_their_beginning() -> None:
    run = outcomes(
        **{"t::x[log(photon 1)]": "passed", "t::x[log(photon 2)]": "failed", "t::y[a b]": "passed"}
    )
    tally = run.tally(["t::x[log(photon", "t::y[a", "t::z[a"])
    assert (tally.passed, tally.failed, tally.missing) == (1, ["t::x[log(photon"], ["t::z[a"])
    assert outcomes(**{"t::y": "passed"}).of("t::") is None


def test_ids_of_unittest_are_the_same_on_all_pythons() -> None:
    assert canonical("test_x (a.b.C.test_x)") == canonical("test_x (a.b.C)") == "test_x (a.b.C)"
    assert outcomes(**{"test_x (a.b.C.test_x)": "passed"}).of("test_x (a.b.C)") == "passed"


def test_of_several_results_the_worst_counts() -> None:
    results = [TestResult(id="t", outcome=outcome) for outcome in ("passed", "error", "passed")]
    assert Outcomes(results).of("t") == "error"


def test_skipped_tests_did_not_pass() -> None:
    tally = outcomes(a="skipped", b="xfailed", c="passed").tally(["a", "b", "c"])
    assert (tally.passed, tally.failed) == (2, ["a"])


def test_files_of_a_patch() -> None:
    patch = b"--- a/x y.py\t2020\n+++ b/x y.py\n--- /dev/null\r\n+++ b/new\n--- old\n"
    assert named_files(patch) == ["x y.py", "new", "old"]


@pytest.mark.parametrize(
    ("name", "text", "rewards"),
    [
        ("reward.txt", " 0.5\n", {"reward": 0.5}),
        ("reward.json", '{"a": 1, "b": 0}', {"a": 1.0, "b": 0.0}),
        ("reward.json", "1", {"reward": 1.0}),
        ("reward.json", '{"a": "1"}', {}),
        ("reward.json", "NaN", {}),
        ("reward.txt", "inf", {}),
        ("reward.txt", "", {}),
        ("reward.json", "[" * 100_000, {}),
    ],
)
def test_rewards(name: str, text: str, rewards: Mapping[str, float]) -> None:
    assert parse_rewards(name, text) == rewards
