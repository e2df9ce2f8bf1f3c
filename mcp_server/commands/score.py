"""Score a patch: in a fresh sandbox of its task, with the hidden tests, each judged by name.

Files that hold tests or configure them are taken from the task, whatever the patch does to them.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import anyio

from mcp_server.backends import open_backend
from mcp_server.commands import tasks
from mcp_server.errors import one_line
from mcp_server.server import owner_of
from mcp_server.settings import Settings
from mcp_server.tasks.folder import MAX_PATCH, Task, load_task
from mcp_server.tasks.judging import Tally
from mcp_server.tasks.scoring import Verdict, read_patch, score
from sandbox.backend import Backend
from sandbox.concurrency import open_task_group
from sandbox.errors import InvalidArgument, NotFound, PdboxError
from sandbox.session.session import Session, session_key

SETTINGS = tasks.SETTINGS
EPILOG = "Exit codes: 0 resolved, 1 not resolved, 2 it could not be scored."
_SHOWN = 20


def arguments(parser: argparse.ArgumentParser) -> None:
    """The task, and the patch."""
    parser.add_argument("task", metavar="TASK", help="name of a task, or its folder")
    given = parser.add_mutually_exclusive_group(required=True)
    given.add_argument("patch", metavar="PATCH", nargs="?", help="file with a patch; `-` is stdin")
    given.add_argument(
        "--session", metavar="ID", help="score what was changed in this session, which stays as it is"
    )
    parser.add_argument(
        "--logs",
        metavar="DIR",
        type=Path,
        help="SWE-bench: add to preds.jsonl and logs/run_evaluation/ in DIR, as its own harness does",
    )


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Score; 0 if the patch resolves the task."""
    try:
        verdict = anyio.run(_score, args, settings)
    except PdboxError as exc:
        print(f"pdbox: {one_line(exc)}", file=sys.stderr)
        return 2
    print(json.dumps(verdict.model_dump(), indent=2, ensure_ascii=False) if args.json else _as_text(verdict))
    return 0 if verdict.resolved else 1


async def _score(args: argparse.Namespace, settings: Settings) -> Verdict:
    task = _one_task(args.task, settings)
    async with open_backend(settings) as backend:
        if args.session:
            patch = await _patch_of_session(backend, args.session)
        else:
            patch = await anyio.to_thread.run_sync(_read_patch, args.patch)
        sandboxes = tasks.sandboxes_of(backend, settings)
        return await score(sandboxes, task, patch, _say, args.logs)


def _one_task(word: str, settings: Settings) -> Task:
    folders = tasks.folders_of([word], settings)
    if len(folders) != 1:
        raise InvalidArgument(f"{word} holds {len(folders)} tasks; a patch is for one.")
    return load_task(folders[0])


def _read_patch(word: str) -> bytes:
    try:
        with sys.stdin.buffer if word == "-" else Path(word).open("rb") as stream:
            data = stream.read(MAX_PATCH + 1)
    except OSError as exc:
        raise InvalidArgument(f"Can't read the patch {word}: {exc.strerror}.") from exc
    if len(data) > MAX_PATCH:
        raise InvalidArgument(f"The patch {word} is larger than {MAX_PATCH >> 20} MiB.")
    return data


async def _patch_of_session(backend: Backend, handle: str) -> bytes:
    """Read the changes of a session that another server holds, or left running."""
    key = session_key(handle)
    found = next((one for one in await backend.of_user(owner_of()) if one.key == key), None)
    if found is None:
        raise NotFound("There is no session with this id.", "`pdbox sessions list` shows what is running.")
    async with open_task_group() as group:
        session = Session(await backend.adopt(found), None, group, key=key)
        try:
            return await read_patch(session)
        finally:
            await session.disconnect()


def _as_text(verdict: Verdict) -> str:
    lines = [f"{verdict.task}: {'resolved' if verdict.resolved else 'not resolved'} ({verdict.reason})"]
    for name, tally in (("FAIL_TO_PASS", verdict.fail_to_pass), ("PASS_TO_PASS", verdict.pass_to_pass)):
        lines += _tests_of(name, tally) if verdict.applied else []
    if verdict.put_back:
        lines.append(f"Taken from the task, not from the patch: {', '.join(verdict.put_back[:_SHOWN])}")
    if verdict.output and not (verdict.fail_to_pass.failed or verdict.pass_to_pass.failed):
        lines += ["End of the output:", *(f"  {line}" for line in verdict.output.splitlines())]
    return "\n".join([*lines, *_official(verdict)])


def _official(verdict: Verdict) -> list[str]:
    """Format the verdict of the benchmark's own grader, and what to think of it where it is another one."""
    official = verdict.official
    if official is None:
        return []
    if official.resolved is None:
        return [f"SWE-bench's own grader: no verdict ({official.reason})"]
    own = f"SWE-bench's own grader: {'resolved' if official.resolved else 'not resolved'} ({official.reason})"
    if official.resolved == verdict.resolved:
        return [own]
    return [own, "The two differ: it reads what the run printed, ours what the test runner reported."]


def _tests_of(name: str, tally: Tally) -> list[str]:
    shown = [
        *(f"  failed: {test}" for test in tally.failed),
        *(f"  did not run: {test}" for test in tally.missing),
    ]
    more = [f"  and {len(shown) - _SHOWN} more"] if len(shown) > _SHOWN else []
    return [f"{name}:", *shown[:_SHOWN], *more] if shown else []


def _say(line: str) -> None:
    print(f"  {line}", file=sys.stderr, flush=True)
