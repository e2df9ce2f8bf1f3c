"""Records of SWE-bench (Lite, Verified, Live) in both generations of fields, from files of a data set."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from mcp_server.tasks.folder import MAX_INSTRUCTION, MAX_PATCH
from mcp_server.tasks.importing.draft import Draft, Options, Skipped
from mcp_server.tasks.importing.records import files_of, read_rows
from mcp_server.tasks.importing.test_commands import (
    CONDA_PATH,
    TestCommand,
    by_pytest,
    from_commands,
    from_script,
    from_table,
    test_files,
)
from mcp_server.tasks.importing.trees import apply_patch, check_out, copy_tree, is_clone, remove_links_out
from mcp_server.tasks.model import Name, TaskFacts, TaskSource, TestIds
from mcp_server.tasks.patched_paths import changed_files, pattern_of
from sandbox.errors import InvalidArgument

_INSTALL = "python -m pip install -q --disable-pip-version-check --no-input -e ."
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,200}")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,500}")
_PIECE = 12_000
"""Characters of a patch in one set-up command."""


def _parse_list(value: Any) -> Any:
    """Accept a list, and a list as JSON in a string."""
    if isinstance(value, str):
        return json.loads(value) if value.strip() else []
    return [] if value is None else value


def _text(value: Any) -> Any:
    return "" if value is None else str(value) if isinstance(value, int | float) else value


_Short = Annotated[str, Field(max_length=4096), BeforeValidator(_text)]
_Patch = Annotated[str, Field(max_length=MAX_PATCH), BeforeValidator(_text)]
_Ids = Annotated[TestIds, BeforeValidator(_parse_list)]
_Commands = Annotated[list[_Short], Field(max_length=1000), BeforeValidator(_parse_list)]


class Record(BaseModel):
    """Fields that are read of a record. Others go along in `tests/config.json`."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    instance_id: Name
    repo: Name
    problem_statement: Annotated[str, Field(min_length=1, max_length=MAX_INSTRUCTION)]
    patch: _Patch
    test_patch: _Patch = ""
    base_commit: _Short = ""
    version: _Short = ""
    fail_to_pass: Annotated[_Ids, Field(validation_alias=AliasChoices("FAIL_TO_PASS", "fail_to_pass"))]
    pass_to_pass: Annotated[_Ids, Field(validation_alias=AliasChoices("PASS_TO_PASS", "pass_to_pass"))] = []
    image: Annotated[_Short, Field(validation_alias=AliasChoices("image", "docker_image"))] = ""
    eval_script: Annotated[str, Field(max_length=MAX_PATCH), BeforeValidator(_text)] = ""
    test_cmds: _Commands = []

    @property
    def is_live(self) -> bool:
        """True for a record of SWE-bench-Live, which has commands of its own."""
        return bool(self.test_cmds)


def recognize(source: Path) -> bool:
    """Tell whether `source` is a file or a folder of such records."""
    files = files_of(source)
    try:
        first = next(islice(read_rows(files), 1), None)
    except InvalidArgument:
        # Damaged, or without pyarrow: reading it says so.
        return source.is_file() or any(file.suffix.lower() in (".parquet", ".arrow") for file in files)
    return isinstance(first, dict) and "instance_id" in first


def read(source: Path, options: Options) -> Iterator[Draft | Skipped]:
    """Yield the records."""
    for number, row in enumerate(read_rows(files_of(source)), 1):
        name = f"record {number}"
        if isinstance(row, dict) and isinstance(row.get("instance_id"), str):  # pyright: ignore[reportUnknownMemberType]
            name = cast(str, row["instance_id"])
        try:
            record = Record.model_validate(row)
            yield _draft(record, cast(dict[str, Any], row), options)
        except ValidationError as exc:
            error = exc.errors()[0]
            yield Skipped(name, f"{'.'.join(map(str, error['loc']))}: {error['msg']}")
        except RecursionError:
            yield Skipped(name, "a field is nested too deeply")
        except InvalidArgument as exc:
            yield Skipped(name, str(exc))


def _draft(record: Record, row: dict[str, Any], options: Options) -> Draft:
    patched = changed_files(record.test_patch)
    files = test_files(patched)
    command = _command(record, files, options)
    facts = TaskFacts(
        entrypoint=command.entrypoint or None,
        fail_to_pass=_qualify(record.fail_to_pass, files),
        pass_to_pass=_qualify(record.pass_to_pass, files),
        env=dict(command.env),
        source=TaskSource(
            benchmark="swebench_live" if record.is_live else "swebench",
            instance_id=record.instance_id,
            repo=record.repo,
            commit=record.base_commit or None,
        ),
    )
    if options.source is not None:
        facts = facts.model_copy(update=_in_tree(command, options))
    else:
        facts = facts.model_copy(update=_in_image(record, command, options))
    if options.apply_test_patch:
        facts = facts.model_copy(update={"tests": [pattern_of(path) for path in patched]})
    return Draft(
        record.instance_id,
        facts.source.benchmark or "",
        record.problem_statement,
        facts,
        write_repository=partial(_write_repository, record, options) if options.source is not None else None,
        gold=lambda repository: record.patch.encode(),
        test_patch=record.test_patch.encode() if record.test_patch and not options.apply_test_patch else None,
        files={"tests/config.json": json.dumps(row, indent=2, default=str)},
    )


def _command(record: Record, files: Sequence[str], options: Options) -> TestCommand:
    found = None
    if record.eval_script:
        found = from_script(record.eval_script, files)
    elif record.is_live:
        found = from_commands(record.test_cmds, files)
    table = from_table(record.repo, record.version, files)
    if found is not None or table is not None:
        return found or table or TestCommand("")
    if options.has_entrypoint:
        return TestCommand("")
    if files and all("::" in name for name in record.fail_to_pass):
        return TestCommand(by_pytest(files), is_conda=not record.is_live)
    raise InvalidArgument(
        "no command is known that runs its tests in Python", "Name one with `--entrypoint`."
    )


def _in_image(record: Record, command: TestCommand, options: Options) -> dict[str, Any]:
    key = f"sweb.eval.x86_64.{record.instance_id.lower().replace('__', '_1776_')}"
    image = record.image or (f"starryzhang/{key}" if record.is_live else f"swebench/{key}:latest")
    return {
        "repo": command.workdir,
        "image": image,
        "requirements": list(command.requirements),
        "env": {**({"PATH": CONDA_PATH} if command.is_conda else {}), **command.env},
        "setup": _apply_in_setup(record.test_patch) if options.apply_test_patch else [],
    }


def _in_tree(command: TestCommand, options: Options) -> dict[str, Any]:
    prepares = options.prepares
    return {
        "python": command.python,
        "requirements": [] if prepares else ["pytest"],
        "setup": [] if prepares else [_INSTALL],
    }


def _apply_in_setup(patch: str) -> list[str]:
    """Make set-up commands that apply a patch to a repository of the image."""
    packed = base64.b64encode(gzip.compress(patch.encode(), mtime=0)).decode()
    name = ".pdbox-test.patch"
    pieces = [packed[start : start + _PIECE] for start in range(0, len(packed), _PIECE)]
    write = [f"printf %s {piece} >> {name}" for piece in pieces]
    unpack = (
        f"base64 -d {name} | gzip -d | git -c safe.directory='*' apply --whitespace=nowarn - && rm {name}"
    )
    return [*write, unpack] if patch.strip() else []


def _write_repository(record: Record, options: Options, to: Path) -> None:
    """Write the repository at its commit, with the test patch if that is asked for.

    Raises:
        InvalidArgument: the source does not have it, or other files than the record is about.
    """
    _write_source(record, options.source or to, to)
    apply_patch(to, record.patch.encode(), "Its gold patch", check=True)
    if record.test_patch:
        apply_patch(to, record.test_patch.encode(), "Its test patch", check=not options.apply_test_patch)
        remove_links_out(to)


def _write_source(record: Record, source: Path, to: Path) -> None:
    short = record.repo.rpartition("/")[2]
    names = (record.instance_id, record.repo.replace("/", "__"), short)
    folders = [source / name for name in names if _PLAIN.fullmatch(name) and (source / name).is_dir()]
    # A tree may itself have a folder of its own name, such as the package in it.
    is_tree = is_clone(source) or (source / "setup.py").is_file() or (source / "pyproject.toml").is_file()
    folder = source if is_tree or not folders else folders[0]
    if not is_clone(folder):
        copy_tree(folder, to)
    elif not check_out(folder, record.base_commit or "HEAD", to):
        raise InvalidArgument(
            f"{folder.name} has no commit {record.base_commit[:40]}", "Fetch it into the clone."
        )


def _qualify(names: Sequence[str], files: Sequence[str]) -> list[str]:
    """Complete the ids of sympy's runner, which are names of functions alone."""
    if len(files) != 1:
        return list(names)
    return [f"{files[0]}::{name}" if _IDENTIFIER.fullmatch(name) else name for name in names]
