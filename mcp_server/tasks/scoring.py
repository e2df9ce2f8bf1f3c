"""Scores a patch: in a fresh sandbox, with the task's own tests, by reports of the test runner and never by its text.

As with every grader that runs tests, code of the patch runs in their process: what forges reports in there is believed.
"""

from __future__ import annotations

import json
import math
import posixpath
import shlex
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, ConfigDict

from mcp_server.tasks.folder import MAX_PATCH, TEST_SCRIPT, Task
from mcp_server.tasks.judging import Outcomes, Tally, protected_patterns
from mcp_server.tasks.official import OfficialVerdict, grade, has_official_grader, keep_prediction, read_log
from mcp_server.tasks.opening import LOGS_FOLDER, TESTS_FOLDER, Sandboxes
from sandbox.backend import Progress
from sandbox.errors import BackendUnavailable, InvalidArgument
from sandbox.host_files import in_thread
from sandbox.ignore_rules import Rules
from sandbox.opening.upload import upload_file, upload_files
from sandbox.session.results import Evaluation, ExecResult
from sandbox.session.session import Session

TIMEOUT_S = 1800.0
_APPLY_S = 120.0
_PATCH = ".pdbox-score.patch"
_TESTS = ".pdbox-score-tests"
_APPLY = f"""\
if command -v git >/dev/null; then
    git -c safe.directory='*' apply --whitespace=nowarn {_PATCH} && exit 0
fi
if command -v patch >/dev/null; then
    patch --batch --forward --fuzz=5 -p1 -i {_PATCH} && exit 0
fi
command -v git >/dev/null || command -v patch >/dev/null || exit 99
exit 1
"""
_MAX_REWARD = 65_536
_TAIL = 600


class Verdict(BaseModel):
    """Score of one patch."""

    model_config = ConfigDict(frozen=True)

    task: str
    resolved: bool
    reason: str
    """One line."""
    applied: bool
    """True if the patch could be applied."""
    fail_to_pass: Tally
    pass_to_pass: Tally
    reward: float | None = None
    """Reward of the task's own `tests/test.sh`; None if tests were judged by name."""
    put_back: list[str] = []
    """Files that the patch changed and that were taken from the task: tests and their configuration."""
    duration_s: float = 0.0
    output: str = ""
    """End of the output of the tests, if they did not pass."""
    official: OfficialVerdict | None = None
    """Verdict of the benchmark's own grader; None if the benchmark has none that reads this run."""


@dataclass(frozen=True)
class Prepared:
    """A sandbox with a patch and the hidden tests in it."""

    session: Session
    applied: bool
    complaint: str
    put_back: list[str]


async def score(
    sandboxes: Sandboxes, task: Task, patch: bytes, progress: Progress, logs: Path | None = None
) -> Verdict:
    """Score `patch` in a fresh sandbox.

    Args:
        logs: folder for the files that the benchmark's own harness would leave.

    Raises:
        InvalidArgument: the task itself is broken, or `logs` can't be written.
        PdboxError: there is no sandbox, or it failed.
    """
    began = time.monotonic()
    _check_script(sandboxes, task)
    async with sandboxes.open(task, progress) as session:
        prepared = await prepare_tests(session, task, patch, progress)
        if not prepared.applied:
            verdict = _unapplied(task, prepared)
            if logs is not None and has_official_grader(task):
                await keep_prediction(task, patch, logs)
        elif task.is_foreign:
            verdict = await score_by_script(task, prepared, progress)
        else:
            run = await run_tests(session, task, progress)
            verdict = judge(task, run, prepared)
            if has_official_grader(task):
                progress("asking the benchmark's own grader")
                official = await grade(task, patch, await read_log(session, run), run.exit_code, logs)
                verdict = verdict.model_copy(update={"official": official})
    return verdict.model_copy(update={"duration_s": round(time.monotonic() - began, 2)})


async def read_patch(session: Session) -> bytes:
    """Read the changes of a session as a patch.

    Raises:
        InvalidArgument: it is too large. PdboxError: it is not available.
    """
    data = bytearray()

    def take(piece: bytes) -> None:
        if len(data) + len(piece) > MAX_PATCH:
            raise InvalidArgument(f"The patch of the session is larger than {MAX_PATCH >> 20} MiB.")
        data.extend(piece)

    await session.workspace.read_patch(take)
    return bytes(data)


async def prepare_tests(session: Session, task: Task, patch: bytes, progress: Progress) -> Prepared:
    """Apply `patch`, put the task's own files back, and add the hidden tests.

    Raises:
        InvalidArgument: the patch of the hidden tests can't be applied.
    """
    top = {entry.path for entry in (await session.workspace.list(limit=10_000)).entries}
    patterns = await in_thread(protected_patterns, task, session.rules.read_only, top)
    await session.protect(Rules(read_only=patterns))
    applied, complaint = True, ""
    if patch.strip():
        progress("applying the patch")
        applied, complaint = await apply_patch(session, patch)
    put_back = await session.restore(new=True)
    if hidden := await in_thread(task.test_patch):
        done, why = await apply_patch(session, hidden)
        if not done:
            raise InvalidArgument(f"Task {task.name}: its own test patch can't be applied: {why}")
        # Each run of the tests puts files back as they are now.
        await session.protect(Rules(read_only=patterns))
    return Prepared(session, applied, complaint, put_back)


async def apply_patch(session: Session, patch: bytes) -> tuple[bool, str]:
    """Apply a patch in the sandbox. Returns whether that was possible, and the complaint if not.

    Raises:
        InvalidArgument: the image has neither git nor patch.
    """
    await upload_file(session, _PATCH, patch if patch.endswith(b"\n") else patch + b"\n")
    done = await session.run(_APPLY, timeout_s=_APPLY_S)
    await session.run(f"rm -f {_PATCH}", timeout_s=_APPLY_S)
    if done.exit_code == 99:
        raise InvalidArgument(
            f"There is neither git nor patch in {session.sandbox.image}, so no patch can be applied.",
            "Add one to the image.",
        )
    lines = [line for line in done.output.splitlines() if line.strip()]
    return done.exit_code == 0, lines[0][:300] if lines else ""


def timeout_of(task: Task) -> float:
    """Seconds that one run of the tests may take."""
    return task.facts.limits.timeout_s or (task.file.verifier.timeout_sec if task.is_foreign else TIMEOUT_S)


async def run_tests(session: Session, task: Task, progress: Progress) -> Evaluation:
    """Run the tests by the entry point of the session."""
    progress("running the tests")
    return await session.evaluate(timeout_s=timeout_of(task))


def judge(task: Task, run: Evaluation, prepared: Prepared) -> Verdict:
    """Judge a run of the tests."""
    outcomes = Outcomes(run.tests)
    fixed, kept = outcomes.tally(task.facts.fail_to_pass), outcomes.tally(task.facts.pass_to_pass)
    by_name = task.has_tests
    resolved = fixed.is_complete and kept.is_complete if by_name else run.exit_code == 0
    return Verdict(
        task=task.name,
        resolved=resolved,
        reason=_reason(run, fixed, kept) if by_name else f"the entry point gave {run.exit_code}",
        applied=True,
        fail_to_pass=fixed,
        pass_to_pass=kept,
        put_back=prepared.put_back,
        output="" if resolved else run.output[-_TAIL:],
    )


def _reason(run: Evaluation, fixed: Tally, kept: Tally) -> str:
    parts = [
        f"{tally.passed} of {tally.total} {name} passed"
        for name, tally in (("FAIL_TO_PASS", fixed), ("PASS_TO_PASS", kept))
    ]
    if run.timed_out:
        parts.append(f"the tests did not end within {run.timeout_s:g} s")
    return ", ".join(parts)


def _unapplied(task: Task, prepared: Prepared) -> Verdict:
    facts = task.facts
    return Verdict(
        task=task.name,
        resolved=False,
        reason=f"the patch can't be applied: {prepared.complaint}",
        applied=False,
        fail_to_pass=Tally(passed=0, total=len(facts.fail_to_pass), missing=facts.fail_to_pass),
        pass_to_pass=Tally(passed=0, total=len(facts.pass_to_pass), missing=facts.pass_to_pass),
    )


def _check_script(sandboxes: Sandboxes, task: Task) -> None:
    if task.is_foreign and not (task.tests_folder / TEST_SCRIPT).is_file():
        raise InvalidArgument(f"Task {task.name} has no tests/{TEST_SCRIPT}, so it can't be scored.")
    if task.is_foreign and sandboxes.backend.name == "process":
        raise BackendUnavailable(
            f"Task {task.name} is scored by its own {TEST_SCRIPT}, which needs a container.",
            "Use `--backend docker`.",
        )


async def score_by_script(task: Task, prepared: Prepared, progress: Progress) -> Verdict:
    """Run `tests/test.sh` as Harbor does, and read the reward that it leaves."""
    session = prepared.session
    progress(f"running {TEST_SCRIPT}")
    folder = f"{LOGS_FOLDER}/verifier"
    await session.run(f"mkdir -p {folder} && rm -f {folder}/reward.*", timeout_s=_APPLY_S)
    # Harbor takes variables of the host in values such as `${TOKEN}`; none leave it here.
    env = {name: value for name, value in task.file.verifier.env.items() if "$" not in value}
    script = f"{TESTS_FOLDER}/{TEST_SCRIPT}"
    run = await run_script(session, task.tests_folder, script, timeout_s=timeout_of(task), env=env)
    rewards = await _read_rewards(session, folder)
    resolved = bool(rewards) and all(value >= 1 for value in rewards.values())
    reward = rewards.get("reward", min(rewards.values())) if rewards else None
    why = "" if rewards else f"; {TEST_SCRIPT} left none (exit code {run.exit_code})"
    return Verdict(
        task=task.name,
        resolved=resolved,
        reason=f"reward {reward if reward is not None else 'none'}{why}",
        applied=True,
        fail_to_pass=Tally(passed=0, total=0),
        pass_to_pass=Tally(passed=0, total=0),
        reward=reward,
        put_back=prepared.put_back,
        output="" if resolved else run.output[-_TAIL:],
    )


async def run_script(
    session: Session, folder: Path, script: str, *, timeout_s: float, env: dict[str, str]
) -> ExecResult:
    """Copy `folder` of the task to that of `script` in the sandbox, and run the script in the workspace."""
    place = posixpath.dirname(script)
    await upload_files(session, folder, _TESTS)
    await session.run(
        f"cp -R {_TESTS}/. {place}/ && rm -rf {_TESTS} && chmod +x {script}", timeout_s=_APPLY_S
    )
    return await session.run(script, timeout_s=timeout_s, env=env)


async def _read_rewards(session: Session, folder: str) -> dict[str, float]:
    for name in ("reward.json", "reward.txt"):
        path = shlex.quote(f"{folder}/{name}")
        done = await session.run(f"head -c {_MAX_REWARD} {path}", timeout_s=_APPLY_S)
        if done.exit_code == 0:
            return parse_rewards(name, done.output)
    return {}


def parse_rewards(name: str, text: str) -> dict[str, float]:
    """Parse what a verifier left: one number, or a JSON object of numbers. Empty if it is something else."""
    try:
        value: Any = json.loads(text) if name.endswith(".json") else float(text)
    except (ValueError, RecursionError):
        return {}
    table = cast(dict[Any, Any], value) if isinstance(value, dict) else {"reward": value}
    numbers = {str(key): item for key, item in table.items() if isinstance(item, int | float)}
    finite = {key: float(item) for key, item in numbers.items() if math.isfinite(item)}
    return finite if len(finite) == len(table) else {}
