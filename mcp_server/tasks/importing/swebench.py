"""Records of SWE-bench (Lite, Verified, Live) in both generations of fields, from files of a data set."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from mcp_server.tasks.folder import MAX_INSTRUCTION
from mcp_server.tasks.importing.draft import Draft, Options, Skipped
from mcp_server.tasks.importing.fields import Commands, Ids, Patch, Short
from mcp_server.tasks.importing.git_history import FORGET_LATER
from mcp_server.tasks.importing.patches import apply_in_setup
from mcp_server.tasks.importing.records import read_drafts
from mcp_server.tasks.importing.source import Source, files_of
from mcp_server.tasks.importing.test_commands import (
    CONDA_PATH,
    TestCommand,
    by_pytest,
    from_commands,
    from_script,
    from_table,
    test_files,
)
from mcp_server.tasks.importing.trees import check_patches, write_source
from mcp_server.tasks.model import Name, TaskFacts, TaskSource
from mcp_server.tasks.patched_paths import changed_files, pattern_of
from sandbox.errors import InvalidArgument

_INSTALL = "python -m pip install -q --disable-pip-version-check --no-input -e ."
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,500}")


class Record(BaseModel):
    """Fields that are read of a record. Others go along in `tests/config.json`."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    instance_id: Name
    repo: Name
    problem_statement: Annotated[str, Field(min_length=1, max_length=MAX_INSTRUCTION)]
    patch: Patch
    test_patch: Patch = ""
    base_commit: Short = ""
    version: Short = ""
    fail_to_pass: Annotated[Ids, Field(validation_alias=AliasChoices("FAIL_TO_PASS", "fail_to_pass"))]
    pass_to_pass: Annotated[Ids, Field(validation_alias=AliasChoices("PASS_TO_PASS", "pass_to_pass"))] = []
    image: Annotated[Short, Field(validation_alias=AliasChoices("image", "docker_image"))] = ""
    eval_script: Patch = ""
    test_cmds: Commands = []

    @property
    def is_live(self) -> bool:
        """True for a record of SWE-bench-Live, which has commands of its own."""
        return bool(self.test_cmds)


def recognize(source: Source) -> bool:
    """Tell whether `source` is a file or a folder of such records."""
    try:
        return "instance_id" in source.first_row()
    except InvalidArgument:
        # Damaged, or without pyarrow: reading it says so.
        binary = (".parquet", ".arrow")
        return source.path.is_file() or any(file.suffix.lower() in binary for file in files_of(source.path))


def read(source: Source, options: Options) -> Iterator[Draft | Skipped]:
    """Yield the records."""

    def draft(row: Any) -> Draft:
        record = Record.model_validate(row)
        command = _command(record, test_files(changed_files(record.test_patch)), options)
        benchmark = "swebench_live" if record.is_live else "swebench"
        return make_draft(record, row, options, benchmark, _image(record), command)

    return read_drafts(source, draft)


def make_draft(
    record: Record, row: dict[str, Any], options: Options, benchmark: str, image: str, command: TestCommand
) -> Draft:
    """Make the task of a record that has the fields of SWE-bench."""
    patched = changed_files(record.test_patch)
    files = test_files(patched)
    facts = TaskFacts(
        entrypoint=command.entrypoint or None,
        fail_to_pass=_qualify(record.fail_to_pass, files),
        pass_to_pass=_qualify(record.pass_to_pass, files),
        env=dict(command.env),
        source=TaskSource(
            benchmark=benchmark,
            instance_id=record.instance_id,
            repo=record.repo,
            commit=record.base_commit or None,
        ),
    )
    if options.source is not None:
        facts = facts.model_copy(update=in_tree(command, options))
    else:
        setup = apply_in_setup(record.test_patch) if options.apply_test_patch else []
        facts = facts.model_copy(update=in_image(image, command, [FORGET_LATER, *setup]))
    if options.apply_test_patch:
        facts = facts.model_copy(update={"tests": [pattern_of(path) for path in patched]})
    return Draft(
        record.instance_id,
        benchmark,
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


def _image(record: Record) -> str:
    key = f"sweb.eval.x86_64.{record.instance_id.lower().replace('__', '_1776_')}"
    return record.image or (f"starryzhang/{key}" if record.is_live else f"swebench/{key}:latest")


def in_image(image: str, command: TestCommand, setup: Sequence[str]) -> dict[str, Any]:
    """Facts of a task whose repository is a folder of an image. `setup` has to remove the fix from its history."""
    return {
        "repo": command.workdir,
        "image": image,
        "requirements": list(command.requirements),
        "setup": list(setup),
        "env": {**({"PATH": CONDA_PATH} if command.is_conda else {}), **command.env},
    }


def in_tree(command: TestCommand, options: Options) -> dict[str, Any]:
    """Facts of a task whose repository is written from a clone or a tree."""
    prepares = options.prepares
    return {
        "python": command.python,
        "requirements": [] if prepares else ["pytest"],
        "setup": [] if prepares else [_INSTALL],
    }


def _write_repository(record: Record, options: Options, to: Path) -> None:
    """Write the repository at its commit, with the test patch if that is asked for.

    Raises:
        InvalidArgument: the source does not have it, or other files than the record is about.
    """
    names = (record.instance_id, record.repo.replace("/", "__"), record.repo.rpartition("/")[2])
    write_source(options.source or to, names, [record.base_commit or "HEAD"], to)
    gold, tests = record.patch.encode(), record.test_patch.encode()
    check_patches(to, gold, tests, apply_tests=options.apply_test_patch)


def _qualify(names: Sequence[str], files: Sequence[str]) -> list[str]:
    """Complete the ids of sympy's runner, which are names of functions alone."""
    if len(files) != 1:
        return list(names)
    return [f"{files[0]}::{name}" if _IDENTIFIER.fullmatch(name) else name for name in names]
