"""Lists the tests of a task by running them before and after its fix."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import anyio

from mcp_server.tasks.folder import Task, TaskContent, write_task
from mcp_server.tasks.judging import GOOD, Outcomes
from mcp_server.tasks.model import MAX_TESTS
from mcp_server.tasks.opening import Sandboxes
from mcp_server.tasks.scoring import prepare_tests, run_tests
from sandbox.backend import Progress
from sandbox.errors import InvalidArgument, PdboxError


async def list_tests(sandboxes: Sandboxes, task: Task, progress: Progress) -> Task:
    """Write into a task which tests its fix has to mend, and which it must not break.

    Of a task that lists tests, only those are considered. Without a gold patch all tests have to pass.

    Raises:
        InvalidArgument: the tests did not end, or none has to be mended.
        PdboxError: there is no sandbox, or it failed.
    """
    before, names = await _run(sandboxes, task, b"", progress)
    after, gold = before, task.gold_patch()
    if gold is not None:
        after, more = await _run(sandboxes, task, gold, progress)
        names = list(dict.fromkeys((*names, *more)))
    if task.has_tests:
        names = [*task.facts.fail_to_pass, *task.facts.pass_to_pass]
    good = [name for name in names if gold is None or after.of(name) in GOOD]
    kept = [name for name in good if before.of(name) in GOOD]
    mended = [name for name in good if before.of(name) not in GOOD]
    if not mended:
        raise InvalidArgument(f"of its {len(names)} tests none fails before the fix and passes after it")
    facts = task.facts.model_copy(
        update={"fail_to_pass": mended[:MAX_TESTS], "pass_to_pass": kept[:MAX_TESTS]}
    )
    others = {name: table for name, table in task.file.metadata.items() if name != "pdbox"}
    name = task.file.task.name if task.file.task else task.name
    content = TaskContent(name, task.instruction, facts, metadata=others)
    return await anyio.to_thread.run_sync(write_task, task.folder, content)


async def _run(
    sandboxes: Sandboxes, task: Task, patch: bytes, progress: Progress
) -> tuple[Outcomes, list[str]]:
    """Run the tests in a fresh sandbox. Returns their outcomes and names."""
    async with sandboxes.open(task, progress) as session:
        prepared = await prepare_tests(session, task, patch, progress)
        if not prepared.applied:
            raise InvalidArgument(f"its gold patch can't be applied: {prepared.complaint}")
        run = await run_tests(session, task, progress)
    if run.timed_out:
        raise InvalidArgument(f"its tests did not end within {run.timeout_s:g} s")
    return Outcomes(run.tests), list(dict.fromkeys(test.id for test in run.tests))


async def list_all(
    sandboxes: Sandboxes, tasks: Sequence[Task], jobs: int, report: Callable[[Task, str], None]
) -> None:
    """List the tests of all `tasks`, `jobs` at a time. `report` gets each, with the reason if it was not possible."""
    limiter = anyio.CapacityLimiter(jobs)

    async def work(task: Task) -> None:
        async with limiter:
            try:
                report(await list_tests(sandboxes, task, _be_quiet), "")
            except PdboxError as exc:
                report(task, str(exc))

    async with anyio.create_task_group() as group:
        for task in tasks:
            group.start_soon(work, task)


def _be_quiet(text: str) -> None:
    """Drop the progress of one task: there is a line for each that is done."""
