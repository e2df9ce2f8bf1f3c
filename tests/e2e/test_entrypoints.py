"""Debug entry points whose Python is started by something else, and programs that start Pythons themselves."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests.bubblewrap import UNSAFE
from tests.e2e.client import pdbox

pytestmark = pytest.mark.anyio

UV = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))

TEST = "from mod import half\n\ndef test_half():\n    assert half(3) == 1.5\n"
MOD = "def half(n):\n    result = n // 2\n    return result\n"


def repository(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / (name if name in ("Makefile", "run") else f"{name}.py")
        path.write_text(text)
    return folder


async def test_a_script_is_followed_to_the_failing_test_in_it(tmp_path: Path, backend: list[str]) -> None:
    script = "#!/bin/sh\nset -e\necho begin\npython -c 'print(1)'\npython -m pytest -q \"$@\"\necho never\n"
    repo = repository(tmp_path, mod=MOD, test_mod=TEST, run=script)
    (repo / "run").chmod(0o755)
    async with pdbox("--repo", str(repo), *backend) as session:
        stop = await session.call("pdb", command="b mod.py:3\nc", entrypoint="./run test_mod.py")
        assert (stop["reason"], stop["frame"]["path"], stop["frame"]["line"]) == ("breakpoint", "mod.py", 3)
        assert stop["output"].startswith("begin\n1\n")
        assert (await session.call("pdb", command="p n, result"))["reply"] == "(3, 1)\n"
        stop = await session.call("pdb", command="c")
        assert (stop["reason"], stop["frame"]["path"], stop["exception"]["type"]) == (
            "post_mortem",
            "test_mod.py",
            "AssertionError",
        )
        stop = await session.call("pdb", command="c")
        assert (stop["state"], stop["exit_code"]) == ("exited", 1)
        assert "1 failed" in stop["output"] and "never" not in stop["output"]


async def test_a_shell_command_line_runs_as_it_is_written(tmp_path: Path, backend: list[str]) -> None:
    repo = repository(
        tmp_path, app="import os, sys\nname = os.environ['NAME']\nprint('to', name)\nsys.exit(3)\n"
    )
    async with pdbox("--repo", str(repo), *backend) as session:
        entrypoint = "export NAME=Ada; python app.py 2>/dev/null | tee log; echo ${PIPESTATUS[0]}"
        stop = await session.call("pdb", command="b 3\nc\np name", entrypoint=entrypoint)
        assert (stop["state"], stop["reply"].splitlines()[-1]) == ("stopped", "'Ada'")
        stop = await session.call("pdb", command="c")
        assert (stop["state"], stop["exit_code"], stop["output"]) == ("exited", 0, "to Ada\n3\n")


async def test_a_command_that_starts_no_python_is_told(tmp_path: Path, backend: list[str]) -> None:
    repo = repository(tmp_path, app="x = 1\n")
    async with pdbox("--repo", str(repo), *backend) as session:
        stop = await session.call("pdb", command="c", entrypoint="echo done; exit 4")
        assert (stop["state"], stop["exit_code"], stop["output"]) == ("exited", 4, "done\n")
        assert "without starting a Python program" in stop["notices"][0]
        stop = await session.call("pdb", command="p 6 * 7", entrypoint="python app.py")
        assert (stop["state"], stop["reply"]) == ("stopped", "42\n")


@pytest.mark.skipif(shutil.which("make") is None, reason="no make here")
async def test_make_is_followed(tmp_path: Path, backend: list[str]) -> None:
    repo = repository(
        tmp_path, mod=MOD, test_mod=TEST, Makefile="test:\n\t@python -m pytest -q test_mod.py\n"
    )
    async with pdbox("--repo", str(repo), *backend) as session:
        stop = await session.call("pdb", command="c", entrypoint="make test", timeout_s=120)
        assert (stop["reason"], stop["frame"]["path"]) == ("post_mortem", "test_mod.py")
        stop = await session.call("pdb", command="c")
        assert (stop["state"], stop["exit_code"]) == ("exited", 2)


@pytest.mark.skipif(UV is None, reason="uv is not installed here")
async def test_uv_run_is_followed(tmp_path: Path) -> None:
    repo = repository(tmp_path, mod=MOD, test_mod=TEST)
    entrypoint = f"{UV} run --offline --no-project --python {sys.executable} -m pytest -q test_mod.py"
    async with pdbox("--repo", str(repo), *UNSAFE) as session:
        stop = await session.call("pdb", command="b mod.py:3\nc", entrypoint=entrypoint, timeout_s=120)
        assert (stop["reason"], stop["frame"]["path"], stop["frame"]["line"]) == ("breakpoint", "mod.py", 3)
