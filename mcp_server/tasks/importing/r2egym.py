"""Records of R2E-Gym: the fix as a parsed commit, hidden tests as texts, and their outcomes before and after it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from mcp_server.tasks.importing.draft import Draft, Options, Skipped
from mcp_server.tasks.importing.fields import Short, Statement
from mcp_server.tasks.importing.git_history import FORGET_LATER
from mcp_server.tasks.importing.patches import apply_in_setup, diff_file
from mcp_server.tasks.importing.records import read_drafts
from mcp_server.tasks.importing.source import Source
from mcp_server.tasks.importing.swebench import in_image, in_tree
from mcp_server.tasks.importing.test_commands import TestCommand
from mcp_server.tasks.importing.trees import check_patches, write_source
from mcp_server.tasks.model import Name, TaskFacts, TaskSource
from sandbox.errors import InvalidArgument

BENCHMARK = "r2egym"
_FOLDER = "r2e_tests"
_IMAGE_TESTS = f"/{_FOLDER}"
"""Place of the hidden tests in an image."""
_PATH = (
    "/testbed/.venv/bin:/root/.venv/bin:/root/.local/bin:/root/.cargo/bin:"
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)
_PYTEST = f"python -W ignore -m pytest -rA {_FOLDER}"
_RUNNERS = frozenset({"unittest_custom_runner.py", "tornado_unittest_runner.py"})
"""Programs among the hidden tests that run them."""
_ENV = {"PYTHONWARNINGS": "ignore::UserWarning,ignore::SyntaxWarning"}
_OWN_ENV: Mapping[str, Mapping[str, str]] = {"orange3": {"QT_QPA_PLATFORM": "minimal"}}
_CLEAN_UP = (
    f"rm -rf {_FOLDER} run_tests.sh expected_test_output.json execution_result.json parsed_commit.json"
    " modified_files.json modified_entities.json syn_issue.json"
)
_HELPER = "Tests/helper.py"
"""Module that tests of Pillow import from their own folder."""
_COPY_HELPER = f"if [ -f {_HELPER} ]; then mkdir -p {_FOLDER} && cp {_HELPER} {_FOLDER}/; fi"
_ISSUE, _ISSUE_END = "[ISSUE]", "[/ISSUE]"
_COLOUR = re.compile(r"\x1b\[[0-9;]{0,50}m")
_OUTCOME = re.compile(r"^(PASSED|FAILED|ERROR) ([^\s:][^\n]{0,3999})$", re.MULTILINE)
_SUMMARY = "short test summary info"
_TEST_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,200}")
_MAX_FIELD = 64 << 20


def _parse(value: Any) -> Any:
    """Accept a value as it is, and as JSON in a string."""
    if not isinstance(value, str):
        return value
    if len(value) > _MAX_FIELD:
        raise ValueError(f"must be smaller than {_MAX_FIELD >> 20} MiB")
    return json.loads(value)


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class _Range(_Part):
    start: int
    length: int | None = None

    def __str__(self) -> str:
        return f"{self.start}" if self.length is None else f"{self.start},{self.length}"


class _Descriptor(_Part):
    old_range: _Range
    new_range: _Range
    section: str = ""


class _Line(_Part):
    content: str
    type: Literal["context", "added", "deleted", "note"]


class _Lines(_Part):
    all_lines: list[_Line] = []


class _Hunk(_Part):
    descriptor: _Descriptor
    line_group: _Lines


class _Path(_Part):
    path: str


class _Header(_Part):
    file: _Path
    misc_line: str | None = None


class _FileDiff(_Part):
    header: _Header
    new_file_content: str = ""
    is_binary_file: bool = False
    minus_file: _Path | None = None
    plus_file: _Path | None = None
    hunks: list[_Hunk] = []

    @property
    def is_test(self) -> bool:
        """True for a test, by R2E-Gym's own rule."""
        path = PurePosixPath(self.header.file.path)
        folders = {"tests", "Tests", "test", "Test"} & set(path.parts)
        return path.name.endswith("_test.py") or path.name.startswith("test_") or bool(folders)


class _Commit(_Part):
    file_diffs: list[_FileDiff]
    old_commit_hash: Short = ""


class _Execution(_Part):
    test_file_names: list[str]
    test_file_codes: list[str]
    old_commit_res_stdout: str | None = None
    new_commit_res_stdout: str | None = None


class Record(_Part):
    """Fields that are read of a record."""

    docker_image: Name
    repo_name: Name
    problem_statement: Annotated[Statement, Field(min_length=1)]
    parsed_commit_content: Annotated[_Commit, BeforeValidator(_parse)]
    execution_result_content: Annotated[_Execution, BeforeValidator(_parse)]
    expected_output_json: Annotated[dict[str, str], BeforeValidator(_parse)]

    @property
    def id(self) -> str:
        """Name of the image, as debug-gym calls the task."""
        return self.docker_image.rpartition("/")[2]


def recognize(source: Source) -> bool:
    """Tell whether `source` is a file or a folder of such records."""
    return source.is_of(
        lambda row: {"docker_image", "parsed_commit_content", "expected_output_json"} <= row.keys()
    )


def read(source: Source, options: Options) -> Iterator[Draft | Skipped]:
    """Yield the records."""
    return read_drafts(source, partial(_draft, options), "docker_image")


def _draft(options: Options, row: Any) -> Draft:
    record = Record.model_validate(row)
    gold, tests = _gold(record.parsed_commit_content), _test_patch(record)
    runner = next(
        (name for name in record.execution_result_content.test_file_names if name in _RUNNERS), None
    )
    broken, kept = _lists(record, runner)
    env = {**_ENV, **_OWN_ENV.get(record.repo_name, {})}
    command = TestCommand(
        f"python -W ignore {_FOLDER}/{runner}" if runner else _PYTEST, {"PATH": _PATH, **env}, is_conda=False
    )
    facts = TaskFacts(
        entrypoint=command.entrypoint,
        env=env,
        fail_to_pass=broken,
        pass_to_pass=kept,
        tests=[f"/{_FOLDER}/"],
        source=TaskSource(
            benchmark=BENCHMARK,
            instance_id=record.id,
            repo=record.repo_name,
            commit=record.parsed_commit_content.old_commit_hash or None,
        ),
    )
    helper = [_COPY_HELPER] if record.repo_name == "pillow" and not _changed_helper(record) else []
    if options.source is not None:
        found = in_tree(command, options)
        facts = facts.model_copy(update={**found, "setup": [*found["setup"], *helper]})
    else:
        shown = apply_in_setup(tests.decode()) if options.apply_test_patch else []
        setup = [_CLEAN_UP, FORGET_LATER, *helper, *shown]
        found = in_image(record.docker_image, command, setup)
        facts = facts.model_copy(update={**found, "hidden_folders": [_IMAGE_TESTS]})
    return Draft(
        record.id,
        BENCHMARK,
        _issue(record.problem_statement),
        facts,
        write_repository=partial(_write_repository, record, gold, tests, options) if options.source else None,
        gold=lambda repository: gold,
        test_patch=None if options.apply_test_patch else tests,
        files={"tests/config.json": json.dumps(row, indent=2, default=str)},
    )


def _issue(text: str) -> str:
    """Take the issue out of the marks around it, if there are some."""
    start, end = text.find(_ISSUE), text.rfind(_ISSUE_END)
    return text[start + len(_ISSUE) : end].strip() if 0 <= start < end else text


def _gold(commit: _Commit) -> bytes:
    """Make the patch of the commit, without tests and what is no text."""
    files = (one for one in commit.file_diffs if not one.is_test and not one.is_binary_file)
    return "".join(map(_patch_of, files)).encode()


def _patch_of(one: _FileDiff) -> str:
    path = one.header.file.path
    lines = [f"diff --git a/{path} b/{path}", *([one.header.misc_line] if one.header.misc_line else [])]
    if one.minus_file and one.plus_file:
        lines += [f"--- {one.minus_file.path}", f"+++ {one.plus_file.path}"]
    for hunk in one.hunks:
        place = hunk.descriptor
        lines.append(f"@@ -{place.old_range} +{place.new_range} @@ {place.section}".rstrip())
        lines += _lines_of(hunk)
    return "".join(f"{line}\n" for line in lines)


def _lines_of(hunk: _Hunk) -> Iterator[str]:
    """Yield the lines that the hunk counts: the last one of a commit was parsed with an empty line too many."""
    place = hunk.descriptor
    old = 1 if place.old_range.length is None else place.old_range.length
    new = 1 if place.new_range.length is None else place.new_range.length
    for line in hunk.line_group.all_lines:
        if line.type == "note":
            yield f"\\ {line.content}"
            continue
        if old <= 0 and new <= 0:
            return
        old -= line.type != "added"
        new -= line.type != "deleted"
        yield {"context": " ", "added": "+", "deleted": "-"}[line.type] + line.content


def _test_patch(record: Record) -> bytes:
    """Make the patch that adds the hidden tests.

    Raises:
        InvalidArgument: the record's names are no names of files.
    """
    run = record.execution_result_content
    files = {"__init__.py": "", **dict(zip(run.test_file_names, run.test_file_codes, strict=False))}
    if record.repo_name == "pillow":
        files |= {PurePosixPath(_HELPER).name: text for text in _changed_helper(record)}
    if wrong := [name for name in files if not _TEST_NAME.fullmatch(name)]:
        raise InvalidArgument(f"{wrong[0][:200]!r} is no name of a test file")
    return b"".join(diff_file(f"{_FOLDER}/{name}", None, text.encode()) for name, text in files.items())


def _changed_helper(record: Record) -> list[str]:
    files = record.parsed_commit_content.file_diffs
    return [one.new_file_content for one in files if one.header.file.path == _HELPER]


def _lists(record: Record, runner: str | None) -> tuple[list[str], list[str]]:
    """List the tests that the fix mends, and those that passed before it.

    Expected outcomes name tests without their file, which the logs have.

    Raises:
        InvalidArgument: no test is mended.
    """
    run = record.execution_result_content
    before = dict(_outcomes(run.old_commit_res_stdout))
    ids: dict[str, list[str]] = {}
    for name, _ in _outcomes(run.new_commit_res_stdout):
        ids.setdefault(_key(name), []).append(name)
    expected = {
        _COLOUR.sub("", name).split(" - ")[0]: status for name, status in record.expected_output_json.items()
    }
    passing = [name for key, status in expected.items() if status == "PASSED" for name in ids.get(key, ())]
    broken = [name for name in passing if before.get(name) != "PASSED"]
    if not broken:
        raise InvalidArgument("its logs name no test that fails before the fix and passes after it")
    kept = [name for name in passing if before.get(name) == "PASSED"]
    return (list(map(_unittest, broken)), list(map(_unittest, kept))) if runner else (broken, kept)


def _outcomes(log: str | None) -> Iterator[tuple[str, str]]:
    """Yield the tests in the summary of a log, with their outcomes."""
    _, found, summary = _COLOUR.sub("", log or "").partition(_SUMMARY)
    for match in _OUTCOME.finditer(summary) if found else ():
        name = match[2] if match[1] == "PASSED" else match[2].split(" - ")[0]
        yield name.rstrip(), match[1]


def _key(name: str) -> str:
    """Name of a test in the expected outcomes: without file, with dots."""
    return ".".join(name.split("::")[1:]).split(" - ")[0]


def _unittest(name: str) -> str:
    """Bring `module::Class::test`, as the runners print it, into the form of unittest."""
    place, _, test = name.rpartition("::")
    return f"{test} ({place.replace('::', '.')})"


def _write_repository(record: Record, gold: bytes, tests: bytes, options: Options, to: Path) -> None:
    """Write the repository as it was before the fix.

    Raises:
        InvalidArgument: the source does not have it, or other files than the record is about.
    """
    commit = record.parsed_commit_content.old_commit_hash or "HEAD"
    write_source(options.source or to, [record.id.replace(":", "_"), record.repo_name], [commit], to)
    check_patches(to, gold, tests, apply_tests=options.apply_test_patch)
