"""Verdicts of SWE-bench's own grader beside ours on real records, without and with the fix; CONTRIBUTING.md names them."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest

from mcp_server.backends import open_backend
from mcp_server.commands.tasks import sandboxes_of
from mcp_server.settings import Settings
from mcp_server.tasks import official
from mcp_server.tasks.importing.importer import Given, ImportRequest
from mcp_server.tasks.scoring import score
from tests.e2e.cases import Case, nearest_python, wheels
from tests.interop.environments import Environments
from tests.mcp_server.tasks.importing.layouts import import_all

pytestmark = [pytest.mark.docker, pytest.mark.anyio]
FOLDER = os.environ.get("PDBOX_RECORDS")
"""A folder of folders with `instance.json`, the record, and `case.json`, which says how its program is laid."""
UNNAMED = pytest.param(None, marks=pytest.mark.skip("PDBOX_RECORDS names no folder of records of SWE-bench"))


def find_records() -> list[Case]:
    """The records in the folder."""
    found = sorted(Path(FOLDER).glob("**/instance.json")) if FOLDER else []
    if FOLDER and not found:
        raise pytest.UsageError(f"PDBOX_RECORDS: there is no instance.json below {FOLDER}")
    return [Case(path.parent) for path in found]


@pytest.mark.parametrize("case", find_records() or [UNNAMED], ids=lambda case: case and case.folder.name)
async def test_both_verdicts_are_equal_on_a_real_record(
    case: Case,
    environments: Environments,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    python = nearest_python(case.data["language_version"])
    folder = wheels(case.data["requirements"], python, Path(request.config.cache.mkdir("wheels")))
    given = Given(
        python=python,
        requirements=case.data["requirements"],
        env={**case.data["env"], "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "/wheels"},
    )
    source = case.folder / case.data["tree"]["path"]
    tasks, skipped = import_all(
        case.folder / "instance.json", ImportRequest(tmp_path, source=source, given=given)
    )
    assert not skipped
    (task,) = tasks.values()
    with_package = partial(official.grade, python=str(environments.python("swebench")))
    monkeypatch.setattr("mcp_server.tasks.scoring.grade", with_package)
    settings = Settings(backend="docker", mount=[f"{folder}:/wheels"])
    async with open_backend(settings) as backend:
        sandboxes = sandboxes_of(backend, settings)
        for patch, resolved in ((b"", False), (task.gold_patch() or b"", True)):
            verdict = await score(sandboxes, task, patch, print)
            theirs = verdict.official.resolved if verdict.official else None
            print(f"{task.name}: {resolved=} ours={verdict.resolved} {theirs=} {verdict.duration_s:.1f} s")
            assert (verdict.resolved, theirs) == (resolved, resolved), verdict
