"""Import, list, show or verify tasks: folders in Harbor's format, each a repository with a bug, an instruction and hidden tests.

`verify` runs the oracle episode of each: its tests fail before, stop in the debugger, and pass after the gold patch.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import anyio

from mcp_server.backends import open_backend
from mcp_server.commands import tasks_import
from mcp_server.commands.serve import defaults, policy
from mcp_server.server import owner_of
from mcp_server.settings import LIMITS, Settings
from mcp_server.tasks.catalog import TaskCatalog, resolve_tasks
from mcp_server.tasks.folder import Task, load_task
from mcp_server.tasks.importing.listing import list_all
from mcp_server.tasks.opening import Sandboxes
from mcp_server.tasks.verifying import Check, Verification, verify_all
from sandbox.backend import Backend
from sandbox.errors import InvalidArgument, PdboxError

SETTINGS = (
    "tasks",
    "backend",
    "runtime",
    "unsafe_no_isolation",
    "image",
    "python",
    "mount",
    *LIMITS,
    "setup_network",
    "index_url",
    "ca_bundle",
    "log_level",
)
TAKES_VALUES = True
"""Has the command line take tasks between options."""
USAGE = "pdbox tasks {import,list,show,verify} [SOURCE … | TASK …] [OPTIONS]"
EPILOG = "Exit codes: 0 all tasks were imported, or hold; 1 some weren't, or don't; 2 asked for wrongly."


def arguments(parser: argparse.ArgumentParser) -> None:
    """The action, and the tasks that it is for."""
    parser.add_argument(
        "action", choices=list(ACTIONS), help="`verify` runs programs of the tasks in sandboxes"
    )
    parser.add_argument(
        "words",
        nargs="*",
        metavar="TASK",
        help="import: files or folders; else names or folders of tasks (default: those below --tasks, and pdbox's own)",
    )
    verify = parser.add_argument_group("verify")
    verify.add_argument("--jobs", type=int, default=2, metavar="N", help="tasks at a time (default: 2)")
    tasks_import.arguments(parser)


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Do the action."""
    return ACTIONS[args.action](args, settings)


def folders_of(words: Sequence[str], settings: Settings) -> list[Path]:
    """Folders of the tasks that are named, or of all.

    Raises:
        NotFound: there is no such task.
    """
    catalog = catalog_of(settings)
    return resolve_tasks(words, catalog) if words else [folder for _, folder in catalog.folders()]


def catalog_of(settings: Settings) -> TaskCatalog:
    """The tasks below the folders that the operator names, and those that come with pdbox.

    Raises:
        InvalidArgument: there is no such folder.
    """
    roots = [root.expanduser().resolve() for root in settings.tasks]
    for root in roots:
        if not root.is_dir():
            raise InvalidArgument(f"No such folder: {root}.", "--tasks takes a folder of task folders.")
    return TaskCatalog(roots)


def sandboxes_of(backend: Backend, settings: Settings) -> Sandboxes:
    """Sandboxes by the operator's settings."""
    return Sandboxes(backend, policy(settings, None), defaults(settings, None), owner_of())


def is_plain(args: argparse.Namespace) -> bool:
    """True if the output has no colours: it goes to no terminal, or somebody wants none."""
    return bool(args.environ.get("NO_COLOR")) or not sys.stdout.isatty()


def _import(args: argparse.Namespace, settings: Settings) -> int:
    async def in_sandboxes(tasks: Sequence[Task], report: Callable[[Task, str], None]) -> None:
        async with open_backend(settings) as backend:
            await list_all(sandboxes_of(backend, settings), tasks, args.jobs, report)

    _check_jobs(args.jobs)
    return tasks_import.run(args, settings, lambda tasks, report: anyio.run(in_sandboxes, tasks, report))


def _check_jobs(jobs: int) -> None:
    if jobs < 1:
        raise InvalidArgument(f"--jobs {jobs}: there must be one at least.")


def _list(args: argparse.Namespace, settings: Settings) -> int:
    tasks, broken = _load(folders_of(args.words, settings))
    if args.json:
        print(_as_json({"tasks": [_summary(task) for task in tasks], "invalid": broken}))
    else:
        rows = [
            (task.name, str(len(task.facts.fail_to_pass)), str(len(task.facts.pass_to_pass)), _origin(task))
            for task in tasks
        ]
        print("\n".join(table(("task", "fail to pass", "pass to pass", "from"), rows)))
        for name, reason in broken.items():
            print(f"{name}: {reason}", file=sys.stderr)
    return 1 if broken else 0


def _show(args: argparse.Namespace, settings: Settings) -> int:
    tasks = [load_task(folder) for folder in folders_of(args.words, settings)]
    if args.json:
        print(_as_json({"tasks": [{**_summary(task), "instruction": task.instruction} for task in tasks]}))
    else:
        print("\n\n".join(map(_describe, tasks)))
    return 0


def _verify(args: argparse.Namespace, settings: Settings) -> int:
    _check_jobs(args.jobs)
    folders = folders_of(args.words, settings)
    board = _Board(len(folders), is_live=sys.stderr.isatty())
    results = anyio.run(_verify_in_sandboxes, settings, folders, args.jobs, board)
    board.clear()
    if args.json:
        print(
            _as_json({"tasks": [one.model_dump() for one in results], "ok": all(one.ok for one in results)})
        )
    else:
        _print_results(results, plain=is_plain(args))
    return 0 if all(one.ok for one in results) else 1


async def _verify_in_sandboxes(
    settings: Settings, folders: Sequence[Path], jobs: int, board: _Board
) -> list[Verification]:
    async with open_backend(settings) as backend:
        sandboxes = sandboxes_of(backend, settings)
        return await verify_all(sandboxes, folders, jobs, board.report, board.finished)


class _Board:
    """Progress on stderr: at a terminal one line that changes, else a line for each task that is done."""

    def __init__(self, total: int, *, is_live: bool) -> None:
        self._total = total
        self._done = 0
        self._is_live = is_live
        self._running: dict[str, str] = {}

    def report(self, folder: Path, text: str) -> None:
        """Show the step of a task that is running."""
        self._running[folder.name] = text
        self._draw()

    def finished(self, result: Verification) -> None:
        """Count a task that is done."""
        self._done += 1
        self._running.pop(result.task, None)
        if self._is_live:
            self._draw()
        else:
            state = "ok" if result.ok else "FAILED"
            line = f"[{self._done}/{self._total}] {result.task}: {state} ({result.seconds:.1f} s)"
            print(line, file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Remove the line."""
        if self._is_live:
            print("\r\033[K", end="", file=sys.stderr, flush=True)

    def _draw(self) -> None:
        if self._is_live:
            steps = " · ".join(f"{name}: {text}" for name, text in self._running.items())
            line = f"[{self._done}/{self._total}] {steps}"[: shutil.get_terminal_size().columns - 1]
            print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)


def _print_results(results: Sequence[Verification], *, plain: bool) -> None:
    rows = [
        (
            one.task,
            _mark(one.before),
            _mark(one.stop),
            _mark(one.after),
            f"{one.seconds:.1f} s",
            "ok" if one.ok else "FAILED",
        )
        for one in results
    ]
    head, *lines = table(("task", "before", "stop", "after", "time", ""), rows)
    print(head)
    for one, line in zip(results, lines, strict=True):
        print(line if plain or one.ok else f"\033[31m{line}\033[0m")
    for one in results:
        if one.error:
            print(f"{one.task}: {' '.join(one.error.split())}")
    failed = sum(not one.ok for one in results)
    print(f"{len(results) - failed} of {len(results)} tasks hold.")


def _mark(check: Check) -> str:
    seconds = f" ({check.seconds:.1f} s)" if check.seconds else ""
    return f"{'' if check.ok else 'no: '}{check.text}{seconds}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table with aligned columns."""
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (head, *rows)
    ]


def _load(folders: Sequence[Path]) -> tuple[list[Task], dict[str, str]]:
    """Load tasks; invalid ones by name, with the reason."""
    tasks: list[Task] = []
    broken: dict[str, str] = {}
    for folder in folders:
        try:
            tasks.append(load_task(folder))
        except PdboxError as exc:
            broken[folder.name] = str(exc)
    return tasks, broken


def _summary(task: Task) -> Mapping[str, object]:
    return {
        "name": task.name,
        "folder": str(task.folder),
        "schema_version": task.file.schema_version,
        "foreign": task.is_foreign,
        "image": task.image,
        "facts": task.facts.model_dump(exclude_defaults=True),
    }


def _origin(task: Task) -> str:
    source = task.facts.source
    return "Harbor" if task.is_foreign else " ".join(filter(None, (source.benchmark, source.instance_id)))


def _describe(task: Task) -> str:
    facts = task.facts
    lines = {
        "folder": str(task.folder),
        "from": _origin(task),
        "image": task.image or "",
        "python": facts.python or "",
        "requirements": ", ".join(facts.requirements),
        "set-up": "; ".join(facts.setup),
        "entrypoint": facts.entrypoint or "",
        "debug_entrypoint": facts.debug_entrypoint or "",
        "tests": f"{len(facts.fail_to_pass)} to fix, {len(facts.pass_to_pass)} to keep"
        if task.has_tests
        else "its own script",
        "hidden tests": facts.test_patch or "",
        "read-only": ", ".join(facts.read_only),
        "hidden files": ", ".join(facts.ignore),
        "profile": facts.profile or "",
    }
    shown = [f"  {name}: {text}" for name, text in lines.items() if text]
    instruction = [f"  | {line}".rstrip() for line in task.instruction.splitlines()]
    return "\n".join([task.name, *shown, *instruction])


def _as_json(data: object) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False)


ACTIONS: Mapping[str, Callable[[argparse.Namespace, Settings], int]] = {
    "import": _import,
    "list": _list,
    "show": _show,
    "verify": _verify,
}
