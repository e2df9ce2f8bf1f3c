"""Timing of repeated awaits, in milliseconds, and the table of what was measured."""

from __future__ import annotations

import statistics
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

Call = Callable[[], Awaitable[object]]


@dataclass(frozen=True)
class Timing:
    """Milliseconds: median, 90th percentile and the number of runs."""

    median: float
    p90: float
    runs: int


@dataclass(frozen=True)
class Row:
    """One line of the table: what was measured, beside what, against which limit."""

    what: str
    timing: Timing
    reference: str = ""
    limit: str = ""
    holds: bool | None = None


async def repeat(call: Call, runs: int, warm_up: int = 3) -> Timing:
    """Time `runs` awaits of `call`, one after another."""
    for _ in range(warm_up):
        await call()
    return timing(await _times(call, runs))


async def in_turns(calls: Mapping[str, Call], rounds: int, each: int) -> dict[str, list[list[float]]]:
    """Per call and round the times of `each` awaits; all calls have their turn in every round.

    A machine that gets slower meanwhile gets slower for all of them.
    """
    times: dict[str, list[list[float]]] = {name: [] for name in calls}
    for call in calls.values():
        await _times(call, each)
    for _ in range(rounds):
        for name, call in calls.items():
            times[name].append(await _times(call, each))
    return times


def excess(times: list[list[float]], floor: list[list[float]]) -> float:
    """How much more `times` are than `floor`: the median over rounds of the medians' difference."""
    pairs = zip(times, floor, strict=True)
    return statistics.median(statistics.median(ours) - statistics.median(theirs) for ours, theirs in pairs)


async def _times(call: Call, runs: int) -> list[float]:
    times: list[float] = []
    for _ in range(runs):
        begin = time.perf_counter()
        await call()
        times.append(since(begin))
    return times


def since(begin: float) -> float:
    """Milliseconds since a reading of `time.perf_counter`."""
    return (time.perf_counter() - begin) * 1000


def timing(times: list[float]) -> Timing:
    """Median and 90th percentile of `times` (ms)."""
    ordered = sorted(times)
    return Timing(
        statistics.median(ordered), ordered[min(len(ordered) - 1, int(len(ordered) * 0.9))], len(ordered)
    )


def table(rows: list[Row]) -> str:
    """The rows as a Markdown table."""
    lines = ["| what | median ms | p90 ms | runs | beside | limit | |", "|---|---:|---:|---:|---|---|---|"]
    for row in rows:
        verdict = "" if row.holds is None else ("holds" if row.holds else "**missed**")
        numbers = f"{row.timing.median:.2f} | {row.timing.p90:.2f} | {row.timing.runs}"
        lines.append(f"| {row.what} | {numbers} | {row.reference} | {row.limit} | {verdict} |")
    return "\n".join(lines)
