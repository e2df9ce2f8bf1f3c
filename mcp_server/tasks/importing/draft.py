"""A task as a reader finds it in its benchmark, before it is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from mcp_server.tasks.importing.source import Source
from mcp_server.tasks.model import TaskFacts


@dataclass(frozen=True)
class Draft:
    """A task that can be written."""

    id: str
    """Name in its benchmark. May hold any characters."""
    benchmark: str
    instruction: str
    facts: TaskFacts
    write_repository: Callable[[Path], None] | None = None
    """Writes the repository into an empty folder; None if it is a folder of the image."""
    gold: Callable[[Path], bytes] | None = None
    """Makes the patch that fixes the repository in the given folder."""
    test_patch: bytes | None = None
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    """Further files by their path in the task folder."""


@dataclass(frozen=True)
class Skipped:
    """A task that can't be imported."""

    id: str
    reason: str


@dataclass(frozen=True)
class Options:
    """Options of the person who imports, as readers need them."""

    scratch: Path
    """Folder for files that are needed during the import only."""
    source: Path | None = None
    """Repositories for records that hold none: a clone, a tree, an archive, or a folder of them."""
    apply_test_patch: bool = False
    """Give the model the tests that a benchmark hides."""
    has_entrypoint: bool = False
    """True if the command that runs the tests is given, so that a reader needs none."""
    prepares: bool = False
    """True if set-up, requirements or environment are given, so that a reader adds none."""


class Reader(Protocol):
    """A module that reads one kind of source."""

    def recognize(self, source: Source) -> bool:
        """Tell whether `source` is of this kind."""
        ...

    def read(self, source: Source, options: Options) -> Iterator[Draft | Skipped]:
        """Yield the tasks in `source`.

        Raises:
            InvalidArgument: it can't be read.
        """
        ...
