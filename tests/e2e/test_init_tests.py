"""Tests in an `__init__.py`, which pytest before version 8 does not find by their ids."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.e2e.client import pdbox
from tests.e2e.test_entrypoints import MOD
from tests.repository import repository

pytestmark = pytest.mark.anyio

TESTS = """
import unittest
from mod import half

class HalfTest(unittest.TestCase):
    def test_odd(self):
        self.assertEqual(half(3), 1.5)

    def test_even(self):
        self.assertEqual(half(4), 2)
"""
ODD = "tests/__init__.py::HalfTest::test_odd"
FILES = {
    "mod.py": MOD,
    "tests/__init__.py": TESTS,
    "tests/test_other.py": "def test_other():\n    pass\n",
    "tests/test_broken.py": "import no_such_module\n",
}


async def test_a_test_in_an_init_file_is_run_debugged_and_diagnosed_by_its_id(
    tmp_path: Path, backend: list[str]
) -> None:
    await check(repository(tmp_path, FILES), backend, "python -m pytest -q")


async def test_so_it_is_with_a_pytest_that_takes_the_file_for_its_folder(
    tmp_path: Path, old_pytest: Path
) -> None:
    repo = repository(tmp_path, FILES)
    shutil.copytree(old_pytest, repo / "deps")
    command = "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 PYTHONPATH=deps python -m pytest -q"
    await check(repo, ["--backend", "process", "--unsafe-no-isolation"], command)


async def check(repo: Path, backend: list[str], command: str) -> None:
    async with pdbox("--repo", str(repo), *backend, "--entrypoint", command) as session:
        done = await session.call("eval", tests=[ODD, "tests/test_other.py::test_other"])
        assert (done["passed"], [each["id"] for each in done["tests"]]) == (1, [ODD])
        stop = await session.call("diagnose", test=ODD)
        assert (stop["frame"]["function"], stop["exception"]["type"]) == ("test_odd", "AssertionError")
        assert re.search("of 1 passing test|1 other test ran", stop["diagnosis"])
        stop = await session.call("pdb", command="b mod.py:3\nc\np n", entrypoint=ODD)
        assert (stop["frame"]["path"], stop["reply"].splitlines()[-1]) == ("mod.py", "3")
