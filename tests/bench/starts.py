"""Opening a session, starting the server, and whole tasks from there."""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import anyio
import docker

from tests.bench import references
from tests.bench.measure import Row, Timing, since, timing
from tests.bench.programs import default_image
from tests.e2e.client import PDBOX, Session, pdbox

TASK_MS = 1500
WARM_MS = 50
VENV = "python3 -m venv ~/venv"
REFILL_S = 3.0
"""Long for starting one sandbox on a machine that is not busy."""
FLOOD_MS = 1000
COPY_ROUNDS = 7


async def floors(repo: Path) -> list[Row]:
    """What a command costs without pdbox."""
    image = await default_image(repo)
    return [
        Row("`docker exec` of one command", await references.docker_exec(image, 20)),
        Row("stock pdb on a local pipe, `p x`", await references.stock_pdb(repo / "loop.py", 300)),
    ]


async def starts(repo: Path) -> list[Row]:
    """Opening a session and starting the server, each in turns with its reference."""
    return [
        *await _openings(repo),
        *await _warm(repo),
        *await _prepared(repo),
        *await _copies(repo),
        *await _servers(repo),
    ]


async def _openings(repo: Path) -> list[Row]:
    image, engine = await default_image(repo), docker.from_env()
    bare: list[float] = []
    cold: list[float] = []
    async with pdbox("--root", str(repo), "--backend", "docker") as session:
        await _open(session, repo)  # imports what the server needs for its first one
        for _ in range(8):
            bare.append(await references.bare_start(engine, image))
            cold.append(await _open(session, repo))
    floor, opening = timing(bare), timing(cold)
    limit = 1.3 * floor.median + 150
    what = "start_session, 1 MB repository, image present"
    return [
        Row("create and start of a bare container", floor),
        Row(what, opening, "", f"{limit:.0f} ms", opening.median <= limit),
    ]


async def _warm(repo: Path) -> list[Row]:
    """With a pool of one, and time enough for it to be filled again."""
    taken: list[float] = []
    async with pdbox(
        "--root", str(repo), "--repo", str(repo), "--backend", "docker", "--pool", "1"
    ) as session:
        await session.client.list_tools()
        for _ in range(9):
            await anyio.sleep(REFILL_S)
            taken.append(await _open(session, repo))
    warm = timing(taken[1:])  # the first one imports what the server needs
    what = "start_session, 1 MB repository, a sandbox is ready (`--pool`)"
    return [Row(what, warm, "", f"{WARM_MS} ms", warm.median <= WARM_MS)]


async def _prepared(repo: Path) -> list[Row]:
    """With a set-up: run by the first session, kept for the others."""
    ran: list[float] = []
    taken: list[float] = []
    flags = ["--root", str(repo), "--repo", str(repo), "--backend", "docker", "--pool", "1"]
    with tempfile.TemporaryDirectory() as state:
        async with pdbox(*flags, env={"XDG_STATE_HOME": state}) as session:
            await session.client.list_tools()
            await anyio.sleep(REFILL_S)
            await _open(session, repo)  # imports what the server needs
            for number in range(4):
                for times in (ran, taken, taken):
                    await anyio.sleep(REFILL_S)
                    times.append(await _open(session, repo, [f"{VENV} # {number}"]))
    first, kept = timing(ran), timing(taken)
    beside = f"{kept.median / first.median:.2f} ×"
    return [
        Row(f"the same, first session with the set-up `{VENV}`", first),
        Row("later session with that set-up, kept", kept, beside),
    ]


async def _copies(repo: Path) -> list[Row]:
    """Copying of large repositories: what a start takes longer than with an empty one, in turns with `docker cp`."""
    image = await default_image(repo)
    rows: list[Row] = []
    for what, (make, limit) in _LARGE.items():
        with tempfile.TemporaryDirectory() as place:
            rows.append(await _copied(image, *_folders(Path(place), make), what, limit))
    return rows


def _folders(place: Path, make: Callable[[Path], None]) -> tuple[Path, Path]:
    empty, large = place / "empty", place / "large"
    empty.mkdir()
    large.mkdir()
    make(large)
    return empty, large


async def _copied(image: str, empty: Path, large: Path, what: str, limit: float) -> Row:
    theirs: list[float] = []
    ours: list[float] = []
    async with pdbox("--root", str(large.parent), "--backend", "docker") as session:
        await _open(session, large)  # imports what the server needs, and reads the files from the disk
        for _ in range(COPY_ROUNDS):
            without = await _open(session, empty)
            ours.append(await _open(session, large) - without)
            theirs.append(await references.docker_cp(image, large))
    taken, floor = timing(ours), timing(theirs)
    ratio = taken.median / floor.median
    beside = f"{ratio:.2f} × `docker cp`: {floor.median:.0f} ms"
    return Row(f"start_session, copying {what}", taken, beside, f"{limit:g} ×", ratio <= limit)


def _random_files(folder: Path) -> None:
    for number in range(100):
        (folder / f"{number}.bin").write_bytes(os.urandom(1 << 20))


def _many_files(folder: Path) -> None:
    for number in range(10_000):
        place = folder / f"package_{number // 1000}" / f"module_{number // 100}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"file_{number}.py").write_text(f"VALUE = {number}\n" + "# filling\n" * 300)


def _mixed_files(folder: Path) -> None:
    """Mostly small sources, a few large files of data: as the installed packages of a project."""
    draw = random.Random(0)
    sizes = [int(draw.lognormvariate(8.3, 1.5)) for _ in range(5600)]
    for number, size in enumerate(sizes):
        place = folder / f"package_{number // 200}" / f"module_{number // 20}"
        place.mkdir(parents=True, exist_ok=True)
        lines = "".join(f"value_{line} = {draw.random()}\n" for line in range(size // 32 + 1))
        (place / f"file_{number}.py").write_text(lines)
    left = (84 << 20) - sum(sizes)
    for number in range(20):
        (folder / f"data_{number}.bin").write_bytes(os.urandom(left // 20))


_LARGE: dict[str, tuple[Callable[[Path], None], float]] = {
    "100 MB of random data in 100 files": (_random_files, 1.5),
    "10,000 files of 3 KB": (_many_files, 1.0),
    "84 MB in 5,620 files": (_mixed_files, 1.5),
}


async def _open(session: Session, repo: Path, setup: Sequence[str] = ()) -> float:
    begin = time.perf_counter()
    opened = await session.call("start_session", repo=str(repo), **({"setup": setup} if setup else {}))
    taken = since(begin)
    await session.call("close_session", session_id=opened["session_id"])
    return taken


async def _servers(repo: Path) -> list[Row]:
    commands = ([sys.executable, str(references.NOOP)], [str(PDBOX), "serve", "--repo", str(repo)])
    times = [[await references.server_start(command) for command in commands] for _ in range(8)]
    sdk, ours = (timing(list(taken)) for taken in zip(*times, strict=True))
    beside = f"{ours.median / sdk.median:.2f} ×"
    return [
        Row("start of a bare SDK server", sdk),
        Row("start of `pdbox serve`", ours, beside, "1.1 ×", ours.median <= 1.1 * sdk.median),
    ]


async def tasks(repo: Path) -> list[Row]:
    """Whole tasks, from spawning the server."""
    spawn = timing([await _to_the_locals(repo) for _ in range(4)])
    flood = await _flood(repo)
    what = "client spawn to the locals of the failing test, 3 calls"
    return [
        Row(what, spawn, "", f"{TASK_MS} ms", spawn.median <= TASK_MS),
        Row("20 MB of program output", flood, "", f"{FLOOD_MS} ms", flood.median < FLOOD_MS),
    ]


async def _to_the_locals(repo: Path) -> float:
    begin = time.perf_counter()
    async with pdbox("--repo", str(repo), "--backend", "docker") as session:
        await session.call("start_session")
        await session.call("pdb", command="c", entrypoint="pytest -q test_half.py::test_half")
        stop = await session.call("pdb", command="p locals()")
        taken = since(begin)
        assert "'value': 1" in stop["reply"], stop
    return taken


async def _flood(repo: Path) -> Timing:
    async with pdbox("--repo", str(repo), "--backend", "docker") as session:
        await session.call("start_session")
        begin = time.perf_counter()
        stop = await session.call("pdb", command="c", entrypoint="python flood.py")
        taken = since(begin)
        assert stop["state"] == "exited", stop
    return timing([taken])
