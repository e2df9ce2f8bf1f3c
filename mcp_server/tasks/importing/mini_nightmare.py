"""debug-gym's mini_nightmare: folders of a program NAME_code.py and its test.py."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from mcp_server.tasks.folder import read_bytes
from mcp_server.tasks.importing.draft import Draft, Options, Skipped
from mcp_server.tasks.importing.source import Source
from mcp_server.tasks.importing.trees import copy_tree
from mcp_server.tasks.model import TaskFacts, TaskSource

ENTRYPOINT = "python -m pytest --tb=no -s test.py"
INSTRUCTION = (
    "The program doesn't behave as intended. Find the root cause in this repository, then edit the code to fix it. "
    "The bug may not be in the code that you see first. `test.py` has the tests; it can't be changed."
)
_PLACES = (".", "data/mini_nightmare", "mini_nightmare")
_PROGRAM = "_code.py"


def recognize(source: Source) -> bool:
    """Tell whether `source` is such a folder, a folder of them, or a clone of debug-gym."""
    return bool(_folders(source.path))


def read(source: Source, options: Options) -> Iterator[Draft | Skipped]:
    """Yield the tasks; their tests have to pass all."""
    for folder in _folders(source.path):
        yield _draft(folder)


def _draft(folder: Path) -> Draft:
    name = _program(folder).removesuffix(_PROGRAM)
    texts = [read_bytes(path) for path in folder.glob("*.py")]
    # The image of the benchmark has pandas for the one task that uses it.
    uses_pandas = any(b"import pandas" in text for text in texts)
    facts = TaskFacts(
        python="3.12",
        requirements=["pytest", "pandas"] if uses_pandas else [],
        entrypoint=ENTRYPOINT,
        tests=["/test.py"],
        source=TaskSource(
            benchmark="mini_nightmare", instance_id=name, repo="microsoft/debug-gym", licence="MIT"
        ),
    )
    return Draft(name, "mini_nightmare", INSTRUCTION, facts, write_repository=partial(copy_tree, folder))


def _folders(source: Path) -> list[Path]:
    if _program(source):
        return [source]
    for place in _PLACES:
        top = source / place
        found = sorted(top.iterdir()) if top.is_dir() else []
        if folders := [folder for folder in found if _program(folder)]:
            return folders
    return []


def _program(folder: Path) -> str:
    """Name of the program in a task's folder; empty if the folder is none."""
    if not folder.is_dir() or folder.is_symlink() or not (folder / "test.py").is_file():
        return ""
    names = sorted(path.name for path in folder.glob(f"*{_PROGRAM}"))
    own = f"{folder.name}{_PROGRAM}"
    return own if own in names else names[0] if len(names) == 1 else ""
