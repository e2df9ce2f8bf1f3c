"""The verdict of SWE-bench's own grader beside ours. It reads the text of the tests' output, which a program can forge.

The grader is the package `swebench` (extra `pdbox[swebench]`), in a process of its own.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
from pydantic import BaseModel, ConfigDict, ValidationError

from mcp_server.tasks import swebench_grader
from mcp_server.tasks.folder import Task, read_bytes
from sandbox.errors import InvalidArgument, NotFound
from sandbox.host_files import in_thread
from sandbox.session.results import Evaluation
from sandbox.session.session import Session

BENCHMARK = "swebench"
_RECORD = "config.json"
_TIMEOUT_S = 120.0
_MAX_RECORD = 64 << 20
_KEPT = ("patch.diff", "test_output.txt", "report.json")


class OfficialVerdict(BaseModel):
    """Verdict of the benchmark's own grader."""

    model_config = ConfigDict(frozen=True)

    resolved: bool | None
    """None if there is none; then `reason` says why."""
    reason: str
    """One line."""


class _Graded(BaseModel):
    resolved: bool
    is_read: bool
    passed: dict[str, int]
    total: dict[str, int]


def has_official_grader(task: Task) -> bool:
    """True for a task that was made of a record of SWE-bench."""
    return task.facts.source.benchmark == BENCHMARK and (task.tests_folder / _RECORD).is_file()


async def read_log(session: Session, run: Evaluation) -> str:
    """Read all output of a test run, as far as the sandbox stores it."""
    if run.kept is not None:
        with suppress(NotFound):
            return await session.output.whole(run.kept)
    return run.output


async def grade(
    task: Task, patch: bytes, log: str, exit_code: int | None, logs: Path | None, python: str | None = None
) -> OfficialVerdict:
    """Grade the output of a test run.

    Args:
        logs: folder that gets `preds.jsonl` and `logs/run_evaluation/…`, as the harness writes them; None for none.
        python: interpreter that has the package `swebench`; None for ours.

    Raises:
        InvalidArgument: `logs` can't be written.
    """
    if python is None and importlib.util.find_spec("swebench") is None:
        return OfficialVerdict(resolved=None, reason="needs `pip install 'pdbox[swebench]'`")
    with tempfile.TemporaryDirectory(prefix="pdbox-grade-") as place:
        folder = Path(place)
        instance = await in_thread(_lay, folder, task, patch, log)
        verdict = await _run(folder, exit_code, python or sys.executable)
        if logs is not None:
            await in_thread(_keep, folder, logs, instance, patch)
    return verdict


async def keep_prediction(task: Task, patch: bytes, logs: Path) -> None:
    """Leave what the harness leaves of a patch that can't be applied: no output, and no report.

    Raises:
        InvalidArgument: `logs` can't be written.
    """
    with tempfile.TemporaryDirectory(prefix="pdbox-grade-") as place:
        folder = Path(place)
        instance = await in_thread(_lay, folder, task, patch, "")
        await in_thread(_keep, folder, logs, instance, patch)


def _lay(folder: Path, task: Task, patch: bytes, log: str) -> str:
    """Write the files for the grader. Returns the record's id."""
    record = _read_record(task)
    (folder / "record.json").write_text(json.dumps(record), "utf-8")
    (folder / "patch.diff").write_bytes(patch)
    (folder / "output.txt").write_text(log, "utf-8", "replace")
    return str(record["instance_id"])


def _read_record(task: Task) -> dict[str, Any]:
    """Read the record, with the names of tests as the run prints them.

    Raises:
        InvalidArgument: it is none.
    """
    try:
        record: Any = json.loads(read_bytes(task.tests_folder / _RECORD, _MAX_RECORD))
        _, *lists = (record[name] for name in ("instance_id", "FAIL_TO_PASS", "PASS_TO_PASS"))
        known = {name for names in lists for name in (json.loads(names) if isinstance(names, str) else names)}
    except (ValueError, KeyError, TypeError, RecursionError) as exc:
        raise InvalidArgument(f"Task {task.name}: tests/{_RECORD} is no record of SWE-bench.") from exc
    facts = task.facts
    if known.issuperset(facts.fail_to_pass):
        return record
    # pytest runs them in the place of sympy's own runner, whose parser would find nothing.
    names = {"FAIL_TO_PASS": facts.fail_to_pass, "PASS_TO_PASS": facts.pass_to_pass}
    return {**record, **names, "log_parser": "parse_log_pytest"}


async def _run(folder: Path, exit_code: int | None, python: str) -> OfficialVerdict:
    command = [
        python,
        "-P",
        swebench_grader.__file__,
        str(folder),
        "" if exit_code is None else str(exit_code),
    ]
    with anyio.move_on_after(_TIMEOUT_S):
        done = await anyio.run_process(command, check=False)
        try:
            found = _Graded.model_validate_json(done.stdout.strip().rpartition(b"\n")[2])
        except ValidationError:
            lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
            why = lines[-1][:200] if lines else f"exit code {done.returncode}"
            return OfficialVerdict(resolved=None, reason=f"its grader failed: {why}")
        return OfficialVerdict(resolved=found.resolved, reason=_reason(found))
    return OfficialVerdict(resolved=None, reason=f"its grader did not end within {_TIMEOUT_S:g} s")


def _reason(found: _Graded) -> str:
    if not found.is_read:
        return "its parser finds no outcome in the output; pytest prints them with `-rA`"
    return ", ".join(
        f"{found.passed[name]} of {total} {name} passed" for name, total in found.total.items() if total
    )


def _keep(folder: Path, logs: Path, instance: str, patch: bytes) -> None:
    """Copy to where the harness would have left them, and add a line to `preds.jsonl`."""
    name = swebench_grader.NAME
    prediction: dict[str, Any] = {
        "instance_id": instance,
        "model_name_or_path": name,
        "model_patch": patch.decode("utf-8", "replace"),
    }
    place = logs / "logs" / "run_evaluation" / name / name / instance.replace("/", "__")
    try:
        place.mkdir(parents=True, exist_ok=True)
        for file in _KEPT:
            if (folder / file).is_file():
                shutil.copyfile(folder / file, place / file)
        with (logs / "preds.jsonl").open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(prediction) + "\n")
    except OSError as exc:
        raise InvalidArgument(f"Can't write {exc.filename or logs}: {exc.strerror}.") from exc
