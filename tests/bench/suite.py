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


def pytest_generate_tests(metafunc):
    often = int(os.environ["OFTEN"])
    if often > 1:
        metafunc.fixturenames.append("often")
        metafunc.parametrize("often", range(often))


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(f"CPU {time.process_time() - begin:.5f}")
"""
"""A plugin that tells what collecting and running the tests took; each test is run as often as `OFTEN` says."""
SECONDS = 60.0
"""For the pairs of runs on each Python."""


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


async def suites(folder: Path, pythons: list[str]) -> list[Row]:
    """For each Python: the suite with a breakpoint elsewhere."""
    suite, case = suite_at_hand(pythons)
    repo = _laid(case, folder)
    return [await _of_one(suite, case, repo, python) for python in pythons]


def suite_at_hand(pythons: list[str]) -> tuple[Suite, Case]:
    """The first suite whose case and wheels can be had."""
    cases = {case.id: case for case in find_cases()}
    suite = next(
        suite
        for suite in SUITES
        if suite.case in cases and all(fetched(suite.requirements, python) for python in pythons)
    )
    return suite, cases[suite.case]


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
        ways = await Ways.opened(session, debugpy, python=python, env=env, setup=setup)
        what = f"Python {python}, tests of {suite.case}, breakpoint elsewhere"
        return await ways.row(what, program, Place.of(repo, *suite.elsewhere), limit(python), SECONDS)
