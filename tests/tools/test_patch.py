"""Patches as those see them who wrote the new lines."""

from __future__ import annotations

import difflib

from tools._patch import shorten


def diff(old: list[str], new: list[str]) -> str:
    lines = difflib.unified_diff(old, new, "a/app.py", "b/app.py", lineterm="")
    return "\n".join(lines) + "\n"


def numbered(count: int) -> list[str]:
    return [f"line {number}" for number in range(1, count + 1)]


def test_changes_stand_with_one_line_around_them() -> None:
    old = numbered(30)
    new = [*old[:9], "ten", "and a half", *old[10:12], "13", *old[13:20], *old[21:]]
    assert shorten(diff(old, new)).split("\n") == [
        "@@ -9,6 +9,7 @@",
        " line 9",
        "-line 10",
        "+ten",
        "+and a half",
        " line 11",
        " line 12",
        "-line 13",
        "+13",
        " line 14",
        "@@ -20,3 +21,2 @@",
        " line 20",
        "-line 21",
        " line 22",
    ]


def test_many_new_lines_are_folded_and_so_are_very_many_old_ones() -> None:
    assert shorten(diff(["first", "last"], ["first", *numbered(9), "last"])).split("\n")[1:] == [
        " first",
        "+line 1",
        "+line 2",
        "+ … 5 lines …",
        "+line 8",
        "+line 9",
        " last",
    ]
    removed = shorten(diff(["first", *numbered(40), "last"], ["first", "last"])).split("\n")
    assert removed[0] == "@@ -1,42 +1,2 @@"
    assert removed[9:11] == ["-line 8", "- … 24 lines …"]
    assert len(removed) == 20


def test_a_new_file_a_missing_line_end_and_text_that_is_no_patch() -> None:
    assert shorten("--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+x = 1\n\\ No newline at end of file\n") == (
        "@@ -0,0 +1,1 @@\n+x = 1\n\\ No newline at end of file"
    )
    assert shorten("too large") == "too large"
    assert shorten("") == ""
