"""Breakpoints in children of the program, over MCP, in Docker on the oldest and the newest Python of our images."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.e2e.client import Session, pdbox
from tests.repository import repository

pytestmark = [pytest.mark.docker, pytest.mark.anyio, pytest.mark.long]

APP = """\
import concurrent.futures, multiprocessing, os, subprocess, sys

def work(n):
    twice = n * 2
    return twice

if __name__ == "__main__":
    how = sys.argv[1]
    if how == "os.fork":
        pid = os.fork()
        if not pid:
            os._exit(work(1))
        print(os.waitpid(pid, 0)[1] >> 8)
    elif how == "executor":
        with concurrent.futures.ProcessPoolExecutor(1) as executor:
            print(list(executor.map(work, [1])))
    elif how == "subprocess":
        subprocess.run([sys.executable, "-c", "import app; print(app.work(1))"], check=True)
    elif how == "shell":
        subprocess.run("python3 app.py os.fork && echo after", shell=True, check=True)
    elif how == "exec":
        os.execv(sys.executable, [sys.executable, "app.py", "os.fork"])
    else:
        with multiprocessing.get_context(how).Pool(1) as pool:
            print(pool.map(work, [1]))
"""
WAYS = {
    "os.fork": "2\n", "executor": "[2]\n", "subprocess": "2\n", "shell": "2\nafter\n", "exec": "2\n", "fork": "[2]\n", "spawn": "[2]\n",
    "forkserver": "[2]\n",
}  # fmt: skip
TESTS = """\
import pytest
from shop import total

@pytest.mark.parametrize("n", range(4))
def test_total(n):
    assert total([n, 1]) == n + (1 if n != 2 else 5)
"""
SHOP = "def total(prices):\n    found = sum(prices)\n    return found\n"


@pytest.fixture(params=["3.11", "3.13", pytest.param("3.14", marks=pytest.mark.image("3.14"))])
def docker(request: pytest.FixtureRequest) -> list[str]:
    """Flags of `pdbox serve` for one Python."""
    return ["--backend", "docker", "--python", request.param]


async def ended(session: Session, stop: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The end of the program, and what it has printed from `stop` on."""
    output = stop["output"]
    with anyio.fail_after(120):
        while stop["state"] != "exited":
            if stop["state"] == "stopped":
                stop = await session.call("pdb", command="c", timeout_s=60)
            else:
                stop = await session.call("wait", timeout_s=60)
            output += stop["output"]
    return stop, output


async def test_breakpoints_stop_in_children_of_every_kind(tmp_path: Path, docker: list[str]) -> None:
    repo = repository(tmp_path / "repo", {"app.py": APP})
    async with pdbox("--repo", str(repo), *docker) as session:
        await session.call("pdb", command="b app.py:4\nq", entrypoint="python app.py none")
        for how, printed in WAYS.items():
            command = {"command": "c", "entrypoint": f"python app.py {how}", "timeout_s": 60}
            text, stop = await session._call("pdb", command)  # pyright: ignore[reportPrivateUsage] # both at once
            assert (stop["state"], stop["breakpoint"], stop["frame"]["line"]) == ("stopped", 1, 4), how
            process = stop["process"]
            assert process["number"] > 1 and f" · process {process['number']} (pid {process['pid']}, " in text
            asked = await session.call("pdb", command="p os.getpid(), n")
            assert asked["reply"] == f"({process['pid']}, 1)\n"
            assert (await session.call("pdb", command="n"))["frame"]["line"] == 5
            stop, output = await ended(session, stop)
            assert (stop["exit_code"], output) == (0, printed), how


async def test_breakpoints_and_failing_tests_stop_in_workers_of_xdist(
    tmp_path: Path, docker: list[str], xdist: Path
) -> None:
    repo = repository(tmp_path / "repo", {"shop.py": SHOP, "test_shop.py": TESTS})
    shutil.copytree(xdist, repo / "deps")
    entrypoint = "PYTHONPATH=deps python -m pytest -q -p no:cacheprovider -n 2 test_shop.py"
    async with pdbox("--repo", str(repo), *docker) as session:
        stop = await session.call("pdb", command="b shop.py:3\nc", entrypoint=entrypoint, timeout_s=120)
        seen: set[tuple[str, str]] = set()
        processes: set[int] = set()
        output = ""
        with anyio.fail_after(180):
            while stop["state"] != "exited":
                if stop["state"] == "stopped":
                    seen.add((stop["reason"], stop["test"].rpartition("::")[2]))
                    processes.add(stop["process"]["number"])
                    stop = await session.call("pdb", command="c", timeout_s=60)
                else:
                    stop = await session.call("wait", timeout_s=60)
                output += stop["output"]
        assert seen == {("breakpoint", f"test_total[{n}]") for n in range(4)} | {
            ("post_mortem", "test_total[2]")
        }
        assert processes == {2, 3}
        assert "1 failed, 3 passed" in output and stop["exit_code"] == 1


DJANGO = {
    "manage.py": """\
import os, sys
from django.core.management import execute_from_command_line

os.environ["DJANGO_SETTINGS_MODULE"] = "settings"
execute_from_command_line(sys.argv)
""",
    "settings.py": "INSTALLED_APPS = ['shop']\nSECRET_KEY = 'none'\nUSE_TZ = True\n",
    "shop/__init__.py": "",
    "shop/prices.py": SHOP,
    "shop/tests.py": """\
from django.test import SimpleTestCase
from shop.prices import total

class First(SimpleTestCase):
    def test_one(self):
        self.assertEqual(total([1]), 1)

class Second(SimpleTestCase):
    def test_two(self):
        self.assertEqual(total([1, 1]), 5)
""",
}


@pytest.fixture(scope="session")
def django(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with Django, for PYTHONPATH."""
    folder = tmp_path_factory.mktemp("django")
    command = [sys.executable, "-m", "pip", "install", "-q", "--target", str(folder)]
    subprocess.run([*command, "Django==5.2"], check=True, capture_output=True)
    return folder


async def test_djangos_parallel_tests_stop_at_breakpoints_and_where_they_fail(
    tmp_path: Path, docker: list[str], django: Path
) -> None:
    repo = repository(tmp_path, DJANGO)
    shutil.copytree(django, repo / "deps")
    entrypoint = "PYTHONPATH=deps python manage.py test --parallel 2"
    async with pdbox("--repo", str(repo), *docker) as session:
        stop = await session.call(
            "pdb", command="b shop/prices.py:3\nc", entrypoint=entrypoint, timeout_s=120
        )
        seen: list[tuple[str, str]] = []
        notices: list[str] = []
        while stop["state"] == "stopped":
            seen.append((stop["reason"], stop["test"].rpartition(".")[2]))
            notices += stop["notices"]
            stop = await session.call("pdb", command="c", timeout_s=60)
        assert sorted(seen) == [
            ("breakpoint", "test_one"),
            ("breakpoint", "test_two"),
            ("post_mortem", "test_two"),
        ]
        assert (
            "Django's tests run in one process: in parallel workers a test that fails would not stop."
            in notices
        )
        assert (stop["state"], stop["exit_code"]) == ("exited", 1)


async def test_processes_are_listed_turned_to_and_ended_together(tmp_path: Path, docker: list[str]) -> None:
    text = (
        "import os, time\n\ndef child(n):\n    mine = n\n    time.sleep(600)\n\n"
        "for n in range(2):\n    if not os.fork():\n        child(n)\n        os._exit(0)\nos.wait()\n"
    )
    repo = repository(tmp_path / "repo", {"app.py": text})
    async with pdbox("--repo", str(repo), *docker) as session:
        await session.call("pdb", command="b app.py:4\nc", entrypoint="python app.py")
        with anyio.fail_after(120):
            listed = ""
            while listed.count("stopped at app.py:4 in child") < 2:
                listed = (await session.call("pdb", command="processes"))["reply"]
        assert [line[:3] for line in listed.splitlines()] in (["  1", "* 2", "  3"], ["  1", "  2", "* 3"])
        seen: set[str] = set()
        for number in (2, 3):
            stop = await session.call("pdb", command=f"process {number}")
            assert stop["process"]["number"] == number
            seen.add((await session.call("pdb", command="p n"))["reply"].strip())
        assert seen == {"0", "1"}
        stop = await session.call("pdb", command="process 1")
        assert (stop["reason"], stop["process"]["number"]) == ("interrupt", 1)
        assert (await session.call("pdb", command="q"))["state"] == "exited"
        left = await session.call("bash", command="grep -lz '[a]pp.py' /proc/[0-9]*/cmdline | wc -l")
        assert left["output"].strip() == "0"
