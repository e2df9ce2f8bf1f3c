"""A model that knows the way: the calls that mend each task, found by the text of the task. Standard library only."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

TASKS = Path(__file__).parents[3] / "manifests" / "tasks"
NAMES = ("intervals_hidden", "ledger_rates", "minigrad_momentum", "shop_discount")
Call = tuple[str, dict[str, Any]]


def calls_of(task: str) -> list[Call]:
    """Stop at the line that is wrong, look around, mend it, and run the tests: four calls."""
    patch = (TASKS / task / "solution" / "gold.patch").read_text("utf-8")
    path, line, old, new = _change(patch)
    return [
        ("pdb", {"command": f"b {path}:{line}\nc"}),
        ("pdb", {"command": "where"}),
        ("rewrite", {"path": path, "old_code": old, "new_code": new}),
        ("eval", {}),
    ]


def next_call(prompt: str, answers: Sequence[str]) -> Call | None:
    """The call after those that were answered, for the task whose text is in `prompt`; None when all are made.

    Raises:
        LookupError: the answer to the first one is not a stop at the line.
    """
    task = next(name for name in NAMES if text_of(name) in prompt)
    calls = calls_of(task)
    if len(answers) == 1 and "breakpoint 1" not in answers[0]:
        raise LookupError(f"{task}: no stop in {answers[0]!r}")
    return calls[len(answers)] if len(answers) < len(calls) else None


def text_of(task: str) -> str:
    """What the model is told to do."""
    return (TASKS / task / "instruction.md").read_text("utf-8").strip()


def _change(patch: str) -> tuple[str, int, str, str]:
    """File, line, and the code before and after, of a patch that changes lines next to each other."""
    path = re.search(r"^\+\+\+ b/(.*)$", patch, re.MULTILINE)
    begin = re.search(r"^@@ -(\d+)", patch, re.MULTILINE)
    assert path is not None and begin is not None
    lines = patch[patch.index("\n", begin.start()) + 1 :].splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("-"))
    old = [line[1:] for line in lines if line.startswith("-")]
    new = [line[1:] for line in lines if line.startswith("+")]
    return path[1], int(begin[1]) + first, "\n".join(old), "\n".join(new)
