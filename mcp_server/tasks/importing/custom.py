"""debug-gym's custom repositories: a configuration that names a folder and its entry points, or a folder with its rule files."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mcp_server.tasks.folder import read_bytes
from mcp_server.tasks.importing.draft import Draft, Options, Skipped
from mcp_server.tasks.importing.folder import INSTRUCTION, TESTS
from mcp_server.tasks.importing.source import Source
from mcp_server.tasks.importing.trees import copy_tree
from mcp_server.tasks.model import Name, TaskFacts, TaskLimits, TaskSource, Text, Variable
from sandbox.errors import InvalidArgument

ENTRYPOINT = "python -m pytest -sq ."
_RULES = (".debugignore", ".debugreadonly")
_MAX_CONFIG = 1 << 20
_LOCAL = ("local", "LocalEnv", None)


class _Task(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    env_type: Name | None = None
    path: Name | None = None
    entrypoint: Text = ENTRYPOINT
    debug_entrypoint: Text | None = None


class _Terminal(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    base_image: Name | None = None
    setup_commands: Annotated[list[Text], Field(max_length=1000)] | None = None
    env_vars: Annotated[dict[Variable, Text], Field(max_length=1000)] | None = None


class _Config(BaseModel):
    """Configuration of debug-gym. Version 1.0 has `base`, with `env_kwargs` and `terminal` in it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    task_name: Name | None = None
    task_data: _Task = _Task()
    terminal: _Terminal = _Terminal()
    run_timeout: Annotated[float, Field(gt=0, le=86_400)] | None = None


def recognize(source: Source) -> bool:
    """Tell whether `source` is a configuration file, or a folder with rule files of debug-gym."""
    path = source.path
    if path.suffix.lower() in (".yaml", ".yml"):
        return path.is_file()
    return path.is_dir() and any((path / name).is_file() for name in _RULES)


def read(source: Source, options: Options) -> Iterator[Draft | Skipped]:
    """Yield the repository that the configuration names, or that `source` is.

    Raises:
        InvalidArgument: the configuration is invalid, or names no repository.
    """
    path = source.path
    config = _Config() if path.is_dir() else _parse(path)
    folder = path if path.is_dir() else options.source or _find(path, config.task_data.path or "")
    name = config.task_name or folder.resolve().name
    terminal, task = config.terminal, config.task_data
    facts = TaskFacts(
        image=terminal.base_image,
        setup=list(terminal.setup_commands or ()),
        env=dict(terminal.env_vars or {}),
        entrypoint=task.entrypoint,
        debug_entrypoint=task.debug_entrypoint,
        tests=list(TESTS),
        limits=TaskLimits(timeout_s=config.run_timeout),
        source=TaskSource(benchmark="custom", instance_id=name),
    )
    yield Draft(name, "custom", INSTRUCTION, facts, write_repository=partial(copy_tree, folder))


def _parse(source: Path) -> _Config:
    raw = _load(source)
    dataset = _table(raw, "dataset").get("type")
    base = _table(raw, "base") or raw
    task = _table(base, "task_data") or _table(base, "env_kwargs")
    if not task.get("path"):
        hint = f"Import the files of {dataset} themselves." if dataset else "It has to be in `task_data`."
        raise InvalidArgument(f"{source.name} names no `path` of a repository.", hint)
    if task.get("env_type") not in _LOCAL:
        raise InvalidArgument(
            f"{source.name}: only `env_type: local` has a repository and tests, not {task['env_type']!r}."
        )
    try:
        return _Config.model_validate(
            {
                "task_name": raw.get("task_name"),
                "task_data": task,
                "terminal": _table(base, "terminal"),
                "run_timeout": _table(base, "env").get("run_timeout") or task.get("run_timeout"),
            }
        )
    except ValidationError as exc:
        error = exc.errors()[0]
        raise InvalidArgument(f"{source.name}: {'.'.join(map(str, error['loc']))}: {error['msg']}.") from exc


def _table(raw: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = raw.get(name)
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def _load(source: Path) -> Mapping[str, Any]:
    try:
        yaml: Any = importlib.import_module("yaml")
    except ImportError as exc:
        raise InvalidArgument(
            f"Reading {source.name} needs PyYAML.", "Install it with `uv tool install 'pdbox[datasets]'`."
        ) from exc
    not_yaml: type[Exception] = yaml.YAMLError
    try:
        raw: Any = yaml.safe_load(read_bytes(source, _MAX_CONFIG))
    except (not_yaml, ValueError, RecursionError) as exc:
        if isinstance(exc, InvalidArgument):
            raise
        raise InvalidArgument(f"{source.name} can't be read: {' '.join(str(exc).split())[:200]}.") from exc
    if not isinstance(raw, dict):
        raise InvalidArgument(f"{source.name} is not a configuration of debug-gym.")
    return cast(dict[str, Any], raw)


def _find(source: Path, path: str) -> Path:
    """Find the folder that a configuration names: beside it, beside its folder, or in the working directory.

    A configuration may be anybody's, so no other folder is copied unless the person names it.
    """
    tops = _tops(source)
    for top in tops:
        folder = top / path
        try:
            if folder.is_dir() and folder.resolve().is_relative_to(top):
                return folder
        except (OSError, RuntimeError, ValueError):
            continue  # too long, or a loop of links
    raise InvalidArgument(
        f"{source.name} names the folder {path[:200]!r}, which is in none of {', '.join(map(str, tops))}.",
        "Name it with `--source DIR`.",
    )


def _tops(source: Path) -> Sequence[Path]:
    own = source.resolve().parent
    return list(dict.fromkeys((own, own.parent, Path.cwd())))
