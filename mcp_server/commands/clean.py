"""Remove what servers that are gone left on this machine, and what was kept to save time and was not used lately.

These are sandboxes of servers that were killed, results of set-up commands, edits of lost sessions, and compiled code of the
debugger. Nothing of a living server goes, and no sandbox that was kept on purpose: `pdbox sessions reap` removes those.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

import anyio
import anyio.to_thread

from mcp_server.backends import open_each
from mcp_server.server import owner_of
from mcp_server.settings import Settings
from sandbox.backend import Backend
from sandbox.errors import InvalidArgument, PdboxError
from sandbox.spec import SandboxInfo
from sandbox.user_folders import cache_folder, state_folder

SETTINGS = ("backend",)
DAY_S = 24 * 3600.0
SANDBOX, SETUP, EDITS, BYTECODE = "sandbox", "set-up", "edits", "bytecode"
_KEPT = {SETUP: "setups/*", EDITS: "edits/*/*"}
_CACHED = {BYTECODE: "guest/*/*"}
_WHOLE = re.compile("[0-9a-f]+")
_DRAFT_S = 3600.0
"""Age of a file that is not finished yet after which nobody writes it any more."""


@dataclass(frozen=True)
class Leftover:
    """Something that can go."""

    kind: str
    name: str
    size: int
    """Bytes; of a container those that it has written."""
    age_s: int
    """Seconds since its start, or since its last use."""


@dataclass
class Cleaning:
    """Things found, with failures to remove some, and the kinds of sandboxes that can't be asked."""

    found: list[Leftover] = field(default_factory=list[Leftover])
    problems: list[str] = field(default_factory=list[str])
    not_asked: list[str] = field(default_factory=list[str])


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options: age, and a run that removes nothing."""
    parser.add_argument("--dry-run", action="store_true", help="only show what would be removed")
    parser.add_argument(
        "--older-than",
        metavar="DAYS",
        type=float,
        default=1.0,
        help="of set-ups, edits and bytecode those not used for so long (default: 1; 0 for all)",
    )


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Clean, then print what went; 1 if something could not be removed."""
    if not 0 <= args.older_than < float("inf"):
        raise InvalidArgument(f"--older-than {args.older_than:g} is not a number of days.")
    done = anyio.run(_clean, settings, args.environ, args.older_than * DAY_S, args.dry_run)
    if args.json:
        print(json.dumps({"dry_run": args.dry_run, **asdict(done)}, indent=2))
    else:
        _print(done, args.dry_run)
    return 1 if done.problems else 0


def _print(done: Cleaning, is_dry: bool) -> None:
    for one in done.found:
        print(f"{one.kind:9} {_megabytes(one.size):>9}  {_age(one.age_s):>8}  {one.name}")
    for problem in done.problems:
        print(f"not removed: {problem}")
    for name in done.not_asked:
        print(f"not looked at: {name}")
    total = _megabytes(sum(one.size for one in done.found))
    verb = "would be removed" if is_dry else "removed"
    print(f"{len(done.found)} {verb}, {total}." if done.found else "There is nothing to remove.")


async def _clean(settings: Settings, environ: Mapping[str, str], older_s: float, is_dry: bool) -> Cleaning:
    done = Cleaning()
    held: set[str] = set()
    async with open_each(settings) as (backends, reasons):
        done.not_asked += [f"{name}: {reason}" for name, reason in reasons.items()]
        for name, backend in backends.items():
            try:
                await _clean_sandboxes(name, backend, done, is_dry)
                held.update(one.key for one in await backend.living())
            except PdboxError as exc:
                done.problems.append(f"{name}: {exc}")
    # Sessions that can't be asked about may be in use: their edits stay as long as a server would keep them.
    is_certain = settings.backend == "auto" and not (done.not_asked or done.problems)
    limits = {EDITS: older_s if is_certain else max(older_s, DAY_S)}
    await anyio.to_thread.run_sync(_clean_files, done, environ, limits, older_s, held, is_dry)
    return done


async def _clean_sandboxes(name: str, backend: Backend, done: Cleaning, is_dry: bool) -> None:
    for one in await backend.unserved(owner_of()):
        left = Leftover(SANDBOX, f"{name} {one.place}", await backend.size(one), one.age_s)
        # Another server may have taken it over meanwhile.
        if is_dry or await _remove(backend, one):
            done.found.append(left)


async def _remove(backend: Backend, one: SandboxInfo) -> bool:
    if one not in await backend.unserved(owner_of()):
        return False
    await backend.remove(one)
    return True


def _clean_files(
    done: Cleaning,
    environ: Mapping[str, str],
    limits: Mapping[str, float],
    usual_s: float,
    held: set[str],
    is_dry: bool,
) -> None:
    for kind, file, status in _files(environ):
        # The time of access of set-ups is set by hand.
        age_s = time.time() - max(status.st_mtime, status.st_atime if kind == SETUP else 0.0)
        least_s = 0.0 if _WHOLE.fullmatch(file.name) else _DRAFT_S
        if age_s < max(limits.get(kind, usual_s), least_s) or (kind == EDITS and file.name in held):
            continue
        try:
            if not is_dry:
                file.unlink()
        except OSError as exc:
            done.problems.append(f"{file}: {exc.strerror}")
        else:
            done.found.append(Leftover(kind, str(file), status.st_size, max(0, round(age_s))))


def _files(environ: Mapping[str, str]) -> Iterator[tuple[str, Path, os.stat_result]]:
    """Files that are kept, with their kinds."""
    for folder, patterns in ((state_folder(environ), _KEPT), (cache_folder(environ), _CACHED)):
        if folder is None:
            continue
        for kind, pattern in patterns.items():
            for file in sorted(folder.glob(pattern)):
                with suppress(OSError):
                    status = file.lstat()
                    if stat.S_ISREG(status.st_mode):
                        yield kind, file, status


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


def _age(age_s: int) -> str:
    return f"{age_s // 86400} days" if age_s >= 2 * DAY_S else f"{age_s // 60} min"
