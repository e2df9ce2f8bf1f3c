"""Debugging files where they are, with the server beside them: what a server inside of a container does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.e2e.client import ToolFailed, pdbox
from tests.e2e.test_in_container import PROGRAM, TEST
from tests.polling import pause

pytestmark = pytest.mark.anyio

NO_DOCKER = """
import importlib.abc, sys
class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] == "docker":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
sys.argv = ["pdbox", *sys.argv[1:]]
from mcp_server.cli import main
sys.exit(main())
"""


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with a program and its test."""
    folder = tmp_path / "repo"
    folder.mkdir()
    (folder / "app.py").write_text(PROGRAM)
    (folder / "test_app.py").write_text(TEST)
    return folder


@pytest.fixture
def env(runtime: str) -> dict[str, str]:
    """An environment in which the records of other servers are not seen."""
    return {"XDG_RUNTIME_DIR": runtime}


def records(env: dict[str, str]) -> list[dict[str, Any]]:
    """What is written down of the guests that there are."""
    found: list[dict[str, Any]] = []
    for file in Path(env["XDG_RUNTIME_DIR"], "pdbox").glob("*/sandbox.json"):
        with suppress(FileNotFoundError):  # removed just now
            found.append(json.loads(file.read_text()))
    return found


def write(record: dict[str, Any]) -> None:
    """Write it down as its guest did."""
    Path(record["base"]).mkdir(mode=0o700, exist_ok=True)
    Path(record["base"], "sandbox.json").write_text(json.dumps(record))


def names(folder: Path) -> list[str]:
    """What is in a folder, but for what Python leaves."""
    return sorted(path.name for path in folder.iterdir() if path.name != "__pycache__")


async def test_files_are_debugged_and_changed_where_they_are(repo: Path, env: dict[str, str]) -> None:
    async with pdbox("--in-place", "--repo", str(repo), env=env) as server:
        first = await server.text("pdb", entrypoint="python app.py", command="b app.py:2\nc")
        assert "stopped at app.py:2 in double" in first
        said = "none of pdbox's own: programs run with the rights of this server, on the files of"
        assert f"note: isolation: {said} {repo} themselves" in first
        (repo / "app.py").write_text(PROGRAM.replace("n * 2", "n * 3"))
        assert "app.py changed after the program had loaded it" in await server.text("pdb", command="n")
        await server.text("rewrite", path="app.py", old_code="n * 3", new_code="n + n")
        python = f"{sys.executable} -m pytest -q -p no:cacheprovider"
        assert "1 passed" in await server.text("eval", entrypoint=python)
        assert "start_session" not in {tool.name for tool in (await server.client.list_tools()).tools}
    assert "result = n + n" in (repo / "app.py").read_text()
    assert records(env) == []


async def test_the_files_stay_whatever_ends_the_guest_or_the_server(repo: Path, env: dict[str, str]) -> None:
    flags = ["--in-place", "--repo", str(repo)]
    async with pdbox(*flags, env=env) as server:
        await server.text("listdir")
        (record,) = records(env)
        os.kill(record["pid"], signal.SIGKILL)
        with anyio.fail_after(60):
            while records(env):
                await pause()
        with suppress(ToolFailed):  # or the loss is known already, and a new session opens
            await server.text("listdir")
    # A record that nobody removed is that of a dead guest to the next server.
    write(record)
    async with pdbox(*flags, env=env) as server:
        assert "app.py" in await server.text("listdir")
        assert record not in records(env)
    assert names(repo) == ["app.py", "test_app.py"]


async def test_a_client_can_choose_no_other_place(repo: Path, env: dict[str, str]) -> None:
    async with pdbox("--in-place", "--repo", str(repo), env=env) as server:
        with pytest.raises(ToolFailed, match="takes no session_id here"):
            await server.text("listdir", session_id="0" * 40)
        with pytest.raises(ToolFailed, match="is not for this connection"):
            await server.text("start_session", repo="/etc")


def test_it_needs_no_docker_package_and_no_unsafe_flag(repo: Path, env: dict[str, str]) -> None:
    calls = [
        {
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "t", "version": "1"},
            },
        },
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "listdir", "arguments": {}}},
    ]
    lines = "".join(json.dumps({"jsonrpc": "2.0", **call}) + "\n" for call in calls)
    argv = [sys.executable, "-c", NO_DOCKER, "serve", "--in-place", "--repo", str(repo)]
    whole = {**os.environ, **env}
    with subprocess.Popen(argv, stdin=-1, stdout=-1, text=True, env=whole) as server:
        assert server.stdin is not None and server.stdout is not None
        server.stdin.write(lines)
        server.stdin.flush()
        answers = [json.loads(server.stdout.readline()) for _ in range(2)]
        server.stdin.close()
    assert "app.py" in answers[1]["result"]["content"][0]["text"]
