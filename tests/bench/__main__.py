"""`make bench`: a table of latencies beside their references, all measured in one run, in Docker sandboxes."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path

import anyio

from tests.bench.calls import calls, calls_over_http
from tests.bench.density import density
from tests.bench.diagnosis import diagnoses
from tests.bench.distant import found_causes
from tests.bench.episodes import episodes
from tests.bench.load import load
from tests.bench.measure import Row, table
from tests.bench.programs import repository
from tests.bench.search import searches
from tests.bench.slowdown import slowdowns
from tests.bench.starts import floors, starts, tasks
from tests.bench.suite import suites

PARTS: dict[str, Callable[[Path, argparse.Namespace], Awaitable[list[Row]]]] = {
    "calls": lambda folder, chosen: calls(repository(folder), chosen.runs),
    "http": lambda folder, chosen: calls_over_http(repository(folder), chosen.runs),
    "search": lambda folder, _: searches(repository(folder)),
    "floors": lambda folder, _: floors(repository(folder)),
    "starts": lambda folder, _: starts(repository(folder)),
    "tasks": lambda folder, _: tasks(repository(folder)),
    "slowdown": lambda folder, chosen: slowdowns(folder, chosen.pythons),
    "suite": lambda folder, chosen: suites(folder, chosen.pythons),
    "diagnosis": lambda folder, chosen: diagnoses(folder, chosen.pythons),
    "distant": lambda folder, _: found_causes(folder),
    "load": lambda folder, chosen: load(folder, chosen.clients, chosen.load_seconds),
    "density": lambda folder, chosen: density(repository(folder), chosen.sessions),
    "episodes": lambda _, chosen: episodes(chosen.episodes, chosen.at_once),
}


async def main(chosen: argparse.Namespace) -> None:
    """Measure the chosen parts and print them, those before one that fails, too."""
    rows: list[Row] = []
    try:
        with tempfile.TemporaryDirectory() as place:
            for number, name in enumerate(chosen.only, 1):
                sys.stderr.write(f"{name} ({number} of {len(chosen.only)}) …")
                sys.stderr.flush()
                begin = time.monotonic()
                rows += await PARTS[name](Path(place) / name, chosen)
                sys.stderr.write(f" {time.monotonic() - begin:.0f} s\n")
    finally:
        text = json.dumps([asdict(row) for row in rows], indent=1) if chosen.json else table(rows)
        sys.stdout.write(text + "\n")


def _names(text: str) -> list[str]:
    names = text.split(",")
    if unknown := [name for name in names if name not in PARTS]:
        raise argparse.ArgumentTypeError(f"no such part: {', '.join(unknown)}")
    return names


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument(
        "--only",
        type=_names,
        default=list(PARTS),
        metavar="PART[,PART]",
        help=f"of {', '.join(PARTS)}; else all, about 20 minutes",
    )
    parser.add_argument("--runs", type=int, default=300, help="repetitions of each single call")
    parser.add_argument(
        "--pythons",
        type=lambda text: text.split(","),
        default=["3.9", "3.11", "3.13"],
        help="images in which slow-downs are measured",
    )
    parser.add_argument("--clients", type=int, default=50, help="clients at once under load")
    parser.add_argument("--load-seconds", type=float, default=120, help="how long they step")
    parser.add_argument("--sessions", type=int, default=50, help="idle sessions at once")
    parser.add_argument("--episodes", type=int, default=100, help="episodes on tasks over one server")
    parser.add_argument("--at-once", type=int, default=8, help="of them at the same time")
    return parser.parse_args()


if __name__ == "__main__":
    anyio.run(main, _arguments())
