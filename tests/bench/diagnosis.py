"""Cost of `diagnose`, `trace` and `watch`, beside the same test without them."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any

from tests.bench.measure import Row, since, timing
from tests.bench.suite import Suite, suite_at_hand
from tests.bench.ways import INSTALL, WHEELS
from tests.e2e.cases import Case
from tests.e2e.client import Session, pdbox

WORK = """\
STATE = [0]


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def calls(n):
    found = fib(n)
    return found


def loop(n):
    total = 0
    for i in range(n):
        total += i
    return total
"""
TESTS = """\
import unittest
import work


class Case(unittest.TestCase):
    def test_calls(self):
        self.assertEqual(work.calls(18), 0)

    def test_few_calls(self):
        self.assertEqual(work.calls(3), 2)

    def test_loop(self):
        self.assertEqual(work.loop(50_000), 0)

    def test_short_loop(self):
        self.assertEqual(work.loop(3), 3)
"""
PASSING = {"calls": "few_calls", "loop": "short_loop"}
FIRST_LINE = {"calls": 9, "loop": 14}
RUNS = 3
PATIENCE_S = 600


async def diagnoses(folder: Path, pythons: list[str]) -> list[Row]:
    """For each Python: a test that calls much, one that loops, and one of a real suite."""
    programs = _write(folder)
    suite, case = suite_at_hand(pythons)
    repo = case.lay(folder / "suite")
    rows = [row for python in pythons for row in await _of_programs(programs, python)]
    return rows + [row for python in pythons for row in await _of_suite(suite, case, repo, python)]


def _write(folder: Path) -> Path:
    for name in ("programs", "suite"):
        (folder / name).mkdir(parents=True)
    (folder / "programs" / "work.py").write_text(WORK)
    (folder / "programs" / "test_work.py").write_text(TESTS)
    return folder / "programs"


async def _of_programs(folder: Path, python: str) -> list[Row]:
    rows: list[Row] = []
    async with pdbox("--repo", str(folder), "--backend", "docker") as session:
        await session.call("start_session", python=python, entrypoint="python -m unittest test_work")
        for kind, passing in PASSING.items():
            test, other = f"test_work.Case.test_{kind}", f"test_work.Case.test_{passing}"
            measured = _Measured(session, f"Python {python}, {kind}", f"python -m unittest {test}")
            rows += [
                await measured.row("diagnose", test=test),
                await measured.row("diagnose", test=test, against=other),
                await measured.row("trace", test=test, of=["work.py"]),
                await measured.watch(f"python -m unittest {test}", f"work.py:{FIRST_LINE[kind]}"),
            ]
    return rows


async def _of_suite(suite: Suite, case: Case, repo: Path, python: str) -> list[Row]:
    test, tests = case.data["failing_tests"][0], "python -m pytest -q -W ignore -o filterwarnings="
    file = test.partition("::")[0]
    mount = ["--mount", f"{WHEELS / python}:/wheels"] if suite.requirements else []
    setup = [f"{INSTALL} /wheels {' '.join(suite.requirements)}"] if suite.requirements else []
    async with pdbox("--repo", str(repo), "--backend", "docker", *mount) as session:
        env = case.data["env"]
        await session.call("start_session", python=python, entrypoint=tests, setup=setup, env=env)
        measured = _Measured(session, f"Python {python}, a test of {suite.case}", f"{tests} {file}")
        return [
            await measured.row("diagnose", test=test),
            await measured.row("diagnose", test=test, against="auto"),
            await measured.row("trace", test=test, of=[file]),
        ]


class _Measured:
    """Times calls beside a command that does the same without them."""

    def __init__(self, session: Session, what: str, plain: str) -> None:
        self._session, self._what, self._plain = session, what, plain
        self._without: float | None = None

    async def row(self, tool: str, **arguments: Any) -> Row:
        """A call of a tool, beside the plain run of what it observes."""
        if self._without is None:
            plain = {"command": self._plain, "timeout_s": PATIENCE_S}
            self._without = statistics.median([await self._time("bash", plain) for _ in range(RUNS)])
        given = {**arguments, "timeout_s": PATIENCE_S}
        times = [await self._time(tool, given) for _ in range(RUNS)]
        name = f"{tool} against" if "against" in arguments else tool
        return self._row(name, times, self._without, "a plain run")

    async def watch(self, entrypoint: str, place: str) -> Row:
        """A run from a breakpoint to the failure while a value that stays as it is is watched, beside one without."""
        without = [await self._from_breakpoint(entrypoint, place, "p 0") for _ in range(RUNS)]
        times = [await self._from_breakpoint(entrypoint, place, "watch STATE") for _ in range(RUNS)]
        return self._row("watch", times, statistics.median(without), "the same `c` without")

    async def _from_breakpoint(self, entrypoint: str, place: str, before: str) -> float:
        stop = await self._pdb(command=f"tbreak {place}\nc", entrypoint=entrypoint)
        assert stop["reason"] == "breakpoint", stop
        await self._pdb(command=before)
        begin = time.perf_counter()
        stop = await self._pdb(command="c")
        taken = since(begin)
        assert stop["reason"] == "post_mortem", stop
        await self._pdb(command="q")
        return taken

    async def _pdb(self, **arguments: Any) -> Any:
        return await self._session.call("pdb", timeout_s=PATIENCE_S, **arguments)

    async def _time(self, tool: str, arguments: dict[str, Any]) -> float:
        begin = time.perf_counter()
        await self._session.call(tool, **arguments)
        return since(begin)

    def _row(self, name: str, times: list[float], without: float, beside: str) -> Row:
        taken = timing(times)
        reference = f"{taken.median / without:.1f} × of {without:.0f} ms ({beside})"
        return Row(f"{self._what}: {name}", taken, reference)
