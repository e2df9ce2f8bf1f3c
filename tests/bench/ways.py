"""The same program without a debugger, under ours, under stock pdb and under debugpy, in sandboxes of one kind, by its own CPU time.

A run without a debugger and one under ours are made at the same time, each in a sandbox and on a core of its own: what slows
the machine down for a while slows down both. The median of these pairs' ratios is what is compared with the limit, and how far
apart the middle half of them is, is told.
"""

from __future__ import annotations

import re
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import anyio

from tests.bench.measure import Row, timing
from tests.e2e.cases import PROJECT, wheels
from tests.e2e.client import Session

DEBUGPY = "debugpy==1.8.22"
DRIVER = Path(__file__).with_name("dap.py")
INSTALL = "python -m pip install -q --no-index --find-links"
WHEELS = PROJECT / ".pytest_cache" / "d" / "wheels"
"""Where the tests keep theirs."""
LEAST_PAIRS = 5
LEAST_PAIRS_WITHOUT_LIMIT = 2
MOST_PAIRS = 40
PATIENCE_S = 600


@dataclass(frozen=True)
class Place:
    """A breakpoint."""

    path: str
    line: int
    condition: str = ""

    @classmethod
    def of(cls, folder: Path, path: str, text: str, condition: str = "") -> Place:
        """The breakpoint at the line that starts with `text`."""
        lines = [line.strip() for line in (folder / path).read_text("utf-8").splitlines()]
        (number,) = [number for number, line in enumerate(lines, 1) if line.startswith(text)]
        return cls(path, number, condition)

    def __str__(self) -> str:
        return f"{self.path}:{self.line}" + (f", {self.condition}" if self.condition else "")


def fetched(requirements: Sequence[str], python: str) -> Path | None:
    """The folder of all wheels for this Python, these ones among them; None if they can't be had."""
    # debugpy has its compiled part for a glibc that our image of 3.9 doesn't have yet.
    platforms = [] if int(python.partition(".")[2]) < 11 else ["manylinux_2_34_x86_64"]
    try:
        return wheels([*requirements], python, WHEELS, *platforms)
    except subprocess.CalledProcessError:
        return None


class Ways:
    """Runs programs in two sessions. Each program prints `CPU` and its seconds, and exits well."""

    def __init__(self, session: Session, handles: tuple[str, str], debugpy: bool) -> None:
        self._session = session
        self._handles = handles
        self._others = ["stock pdb", *(["debugpy"] if debugpy else [])]

    @classmethod
    async def opened(cls, session: Session, debugpy: bool, **arguments: Any) -> Self:
        """In two new sessions, started with `arguments`."""
        first, second = [await session.call("start_session", **arguments) for _ in range(2)]
        return cls(session, (first["session_id"], second["session_id"]), debugpy)

    async def row(self, what: str, program: str, place: Place, limit: float | None, seconds: float) -> Row:
        """One line of the table; `program` are the arguments of `python`, as a shell takes them.

        Pairs are run for `seconds` (for half of it where there is no limit), the others once.
        """
        pairs: list[tuple[float, float]] = []
        end = time.monotonic() + (seconds if limit else seconds / 2)
        least = LEAST_PAIRS if limit else LEAST_PAIRS_WITHOUT_LIMIT
        while len(pairs) < least or (time.monotonic() < end and len(pairs) < MOST_PAIRS):
            pairs.append(await self._pair(program, place, len(pairs) % 2))
            _tick()
        others: dict[str, float] = {}
        for name in self._others:
            others[name] = await self._other(name, program, place)
            _tick()
        return _row(what, pairs, others, limit)

    async def _pair(self, program: str, place: Place, turn: int) -> tuple[float, float]:
        taken: dict[str, float] = {}

        async def bare() -> None:
            taken["bare"] = await self._shell(f"python {program}", turn)

        async def ours() -> None:
            taken["ours"] = await self._ours(program, place, 1 - turn)

        async with anyio.create_task_group() as group:
            group.start_soon(bare)
            group.start_soon(ours)
        return taken["bare"], taken["ours"]

    async def _other(self, name: str, program: str, place: Place) -> float:
        # They are slow: tests that are run more than once for the clock's sake (`OFTEN`) are run once there, and once without.
        bare = await self._shell(f"OFTEN=1 python {program}", 0)
        if name == "stock pdb":
            command = f"OFTEN=1 python -m pdb -c {shlex.quote(f'b {place}')} -c c -c q {program} </dev/null"
        else:
            command = (
                f"OFTEN=1 python dap.py {place.path} {place.line} {shlex.quote(place.condition)} {program}"
            )
        return await self._shell(command, 0) / bare

    async def _ours(self, program: str, place: Place, which: int) -> float:
        handle = self._handles[which]
        stop = await self._session.call(
            "pdb",
            command=f"b {place}\nc",
            entrypoint=f"python {program}",
            timeout_s=PATIENCE_S,
            session_id=handle,
        )
        number, output = stop["breakpoints"][-1]["id"], stop["output"]
        while stop["state"] == "running":  # its main part has finished, but the process takes its time to end
            stop = await self._session.call("wait", timeout_s=PATIENCE_S, session_id=handle)
            output += stop["output"]
        assert stop["state"] == "exited" and stop["exit_code"] == 0, stop
        await self._session.call("pdb", command=f"cl {number}\nq", session_id=handle)
        return _cpu_ms(output)

    async def _shell(self, command: str, which: int) -> float:
        answer = await self._session.call(
            "bash", command=command, timeout_s=PATIENCE_S, session_id=self._handles[which]
        )
        assert answer["exit_code"] == 0, (command, answer)
        return _cpu_ms(answer["output"])


def _cpu_ms(output: str) -> float:
    found = re.search(r"^CPU ([\d.]+)", output, re.MULTILINE)
    assert found, output
    return float(found[1]) * 1000


def _tick() -> None:
    sys.stderr.write(".")
    sys.stderr.flush()


def _row(what: str, pairs: list[tuple[float, float]], others: dict[str, float], limit: float | None) -> Row:
    ratios = [ours / bare for bare, ours in pairs]
    ratio = statistics.median(ratios)
    low, _, high = statistics.quantiles(ratios, n=4, method="inclusive")
    bare = statistics.median(bare for bare, _ in pairs)
    ours = f"{ratio:.3f} × of {bare:.2f} ms without (middle half of {len(pairs)} pairs: {low:.3f}–{high:.3f})"
    beside = [f"{name} {taken:.2f} ×" for name, taken in others.items()]
    if "debugpy" not in others:
        beside.append("debugpy not to be had")
    text, taken = "; ".join([ours, *beside]), timing([ours for _, ours in pairs])
    if limit is None:
        return Row(what, taken, text)
    return Row(what, taken, text, f"{limit:g} ×", ratio <= limit)
