"""Failing tests that failed before the edits of the session as well."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.bubblewrap import LOCAL
from tests.e2e.client import pdbox
from tests.repository import repository

pytestmark = pytest.mark.anyio

NO_NETWORK = "import socket\ndef test_network():\n    socket.create_connection(('192.0.2.1', 80), 0.1)\n"
SRC = {
    "pyproject.toml": '[tool.pytest.ini_options]\ntestpaths = ["tests"]\n'
    '[tool.pdbox]\nenv = {PYTHONPATH = "{workspace}/src"}\n',
    "src/shop/__init__.py": "def total(items):\n    return sum(items)\n\ndef mean(items):\n    return total(items) / 0\n",
    "tests/test_shop.py": "from shop import mean, total\n"
    "def test_total(): assert total([1, 2]) == 3\n"
    "def test_mean(): assert mean([2, 4]) == 3\n",
    "tests/test_network.py": NO_NETWORK,
}
BREAK = {"path": "src/shop/__init__.py", "old_code": "sum(items)", "new_code": "sum(items) + 1"}


def before(answer: dict[str, object]) -> dict[str, bool | None]:
    """`failed_before` of each failing test."""
    return {test["id"]: test.get("failed_before") for test in answer["tests"]}  # type: ignore[attr-defined]


async def test_failures_are_told_apart_in_a_src_layout_by_a_run_without_the_edits(
    tmp_path: Path, backend: list[str]
) -> None:
    async with pdbox("--repo", str(repository(tmp_path, SRC)), *backend) as session:
        text = await session.text("rewrite", **BREAK, run="tests")
        assert "\n3 failed (exit code 1); 2 of the 3 failed before your edits too\n" in text
        new, *old = text[text.index("FAILED") :].split("\nFAILED ")
        assert new.startswith("FAILED tests/test_shop.py::test_total: assert 4 == 3\n")
        assert sorted(one.partition(":")[0] for one in old) == ["tests/test_network.py", "tests/test_shop.py"]
        assert all(" (failed before your edits too): " in one for one in old)
        assert "total(items) / 0" in text
        patch = await session.text("diff")
        assert "+    return sum(items) + 1" in patch and patch.count("diff --git") == 1
        answer = await session.call("eval")
        assert before(answer) == {
            "tests/test_shop.py::test_total": False,
            "tests/test_shop.py::test_mean": True,
            "tests/test_network.py::test_network": True,
        }


async def test_an_editable_install_runs_without_the_edits_too(tmp_path: Path) -> None:
    files = {
        **{name: text for name, text in SRC.items() if name != "pyproject.toml"},
        "conftest.py": "",
        "site/editable.pth": "import sys; sys.path.insert(0, '/workspace/src')\n",
        "run.py": "import site, sys, pytest\nsite.addsitedir('site')\nsys.exit(pytest.main(['-q', *sys.argv[1:]]))\n",
    }
    entrypoint = ["--entrypoint", "python run.py"]
    async with pdbox("--repo", str(repository(tmp_path, files)), *entrypoint, *LOCAL) as session:
        answer = (await session.call("rewrite", **BREAK, run="tests"))["run"]
        assert before(answer)["tests/test_shop.py::test_total"] is False
        assert before(answer)["tests/test_shop.py::test_mean"] is True


async def test_what_a_run_before_the_first_edit_told_is_known_whatever_a_test_does_later(
    tmp_path: Path,
) -> None:
    # The marks of runs are outside of the repository: a third run, without the edits, would pass.
    flaky = (
        "import pathlib\nruns = pathlib.Path('/tmp/runs')\n"
        "def test_flaky():\n"
        "    count = len(runs.read_text()) if runs.exists() else 0\n"
        "    runs.write_text('x' * (count + 1))\n"
        "    assert count > 1, 'not yet'\n"
    )
    files = {"test_a.py": flaky, "app.py": "A = 1\n"}
    async with pdbox("--repo", str(repository(tmp_path, files)), *LOCAL) as session:
        text = await session.text("eval")
        assert "before your edits" not in text, "there are none"
        text = await session.text("rewrite", path="app.py", new_code="A = 2\n", run="tests")
        assert "1 failed (exit code 1); it failed before your edits too\n" in text
        assert (await session.text("bash", command="cat /tmp/runs")).count("xx") == 1, (
            "it ran twice, not three times"
        )


async def test_a_test_that_fails_for_another_reason_than_before_or_was_named_is_told_in_full(
    tmp_path: Path,
) -> None:
    files = {
        "app.py": "def value():\n    return 1\n",
        "test_a.py": "from app import value\ndef test_a():\n    print('PRINTED')\n    assert value() == 3\n",
    }
    async with pdbox("--repo", str(repository(tmp_path, files)), *LOCAL) as session:
        text = await session.text("rewrite", path="app.py", start=2, new_code="    return 2\n", run="tests")
        assert "test_a (failed before your edits too): assert 2 == 3" in text and "PRINTED" in text
        same = {"path": "app.py", "new_code": "# the same\ndef value():\n    return 1\n"}
        text = await session.text("rewrite", **same, run="tests")
        assert "test_a (failed before your edits too): assert 1 == 3" in text and "PRINTED" not in text
        text = await session.text("eval", tests=["test_a.py::test_a"])
        assert "(failed before your edits too)" in text and "PRINTED" in text


async def test_new_test_files_did_not_fail_before_and_tests_of_edited_ones_are_found(tmp_path: Path) -> None:
    files = {"test_old.py": "def test_old(): assert 0\ndef test_good(): pass\n"}
    async with pdbox("--repo", str(repository(tmp_path, files)), *LOCAL) as session:
        edits = [
            {"path": "test_new.py", "new_code": "def test_new(): assert 0\n"},
            {
                "path": "test_old.py",
                "new_code": "def test_old(): assert 0\ndef test_good(): assert 0\ndef test_added(): assert 0\n",
            },
        ]
        answer = (await session.call("rewrite", edits=edits, run="tests"))["run"]
        assert before(answer)["test_new.py::test_new"] is False
        assert before(answer)["test_old.py::test_old"] is True
        assert before(answer)["test_old.py::test_good"] is False
        assert before(answer)["test_old.py::test_added"] is None, "nobody knows it before"
        assert "test_new" in await session.text("diff")


async def test_a_module_that_the_edit_made_impossible_to_import_did_not_fail_before(tmp_path: Path) -> None:
    files = {"app.py": "A = 1\n", "test_a.py": "from app import A\ndef test_a(): pass\n"}
    async with pdbox("--repo", str(repository(tmp_path, files)), *LOCAL) as session:
        answer = (await session.call("rewrite", path="app.py", new_code="B = 1\n", run="tests"))["run"]
        assert before(answer) == {"test_a.py": False}


@pytest.mark.parametrize("command", ["python -m unittest", "python -m unittest -v test_u"])
async def test_tests_of_unittest_are_told_apart_after_edits_by_a_shell(tmp_path: Path, command: str) -> None:
    case = "import unittest, app\nclass T(unittest.TestCase):\n"
    case += "    def test_old(self): self.assertEqual(app.B, 3)\n    def test_new(self): self.assertEqual(app.A, 1)\n"
    files = {"app.py": "A = 1\nB = 2\nC = 3\n", "test_u.py": case}
    async with pdbox("--repo", str(repository(tmp_path, files)), "--entrypoint", command, *LOCAL) as session:
        await session.text("bash", command="sed -i 's/A = 1/A = 2/' app.py; rm -f none; echo D=4 > added.py")
        answer = await session.call("eval")
        assert before(answer) == {"test_old (test_u.T.test_old)": True, "test_new (test_u.T.test_new)": False}
        assert "A = 2" in await session.text("view", path="app.py")
        assert "D=4" in await session.text("view", path="added.py")


async def test_a_test_that_removes_what_it_finds_and_dies_leaves_the_edits_in_place(
    tmp_path: Path, backend: list[str]
) -> None:
    files = {
        "app.py": "KILL = True\n",
        "test_a.py": "import app, os, shutil\ndef test_a():\n    if app.KILL:\n"
        "        [shutil.rmtree(name) for name in os.listdir() if name.startswith('.pdbox')]\n"
        "        os.kill(os.getpid(), 9)\n    assert 0\n",
    }
    async with pdbox("--repo", str(repository(tmp_path, files)), *backend) as session:
        answer = (await session.call("rewrite", path="app.py", new_code="KILL = False\n", run="tests"))["run"]
        assert before(answer) == {"test_a.py::test_a": None}, "it was killed, so nothing is known"
        assert "KILL = False" in await session.text("view", path="app.py")
        assert ".pdbox-edits" not in await session.text("bash", command="ls -A")


async def test_files_that_are_worked_on_in_place_are_never_put_aside(tmp_path: Path) -> None:
    files = {"app.py": "A = 1\n", "test_a.py": "import app\ndef test_a(): assert 0\n"}
    flags = ["--in-place", "--unsafe-no-isolation"]
    env = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    async with pdbox("--repo", str(repository(tmp_path, files)), *flags, env=env) as session:
        answer = (await session.call("rewrite", path="app.py", new_code="A = 2\n", run="tests"))["run"]
        assert before(answer) == {"test_a.py::test_a": None}
