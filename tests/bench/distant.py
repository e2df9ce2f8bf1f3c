"""Share of the distant bugs for which `diagnose` names a function that the fix changes, and the place where it does."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.bench.measure import Row, timing
from tests.bench.ways import INSTALL, WHEELS, fetched
from tests.distant_bugs import NAMES, UNSEEN, changed_functions, unpack
from tests.e2e.client import pdbox

PATIENCE_S = 600
FIRST = 4000
GOAL = 0.6


async def found_causes(folder: Path) -> list[Row]:
    """A row for each bug: characters of the answer up to the end of the first line that names such a function.

    Then the shares: of the bugs in view while the lists of `diagnose` were written, which has a limit, and of the others.
    """
    places = {
        name: place for name in NAMES if (place := await _place_of_cause(folder / name, name)) is not None
    }
    rows = [
        Row(
            f"diagnose, {name}: characters up to a function of the fix",
            timing([float(place)]),
            holds=0 <= place <= FIRST,
        )
        for name, place in places.items()
    ]
    seen = [place for name, place in places.items() if name not in UNSEEN]
    others = [place for name, place in places.items() if name in UNSEEN]
    share, what = _share(seen), f"distant bugs with such a function within {FIRST} characters"
    return [
        *rows,
        Row(
            f"diagnose: % of {len(seen)} {what}, in view while its lists were written",
            timing([100 * share]),
            limit=f"≥ {GOAL:.0%}",
            holds=share >= GOAL,
        ),
        Row(f"diagnose: % of {len(others)} {what}, the others", timing([100 * _share(others)])),
    ]


def _share(places: Sequence[int]) -> float:
    hits = sum(0 <= place <= FIRST for place in places)
    return hits / len(places) if places else 0.0


async def _place_of_cause(folder: Path, name: str) -> int | None:
    """Characters up to the end of the line, -1 if there is none; None if what the bug requires can't be had."""
    task = unpack(name, folder)
    facts, repo = task.facts, task.folder / "environment" / "repo"
    wanted = changed_functions(repo, (task.folder / "solution" / "gold.patch").read_text("utf-8"))
    python = facts.python or "3.11"
    if facts.requirements and fetched(facts.requirements, python) is None:
        print(f"{name} is left out: {', '.join(facts.requirements)} can't be fetched", file=sys.stderr)
        return None
    shutil.copytree(repo, folder / "copy")
    setup = [f"{INSTALL} /wheels {' '.join(map(repr, facts.requirements))}"] if facts.requirements else []
    env = [f"{key}={value}" for key, value in facts.env.items()]
    options = ["--backend", "docker", "--mount", f"{WHEELS / python}:/wheels"]
    async with pdbox("--repo", str(folder / "copy"), *options) as session:
        await session.call("start_session", python=python, entrypoint=facts.entrypoint, setup=setup, env=env)
        test = facts.fail_to_pass[0]
        return find_place(await session.text("diagnose", test=test, timeout_s=PATIENCE_S), wanted)


def find_place(text: str, wanted: set[tuple[str, str]]) -> int:
    """The end of the first line that names a function with its file; -1 if none does."""
    ends = [
        text.index("\n", match.end()) if "\n" in text[match.end() :] else len(text)
        for path, function in wanted
        for pattern in (rf"{re.escape(path)}(?::\d+)? {re.escape(function)}\b", _in_stop(path, function))
        if (match := re.search(pattern, text)) is not None
    ]
    return min(ends, default=-1)


def _in_stop(path: str, function: str) -> str:
    """The function as stops name it: without its class."""
    return rf"{re.escape(path)}:\d+ in {re.escape(function.rpartition('.')[2])}\b"
