"""The benchmark's own grader beside ours: what is said where it is missing, fails, hangs or differs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from mcp_server.commands.score import _as_text  # pyright: ignore[reportPrivateUsage]
from mcp_server.tasks import official, swebench_grader
from mcp_server.tasks.folder import Task, load_task
from mcp_server.tasks.importing.importer import Given, ImportRequest
from mcp_server.tasks.judging import Tally
from mcp_server.tasks.official import OfficialVerdict, grade, has_official_grader
from mcp_server.tasks.opening import Sandboxes
from mcp_server.tasks.scoring import Verdict, score
from sandbox.errors import InvalidArgument
from tests.mcp_server.tasks.importing.layouts import GOLD, SHOP, import_all, record, write

pytestmark = pytest.mark.anyio
ANSWER = {"resolved": True, "is_read": True, "passed": {"FAIL_TO_PASS": 1}, "total": {"FAIL_TO_PASS": 2}}


@pytest.fixture
def task(tmp_path: Path) -> Task:
    """A task made of a record of SWE-bench."""
    source = write(tmp_path / "source", {"shop.py": SHOP})
    (tmp_path / "rows.json").write_text(json.dumps([record()]), "utf-8")
    given = Given(entrypoint="python -m pytest -rA", setup=["true"])
    request = ImportRequest(tmp_path / "out", source=source, given=given)
    (one,) = import_all(tmp_path / "rows.json", request)[0].values()
    return one


def answer_instead(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, program: str) -> None:
    """Put another program in the place of the grader."""
    script = tmp_path / "grader.py"
    script.write_text("import sys\nfrom pathlib import Path\nfolder = Path(sys.argv[1])\n" + program, "utf-8")
    monkeypatch.setattr(swebench_grader, "__file__", str(script))


def test_tasks_made_of_records_have_one(task: Task) -> None:
    own = Path(__file__).parents[3] / "manifests" / "tasks" / "shop_discount"
    assert has_official_grader(task)
    assert not has_official_grader(load_task(own))


async def test_without_the_package_its_name_is_told(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "swebench", None)
    monkeypatch.setattr(official.importlib.util, "find_spec", lambda name: None)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    assert await grade(task, b"", "", 0, None) == OfficialVerdict(
        resolved=None, reason="needs `pip install 'pdbox[swebench]'`"
    )


@pytest.mark.parametrize(
    ("program", "resolved", "reason"),
    [
        (f"print('noise'); print('''{json.dumps(ANSWER)}''')", True, "1 of 2 FAIL_TO_PASS passed"),
        (
            f"print('''{json.dumps({**ANSWER, 'resolved': False, 'is_read': False})}''')",
            False,
            "its parser finds no outcome in the output; pytest prints them with `-rA`",
        ),
        ("raise ValueError('odd row')", None, "its grader failed: ValueError: odd row"),
        ("print('[1]')\nsys.exit(3)", None, "its grader failed: exit code 3"),
    ],
)
async def test_each_end_of_the_grader_is_told(
    task: Task,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    program: str,
    resolved: bool | None,
    reason: str,
) -> None:
    answer_instead(monkeypatch, tmp_path, program)
    found = await grade(task, GOLD.encode(), "log", 1, None, sys.executable)
    assert found == OfficialVerdict(resolved=resolved, reason=reason)


async def test_a_grader_that_hangs_is_ended(
    task: Task, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    answer_instead(monkeypatch, tmp_path, "import time\ntime.sleep(600)")
    monkeypatch.setattr(official, "_TIMEOUT_S", 0.5)
    found = await grade(task, b"", "log", 1, None, sys.executable)
    assert found == OfficialVerdict(resolved=None, reason="its grader did not end within 0.5 s")


async def test_tests_that_pytest_ran_in_the_place_of_another_runner_are_graded_as_pytest_prints_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """sympy's own runner prints names of functions, which its records list."""
    row = record(repo="sympy/sympy", FAIL_TO_PASS='["test_total"]', log_parser="parse_log_sympy")
    write(tmp_path / "source", {"shop.py": SHOP})
    (tmp_path / "rows.json").write_text(json.dumps([row]), "utf-8")
    request = ImportRequest(tmp_path / "out", source=tmp_path / "source")
    (sympy,) = import_all(tmp_path / "rows.json", request)[0].values()
    program = f"""\
import json
row = json.loads((folder / 'record.json').read_text())
assert row['FAIL_TO_PASS'] == ['tests/test_shop.py::test_total'], row['FAIL_TO_PASS']
assert (row['log_parser'], row['PASS_TO_PASS']) == ('parse_log_pytest', []), row
print({json.dumps(ANSWER)!r})"""
    answer_instead(monkeypatch, tmp_path, program)
    found = await grade(sympy, GOLD.encode(), "log", 0, None, sys.executable)
    assert found.resolved is True, found


async def test_other_records_are_graded_as_they_are(
    task: Task, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = f"""\
import json
row = json.loads((folder / 'record.json').read_text())
assert row == json.loads({json.dumps(record())!r}), row
print({json.dumps(ANSWER)!r})"""
    answer_instead(monkeypatch, tmp_path, program)
    assert (await grade(task, GOLD.encode(), "log", 0, None, sys.executable)).resolved is True


async def test_files_stand_where_the_harness_leaves_them(
    task: Task, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = f"(folder / 'report.json').write_text('{{}}')\nprint('''{json.dumps(ANSWER)}''')"
    answer_instead(monkeypatch, tmp_path, program)
    logs = tmp_path / "logs"
    for _ in range(2):
        await grade(task, GOLD.encode(), "log", 1, logs, sys.executable)
    files = {str(path.relative_to(logs)) for path in logs.rglob("*") if path.is_file()}
    place = f"logs/run_evaluation/pdbox/pdbox/{task.facts.source.instance_id}"
    assert files == {"preds.jsonl", f"{place}/patch.diff", f"{place}/report.json"}
    lines = [json.loads(line) for line in (logs / "preds.jsonl").read_text("utf-8").splitlines()]
    assert [line["model_patch"] for line in lines] == [GOLD, GOLD]
    (tmp_path / "file").write_text("", "utf-8")
    with pytest.raises(InvalidArgument, match="Can't write"):
        await grade(task, b"", "log", 1, tmp_path / "file", sys.executable)


async def test_a_patch_that_cannot_be_applied_is_a_prediction_without_a_report(
    task: Task, sandboxes: Sandboxes, tmp_path: Path
) -> None:
    patch, logs = GOLD.replace("+ 1", "+ 2"), tmp_path / "logs"
    verdict = await score(sandboxes, task, patch.encode(), print, logs)
    assert (verdict.applied, verdict.official) == (False, None)
    files = {str(path.relative_to(logs)) for path in logs.rglob("*") if path.is_file()}
    place = f"logs/run_evaluation/pdbox/pdbox/{task.facts.source.instance_id}"
    assert files == {"preds.jsonl", f"{place}/patch.diff"}
    assert json.loads((logs / "preds.jsonl").read_text("utf-8"))["model_patch"] == patch


@pytest.mark.parametrize(
    ("theirs", "wanted"),
    [
        (None, []),
        (OfficialVerdict(resolved=None, reason="why"), ["SWE-bench's own grader: no verdict (why)"]),
        (OfficialVerdict(resolved=True, reason="why"), ["SWE-bench's own grader: resolved (why)"]),
        (
            OfficialVerdict(resolved=False, reason="why"),
            [
                "SWE-bench's own grader: not resolved (why)",
                "The two differ: it reads what the run printed, ours what the test runner reported.",
            ],
        ),
    ],
)
def test_both_verdicts_are_shown(theirs: OfficialVerdict | None, wanted: list[str]) -> None:
    none = Tally(passed=0, total=0)
    verdict = Verdict(
        task="a",
        resolved=True,
        reason="all",
        applied=True,
        fail_to_pass=none,
        pass_to_pass=none,
        official=theirs,
    )
    assert _as_text(verdict).splitlines() == ["a: resolved (all)", *wanted]
