"""Patches that undo others, of which the bugs of SWE-smith are."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from mcp_server.tasks.importing.patches import reverse_patch
from mcp_server.tasks.importing.trees import apply_patch
from sandbox.errors import InvalidArgument
from tests.mcp_server.tasks.importing.layouts import GOLD, git, write

BEFORE = {
    "shop.py": "a\nb\n\nc\nd\n" + "x\n" * 20 + "-- y\n++ z\nend",
    "gone.py": "first\nlast\n",
    "with space.py": "1\n2",
}
AFTER = {
    "shop.py": "a\nB\nB2\n\nc\n" + "x\n" * 20 + "++ y\n-- z\nend\n",
    "new.py": "made\n",
    "with space.py": "1\n3",
}


def texts(folder: Path) -> dict[str, str]:
    """Files in a folder."""
    return {path.name: path.read_text("utf-8") for path in folder.iterdir() if path.is_file()}


def diff(folder: Path, before: Mapping[str, str], after: Mapping[str, str]) -> bytes:
    """Let git make a patch, and leave the later files in the folder."""
    write(folder, before)
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "before")
    for name in before.keys() - after.keys():
        (folder / name).unlink()
    write(folder, after)
    git(folder, "add", "-A")
    return subprocess.run(["git", "diff", "--cached"], cwd=folder, check=True, capture_output=True).stdout


def test_the_reversed_patch_brings_the_files_back(tmp_path: Path) -> None:
    patch = diff(tmp_path, BEFORE, AFTER)
    undone = reverse_patch(patch)
    apply_patch(tmp_path, undone, "It")
    assert texts(tmp_path) == BEFORE
    apply_patch(tmp_path, reverse_patch(undone), "It")
    assert texts(tmp_path) == AFTER


def test_removed_lines_stand_before_added_ones_again() -> None:
    assert (
        reverse_patch(GOLD.encode()).decode()
        == """\
diff --git a/shop.py b/shop.py
--- a/shop.py
+++ b/shop.py
@@ -1,2 +1,2 @@
 def total(prices):
-    return sum(prices)
+    return sum(prices) + 1
"""
    )


@pytest.mark.parametrize(
    ("patch", "reason"),
    [
        ("@@ -1,2 +1,2 @@\n a\n", "no whole patch"),
        ("@@ -1,2 +1,2 @@\n a\nodd\n", "no whole patch"),
        ("@@ -1,3 +1,3 @@\n a\n-b\n-b\n-b\n-b\n", "no whole patch"),
        ("diff --git a/x b/y\nrename from x\nrename to y\n", "more than the text"),
        ("diff --git a/x b/x\nGIT binary patch\n", "more than the text"),
    ],
)
def test_other_patches_are_refused(patch: str, reason: str) -> None:
    with pytest.raises(InvalidArgument, match=reason):
        reverse_patch(patch.encode())
