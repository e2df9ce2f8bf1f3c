"""The same program without a debugger, under ours, under stock pdb and under debugpy, in one sandbox, by its own CPU time.

It tells the CPU time of its parts. The least of each part over the runs, added up, is what is compared: neighbours on
the machine can only add to it, by ten percent and more in any whole run. The runs are made in turns for as long as there is
time, and how far two halves of those without a debugger are apart is told: a ratio is no better than that.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench.measure import Row, timing
from tests.e2e.cases import PROJECT, wheels
from tests.e2e.client import Session

DEBUGPY = "debugpy==1.8.22"
DRIVER = Path(__file__).with_name("dap.py")
INSTALL = "python -m pip install -q --no-index --find-links"
WHEELS = PROJECT / ".pytest_cache" / "d" / "wheels"
"""Where the tests keep theirs."""
LEAST_ROUNDS = 4
LEAST_ROUNDS_WITHOUT_LIMIT = 2
MOST_ROUNDS = 40
"""Runs without a debugger and under ours."""
SLOW_ROUNDS = 1
"""Runs of the others, which are slow and only compared with."""
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
    """Runs programs in one session. Each prints `CPU` and the seconds of its parts, begin to end, and exits well."""

    def __init__(self, session: Session, handle: str, debugpy: bool) -> None:
        self._session = session
        self._handle = handle
        self._others = ["stock pdb", *(["debugpy"] if debugpy else [])]

    async def row(self, what: str, program: str, place: Place, limit: float | None, seconds: float) -> Row:
        """One line of the table; `program` are the arguments of `python`, as a shell takes them.

        Runs that are compared with the limit are made for `seconds` (half of it where there is none), the others once.
        """
        times: dict[str, list[list[float]]] = {name: [] for name in ("bare", "ours", *self._others)}
        end = time.monotonic() + (seconds if limit else seconds / 2)
        least = LEAST_ROUNDS if limit else LEAST_ROUNDS_WITHOUT_LIMIT
        for number in range(MOST_ROUNDS):
            if number >= least and time.monotonic() > end:
                break
            # Whoever comes second has a warmer machine.
            pair = ("bare", "ours") if number % 2 else ("ours", "bare")
            for name in (*pair, *(self._others if number < SLOW_ROUNDS else [])):
                times[name].append(await self._cpu_ms(name, program, place))
                sys.stderr.write(".")
                sys.stderr.flush()
        return _row(what, times, limit)

    async def _cpu_ms(self, name: str, program: str, place: Place) -> list[float]:
        if name == "ours":
            output = await self._ours(program, place)
        else:
            output = await self._shell(_command(name, program, place))
        found = re.search(r"^CPU ([\d. ]+)", output, re.MULTILINE)
        assert found, f"{name}: {output}"
        return [float(part) * 1000 for part in found[1].split()]

    async def _ours(self, program: str, place: Place) -> str:
        stop = await self._session.call(
            "pdb",
            command=f"b {place}\nc",
            entrypoint=f"python {program}",
            timeout_s=PATIENCE_S,
            session_id=self._handle,
        )
        number, output = stop["breakpoints"][-1]["id"], stop["output"]
        while stop["state"] == "running":  # its main part has finished, but the process takes its time to end
            stop = await self._session.call("wait", timeout_s=PATIENCE_S, session_id=self._handle)
            output += stop["output"]
        assert stop["state"] == "exited" and stop["exit_code"] == 0, stop
        await self._session.call("pdb", command=f"cl {number}\nq", session_id=self._handle)
        return output

    async def _shell(self, command: str) -> str:
        answer = await self._session.call(
            "bash", command=command, timeout_s=PATIENCE_S, session_id=self._handle
        )
        assert answer["exit_code"] == 0, (command, answer)
        return answer["output"]


# The others are slow: tests that are run more than once for the clock's sake (`OFTEN`) are run once there.
def _command(name: str, program: str, place: Place) -> str:
    if name == "stock pdb":
        return f"OFTEN=1 python -m pdb -c {shlex.quote(f'b {place}')} -c c -c q {program} </dev/null"
    if name == "debugpy":
        return f"OFTEN=1 python dap.py {place.path} {place.line} {shlex.quote(place.condition)} {program}"
    return f"python {program}"


def _row(what: str, times: dict[str, list[list[float]]], limit: float | None) -> Row:
    least = {name: _least(runs) for name, runs in times.items()}
    bare = least.pop("bare")
    halves = sorted((_least(times["bare"][::2]), _least(times["bare"][1::2])))
    ours = least.pop("ours")
    others = [f"{name} {taken / bare:.2f} ×" for name, taken in least.items()]
    if "debugpy" not in least:
        others.append("debugpy not to be had")
    noise = f"least: {ours / bare:.3f} × of {bare:.2f} ms without (± {halves[1] / halves[0] - 1:.1%})"
    beside = "; ".join([noise, *others])
    taken = timing([sum(run) for run in times["ours"]])
    if limit is None:
        return Row(what, taken, beside)
    return Row(what, taken, beside, f"{limit:g} ×", ours <= limit * bare)


def _least(runs: list[list[float]]) -> float:
    return sum(map(min, zip(*runs, strict=True)))
