"""`make bench`: a table of latencies beside their references, all measured in one run, in Docker sandboxes."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path

import anyio

from tests.bench import references
from tests.bench.measure import Row, Timing, repeat, table, timing
from tests.bench.slowdown import slowdowns
from tests.e2e.client import PDBOX, Session, pdbox

LOOP = """\
def work():
    x = 0
    for number in range(1_000_000):
        x += number
        if x > 1_000:
            x = 0
    return x


work()
"""
FAILING = (
    "def half(n):\n    return n // 2\n\ndef test_half():\n    value = half(3)\n    assert value == 1.5\n"
)
FLOOD = "for _ in range(200_000):\n    print('x' * 99)\n"


def repository(folder: Path) -> Path:
    """About 1 MB in 230 files, with the programs that are timed."""
    (folder / "package").mkdir(parents=True)
    for number in range(227):
        (folder / "package" / f"module_{number}.py").write_text(f"VALUE = {number}\n" + "# filling\n" * 440)
    for name, text in {"loop": LOOP, "test_half": FAILING, "flood": FLOOD}.items():
        (folder / f"{name}.py").write_text(text)
    return folder


@asynccontextmanager
async def stopped(repo: Path) -> AsyncIterator[Session]:
    """A session in Docker whose program is stopped in its first lines."""
    async with pdbox("--repo", str(repo), "--backend", "docker") as session:
        await session.call("pdb", command="b work\nc\nn\ncl 1", entrypoint="python loop.py")
        yield session


async def calls(repo: Path, runs: int) -> list[Row]:
    """Latency of single calls, beside a no-op tool of the same SDK."""
    noop = await references.noop_call(runs)
    rows = [Row("no-op tool of the same SDK, stdio", noop)]
    async with stopped(repo) as session:
        edits = iter(range(1 << 30))
        measured = [
            ("pdb `p x`", 1.5, lambda: session.call("pdb", command="p x")),
            ("pdb `n`", 1.5, lambda: session.call("pdb", command="n")),
            (
                "view, 60 lines",
                3.0,
                lambda: session.call("view", path="package/module_0.py", start=1, end=60),
            ),
            ("grep in one file", 3.0, lambda: session.call("grep", pattern="value ==", path="test_half.py")),
            ("listdir", 3.0, lambda: session.call("listdir")),
            (
                "rewrite one line",
                3.0,
                lambda: session.call("rewrite", path="note.txt", new_code=f"{next(edits)}\n"),
            ),
        ]
        for what, over, call in measured:
            taken = await repeat(call, runs, 20)
            extra = taken.median - noop.median
            rows.append(Row(what, taken, f"no-op + {extra:.2f} ms", f"no-op + {over:g} ms", extra <= over))
    return rows


async def floors(image: str, repo: Path) -> list[Row]:
    """What the same costs without pdbox."""
    return [
        Row("`docker exec` of one command", await references.docker_exec(image, 20)),
        Row("stock pdb on a local pipe, `p x`", await references.stock_pdb(repo / "loop.py", 300)),
    ]


async def starts(image: str, repo: Path) -> list[Row]:
    """Opening a session, and the server itself."""
    bare = await references.bare_start(image, 8)
    cold: list[float] = []
    async with pdbox("--root", str(repo), "--backend", "docker") as session:
        for _ in range(8):
            begin = time.perf_counter()
            opened = await session.call("start_session", repo=str(repo))
            cold.append((time.perf_counter() - begin) * 1000)
            await session.call("close_session", session_id=opened["session_id"])
    opening, limit = timing(cold[1:]), 1.3 * bare.median + 150
    sdk = await references.server_start([sys.executable, str(references.NOOP)], 6)
    ours = await references.server_start([str(PDBOX), "serve", "--repo", str(repo)], 6)
    return [
        Row("create and start of a bare container", bare),
        Row(
            "start_session, 1 MB repository, image present",
            opening,
            "",
            f"{limit:.0f} ms",
            opening.median <= limit,
        ),
        Row("start of a bare SDK server", sdk),
        Row(
            "start of `pdbox serve`",
            ours,
            f"{ours.median / sdk.median:.2f} ×",
            "1.1 ×",
            ours.median <= 1.1 * sdk.median,
        ),
    ]


async def tasks(repo: Path) -> list[Row]:
    """Whole tasks, from spawning the server."""
    times: list[float] = []
    for _ in range(4):
        begin = time.perf_counter()
        async with pdbox("--repo", str(repo), "--backend", "docker") as session:
            await session.call("pdb", command="c", entrypoint="pytest -q test_half.py::test_half")
            stop = await session.call("pdb", command="p value")
            times.append((time.perf_counter() - begin) * 1000)
            assert stop["reply"].strip() == "1", stop
            if len(times) == 4:
                flood = await _flood(session)
    spawn = timing(times)
    return [
        Row(
            "client spawn to a local of the failing test, 2 calls", spawn, "", "1500 ms", spawn.median <= 1500
        ),
        Row("20 MB of program output", flood, "", "1000 ms", flood.median < 1000),
    ]


async def _flood(session: Session) -> Timing:
    begin = time.perf_counter()
    stop = await session.call("pdb", command="c", entrypoint="python flood.py")
    assert stop["state"] == "exited", stop
    return timing([(time.perf_counter() - begin) * 1000])


async def main(arguments: argparse.Namespace) -> None:
    """Measure all and print it."""
    with tempfile.TemporaryDirectory() as folder:
        repo = repository(Path(folder) / "repo")
        async with pdbox("--repo", str(repo), "--backend", "docker") as session:
            image = (await session.call("start_session"))["image"]
        rows: list[Row] = []
        parts = (
            lambda: calls(repo, arguments.runs),
            lambda: floors(image, repo),
            lambda: starts(image, repo),
            lambda: tasks(repo),
            lambda: slowdowns(Path(folder) / "slowdown", arguments.pythons.split(",")),
        )
        for number, part in enumerate(parts, 1):
            sys.stderr.write(f"part {number} of {len(parts)} …\n")
            rows += await part()
    text = json.dumps([asdict(row) for row in rows], indent=1) if arguments.json else table(rows)
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--runs", type=int, default=300, help="repetitions of each single call")
    parser.add_argument("--pythons", default="3.11,3.13", help="images in which slow-downs are measured")
    anyio.run(main, parser.parse_args())
