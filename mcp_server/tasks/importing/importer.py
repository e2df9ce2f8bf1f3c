"""Imports tasks: finds the reader for a source, and writes what it reads as task folders."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from mcp_server.tasks.folder import ENVIRONMENT, MAX_PATCH, Task, TaskContent, read_bytes, write_task
from mcp_server.tasks.importing import (
    custom,
    exercism,
    folder,
    mini_nightmare,
    r2egym,
    swebench,
    swegym,
    swesmith,
)
from mcp_server.tasks.importing.draft import Draft, Options, Reader, Skipped
from mcp_server.tasks.importing.patches import diff_trees
from mcp_server.tasks.importing.source import Source
from mcp_server.tasks.importing.trees import is_archive, unpack
from mcp_server.tasks.model import TaskFacts
from sandbox.errors import InvalidArgument, NotFound, PdboxError

READERS: Mapping[str, Reader] = {
    "swesmith": swesmith,
    "swegym": swegym,
    "r2egym": r2egym,
    "swebench": swebench,
    "mini_nightmare": mini_nightmare,
    "exercism": exercism,
    "custom": custom,
    "folder": folder,
}
"""Readers by the name of their format, in the order in which they are tried."""
_MAX_NAME = 120
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True)
class Given:
    """Facts that the person gives, instead of those of the source. None and empty: the source's."""

    name: str | None = None
    instruction: str | None = None
    gold: Path | None = None
    """A patch, a fixed folder, or a folder of patches called after tasks."""
    entrypoint: str | None = None
    debug_entrypoint: str | None = None
    image: str | None = None
    python: str | None = None
    requirements: Sequence[str] = ()
    setup: Sequence[str] = ()
    env: Mapping[str, str] | None = None

    def complete(self, facts: TaskFacts) -> TaskFacts:
        """Replace facts that were read by those that are given.

        Raises:
            InvalidArgument: a value is invalid.
        """
        update: dict[str, Any] = {
            "entrypoint": self.entrypoint,
            "debug_entrypoint": self.debug_entrypoint,
            "image": self.image,
            "python": self.python,
            "requirements": list(self.requirements),
            "setup": [*facts.setup, *self.setup] if self.setup else None,
            "env": {**facts.env, **self.env} if self.env else None,
        }
        try:
            return TaskFacts.model_validate(
                {**facts.model_dump(), **{name: value for name, value in update.items() if value}}
            )
        except ValidationError as exc:
            error = exc.errors()[0]
            raise InvalidArgument(f"{'.'.join(map(str, error['loc']))}: {error['msg']}") from exc


@dataclass(frozen=True)
class ImportRequest:
    """Request of the person who imports."""

    out: Path
    """Folder that the task folders are written to."""
    format: str | None = None
    """Name of a reader; None to find out."""
    select: Sequence[str] = ()
    """Tasks to import; empty for all."""
    source: Path | None = None
    apply_test_patch: bool = False
    given: Given = Given()


def import_tasks(source: Path, request: ImportRequest) -> Iterator[Task | Skipped]:
    """Write the tasks in `source`, and yield each: the task, or the reason for which there is none.

    Raises:
        NotFound: there is no such source.
        InvalidArgument: it can't be read, or is of no known format.
    """
    if not source.exists():
        raise NotFound(f"No such file or folder: {source}.")
    request.out.mkdir(parents=True, exist_ok=True)
    # Beside the tasks, so that each appears as a whole, by a rename. Searches for tasks pass over hidden folders.
    with tempfile.TemporaryDirectory(prefix=".import-", dir=request.out) as name:
        scratch = Path(name)
        opened = Source(_unpack(source, scratch / "archive"))
        repositories = _unpack(request.source, scratch / "repositories") if request.source else None
        given = request.given
        options = Options(
            scratch=scratch,
            source=repositories,
            apply_test_patch=request.apply_test_patch,
            has_entrypoint=bool(given.entrypoint),
            prepares=bool(given.requirements or given.setup or given.env),
        )
        reader = _reader(opened, request)
        yield from _Writer(request, scratch).write_all(reader.read(opened, options))


def _unpack(path: Path, to: Path) -> Path:
    return unpack(path, to) if is_archive(path) else path


def _reader(source: Source, request: ImportRequest) -> Reader:
    if request.format is not None:
        reader = READERS[request.format]
        if not reader.recognize(source):
            source.first_row()  # says why, if it is a data set that can't be read
            raise InvalidArgument(f"{source.path} holds nothing of the format {request.format}.")
        return reader
    for name, reader in READERS.items():
        # Any folder could be meant as a task: only the one for which somebody says how its tests are run.
        if (name != "folder" or request.given.entrypoint) and reader.recognize(source):
            return reader
    raise InvalidArgument(
        f"{source.path} is of no known format ({', '.join(READERS)}).",
        "`--format folder` imports a repository as one task.",
    )


class _Writer:
    """Writes drafts, the selected ones, under names that are safe and differ."""

    def __init__(self, request: ImportRequest, scratch: Path) -> None:
        self._request = request
        self._scratch = scratch
        self._taken: set[str] = set()
        self._written = 0

    def write_all(self, found: Iterator[Draft | Skipped]) -> Iterator[Task | Skipped]:
        """Write what is selected.

        Raises:
            InvalidArgument: the source can't be read further.
        """
        missing = dict.fromkeys(self._request.select)
        for one in found:
            names = {one.id, safe_name(one.id)}
            if self._request.select and names.isdisjoint(self._request.select):
                continue
            for name in names:
                missing.pop(name, None)
            yield one if isinstance(one, Skipped) else self._write(one)
            if self._request.select and not missing:
                break  # the rest of a large data set needn't be read
        for name in missing:
            yield Skipped(name, "the source has no such task")

    def _write(self, draft: Draft) -> Task | Skipped:
        wanted = self._request.given.name or draft.id
        name = safe_name(wanted)
        if not name:
            return Skipped(draft.id[:200], "its name has no letter or digit")
        if name.lower() in self._taken:
            return Skipped(draft.id[:200], f"another task is called {name}, too")
        self._taken.add(name.lower())
        if (self._request.out / name).exists():
            return Skipped(
                draft.id[:200], f"{self._request.out / name} exists; remove it to import the task again"
            )
        try:
            return self._write_folder(draft, name)
        except PdboxError as exc:
            return Skipped(draft.id[:200], str(exc))
        except OSError as exc:
            return Skipped(draft.id[:200], f"{exc.strerror} ({exc.filename})")

    def _write_folder(self, draft: Draft, name: str) -> Task:
        self._written += 1
        folder = self._scratch / str(self._written) / name
        facts = self._request.given.complete(draft.facts)
        place = folder / ENVIRONMENT / facts.repo.lstrip("/")
        if draft.write_repository is not None:
            place.mkdir(parents=True)
            draft.write_repository(place)
        content = TaskContent(
            name=f"{safe_name(draft.benchmark)}/{name}",
            instruction=self._request.given.instruction or draft.instruction,
            facts=facts,
            gold_patch=self._gold(draft, name, place),
            test_patch=draft.test_patch,
            files=draft.files,
        )
        task = write_task(folder, content)
        folder.rename(self._request.out / name)
        return replace(task, folder=(self._request.out / name).resolve())

    def _gold(self, draft: Draft, name: str, repository: Path) -> bytes | None:
        given = self._request.given.gold
        patches = [f"{one}.patch" for one in (name, draft.id) if "/" not in one]
        if given is None:
            return draft.gold(repository) if draft.gold is not None else None
        if given.is_file():
            return read_bytes(given, MAX_PATCH)
        if own := next((given / patch for patch in patches if (given / patch).is_file()), None):
            return read_bytes(own, MAX_PATCH)
        if any(given.glob("*.patch")):
            return None
        return diff_trees(repository, given)


def safe_name(text: str) -> str:
    """Make a name of a folder of any text; empty if nothing of it can be used."""
    return _UNSAFE.sub("_", text[:1000]).lstrip("._-")[:_MAX_NAME].rstrip(".")
