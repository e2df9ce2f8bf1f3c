"""A server in memory, on the process backend."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from mcp_server.commands.serve import stdio_store
from mcp_server.connection_options import ConnectionOptions
from mcp_server.server import build_server
from mcp_server.settings import Settings
from tests.polling import pause

Connect = Callable[..., AbstractAsyncContextManager[Client]]

PROGRAM = "def double(n):\n    result = n * 2\n    return result\n\nprint(double(21))\n"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with one program."""
    folder = tmp_path / "repo"
    folder.mkdir()
    (folder / "app.py").write_text(PROGRAM)
    return folder


async def cancel_once_begun(client: Client, repo: Path) -> None:
    """Cancel a call of `bash` when its command is running."""
    async with anyio.create_task_group() as tasks:
        command = {"command": f"touch {repo}/begun; sleep 600", "timeout_s": 600}
        tasks.start_soon(client.call_tool, "bash", command)
        with anyio.fail_after(60):
            while not (repo / "begun").exists():
                await pause()
        tasks.cancel_scope.cancel()


@pytest.fixture(autouse=True)
def alone(runtime: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other servers on this machine, and what they have left, are not seen."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
    monkeypatch.setenv("XDG_STATE_HOME", f"{runtime}/state")


@pytest.fixture
def connect(repo: Path) -> Connect:
    """Clients of one server on `repo`, by the settings given; `mode` chooses the protocol's era.

    They get both text and data, since tests read either; what they get by default is in test_answers.py.
    """

    @asynccontextmanager
    async def connected(mode: str = "auto", **settings: Any) -> AsyncGenerator[Client]:
        chosen = {
            "repo": repo,
            "backend": "process",
            "unsafe_no_isolation": True,
            "entrypoint": "python app.py",
            "answers": "both",
        }
        whole = Settings(**{**chosen, **settings})
        async with (
            stdio_store(whole) as store,
            Client(build_server(store, defaults=ConnectionOptions.of(whole)), mode=mode) as client,
        ):
            yield client

    return connected
