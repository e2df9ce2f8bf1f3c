"""Records of SWE-smith: the patch is the bug, and the fix its reverse; an image for each repository."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from mcp_server.tasks.importing.draft import Draft, Options, Skipped
from mcp_server.tasks.importing.fields import Ids, Patch, Short, Statement
from mcp_server.tasks.importing.git_history import BEGIN_ANEW
from mcp_server.tasks.importing.patches import apply_in_setup, reverse_patch
from mcp_server.tasks.importing.records import read_drafts
from mcp_server.tasks.importing.source import Source
from mcp_server.tasks.importing.swebench import in_image, in_tree
from mcp_server.tasks.importing.test_commands import CONDA_PATH, TestCommand, by_pytest
from mcp_server.tasks.importing.trees import apply_patch, remove_links_out, write_source
from mcp_server.tasks.model import Name, TaskFacts, TaskSource
from sandbox.errors import InvalidArgument

BENCHMARK = "swesmith"
_ORGANISATION = "jyangballin"
_UNTOLD = "Some tests of this repository fail because of a bug in it. Find the bug and fix it."
"""Instruction for the records that have none."""
_FROM_DEV = "../dev/"
"""Beginning of ids where pytest's configuration was `/dev/null`."""
_OTHER_RUNNERS: Mapping[str, str] = {
    "tornadoweb/tornado": "python -m tornado.test --verbose",
    "un33k/python-slugify": "python test.py --verbose",
}
_PYTHONS: Mapping[str, str] = {
    "getmoto/moto": "3.12",
    "project-monai/monai": "3.12",
    "pydicom/pydicom": "3.11",
    "python/mypy": "3.12",
    "sunpy/sunpy": "3.11",
}
_PYTHON = "3.10"


class Record(BaseModel):
    """Fields that are read of a record."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    instance_id: Name
    patch: Patch
    fail_to_pass: Annotated[Ids, Field(alias="FAIL_TO_PASS", min_length=1)]
    pass_to_pass: Annotated[Ids, Field(alias="PASS_TO_PASS")] = []
    image_name: Name
    base_commit: Short = ""
    problem_statement: Statement = ""

    @property
    def origin(self) -> tuple[str, str]:
        """Repository and the first characters of its commit: ids are `owner__name.commit.bug`."""
        name, _, commit = self.instance_id.rpartition(".")[0].rpartition(".")
        return name.replace("__", "/", 1), commit


def recognize(source: Source) -> bool:
    """Tell whether `source` is a file or a folder of such records."""
    return source.is_of(lambda row: "swesmith." in str(row.get("image_name")))


def read(source: Source, options: Options) -> Iterator[Draft | Skipped]:
    """Yield the records."""
    return read_drafts(source, partial(_draft, options))


def _draft(options: Options, row: Any) -> Draft:
    record = Record.model_validate(row)
    repo, _ = record.origin
    gold = reverse_patch(record.patch.encode())
    broken = [name.removeprefix(_FROM_DEV) for name in record.fail_to_pass]
    kept = [name.removeprefix(_FROM_DEV) for name in record.pass_to_pass]
    files = list(dict.fromkeys(name.partition("::")[0] for name in broken if "::" in name))
    if files:
        # The benchmark runs the files of the broken tests, and counts no others.
        run = frozenset(files)
        kept = [name for name in kept if name.partition("::")[0] in run]
    command = _command(repo, files, options)
    facts = TaskFacts(
        entrypoint=command.entrypoint or None,
        fail_to_pass=broken,
        pass_to_pass=kept,
        source=TaskSource(
            benchmark=BENCHMARK,
            instance_id=record.instance_id,
            repo=repo or None,
            commit=record.base_commit or None,
        ),
    )
    if options.source is not None:
        facts = facts.model_copy(update=in_tree(command, options))
    else:
        # The commits before the bug have the program without it.
        setup = [*apply_in_setup(record.patch), BEGIN_ANEW]
        facts = facts.model_copy(update=in_image(_image(record.image_name), command, setup))
    return Draft(
        record.instance_id,
        BENCHMARK,
        record.problem_statement.strip() or _UNTOLD,
        facts,
        write_repository=partial(_write_repository, record, gold, options) if options.source else None,
        gold=lambda repository: gold,
        files={"tests/config.json": json.dumps(row, indent=2, default=str)},
    )


def _command(repo: str, files: Sequence[str], options: Options) -> TestCommand:
    python = _PYTHONS.get(repo.lower(), _PYTHON)
    if runner := _OTHER_RUNNERS.get(repo.lower()):
        return TestCommand(runner, python=python)
    if files:
        # pydantic's image has its environment in the repository.
        env = {"PATH": f"/testbed/.venv/bin:{CONDA_PATH}"} if repo == "pydantic/pydantic" else {}
        return TestCommand(by_pytest(files), env, python=python)
    if options.has_entrypoint:
        return TestCommand("", python=python)
    raise InvalidArgument(
        "no command is known that runs its tests in Python", "Name one with `--entrypoint`."
    )


def _image(name: str) -> str:
    """Complete the names of older records, which are those that its own scripts give to images."""
    whole = name if "/" in name else f"{_ORGANISATION}/{name.replace('__', '_1776_')}"
    return whole if ":" in whole.rpartition("/")[2] else f"{whole}:latest"


def _write_repository(record: Record, gold: bytes, options: Options, to: Path) -> None:
    """Write the repository with the bug.

    Raises:
        InvalidArgument: the source does not have it, or other files than the record is about.
    """
    repo, commit = record.origin
    whole = repo.replace("/", "__")
    names = (record.instance_id, f"{whole}.{commit}", whole, repo.rpartition("/")[2])
    commits = [name for name in (record.base_commit, commit) if name] or ["HEAD"]
    write_source(options.source or to, names, commits, to)
    try:
        apply_patch(to, record.patch.encode(), "Its patch")
    except InvalidArgument as exc:
        # The commit that a record names has the bug already.
        try:
            apply_patch(to, gold, "Its patch", check=True)
        except InvalidArgument:
            raise exc from None
    remove_links_out(to)
