"""How much slower a program gets under the debugger, by its own CPU time, beside stock pdb in the same sandbox."""

from __future__ import annotations

import re
import statistics
from collections.abc import Awaitable, Callable
from pathlib import Path

from tests.bench.measure import Row, timing
from tests.e2e.client import Session, pdbox

WORK = """\
import sys
import time

from other import bump


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def calls():
    return fib(24)


def loop():
    total = 0
    for i in range(400_000):
        total += i
    return total


def mixed():
    rows = [{"id": i, "name": str(i)} for i in range(20_000)]
    return sum(bump(row["id"]) + len(row["name"]) for row in rows)


def unused():
    return 0


begin = time.process_time()
globals()[sys.argv[1]]()
print(f"CPU {time.process_time() - begin:.6f}")
"""
OTHER = "def bump(n):\n    return n + 1\n"
ELSEWHERE = "work.py:28"
IN_LOOP = "work.py:18, total < 0"
RUNS = 5


async def slowdowns(folder: Path, pythons: list[str]) -> list[Row]:
    """For each Python: a breakpoint in another function, and in a tight loop a condition that never holds."""
    _write(folder)
    rows: list[Row] = []
    async with pdbox("--root", str(folder), "--backend", "docker") as session:
        for python in pythons:
            opened = await session.call("start_session", repo=str(folder), python=python)
            runs = _Runs(session, opened["session_id"])
            fast = not python.startswith(("3.9", "3.10", "3.11"))
            for kind in ("calls", "loop", "mixed"):
                limit = 1.05 if fast else None
                rows.append(
                    await runs.row(f"Python {python}, {kind}, breakpoint elsewhere", kind, ELSEWHERE, limit)
                )
            what = f"Python {python}, loop, a condition that never holds"
            rows.append(await runs.row(what, "loop", IN_LOOP, 25))
            await session.call("close_session", session_id=opened["session_id"])
    return rows


def _write(folder: Path) -> None:
    folder.mkdir()
    (folder / "work.py").write_text(WORK)
    (folder / "other.py").write_text(OTHER)


class _Runs:
    """The same program without a debugger, under ours and under stock pdb; the three in turn."""

    def __init__(self, session: Session, handle: str) -> None:
        self._session = session
        self._handle = handle

    async def row(self, what: str, kind: str, place: str, limit: float | None) -> Row:
        times: dict[str, list[float]] = {"bare": [], "ours": [], "stock": []}
        ways: dict[str, Callable[[str, str], Awaitable[str]]] = {
            "bare": self._bare,
            "ours": self._ours,
            "stock": self._stock,
        }
        for _ in range(RUNS):
            for name, way in ways.items():
                times[name].append(_cpu_ms(await way(kind, place)))
        bare, ours, stock = (statistics.median(times[name]) for name in ("bare", "ours", "stock"))
        beside = f"{ours / bare:.2f} × of {bare:.1f} ms without; stock pdb {stock / bare:.1f} ×"
        if limit is None:
            return Row(what, timing(times["ours"]), beside)
        return Row(what, timing(times["ours"]), beside, f"{limit:g} ×", ours <= limit * bare)

    async def _bare(self, kind: str, place: str) -> str:
        return await self._shell(f"python work.py {kind}")

    async def _ours(self, kind: str, place: str) -> str:
        stop = await self._session.call(
            "pdb",
            command=f"b {place}\nc",
            entrypoint=f"python work.py {kind}",
            timeout_s=120,
            session_id=self._handle,
        )
        assert stop["state"] == "exited", stop
        number = stop["breakpoints"][-1]["id"]
        await self._session.call("pdb", command=f"cl {number}\nq", session_id=self._handle)
        return stop["output"]

    async def _stock(self, kind: str, place: str) -> str:
        return await self._shell(f"python -m pdb -c 'b {place}' -c c -c q work.py {kind} </dev/null")

    async def _shell(self, command: str) -> str:
        answer = await self._session.call("bash", command=command, timeout_s=300, session_id=self._handle)
        return answer["output"]


def _cpu_ms(output: str) -> float:
    found = re.search(r"CPU ([\d.]+)", output)
    assert found, output
    return float(found[1]) * 1000
