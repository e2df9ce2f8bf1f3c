"""Tools of the operator's own: from files, from an installed package, and what is wrong with some."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from mcp.types import TextContent

from tests.bubblewrap import UNSAFE
from tests.e2e.client import PDBOX, pdbox
from tools._catalog import catalog

pytestmark = pytest.mark.anyio

EXAMPLE = Path(__file__).parents[2] / "manifests" / "custom_tools"
UV = Path(sys.executable).with_name("uv")
FIRST = """
from typing import Annotated
from pydantic import Field
from tools import Answer, Session, Tool

class Lines(Answer):
    number: int

async def count_lines(session: Session, path: Annotated[str, Field(description="A file, e.g. app.py.")]) -> Lines:
    '''Count the lines of a file.'''
    return Lines(number=(await session.run(f"cat {path}", timeout_s=9)).output.count(chr(10)))

def render(answer: Lines) -> str:
    return f"{answer.number} lines"

TOOL = Tool(count_lines, render, title="Count lines", group="files", read_only=True)
"""
SECOND = FIRST.replace("count_lines", "count_all").replace("TOOL = ", "TOOLS = [").rstrip() + "]\n"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    (folder / "app.py").write_text(
        "def spin():\n    return sum(range(100_000))\nfor _ in range(20): spin()\n"
    )
    return folder


async def test_files_of_tools_are_served_beside_ours_and_by_profile(repo: Path, tmp_path: Path) -> None:
    (tmp_path / "first.py").write_text(FIRST)
    (tmp_path / "second.py").write_text(SECOND)
    files = [word for name in ("first", "second") for word in ("--tools-from", str(tmp_path / f"{name}.py"))]
    flags = ["--repo", str(repo), *files, "--tools-from", str(EXAMPLE / "pdbox_hotspots.py"), *UNSAFE]
    async with pdbox(*flags) as session:
        names = {tool.name for tool in (await session.client.list_tools()).tools}
        assert names == {*catalog(), "count_lines", "count_all", "hotspots"}
        assert "`hotspots` tells where its time goes" in (session.client.instructions or "")
        assert await session.call("count_lines", path="app.py") == {"number": 3}
        result = await session.client.call_tool("count_lines", {"file": "app.py"})
        (block,) = result.content
        assert isinstance(block, TextContent)
        assert result.is_error and block.text.startswith("Unknown argument of `count_lines`: 'file'")
        assert block.text.endswith("`count_lines` takes: path, session_id.")
    async with pdbox(*flags, "--profile", "eval,hotspots") as session:
        tools = {tool.name: tool for tool in (await session.client.list_tools()).tools}
        assert set(tools) == {"eval", "hotspots"}
        # Without the tools for sessions there is nothing to choose between.
        assert list(tools["hotspots"].input_schema["properties"]) == ["program", "count", "timeout_s"]


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder in which the example is installed."""
    folder = tmp_path / "site"
    install = [
        UV,
        "pip",
        "install",
        "-q",
        "--python",
        sys.executable,
        "--no-deps",
        "--target",
        folder,
        EXAMPLE,
    ]
    subprocess.run(install, check=True, capture_output=True)
    return folder


async def test_an_installed_package_adds_its_tool_by_its_entry_point(repo: Path, site: Path) -> None:
    async with pdbox("--repo", str(repo), *UNSAFE, env={"PYTHONPATH": str(site)}) as session:
        answer = await session.call("hotspots", program="app.py", count=3)
        assert answer["exit_code"] == 0
        assert answer["table"][0].split()[:2] == ["ncalls", "tottime"] and len(answer["table"]) == 4
        assert any("spin" in row for row in answer["table"])
        refused = await session.client.call_tool("hotspots", {"program": "nowhere.py"})
        assert refused.is_error and "was not profiled" in refused.model_dump_json()


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (None, "No such file or directory"),
        (
            "import nowhere_at_all\n",
            "ModuleNotFoundError: No module named 'nowhere_at_all' (wrong.py, line 1)",
        ),
        ("def f(:\n", "invalid syntax"),
        ("x = 1\ny = x / 0\n", "ZeroDivisionError: division by zero (wrong.py, line 2)"),
        ("x = 1\n", "there is no tool in it. It needs a `TOOL`"),
        ("TOOL = 3\n", "int is not a Tool."),
        (FIRST.replace("count_lines", "view"), "there is a tool `view` already."),
        (FIRST + "TOOLS = [TOOL]\n", "there is a tool `count_lines` already."),
        (
            FIRST.replace('group="files"', 'group="other"'),
            "group is 'other'; there are: sessions, files, run, debug.",
        ),
        (
            FIRST.replace("-> Lines:\n", "-> str:\n", 1),
            "is not annotated to return a subclass of `tools.Answer`.",
        ),
        (FIRST.replace("'''Count the lines of a file.'''", "pass"), "has no docstring"),
        (
            FIRST.replace("path: Annotated[str", "path: Annotated[Nope"),
            "NameError: name 'Nope' is not defined",
        ),
    ],
)
def test_what_is_wrong_with_a_file_is_told_at_the_start(tmp_path: Path, code: str | None, said: str) -> None:
    file = tmp_path / "wrong.py"
    if code is not None:
        file.write_text(code)
    command = [PDBOX, "serve", "--tools-from", file, *UNSAFE]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, env=dict(os.environ)
    )
    assert done.returncode == 2
    assert done.stderr.startswith(f"pdbox: --tools-from {file}: ") and done.stderr.count("\n") == 1
    assert said in done.stderr
