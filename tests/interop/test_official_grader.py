"""Verdicts of SWE-bench's own grader beside ours: equal without and with the fix, and different where a log is forged."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mcp_server.backends import open_backend
from mcp_server.commands.tasks import sandboxes_of
from mcp_server.settings import Settings
from mcp_server.tasks.importing.importer import Given, ImportRequest
from mcp_server.tasks.scoring import score
from tests.interop.environments import Environments
from tests.interop.program import finished
from tests.mcp_server.tasks.importing.layouts import GOLD, SHOP, TEST_PATCH, import_all, record, write

pytestmark = pytest.mark.anyio
DRIVER = Path(__file__).with_name("episodes") / "swebench_grades.py"
TEST = "tests/test_shop.py::test_total"
OTHER = "from shop import total\n\n\ndef test_sum():\n    assert total([1]) in (1, 2)\n"
FORGED = f"""\
diff --git a/shop.py b/shop.py
--- a/shop.py
+++ b/shop.py
@@ -1,2 +1,4 @@
+import atexit
+atexit.register(print, "PASSED {TEST}", flush=True)
 def total(prices):
     return sum(prices) + 1
"""
PATCHES = {"nothing": "", "gold": GOLD, "forged": FORGED}


def run_as_the_harness_does(source: Path, patch: str) -> str:
    """Apply both patches, run the tests, and give the log that its script would leave."""
    folder = source.parent / f"run-{len(patch)}"
    shutil.copytree(source, folder)
    for text in filter(None, (patch, TEST_PATCH)):
        subprocess.run(["git", "apply", "-"], input=text, text=True, cwd=folder, check=True)
    tests = [sys.executable, "-m", "pytest", "-rA", "--tb=no", "-p", "no:cacheprovider", "tests"]
    # Its log has both streams; the folder is on the path as in an installed tree.
    done = finished(tests, 60, folder, {"PYTHONPATH": str(folder), "PATH": "/usr/bin:/bin"})
    between = f"{done.stdout}{done.stderr}"
    return (
        f"+ git apply\n+ : '>>>>> Start Test Output'\n>>>>> Start Test Output\n{between}\n>>>>> End Test Output\n"
        f"+ : '>>>>> End Test Output'\n"
    )


async def test_both_verdicts_are_equal_unless_the_log_is_forged(
    environments: Environments, tmp_path: Path
) -> None:
    row = record(PASS_TO_PASS=json.dumps(["tests/test_sum.py::test_sum"]))
    source = write(tmp_path / "source", {"shop.py": SHOP, "tests/test_sum.py": OTHER, "conftest.py": ""})
    (tmp_path / "rows.json").write_text(json.dumps([row]), "utf-8")
    (tmp_path / "row.json").write_text(json.dumps(row), "utf-8")
    given = Given(entrypoint="python -m pytest tests", env={"PYTHONPATH": "{workspace}"})
    tasks, _ = import_all(tmp_path / "rows.json", ImportRequest(tmp_path / "out", source=source, given=given))
    (task,) = tasks.values()
    logs = [tmp_path / f"{name}.txt" for name in PATCHES]
    for log, patch in zip(logs, PATCHES.values(), strict=True):
        log.write_text(run_as_the_harness_does(source, patch), "utf-8")
    done = finished([environments.python("swebench"), DRIVER, tmp_path / "row.json", *logs], 120)
    assert done.returncode == 0, done.stderr[-4000:]
    official = dict(zip(PATCHES, json.loads(done.stdout.strip().rpartition("\n")[2]), strict=True))
    settings = Settings(backend="process", unsafe_no_isolation=True)
    async with open_backend(settings) as backend:
        sandboxes = sandboxes_of(backend, settings)
        verdicts = {
            name: await score(sandboxes, task, patch.encode(), print) for name, patch in PATCHES.items()
        }
    assert all(verdict.applied for verdict in verdicts.values())
    assert {name: verdict.resolved for name, verdict in verdicts.items()} == {
        "nothing": False,
        "gold": True,
        "forged": False,
    }
    assert official == {"nothing": False, "gold": True, "forged": True}
