"""Small sources in the layouts of the benchmarks."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

from mcp_server.tasks.folder import Task
from mcp_server.tasks.importing.draft import Skipped
from mcp_server.tasks.importing.importer import ImportRequest, import_tasks

SHOP = "def total(prices):\n    return sum(prices) + 1\n"
FIXED = "def total(prices):\n    return sum(prices)\n"
TEST = "from shop import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n"
GOLD = """\
diff --git a/shop.py b/shop.py
--- a/shop.py
+++ b/shop.py
@@ -1,2 +1,2 @@
 def total(prices):
-    return sum(prices) + 1
+    return sum(prices)
"""
TEST_PATCH = """\
diff --git a/tests/data.json b/tests/data.json
new file mode 100644
--- /dev/null
+++ b/tests/data.json
@@ -0,0 +1 @@
+[]
diff --git a/tests/test_shop.py b/tests/test_shop.py
new file mode 100644
--- /dev/null
+++ b/tests/test_shop.py
@@ -0,0 +1,5 @@
+from shop import total
+
+
+def test_total():
+    assert total([1, 2]) == 3
"""


def write(folder: Path, files: Mapping[str, str]) -> Path:
    """Write files below a folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return folder


def git(folder: Path, *words: str) -> str:
    """Run git in a folder."""
    own = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *own, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def record(**fields: object) -> dict[str, object]:
    """A record of SWE-bench of the first generation, with the given fields."""
    return {
        "instance_id": "acme__shop-1",
        "repo": "acme/shop",
        "base_commit": "0" * 40,
        "version": "1.0",
        "problem_statement": "The total is one too high.",
        "hints_text": "",
        "patch": GOLD,
        "test_patch": TEST_PATCH,
        "FAIL_TO_PASS": json.dumps(["tests/test_shop.py::test_total"]),
        "PASS_TO_PASS": "[]",
        **fields,
    }


def import_all(source: Path, request: ImportRequest) -> tuple[dict[str, Task], dict[str, str]]:
    """Import a source: tasks by name, and reasons by the id of what was skipped."""
    found = list(import_tasks(source, request))
    tasks = {one.name: one for one in found if isinstance(one, Task)}
    return tasks, {one.id: one.reason for one in found if isinstance(one, Skipped)}


def files_in(task: Task) -> set[str]:
    """Paths of the files of a task's repository."""
    top = task.folder / "environment" / "repo"
    return {
        path.relative_to(top).as_posix() for path in top.rglob("*") if not path.is_dir() or path.is_symlink()
    }
