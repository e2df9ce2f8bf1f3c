"""`pdbox tasks import`: options, progress and output."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from mcp_server.settings import Settings
from mcp_server.tasks.folder import MAX_INSTRUCTION, Task
from mcp_server.tasks.importing.draft import Skipped
from mcp_server.tasks.importing.importer import READERS, Given, ImportRequest, import_tasks
from mcp_server.tasks.importing.trees import read_text
from sandbox.errors import InvalidArgument

AUTO = "auto"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the action."""
    group = parser.add_argument_group("import", "--image and --python say what the source does not.")
    group.add_argument("--out", type=Path, metavar="DIR", help="folder for the task folders")
    group.add_argument(
        "--format", choices=[AUTO, *READERS], default=AUTO, help="kind of the source (default: auto)"
    )
    group.add_argument("--select", nargs="+", default=[], metavar="ID", help="tasks to import (default: all)")
    group.add_argument(
        "--source",
        type=Path,
        metavar="DIR",
        help="SWE-…, R2E-Gym: a clone, a tree or an archive instead of images",
    )
    group.add_argument(
        "--apply-test-patch",
        action="store_true",
        help="SWE-…, R2E-Gym: show the model the tests that the benchmark hides",
    )
    group.add_argument(
        "--gold", type=Path, metavar="PATH", help="patch, fixed folder, or folder of NAME.patch files"
    )
    group.add_argument("--entrypoint", metavar="COMMAND", help="command that runs the tests")
    group.add_argument("--debug-entrypoint", metavar="COMMAND", help="command that `pdb` debugs")
    group.add_argument(
        "--run-tests",
        action="store_true",
        help="run the tests in sandboxes before and after the fix, and list those that it mends and keeps",
    )
    group.add_argument("--name", help="name of the task, where the source is one")
    group.add_argument("--instruction", type=Path, metavar="FILE", help="text for the model")
    group.add_argument(
        "--requirement", action="append", default=[], metavar="PACKAGE", help="as for pip; repeatable"
    )
    group.add_argument(
        "--setup", action="append", default=[], metavar="COMMAND", help="shell command; repeatable"
    )
    group.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="`{workspace}` is the repository; repeatable",
    )


Lister = Callable[[Sequence[Task], Callable[[Task, str], None]], None]
"""Lists the tests of tasks, and reports each task with the reason if that was not possible."""


def run(args: argparse.Namespace, settings: Settings, list_tests: Lister) -> int:
    """Import what is named; 1 if a task was skipped."""
    if not args.words or args.out is None:
        raise InvalidArgument("Name what to import, and `--out DIR`.")
    request = _import_request(args, settings)
    written: dict[str, Task] = {}
    skipped: list[Skipped] = []
    for one in _import_all(args.words, request):
        if isinstance(one, Task):
            written[one.name] = one
        else:
            skipped.append(one)
        _show(one, len(written), len(skipped), plain=args.json)
    failed = _list_tests(written, list_tests, plain=args.json) if args.run_tests else {}
    if args.json:
        print(json.dumps(_as_json(written.values(), skipped, failed), indent=2, ensure_ascii=False))
    elif len(written) + len(skipped) != 1:
        print(f"{len(written)} tasks written, {len(skipped)} skipped.")
    return 1 if skipped or failed or not written else 0


def _list_tests(written: dict[str, Task], list_tests: Lister, *, plain: bool) -> dict[str, str]:
    """List the tests of tasks, and put those tasks in the place of the old ones. Returns failures by name."""
    failed: dict[str, str] = {}
    done = 0

    def report(task: Task, problem: str) -> None:
        nonlocal done
        done += 1
        written[task.name] = task
        if problem:
            failed[task.name] = problem
            line = f"tests not listed: {_printable(problem)}"
        else:
            line = f"{len(task.facts.fail_to_pass)} tests to fix, {len(task.facts.pass_to_pass)} to keep"
        if problem or not plain:
            print(f"[{done}/{len(written)}] {task.name}: {line}", file=sys.stderr, flush=True)

    if written:
        list_tests(list(written.values()), report)
    return failed


def _import_request(args: argparse.Namespace, settings: Settings) -> ImportRequest:
    for path in (args.source, args.gold):
        if path is not None and not path.exists():
            raise InvalidArgument(f"No such file or folder: {path}.")
    given = Given(
        name=args.name,
        instruction=read_text(args.instruction, MAX_INSTRUCTION) if args.instruction else None,
        gold=args.gold,
        entrypoint=args.entrypoint,
        debug_entrypoint=args.debug_entrypoint,
        image=settings.image,
        python=settings.python,
        requirements=args.requirement,
        setup=args.setup,
        env=_pairs(args.env),
    )
    return ImportRequest(
        out=args.out.expanduser(),
        format=None if args.format == AUTO else args.format,
        select=args.select,
        source=args.source,
        apply_test_patch=args.apply_test_patch,
        given=given,
    )


def _pairs(words: Sequence[str]) -> dict[str, str]:
    if wrong := [word for word in words if "=" not in word]:
        raise InvalidArgument(f"--env {wrong[0]}: must be NAME=VALUE.")
    return dict(word.split("=", 1) for word in words)


def _import_all(words: Sequence[str], request: ImportRequest) -> Iterator[Task | Skipped]:
    for word in words:
        yield from import_tasks(Path(word).expanduser(), request)


def _show(one: Task | Skipped, written: int, skipped: int, *, plain: bool) -> None:
    """Print a line for a task; at a terminal that shows something else, a line that changes."""
    if isinstance(one, Skipped):
        print(f"{_printable(one.id)}: skipped: {_printable(one.reason)}", file=sys.stderr)
    elif not plain:
        print(f"{one.name}: {one.folder}")
    if sys.stderr.isatty() and not sys.stdout.isatty():
        line = f"{written} written, {skipped} skipped"[: shutil.get_terminal_size().columns - 1]
        print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)


def _printable(text: str) -> str:
    """One line of characters that do nothing to a terminal: names and reasons are other people's."""
    return "".join(character if character.isprintable() else " " for character in text)[:600]


def _as_json(
    written: Iterable[Task], skipped: Sequence[Skipped], failed: Mapping[str, str]
) -> Mapping[str, object]:
    return {
        "tasks": [
            {
                "name": task.name,
                "folder": str(task.folder),
                "fail_to_pass": len(task.facts.fail_to_pass),
                "pass_to_pass": len(task.facts.pass_to_pass),
                "image": task.image,
            }
            for task in written
        ],
        "skipped": [{"name": one.id, "reason": one.reason} for one in skipped],
        "not_listed": [{"name": name, "reason": reason} for name, reason in failed.items()],
    }
