"""Any repository as one task."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from mcp_server.tasks.importing.draft import Draft, Options, Skipped
from mcp_server.tasks.importing.source import Source
from mcp_server.tasks.importing.trees import copy_tree
from mcp_server.tasks.model import TaskFacts, TaskSource

INSTRUCTION = "Some tests of this repository fail. Run them, find the causes, then edit the code so that all tests pass."
TESTS = ("test_*.py", "*_test.py", "tests/", "test.py")
"""Patterns of files that are tests in most repositories."""


def recognize(source: Source) -> bool:
    """Tell whether `source` is a folder."""
    return source.path.is_dir()


def read(source: Source, options: Options) -> Iterator[Draft | Skipped]:
    """Yield the repository."""
    name = source.path.resolve().name
    facts = TaskFacts(tests=list(TESTS), source=TaskSource(benchmark="folder", instance_id=name))
    yield Draft(name, "folder", INSTRUCTION, facts, write_repository=partial(copy_tree, source.path))
