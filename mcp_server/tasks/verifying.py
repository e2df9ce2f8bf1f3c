"""Verifies a task by its own solution: fails before, stops in the debugger, and is resolved after."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import anyio
from pydantic import BaseModel, ConfigDict

from mcp_server.tasks.folder import SOLVE_SCRIPT, Task, load_task
from mcp_server.tasks.judging import GOOD, Outcomes
from mcp_server.tasks.opening import SOLUTION_FOLDER, Sandboxes
from mcp_server.tasks.scoring import (
    Verdict,
    prepare_tests,
    run_script,
    run_tests,
    score,
    score_by_script,
    timeout_of,
)
from sandbox.backend import Progress
from sandbox.errors import PdboxError
from sandbox.session.debugger import Stop
from sandbox.session.session import Session

_LEAST_S, _RUNS, _MOST_S = 30.0, 5, 300.0
"""The program has to stop in the debugger in this many seconds and times that its tests take, but no more than the last."""
NOT_RUN = "-"


class Check(BaseModel):
    """One step of a verification."""

    model_config = ConfigDict(frozen=True)

    ok: bool
    text: str = ""
    seconds: float = 0.0


class Verification(BaseModel):
    """Result for one task."""

    model_config = ConfigDict(frozen=True)

    task: str
    ok: bool
    before: Check
    stop: Check
    after: Check
    error: str = ""
    """Reason for which a step could not be done."""
    seconds: float = 0.0


_SKIPPED = Check(ok=False, text=NOT_RUN)


async def verify_task(sandboxes: Sandboxes, task: Task, progress: Progress) -> Verification:
    """Run the oracle episode of a task. A failure is a result."""
    began = time.monotonic()
    before = stop = after = _SKIPPED
    error = ""
    try:
        before, stop = await _check_before(sandboxes, task, progress)
        after = await _check_after(sandboxes, task, progress)
    except PdboxError as exc:
        error = str(exc)
    seconds = round(time.monotonic() - began, 2)
    ok = before.ok and stop.ok and after.ok
    return Verification(
        task=task.name, ok=ok, before=before, stop=stop, after=after, error=error, seconds=seconds
    )


async def verify_all(
    sandboxes: Sandboxes,
    folders: Sequence[Path],
    jobs: int,
    report: Callable[[Path, str], None],
    finished: Callable[[Verification], None],
) -> list[Verification]:
    """Verify the tasks in `folders`, `jobs` at a time. Results are in the order of `folders`."""
    results: dict[Path, Verification] = {}
    limiter = anyio.CapacityLimiter(jobs)

    async def verify(folder: Path) -> None:
        async with limiter:
            results[folder] = await _verify_folder(sandboxes, folder, lambda text: report(folder, text))
            finished(results[folder])

    async with anyio.create_task_group() as tasks:
        for folder in folders:
            tasks.start_soon(verify, folder)
    return [results[folder] for folder in folders]


async def _verify_folder(sandboxes: Sandboxes, folder: Path, progress: Progress) -> Verification:
    try:
        task = await anyio.to_thread.run_sync(load_task, folder)
    except PdboxError as exc:
        return Verification(
            task=folder.name, ok=False, before=_SKIPPED, stop=_SKIPPED, after=_SKIPPED, error=str(exc)
        )
    return await verify_task(sandboxes, task, progress)


async def _check_before(sandboxes: Sandboxes, task: Task, progress: Progress) -> tuple[Check, Check]:
    if task.is_foreign:
        verdict = await score(sandboxes, task, b"", progress)
        check = Check(ok=not verdict.resolved, text=verdict.reason, seconds=verdict.duration_s)
        return check, Check(ok=True, text=NOT_RUN)
    began = time.monotonic()
    async with sandboxes.open(task, progress) as session:
        await prepare_tests(session, task, b"", progress)
        run = await run_tests(session, task, progress)
        outcomes = Outcomes(run.tests)
        broken, kept = outcomes.tally(task.facts.fail_to_pass), outcomes.tally(task.facts.pass_to_pass)
        failed = broken.total - broken.passed
        if task.has_tests:
            ok = broken.passed == 0 and kept.is_complete
            text = f"{failed} of {broken.total} fail, {kept.passed} of {kept.total} pass"
            text += _wrongly_listed(task, outcomes)
        else:
            ok, text = run.exit_code != 0, f"exit code {run.exit_code}"
        before = Check(ok=ok, text=text, seconds=round(time.monotonic() - began, 2))
        patience = min(_LEAST_S + _RUNS * run.duration_s, _MOST_S)
        return before, await _check_stop(session, task, patience, progress)


def _wrongly_listed(task: Task, outcomes: Outcomes) -> str:
    """Name the first tests that don't do before the fix what the task says; empty if there are none."""
    fine = next((name for name in task.facts.fail_to_pass if outcomes.of(name) in GOOD), "")
    bad = next((name for name in task.facts.pass_to_pass if outcomes.of(name) not in GOOD), "")
    return "".join(
        f"; {what}: {name[:200]}" for what, name in (("passes already", fine), ("does not pass", bad)) if name
    )


async def _check_stop(session: Session, task: Task, patience: float, progress: Progress) -> Check:
    """Let the failing test stop in the debugger."""
    progress("stopping in the debugger")
    began = time.monotonic()
    text = ""
    for entrypoint in await _debug_commands(session, task):
        stop = await _run_until_stop(session, entrypoint, patience)
        text = _describe(stop)
        if stop.state == "stopped":
            return Check(ok=True, text=text, seconds=round(time.monotonic() - began, 2))
    return Check(ok=False, text=text or "no entry point", seconds=round(time.monotonic() - began, 2))


async def _debug_commands(session: Session, task: Task) -> list[str]:
    facts, found = task.facts, list[str]()
    if facts.debug_entrypoint:
        found.append(facts.debug_entrypoint)
    if facts.fail_to_pass and session.entrypoint:
        found.append(await session.command_of_test(facts.fail_to_pass[0]))
    # A test may fail only after others have run.
    found.append(session.debug_entrypoint or session.entrypoint or "")
    return list(dict.fromkeys(found))


async def _run_until_stop(session: Session, entrypoint: str, patience: float) -> Stop:
    with anyio.move_on_after(patience):
        stop = await session.debugger.command("c", entrypoint=entrypoint, timeout_s=60)
        while stop.state == "running":
            stop = await session.debugger.wait(timeout_s=60)
        return stop
    return await session.debugger.wait(timeout_s=10, interrupt=True)


def _describe(stop: Stop) -> str:
    if stop.frame is None:
        return f"{stop.state}, exit code {stop.exit_code}"
    return f"{stop.reason} at {stop.frame.path}:{stop.frame.line}"


async def _check_after(sandboxes: Sandboxes, task: Task, progress: Progress) -> Check:
    if task.is_foreign and not (task.solution_folder / SOLVE_SCRIPT).is_file():
        return Check(ok=False, text=f"there is no {SOLVE_SCRIPT}")
    if task.is_foreign:
        verdict = await _solve_by_script(sandboxes, task, progress)
    elif (patch := task.gold_patch()) is not None:
        verdict = await score(sandboxes, task, patch, progress)
    else:
        return Check(ok=False, text="there is no gold patch")
    return Check(ok=verdict.resolved, text=verdict.reason, seconds=verdict.duration_s)


async def _solve_by_script(sandboxes: Sandboxes, task: Task, progress: Progress) -> Verdict:
    """Run `solution/solve.sh` as Harbor's oracle does, then the task's own test."""
    began = time.monotonic()
    async with sandboxes.open(task, progress) as session:
        solution = f"{SOLUTION_FOLDER}/{SOLVE_SCRIPT}"
        await run_script(session, task.solution_folder, solution, timeout_s=timeout_of(task), env={})
        prepared = await prepare_tests(session, task, b"", progress)
        verdict = await score_by_script(task, prepared, progress)
    return verdict.model_copy(update={"duration_s": round(time.monotonic() - began, 2)})
