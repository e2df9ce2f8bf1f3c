"""Timing: medians of repeated awaits, in milliseconds."""

from __future__ import annotations

import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass


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


async def repeat(call: Callable[[], Awaitable[object]], runs: int, warm_up: int = 3) -> Timing:
    """Time `runs` awaits of `call`, one after another."""
    for _ in range(warm_up):
        await call()
    times: list[float] = []
    for _ in range(runs):
        start = time.perf_counter()
        await call()
        times.append((time.perf_counter() - start) * 1000)
    return timing(times)


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
