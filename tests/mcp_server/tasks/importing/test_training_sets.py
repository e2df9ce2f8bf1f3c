"""Records of SWE-smith, SWE-Gym and R2E-Gym: images by their conventions, trees, and that their tasks hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mcp_server.tasks.folder import Task
from mcp_server.tasks.importing.git_history import BEGIN_ANEW, FORGET_LATER
from mcp_server.tasks.importing.importer import Given, ImportRequest
from mcp_server.tasks.importing.test_commands import CONDA_PATH
from mcp_server.tasks.opening import Sandboxes
from mcp_server.tasks.scoring import score
from mcp_server.tasks.verifying import verify_task
from sandbox.errors import InvalidArgument
from tests.mcp_server.tasks.importing.layouts import (
    FIXED,
    GOLD,
    SHOP,
    TEST,
    TEST_PATCH,
    files_in,
    git,
    import_all,
    record,
    write,
)

BUG = """\
diff --git a/shop.py b/shop.py
index c17c8c1..d1c4e49 100644
--- a/shop.py
+++ b/shop.py
@@ -1,2 +1,2 @@
 def total(prices):
-    return sum(prices)
+    return sum(prices) + 1
"""
OTHER = "from shop import total\n\n\ndef test_none():\n    assert total([]) in (0, 1)\n"
LOCAL = Given(env={"PYTHONPATH": "{workspace}"}, setup=["true"])
"""What a tree needs that isn't installed."""


def smith(**fields: object) -> dict[str, object]:
    """A record of SWE-smith, with the given fields."""
    return {
        "instance_id": "acme__Shop.95280573.pr_1",
        "repo": "swesmith/acme__Shop.95280573",
        "patch": BUG,
        "FAIL_TO_PASS": ["tests/test_shop.py::test_total"],
        "PASS_TO_PASS": ["tests/test_shop.py::test_none", "tests/test_far.py::test_far"],
        "created_at": "2025-03-21T08:23:31.701599",
        "image_name": "swesmith.x86_64.acme__shop.95280573",
        "base_commit": "d1c5199b6a9d7ae9382d26ee2859b837107165e7",
        "problem_statement": "# The total is one too high.\n",
        **fields,
    }


def gym(**fields: object) -> dict[str, object]:
    """A record of SWE-Gym: that of moto, with a smaller patch."""
    row = {
        "instance_id": "getmoto__moto-7365",
        "repo": "getmoto/moto",
        "created_at": "2024-02-19 20:29:03",
        "version": "5.0",
        "FAIL_TO_PASS": ["tests/test_shop.py::test_total"],
        "PASS_TO_PASS": [],
        **fields,
    }
    return record(**row)


def line(kind: str, content: str) -> dict[str, str]:
    """A line of a parsed commit."""
    return {"content": content, "type": kind}


FILE_DIFF = {
    "old_file_content": SHOP,
    "new_file_content": FIXED,
    "header": {"file": {"path": "shop.py"}, "misc_line": None},
    "index_line": {"old_commit_hash": "d1c4e49", "new_commit_hash": "c17c8c1", "mode": "100644"},
    "is_binary_file": False,
    "binary_line": None,
    "minus_file": {"path": "a/shop.py"},
    "plus_file": {"path": "b/shop.py"},
    "hunks": [
        {
            "descriptor": {
                "old_range": {"start": 1, "length": 2},
                "new_range": {"start": 1, "length": 2},
                "section": "",
            },
            "line_group": {
                "all_lines": [
                    line("context", "def total(prices):"),
                    line("deleted", "    return sum(prices) + 1"),
                    line("added", "    return sum(prices)"),
                    # The end of git's output was parsed as a line, too.
                    line("context", ""),
                ]
            },
            "modified_entities": [],
        }
    ],
}
CLASS = """\
import unittest
from shop import total


class TestShop(unittest.TestCase):
    def test_total(self):
        self.assertEqual(total([1, 2]), 3)

    def test_sum(self):
        self.assertIn(total([]), (0, 1))
"""


def log(**outcomes: str) -> str:
    """Output of a run of the tests."""
    ids = {"total": "TestShop::test_total", "sum": "TestShop::test_sum", "far": "test_far[a - b]"}
    colour = {"PASSED": "\x1b[32mPASSED\x1b[0m", "FAILED": "\x1b[31mFAILED\x1b[0m"}
    reason = {"FAILED": " - AssertionError: 4 != 3"}
    rows = [
        f"{colour[outcome]} {{place}}::{ids[name]}{reason.get(outcome, '')}"
        for name, outcome in outcomes.items()
    ]
    return "\n".join(["FAILED noise::before", "=== short test summary info ===", *rows, "=== 1 failed ==="])


def r2e(place: str = "r2e_tests/test_1.py", **fields: Any) -> dict[str, object]:
    """A record of R2E-Gym, with the given fields."""
    before, after = log(total="FAILED", sum="PASSED"), log(total="PASSED", sum="PASSED")
    execution: dict[str, Any] = {
        "repo_name": "shop",
        "new_commit_hash": "f0d74880",
        "test_file_codes": [CLASS],
        "test_file_names": ["test_1.py"],
        "setup_res_code": 0,
        "new_commit_res_code": 0,
        "new_commit_res_stdout": after.replace("{place}", place),
        "old_commit_res_code": 1,
        "old_commit_res_stdout": before.replace("{place}", place),
    }
    commit = {
        "file_diffs": [FILE_DIFF],
        "old_commit_hash": "0" * 40,
        "new_commit_hash": "f0d74880",
        "commit_message": "Fix total",
        "metadata": {},
    }
    expected = {"TestShop.test_total": "PASSED", "\x1b[1mTestShop.test_sum\x1b[0m": "PASSED"}
    return {
        "repo_name": "shop",
        "docker_image": "namanjain12/shop_final:f0d74880",
        "commit_hash": "f0d74880",
        "parsed_commit_content": json.dumps(commit | fields.pop("commit", {})),
        "execution_result_content": json.dumps(execution | fields.pop("execution", {})),
        "modified_files": ["shop.py"],
        "relevant_files": ["shop.py", "r2e_tests/test_1.py"],
        "num_non_test_files": 1,
        "prompt": "You are an expert at writing issues.",
        "problem_statement": "[ISSUE]\n**Title:** The total is one too high.\n[/ISSUE]",
        "expected_output_json": json.dumps(expected),
        **fields,
    }


def import_one(tmp_path: Path, row: object, **request: Any) -> Task:
    """Import one record."""
    source = tmp_path / "rows.jsonl"
    source.write_text(json.dumps(row) + "\n", "utf-8")
    tasks, skipped = import_all(source, ImportRequest(tmp_path / "out", **request))
    assert skipped == {}
    (task,) = tasks.values()
    return task


def skipped_for(tmp_path: Path, row: object, **request: Any) -> str:
    """Import a record that can't be imported, and return the reason."""
    source = tmp_path / "rows.jsonl"
    source.write_text(json.dumps(row) + "\n", "utf-8")
    tasks, skipped = import_all(source, ImportRequest(tmp_path / "out", **request))
    assert tasks == {}
    (reason,) = skipped.values()
    return reason


# SWE-smith


def test_a_bug_of_smith_is_applied_in_the_image_and_its_history_is_forgotten(tmp_path: Path) -> None:
    task = import_one(tmp_path, smith())
    facts = task.facts
    assert facts.image == "jyangballin/swesmith.x86_64.acme_1776_shop.95280573:latest"
    assert (facts.repo, facts.env) == ("/testbed", {"PATH": CONDA_PATH})
    assert facts.entrypoint == "python -m pytest -rA tests/test_shop.py"
    assert facts.fail_to_pass == ["tests/test_shop.py::test_total"]
    # Other files are not run.
    assert facts.pass_to_pass == ["tests/test_shop.py::test_none"]
    assert [" apply " in command for command in facts.setup[-2:]] == [True, False]
    assert facts.setup[-1] == BEGIN_ANEW
    assert (task.instruction, task.test_patch()) == ("# The total is one too high.", None)
    assert (facts.source.benchmark, facts.source.repo) == ("swesmith", "acme/Shop")
    gold = task.gold_patch()
    assert gold is not None and gold.decode() == GOLD


@pytest.mark.parametrize(
    ("name", "image"),
    [
        (
            "jyangballin/swesmith.x86_64.acme_1776_shop.95280573",
            "jyangballin/swesmith.x86_64.acme_1776_shop.95280573:latest",
        ),
        ("registry.example:5000/swesmith.x86_64.a.b", "registry.example:5000/swesmith.x86_64.a.b:latest"),
        ("swebench/swesmith.x86_64.a.b:7", "swebench/swesmith.x86_64.a.b:7"),
    ],
)
def test_a_whole_name_of_an_image_stays(tmp_path: Path, name: str, image: str) -> None:
    assert import_one(tmp_path, smith(image_name=name, problem_statement="")).facts.image == image


def test_records_of_smith_without_an_issue_have_an_instruction(tmp_path: Path) -> None:
    task = import_one(tmp_path, smith(problem_statement="", base_commit=None))
    assert task.instruction.startswith("Some tests of this repository fail")


def test_repositories_of_smith_with_other_runners_have_their_command(tmp_path: Path) -> None:
    row = smith(
        instance_id="tornadoweb__tornado.d5ac65c1.pr_1",
        FAIL_TO_PASS=["test_x (tornado.test.web_test.A.test_x)"],
        PASS_TO_PASS=["test_y (tornado.test.web_test.A.test_y)"],
    )
    facts = import_one(tmp_path, row).facts
    assert facts.entrypoint == "python -m tornado.test --verbose"
    assert facts.pass_to_pass == ["test_y (tornado.test.web_test.A.test_y)"]


def test_other_languages_of_smith_are_skipped(tmp_path: Path) -> None:
    row = smith(instance_id="gin-gonic__gin.3c12d2a8.lm_rewrite__4pb48n1g", FAIL_TO_PASS=["TestRender"])
    assert skipped_for(tmp_path, row).startswith("no command is known that runs its tests in Python")
    assert skipped_for(tmp_path, smith(patch="GIT binary patch\n")).startswith(
        "It changes more than the text"
    )


@pytest.mark.parametrize("has_bug", [False, True])
def test_a_tree_of_smith_has_the_bug_once(tmp_path: Path, has_bug: bool) -> None:
    """The commit of a record has it, the repository that it was made of has not."""
    clone = write(tmp_path / "clones" / "acme__Shop.95280573", {"shop.py": SHOP if has_bug else FIXED})
    git(clone, "init", "-q")
    git(clone, "add", ".")
    git(clone, "commit", "-qm", "base")
    row = smith(base_commit=git(clone, "rev-parse", "HEAD"))
    task = import_one(tmp_path, row, source=tmp_path / "clones")
    assert task.repository is not None
    assert (task.repository / "shop.py").read_text("utf-8") == SHOP
    assert (task.facts.python, task.facts.image, task.facts.hidden_folders) == ("3.10", None, [])


def test_another_tree_than_that_of_the_record_is_refused(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", {"shop.py": "other\n", "setup.py": ""})
    reason = skipped_for(tmp_path, smith(), source=tree)
    assert reason.startswith("Its patch can't be applied: error: patch failed: shop.py:1")


# SWE-Gym


def test_a_record_of_gym_takes_image_and_command_by_its_conventions(tmp_path: Path) -> None:
    task = import_one(tmp_path, gym())
    facts = task.facts
    assert facts.image == "xingyaoww/sweb.eval.x86_64.getmoto_s_moto-7365:latest"
    assert facts.entrypoint == "python -m pytest -rA tests/test_shop.py -n0"
    assert (facts.source.benchmark, facts.env) == ("swegym", {"PATH": CONDA_PATH})
    assert (task.gold_patch(), task.test_patch()) == (GOLD.encode(), TEST_PATCH.encode())


def test_mypy_of_gym_runs_the_tests_by_name(tmp_path: Path) -> None:
    data = TEST_PATCH.replace("tests/test_shop.py", "test-data/unit/check-shop.test")
    names = [f"mypy/test/testcheck.py::TypeCheckSuite::check-shop.test::test{name}" for name in ("A", "B")]
    row = gym(repo="python/mypy", test_patch=data, FAIL_TO_PASS=names[:1], PASS_TO_PASS=names[1:])
    facts = import_one(tmp_path, row).facts
    assert facts.entrypoint == "python -m pytest -rA mypy/test/testcheck.py -n0 -k 'testA or testB'"


def test_same_fields_of_other_benchmarks_are_not_taken_for_gym(tmp_path: Path) -> None:
    row = gym(docker_image="swerebench/sweb.eval.x86_64.moto:1", install_config={})
    assert import_one(tmp_path, row).facts.source.benchmark == "swebench"


def test_a_tree_of_gym_needs_no_xdist(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", {"shop.py": SHOP, "setup.py": ""})
    facts = import_one(tmp_path, gym(), source=tree, given=Given(python="3.11")).facts
    assert (facts.entrypoint, facts.python) == ("python -m pytest -rA tests/test_shop.py", "3.11")


# R2E-Gym


def test_a_record_of_r2e_brings_its_tests_and_hides_those_of_the_image(tmp_path: Path) -> None:
    task = import_one(tmp_path, r2e())
    facts = task.facts
    assert (facts.image, facts.repo) == ("namanjain12/shop_final:f0d74880", "/testbed")
    assert facts.entrypoint == "python -W ignore -m pytest -rA r2e_tests"
    assert facts.env["PATH"].startswith("/testbed/.venv/bin:")
    assert facts.fail_to_pass == ["r2e_tests/test_1.py::TestShop::test_total"]
    assert facts.pass_to_pass == ["r2e_tests/test_1.py::TestShop::test_sum"]
    assert facts.hidden_folders == ["/r2e_tests"]
    assert facts.source.instance_id == "shop_final:f0d74880"
    assert task.instruction == "**Title:** The total is one too high."
    assert "run_tests.sh" in facts.setup[0] and facts.setup[1] == FORGET_LATER
    gold, tests = task.gold_patch(), task.test_patch()
    assert gold is not None and gold.decode() == GOLD
    assert tests is not None and b"+++ b/r2e_tests/test_1.py" in tests


def test_marks_of_an_issue_by_the_hundred_thousand_cost_nothing(tmp_path: Path) -> None:
    task = import_one(tmp_path, r2e(problem_statement="[ISSUE]" * 100_000))
    assert task.instruction.startswith("[ISSUE][ISSUE]")


def test_a_file_of_one_record_of_r2e_is_read(tmp_path: Path) -> None:
    (tmp_path / "row.json").write_text(json.dumps(r2e()), "utf-8")
    tasks, _ = import_all(tmp_path / "row.json", ImportRequest(tmp_path / "out"))
    assert set(tasks) == {"shop_final_f0d74880"}


def test_tests_and_binary_files_of_a_commit_are_no_part_of_the_fix(tmp_path: Path) -> None:
    made = {
        "header": {"file": {"path": "new/__init__.py"}, "misc_line": "new file mode 100644"},
        "minus_file": None,
    }
    others = [
        {**FILE_DIFF, "header": {"file": {"path": "a/tests/data.py"}}},
        {**FILE_DIFF, "header": {"file": {"path": "test_shop.py"}}},
        {"header": {"file": {"path": "a.png"}}, "is_binary_file": True, "binary_line": "Binary files differ"},
    ]
    task = import_one(tmp_path, r2e(commit={"file_diffs": [FILE_DIFF, *others, made]}))
    gold = task.gold_patch()
    assert gold is not None
    assert gold.decode() == GOLD + ("diff --git a/new/__init__.py b/new/__init__.py\nnew file mode 100644\n")


def test_tests_of_pillow_find_their_helper(tmp_path: Path) -> None:
    changed = {"header": {"file": {"path": "Tests/helper.py"}}, "new_file_content": "later = True\n"}
    plain = import_one(tmp_path, r2e(repo_name="pillow"))
    assert "cp Tests/helper.py r2e_tests/" in plain.facts.setup[-1]
    row = r2e(repo_name="pillow", commit={"file_diffs": [FILE_DIFF, changed]})
    (tmp_path / "changed").mkdir()
    task = import_one(tmp_path / "changed", row)
    assert "helper" not in task.facts.setup[-1]
    tests = task.test_patch()
    assert tests is not None and b"+later = True" in tests


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        (
            {"execution": {"old_commit_res_stdout": None, "new_commit_res_stdout": None}},
            "its logs name no test",
        ),
        ({"expected_output_json": "{}"}, "its logs name no test"),
        ({"execution": {"test_file_names": ["../x.py"]}}, "'../x.py' is no name of a test file"),
        ({"expected_output_json": "[" * 100_000}, "a field is nested too deeply"),
        ({"parsed_commit_content": "5"}, "parsed_commit_content: "),
        ({"problem_statement": ""}, "problem_statement: "),
    ],
)
def test_a_record_of_r2e_that_is_not_whole_is_skipped(
    tmp_path: Path, fields: dict[str, Any], reason: str
) -> None:
    assert skipped_for(tmp_path, r2e(**fields)).startswith(reason)


# All of them


def test_a_set_that_cannot_be_read_is_not_said_to_be_of_another_format(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(InvalidArgument, match=r"Can't read a\.parquet"):
        import_all(tmp_path / "a.parquet", ImportRequest(tmp_path / "out", format="swesmith"))
    (tmp_path / "rows.json").write_text(json.dumps([record()]), "utf-8")
    with pytest.raises(InvalidArgument, match="holds nothing of the format r2egym"):
        import_all(tmp_path / "rows.json", ImportRequest(tmp_path / "out", format="r2egym"))


RUNNER = "import unittest\n\nunittest.main(module='test_1')\n"
SHAPES: dict[str, tuple[dict[str, object], dict[str, str], bool]] = {
    "smith": (smith(), {"shop.py": FIXED, "tests/test_shop.py": TEST + OTHER.partition("\n")[2]}, True),
    "gym": (gym(), {"shop.py": SHOP}, False),
    "r2e": (r2e(), {"shop.py": SHOP}, False),
    "r2e with a runner of its own": (
        r2e(
            "test_1",
            execution={
                "test_file_names": ["test_1.py", "unittest_custom_runner.py"],
                "test_file_codes": [CLASS, RUNNER],
            },
        ),
        {"shop.py": SHOP},
        False,
    ),
}


@pytest.mark.anyio
@pytest.mark.parametrize("shape", SHAPES)
async def test_tasks_on_a_local_repository_are_verified(
    sandboxes: Sandboxes, tmp_path: Path, shape: str
) -> None:
    row, files, shows_tests = SHAPES[shape]
    tree = write(tmp_path / "tree", {**files, "setup.py": "", "conftest.py": ""})
    given = Given(env=LOCAL.env, setup=LOCAL.setup)
    task = import_one(tmp_path, row, source=tree, given=given)
    assert any("test" in name and name != "conftest.py" for name in files_in(task)) is shows_tests
    verified = await verify_task(sandboxes, task, print)
    assert verified.ok, verified
    assert (
        verified.before.text
        == f"1 of 1 fail, {len(task.facts.pass_to_pass)} of {len(task.facts.pass_to_pass)} pass"
    )
    assert not (await score(sandboxes, task, b"", print)).resolved
