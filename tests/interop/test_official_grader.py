"""Verdicts of SWE-bench's own grader beside ours: equal without and with the fix, and different where a log is forged."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from mcp_server.backends import open_backend
from mcp_server.commands.tasks import sandboxes_of
from mcp_server.settings import Settings
from mcp_server.tasks import official
from mcp_server.tasks.importing.importer import Given, ImportRequest
from mcp_server.tasks.official import OfficialVerdict
from mcp_server.tasks.scoring import score
from tests.interop.environments import Environments
from tests.mcp_server.tasks.importing.layouts import GOLD, SHOP, import_all, record, write

pytestmark = pytest.mark.anyio
TEST = "tests/test_shop.py::test_total"
OTHER = "from shop import total\n\n\ndef test_sum():\n    assert total([1]) in (1, 2)\n"
FORGED = f"""\
diff --git a/shop.py b/shop.py
--- a/shop.py
+++ b/shop.py
@@ -1,2 +1,4 @@
+import atexit, os
+atexit.register(lambda: (print("PASSED {TEST}", flush=True), os._exit(0)))
 def total(prices):
     return sum(prices) + 1
"""
PATCHES = {"nothing": "", "gold": GOLD, "forged": FORGED}


async def test_both_verdicts_are_equal_unless_the_output_is_forged(
    environments: Environments, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = record(PASS_TO_PASS=json.dumps(["tests/test_sum.py::test_sum"]))
    source = write(tmp_path / "source", {"shop.py": SHOP, "tests/test_sum.py": OTHER, "conftest.py": ""})
    (tmp_path / "rows.json").write_text(json.dumps([row]), "utf-8")
    given = Given(entrypoint="python -m pytest -rA tests", env={"PYTHONPATH": "{workspace}"})
    tasks, _ = import_all(tmp_path / "rows.json", ImportRequest(tmp_path / "out", source=source, given=given))
    (task,) = tasks.values()
    instance = str(row["instance_id"])
    with_package = partial(official.grade, python=str(environments.python("swebench")))
    monkeypatch.setattr("mcp_server.tasks.scoring.grade", with_package)
    settings, logs = Settings(backend="process", unsafe_no_isolation=True), tmp_path / "logs"
    async with open_backend(settings) as backend:
        sandboxes = sandboxes_of(backend, settings)
        verdicts = {
            name: await score(sandboxes, task, patch.encode(), print, logs / name)
            for name, patch in PATCHES.items()
        }
    assert all(verdict.applied for verdict in verdicts.values())
    assert {name: one.resolved for name, one in verdicts.items()} == {
        "nothing": False,
        "gold": True,
        "forged": False,
    }
    theirs = {name: one.official.resolved if one.official else None for name, one in verdicts.items()}
    assert theirs == {"nothing": False, "gold": True, "forged": True}, verdicts
    assert verdicts["gold"].official == OfficialVerdict(
        resolved=True, reason="1 of 1 FAIL_TO_PASS passed, 1 of 1 PASS_TO_PASS passed"
    )
    (report,) = (logs / "gold").rglob("report.json")
    assert report.parent == logs / "gold/logs/run_evaluation/pdbox/pdbox" / instance
    assert json.loads(report.read_text("utf-8"))[instance]["resolved"] is True
    assert "PASSED" in (report.parent / "test_output.txt").read_text("utf-8")
    assert (report.parent / "patch.diff").read_text("utf-8") == GOLD
    (line,) = (logs / "gold/preds.jsonl").read_text("utf-8").splitlines()
    assert json.loads(line) == {
        "instance_id": instance,
        "model_name_or_path": "pdbox",
        "model_patch": GOLD,
    }


async def test_a_record_of_another_runner_is_read_as_pytest_printed_it(
    environments: Environments, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = record(repo="sympy/sympy", FAIL_TO_PASS=json.dumps(["test_total"]))
    source = write(tmp_path / "source", {"shop.py": SHOP, "conftest.py": ""})
    (tmp_path / "rows.json").write_text(json.dumps([row]), "utf-8")
    given = Given(setup=["true"], env={"PYTHONPATH": "{workspace}"}, python="3.11")
    tasks, _ = import_all(tmp_path / "rows.json", ImportRequest(tmp_path / "out", source=source, given=given))
    (task,) = tasks.values()
    with_package = partial(official.grade, python=str(environments.python("swebench")))
    monkeypatch.setattr("mcp_server.tasks.scoring.grade", with_package)
    settings = Settings(backend="process", unsafe_no_isolation=True)
    async with open_backend(settings) as backend:
        sandboxes = sandboxes_of(backend, settings)
        for patch, resolved in (("", False), (GOLD, True)):
            verdict = await score(sandboxes, task, patch.encode(), print)
            theirs = verdict.official.resolved if verdict.official else None
            assert (verdict.resolved, theirs) == (resolved, resolved), verdict
