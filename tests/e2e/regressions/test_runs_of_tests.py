"""Tests under the debugger and without it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.e2e.client import pdbox
from tests.e2e.regressions.sessions import at, opened, said
from tests.repository import repository

pytestmark = [pytest.mark.anyio, pytest.mark.long]


TESTS = """\
import sys
import pytest
from shop import total


@pytest.fixture
def prices():
    print("set up")
    yield [1, 2]
    sys.stderr.write("torn down\\n")


def test_passes(prices, capsys):
    print("printed")
    assert total(prices) == 3
    assert capsys.readouterr().out == "printed\\n"


def test_fails(prices):
    assert total(prices) == 4


@pytest.mark.skip
def test_skipped():
    pass


@pytest.mark.xfail
def test_expected():
    assert total([]) == 1


@pytest.mark.parametrize("n", [1, 2])
def test_many(n, capfd):
    print(n)
    assert capfd.readouterr().out == "%d\\n" % n


def test_input():
    with pytest.raises(OSError):
        input()
"""


async def test_pytest_has_the_same_outcomes_with_and_without_the_debugger(
    tmp_path: Path, backend: list[str], xdist: Path
) -> None:
    repo = repository(
        tmp_path,
        {"test_shop.py": TESTS, "shop.py": "def total(prices):\n    found = sum(prices)\n    return found\n"},
    )
    shutil.copytree(xdist, repo / "deps")
    async with pdbox("--repo", str(repo), *backend) as session:
        for options in ("", "--capture=sys", "-s --deselect test_shop.py::test_input", "--pdb", "-n 2"):
            command = f"PYTHONPATH=deps python -m pytest -p no:cacheprovider -q -rA {options} test_shop.py"
            plain = await session.call(
                "bash", command=f"{command.replace('--pdb', '')} < /dev/null", timeout_s=600
            )
            assert plain["exit_code"] == 1, plain
            stop = await session.call("pdb", command="b shop.py:3\nc", entrypoint=command)
            assert at(stop) == ("stopped", "shop.py", 3), options
            seen = [stop["test"].rpartition("::")[2]]
            output = stop["output"]
            while stop["state"] == "stopped":
                stop = await session.call("pdb", command="c")
                output += stop["output"]
                seen += [stop["test"].rpartition("::")[2]] if stop["state"] == "stopped" else []
            expected = ["test_passes", "test_fails", "test_fails", "test_expected"]
            assert seen == expected or (options == "-n 2" and sorted(seen) == sorted(expected)), options
            assert outcomes(output) == outcomes(plain["output"]), options
            assert stop["exit_code"] == plain["exit_code"] == 1
            await session.call("pdb", command="cl 1\nq", entrypoint="python shop.py")


def outcomes(report: str) -> dict[str, str]:
    """Test id -> outcome, from the summary that `-rA` gives."""
    lines = re.findall(r"^(PASSED|FAILED|XFAIL|SKIPPED|ERROR) (\S+)", report, re.MULTILINE)
    found = {name: outcome for outcome, name in lines}
    assert len(found) in (6, 7)
    return found


async def test_a_failing_test_is_seen_where_it_failed_without_another_run(
    tmp_path: Path, backend: list[str]
) -> None:
    text = (
        "import pathlib\nfrom lib import half\n\ndef test_half():\n"
        "    with pathlib.Path('runs').open('a') as file:\n        file.write('x')\n    assert half(3) == 1.5\n\n"
        "def test_none():\n    assert half(None) is None\n"
    )
    async with opened(
        tmp_path,
        {"test_it.py": text, "lib.py": "def half(n):\n    rest = n\n    return rest // 2\n"},
        backend,
    ) as session:
        stop = await session.call("pdb", command="c", entrypoint="pytest -q test_it.py")
        assert (at(stop), stop["reason"], stop["test"]) == (
            ("stopped", "test_it.py", 7),
            "post_mortem",
            "test_it.py::test_half",
        )
        assert (await session.call("bash", command="cat runs"))["output"] == "x"
        stop = await session.call("pdb", command="c")
        assert (at(stop), stop["exception"]["type"]) == (("stopped", "lib.py", 3), "TypeError")
        assert await said(session, "p rest") == "None"
        assert await said(session, "u;; p half.__name__") != ""
        stop = await session.call("pdb", command="c")
        assert (stop["state"], stop["exit_code"]) == ("exited", 1)
