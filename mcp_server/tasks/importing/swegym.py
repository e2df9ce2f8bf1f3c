"""Records of SWE-Gym: SWE-bench's first generation of fields, with repositories, images and commands of its own."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mcp_server.tasks.importing.draft import Draft, Options, Skipped
from mcp_server.tasks.importing.records import read_drafts
from mcp_server.tasks.importing.source import Source
from mcp_server.tasks.importing.swebench import Record, make_draft
from mcp_server.tasks.importing.test_commands import TestCommand, by_pytest, test_files
from mcp_server.tasks.patched_paths import changed_files

BENCHMARK = "swegym"
_MYPY = "python/mypy"
_WORD = re.compile(r"\w{1,500}")
_NAMES = 500
"""Tests that one command names."""
_OF_OTHERS = (
    "environment_setup_commit",
    "install_config",
    "image",
    "image_name",
    "docker_image",
    "test_cmds",
)
"""Fields that SWE-Gym lacks and others of these repositories have, such as SWE-rebench."""


@dataclass(frozen=True)
class _Repository:
    """Convention for one repository, where it differs from plain pytest."""

    python: str | None = None
    """None where it depends on the version."""
    spreads: bool = False
    """True if pytest-xdist is to be told to run the tests in one process."""
    env: Mapping[str, str] = field(default_factory=dict[str, str])


_REPOSITORIES: Mapping[str, _Repository] = {
    "bokeh/bokeh": _Repository(spreads=True),
    "conan-io/conan": _Repository("3.10", True, {"PYTHONPATH": "{workspace}"}),
    "dask/dask": _Repository(spreads=True),
    "facebookresearch/hydra": _Repository("3.8"),
    "getmoto/moto": _Repository("3.12", True),
    "iterative/dvc": _Repository(),
    "modin-project/modin": _Repository(spreads=True),
    "pandas-dev/pandas": _Repository(),
    "project-monai/monai": _Repository("3.8"),
    "pydantic/pydantic": _Repository("3.8"),
    _MYPY: _Repository(spreads=True),
}
"""The 11 repositories of SWE-Gym, none of which is one of SWE-bench's."""


def recognize(source: Source) -> bool:
    """Tell whether `source` is a file or a folder of such records."""
    return source.is_of(_is_record)


def _is_record(row: dict[str, Any]) -> bool:
    return str(row.get("repo")).lower() in _REPOSITORIES and not any(row.get(name) for name in _OF_OTHERS)


def read(source: Source, options: Options) -> Iterator[Draft | Skipped]:
    """Yield the records."""

    def draft(row: Any) -> Draft:
        record = Record.model_validate(row)
        return make_draft(record, row, options, BENCHMARK, _image(record), _command(record, options))

    return read_drafts(source, draft)


def _image(record: Record) -> str:
    return f"xingyaoww/sweb.eval.x86_64.{record.instance_id.lower().replace('__', '_s_')}:latest"


def _command(record: Record, options: Options) -> TestCommand:
    repo = record.repo.lower()
    known = _REPOSITORIES.get(repo, _Repository())
    names = [*record.fail_to_pass, *record.pass_to_pass]
    # A test patch of mypy changes data, from which the modules with the ids make tests.
    files = [] if repo == _MYPY else test_files(changed_files(record.test_patch))
    files = files or list(dict.fromkeys(name.partition("::")[0] for name in names))
    words = [by_pytest(files)]
    if known.spreads and options.source is None:
        words.append("-n0")
    if repo == _MYPY:
        words += _by_name(names)
    return TestCommand(" ".join(words), known.env, python=known.python)


def _by_name(names: Sequence[str]) -> list[str]:
    """Options of pytest that select tests by name, of a file with thousands."""
    last = list(dict.fromkeys(name.rpartition("::")[2] for name in names))
    plain = len(last) <= _NAMES and all(_WORD.fullmatch(name) for name in last)
    return ["-k", shlex.quote(" or ".join(last))] if plain else []
