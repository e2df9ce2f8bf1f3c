"""Python exercises of Exercism, which aider's benchmarks consist of: a stub, its tests, and an example solution."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mcp_server.tasks.folder import MAX_INSTRUCTION, read_bytes
from mcp_server.tasks.importing.draft import Draft, Options, Skipped
from mcp_server.tasks.importing.patches import diff_file
from mcp_server.tasks.importing.source import Source
from mcp_server.tasks.importing.trees import copy_tree, read_inside
from mcp_server.tasks.model import Inside, TaskFacts, TaskSource
from sandbox.errors import InvalidArgument

ENTRYPOINT = "python -m pytest --tb=no -s ."
_CONFIG = ".meta/config.json"
_PLACES = ("exercises/practice", "python/exercises/practice", "practice", ".")
_TEXTS = ("introduction.md", "instructions.md", "instructions.append.md")
_SOLUTIONS = frozenset({".meta", ".approaches", ".articles"})
"""Folders of an exercise that hold or discuss its solution."""

_Paths = Annotated[list[Inside], Field(max_length=100)]


class _Files(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    solution: Annotated[_Paths, Field(min_length=1)]
    test: Annotated[_Paths, Field(min_length=1)]
    example: _Paths = []
    exemplar: _Paths = []
    """`example` of an exercise that teaches a concept."""
    editor: _Paths = []
    """Files that the solution uses and must not change."""


class _Config(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    files: _Files


def recognize(source: Source) -> bool:
    """Tell whether `source` is an exercise, a folder of them, or a clone of a track or of aider's benchmark."""
    return bool(_folders(source.path))


def read(source: Source, options: Options) -> Iterator[Draft | Skipped]:
    """Yield the exercises; their tests have to pass all."""
    for folder in _folders(source.path):
        name = folder.name.replace("-", "_")
        try:
            yield _draft(name, folder)
        except ValidationError as exc:
            yield Skipped(name, f"{_CONFIG}: {exc.errors()[0]['msg']}")
        except InvalidArgument as exc:
            yield Skipped(name, str(exc))


def _draft(name: str, folder: Path) -> Draft:
    files = _Config.model_validate_json(read_inside(folder, _CONFIG)).files
    names = [f".docs/{text}" for text in _TEXTS if (folder / ".docs" / text).is_file()]
    texts = [read_inside(folder, path, MAX_INSTRUCTION).decode("utf-8", "replace") for path in names]
    if not texts:
        raise InvalidArgument("it has no .docs/instructions.md")
    examples = files.example or files.exemplar
    fixed = [*files.test, *files.editor]
    facts = TaskFacts(
        python="3.12",
        entrypoint=ENTRYPOINT,
        tests=[f"/{path}" for path in files.test],
        read_only=[f"/{path}" for path in fixed],
        source=TaskSource(benchmark="exercism", instance_id=name, repo="exercism/python", licence="MIT"),
    )
    instruction = "\n\n".join(map(str.strip, texts)) + "\n\n" + _files_text(files.solution, fixed)
    can_solve = len(examples) == len(files.solution)
    return Draft(
        name,
        "exercism",
        instruction,
        facts,
        write_repository=partial(copy_tree, folder, leave_out=_SOLUTIONS),
        gold=partial(_solve, folder, files.solution, examples) if can_solve else None,
    )


def _files_text(solution: Sequence[str], fixed: Sequence[str]) -> str:
    write, keep = (", ".join(f"`{path}`" for path in paths) for paths in (solution, fixed))
    return f"Write the solution in {write}. {keep} can't be changed."


def _solve(folder: Path, solution: Sequence[str], examples: Sequence[str], repository: Path) -> bytes:
    parts: list[bytes] = []
    for stub, example in zip(solution, examples, strict=True):
        before = read_bytes(repository / stub) if (repository / stub).is_file() else None
        parts.append(diff_file(stub, before, read_inside(folder, example)))
    return b"".join(parts)


def _folders(source: Path) -> list[Path]:
    if _is_exercise(source):
        return [source]
    for place in _PLACES:
        top = source / place
        found = sorted(top.iterdir()) if top.is_dir() else []
        if folders := [folder for folder in found if _is_exercise(folder)]:
            return folders
    return []


def _is_exercise(folder: Path) -> bool:
    config = folder / _CONFIG
    if folder.is_symlink() or config.is_symlink() or not config.is_file():
        return False
    # Tracks of other languages have the same layout.
    return any(PurePosixPath(path.name).suffix == ".py" for path in folder.glob("*.py"))
