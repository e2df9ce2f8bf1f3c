"""How much slower a real test suite gets under the debugger, beside stock pdb and debugpy."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.bench.measure import Row
from tests.bench.slowdown import limit
from tests.bench.ways import DEBUGPY, DRIVER, INSTALL, WHEELS, Place, Ways, fetched
from tests.e2e.cases import Case, find_cases
from tests.e2e.client import pdbox

CLOCK = """\
import os
import time

begin = time.process_time()
test_of = {}
least = {}


def pytest_generate_tests(metafunc):
    # Every test that often: a single go is too short to be left in peace once.
    often = int(os.environ["OFTEN"])
    if often > 1:
        metafunc.fixturenames.append("often")
        metafunc.parametrize("often", range(often))


def pytest_collection_finish(session):
    global collected, last
    for item in session.items:
        indices = dict(getattr(item, "callspec", None) and item.callspec.indices or {})
        indices.pop("often", None)
        test_of[item.nodeid] = (item.nodeid.partition("[")[0], tuple(sorted(indices.items())))
    last = time.process_time()
    collected = last - begin


def pytest_runtest_logfinish(nodeid):
    global last
    now, test = time.process_time(), test_of[nodeid]
    least[test] = min(least.get(test, now), now - last)
    last = now


def pytest_terminal_summary(terminalreporter):
    tests = list(least.values())
    each = max(1, len(tests) // 100)
    parts = [collected, *(sum(tests[at : at + each]) for at in range(0, len(tests), each))]
    terminalreporter.write_line("CPU " + " ".join(f"{part:.5f}" for part in parts))
"""
"""A plugin that tells what the collection took, and the best goes of each hundredth of the tests.

What the debugger does once, when it sees a function for the first time, is in the collection, and not in the best goes.
"""
SECONDS = 40.0
"""For the runs that are compared, on each Python."""


@dataclass(frozen=True)
class Suite:
    """A part of a case's tests: those that pass with every Python and pytest of our images."""

    case: str
    tests: str
    elsewhere: tuple[str, str]
    """File and line of a function that no test calls."""
    requirements: tuple[str, ...]
    often: int


SUITES = (
    Suite(
        "swebench/pallets__flask-4992",
        "tests/test_basic.py tests/test_blueprints.py tests/test_templating.py"
        " --deselect tests/test_basic.py::test_max_cookie_size",
        ("src/flask/cli.py", "import code"),
        # As the case has them, but for a MarkupSafe that has wheels for new Pythons, too.
        ("Werkzeug==2.2.3", "Jinja2==3.1.2", "itsdangerous==2.1.2", "click==8.1.3", "MarkupSafe==3.0.2"),
        often=2,
    ),
    Suite(
        "own/shop",
        "tests/test_order.py --deselect tests/test_order.py::test_lines_of_one_product_are_merged"
        " --deselect tests/test_order.py::test_discount_counts_all_pieces_of_a_product",
        ("tests/test_order.py", "assert merged(["),
        (),
        often=500,
    ),
)
"""The first whose case and wheels can be had is taken."""


async def suites(folder: Path, pythons: list[str]) -> list[Row]:
    """For each Python: the suite with a breakpoint elsewhere."""
    cases = {case.id: case for case in find_cases()}
    suite = next(
        suite
        for suite in SUITES
        if suite.case in cases and all(fetched(suite.requirements, python) for python in pythons)
    )
    case = cases[suite.case]
    repo = _laid(case, folder)
    return [await _of_one(suite, case, repo, python) for python in pythons]


def _laid(case: Case, folder: Path) -> Path:
    folder.mkdir()
    repo = case.lay(folder)
    (repo / "clock.py").write_text(CLOCK)
    shutil.copy(DRIVER, repo)
    return repo


async def _of_one(suite: Suite, case: Case, repo: Path, python: str) -> Row:
    debugpy = fetched([DEBUGPY], python) is not None
    requirements = [*suite.requirements, *([DEBUGPY] if debugpy else [])]
    mount = ["--mount", f"{WHEELS / python}:/wheels"] if requirements else []
    setup = [f"{INSTALL} /wheels {' '.join(requirements)}"] if requirements else []
    env = {**case.data["env"], "OFTEN": str(suite.often)}
    program = f"-m pytest -p clock -q -W ignore -o filterwarnings= {suite.tests}"
    async with pdbox("--repo", str(repo), "--backend", "docker", *mount) as session:
        opened = await session.call("start_session", python=python, env=env, setup=setup)
        ways = Ways(session, opened["session_id"], debugpy)
        what = f"Python {python}, tests of {suite.case}, breakpoint elsewhere"
        return await ways.row(what, program, Place.of(repo, *suite.elsewhere), limit(python), SECONDS)
