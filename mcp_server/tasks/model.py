"""The data of a task: `task.toml` as Harbor defines it, and the facts of pdbox in its `[metadata.pdbox]`.

Harbor's own model is not imported: its package needs 267 MB and a newer Python.
"""

from __future__ import annotations

import json
import posixpath
from typing import Annotated, Any, cast

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
    field_validator,
    model_validator,
)

SCHEMA_VERSION = "1.4"
"""Version of Harbor's format that is written."""
MAX_TESTS = 100_000
MAX_RULES = 2000
_MAX_TEXT = 16_384
_MAX_NAME = 4096


def _check_inside(path: str) -> str:
    """Accept a plain relative path that stays below its folder."""
    if path.startswith("/") or "\\" in path or "\0" in path or posixpath.normpath(path) != path:
        raise ValueError("must be a plain relative path, such as `repo` or `fix/gold.patch`")
    if path.split("/", maxsplit=1)[0] in ("..", "."):
        raise ValueError("must stay below its folder")
    return path


def _check_repo(path: str) -> str:
    """Accept a path below `environment/`, or an absolute folder of the image."""
    if not path.startswith("/"):
        return _check_inside(path)
    if "\0" in path or posixpath.normpath(path) != path or path == "/":
        raise ValueError("must be a plain absolute path, such as `/testbed`")
    return path


def _check_absolute(path: str) -> str:
    """Accept the path of a folder of the image."""
    if not path.startswith("/"):
        raise ValueError("must be a plain absolute path, such as `/hidden`")
    return _check_repo(path)


Text = Annotated[str, Field(max_length=_MAX_TEXT)]
Name = Annotated[str, Field(min_length=1, max_length=_MAX_NAME)]
Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=200)]
Inside = Annotated[str, Field(min_length=1, max_length=_MAX_NAME), AfterValidator(_check_inside)]
TestIds = Annotated[list[Name], Field(max_length=MAX_TESTS)]
Patterns = Annotated[list[Annotated[str, Field(max_length=1000)]], Field(max_length=MAX_RULES)]


class _Facts(BaseModel):
    """Base of pdbox's own tables: a misspelled key is an error, and docstrings are in the schema."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class TaskLimits(_Facts):
    """Limits of one task. They can lower the operator's limits, not raise them."""

    timeout_s: Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)] | None = None
    """Seconds that one run of the tests may take when the task is scored."""
    memory_mb: Annotated[int, Field(ge=64)] | None = None
    """Memory of the sandbox in MiB."""


class TaskSource(_Facts):
    """Origin of the task."""

    benchmark: Name | None = None
    """Name of the benchmark, such as `swebench_verified`."""
    instance_id: Name | None = None
    """Name of the task in its benchmark."""
    repo: Name | None = None
    """Repository, such as `pytest-dev/pytest`."""
    commit: Name | None = None
    """Commit that the files are of."""
    licence: Name | None = None
    """SPDX name of the licence of the files."""


class TaskFacts(_Facts):
    """Facts of pdbox about a task: the table `[metadata.pdbox]` of its `task.toml`."""

    repo: Annotated[Name, AfterValidator(_check_repo)] = "repo"
    """Repository: a folder in `environment/`, or with a leading slash a folder of the image, such as `/testbed`."""
    image: Name | None = None
    """Container image (default: `docker_image` of `[environment]`, else pdbox's own with the Python that suits)."""
    hidden_folders: Annotated[
        list[Annotated[Name, AfterValidator(_check_absolute)]], Field(max_length=20)
    ] = []
    """Folders of the image that are empty in sandboxes, such as one with the hidden tests."""
    python: Name | None = None
    """Python version, such as `3.12`, where the image is pdbox's own."""
    requirements: Annotated[list[Name], Field(max_length=1000)] = []
    """Packages that the repository needs, as `pip install` takes them. Those that the image has aren't installed."""
    setup: Annotated[list[Text], Field(max_length=1000)] = []
    """Shell commands that prepare the repository, after its requirements are installed."""
    env: Annotated[dict[Variable, Text], Field(max_length=1000)] = {}
    """Environment of its programs; `{workspace}` in a value is the folder of the repository."""
    entrypoint: Text | None = None
    """Command that runs the tests (default: found out from the repository)."""
    debug_entrypoint: Text | None = None
    """Command that `pdb` debugs (default: `entrypoint`)."""
    fail_to_pass: TestIds = []
    """Tests that fail before the fix and pass after it, as the test runner names them."""
    pass_to_pass: TestIds = []
    """Tests that pass before the fix and after it."""
    test_patch: Inside | None = None
    """Patch in `tests/` that adds the hidden tests. A model never sees it; scoring applies it."""
    gold_patch: Inside | None = None
    """Patch in `solution/` that fixes the program. A model never sees it."""
    tests: Patterns = []
    """Patterns (`.gitignore` syntax) of files that scoring takes from the task and not from the patch.

    Always among them: the files of the listed tests and of `test_patch`, `conftest.py`, and the configuration of test runners.
    """
    ignore: Patterns = []
    """Patterns of files that tools don't show, like those in `.debugignore`."""
    read_only: Patterns = []
    """Patterns of files that can't be changed, like those in `.debugreadonly`."""
    limits: TaskLimits = TaskLimits()
    """Limits of time and memory."""
    profile: Name | None = None
    """Profile of tools that the task is meant for, such as `debug` or `debug_5`."""
    source: TaskSource = TaskSource()
    """Origin of the task."""

    @property
    def image_folder(self) -> str | None:
        """The folder of the image that is the repository; None if it is in `environment/`."""
        return self.repo if self.repo.startswith("/") else None


class _Harbor(BaseModel):
    """Base of Harbor's tables, of which only some fields matter here."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


class HarborTask(_Harbor):
    """`[task]`: the package of a task."""

    name: Name
    """`organisation/name`."""
    description: Text = ""


class HarborEnvironment(_Harbor):
    """`[environment]`: the container of a task."""

    docker_image: Name | None = None
    workdir: Name | None = None
    os: Annotated[str, StringConstraints(to_lower=True)] = "linux"
    gpus: int | None = None
    cpus: float | None = None
    memory_mb: int | None = None
    memory: str | None = None
    """Spelling of `memory_mb` in version 1.0, such as `2G`."""
    env: dict[str, str] = {}


class HarborVerifier(_Harbor):
    """`[verifier]`: the run of `tests/test.sh`."""

    timeout_sec: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 600.0
    env: dict[str, str] = {}
    environment: dict[str, Any] | None = None
    """Container of its own for the tests."""
    collect: list[Any] = []
    """Commands that are run in services of Docker Compose."""


class TaskFile(_Harbor):
    """A whole `task.toml`."""

    schema_version: Annotated[
        str, Field(validation_alias=AliasChoices("schema_version", "version"), pattern=r"^1\.[0-4]$")
    ] = "1.0"
    task: HarborTask | None = None
    metadata: dict[str, JsonValue] = {}
    environment: HarborEnvironment = HarborEnvironment()
    verifier: HarborVerifier = HarborVerifier()
    steps: list[Any] = []

    @property
    def facts(self) -> TaskFacts | None:
        """Facts of pdbox; None for a task that was made without it.

        Raises:
            ValidationError: the table is there, and invalid.
        """
        table = self.metadata.get("pdbox")
        return None if table is None else TaskFacts.model_validate(table)

    @field_validator("metadata", mode="before")
    @classmethod
    def _accept_dates(cls, value: Any) -> Any:
        """Make other people's metadata plain data: TOML has dates and times too."""
        return _plain(value)

    @model_validator(mode="after")
    def _refuse_unsupported(self) -> TaskFile:
        if self.steps:
            raise ValueError("it has several steps ([[steps]]), which pdbox does not run")
        if self.environment.os != "linux":
            raise ValueError(f"its operating system is {self.environment.os!r}; sandboxes are Linux")
        if self.environment.gpus:
            raise ValueError("it needs GPUs, which sandboxes don't have")
        if self.verifier.environment is not None or self.verifier.collect:
            raise ValueError(
                "its tests need a container of their own ([verifier.environment], [[verifier.collect]])"
            )
        return self


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in cast(dict[Any, Any], value).items()}
    if isinstance(value, list):
        return [_plain(item) for item in cast(list[Any], value)]
    return value if value is None or isinstance(value, str | int | float) else str(value)


def schema_text() -> str:
    """JSON Schema of `[metadata.pdbox]`, as published in `manifests/tasks/task.schema.json`."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **TaskFacts.model_json_schema(),
        "title": "[metadata.pdbox] of a Harbor task.toml",
    }
    return json.dumps(schema, indent=2, ensure_ascii=False)
