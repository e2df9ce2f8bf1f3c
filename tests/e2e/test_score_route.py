"""Scores for harnesses over HTTP, and the tool `finish`: models get no part of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.types import TextContent

from mcp_server.tasks.folder import TaskContent, write_task
from mcp_server.tasks.model import TaskFacts
from mcp_server.trajectories.record import read
from tests.bubblewrap import LOCAL
from tests.e2e.served import OVER_HTTP, Server, serving
from tests.mcp_server.tasks.conftest import GOLD
from tests.repository import repository

pytestmark = pytest.mark.anyio

HTTP = OVER_HTTP[0]
ALICE, BOB = "a" * 40, "b" * 40
HIDDEN = "test_secret_of_the_harness"
FILES = {"app.py": "def double(n):\n    return n + 2\n", "conftest.py": "", "tests/test_app.py": ""}
TEST_PATCH = f"""\
diff --git a/tests/test_hidden_away.py b/tests/test_hidden_away.py
new file mode 100644
--- /dev/null
+++ b/tests/test_hidden_away.py
@@ -0,0 +1,4 @@
+from app import double
+
+def {HIDDEN}():
+    assert double(3) == 6
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tokens, and a task whose test is hidden."""
    folder = tmp_path_factory.mktemp("scores")
    (folder / "tokens").write_text(f"alice {ALICE}\nbob {BOB}\n")
    (folder / "tokens").chmod(0o600)
    facts = TaskFacts(entrypoint="python -m pytest -q", fail_to_pass=[f"tests/test_hidden_away.py::{HIDDEN}"])
    source = repository(folder / "source", FILES)
    write_task(
        folder / "tasks" / "double",
        TaskContent("test/double", "Make `double` double.", facts, source, GOLD, TEST_PATCH),
    )
    return folder


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    """A server with tokens, tasks and `finish`."""
    flags = ["--tasks", str(folder / "tasks"), "--token-file", str(folder / "tokens"), "--finish"]
    with serving(*flags, "--record", str(folder / "records"), "--answers", "text", *LOCAL) as running:
        yield running


async def score(server: Server, name: str, token: str | None = ALICE) -> tuple[int, dict[str, Any]]:
    """What the route answers."""
    async with server.http(token) as http:
        answer = await http.post(f"/score?session={name}")
    return answer.status_code, answer.json()


async def said(client: Client, tool: str, **arguments: object) -> str:
    result = await client.call_tool(tool, arguments)
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


async def test_nothing_that_a_model_can_call_shows_a_hidden_test(server: Server, folder: Path) -> None:
    seen: list[str] = []
    async with server.client(HTTP, ALICE, "?session=all&task=double") as client:
        tools = (await client.list_tools()).tools
        seen += [client.instructions or "", *(tool.model_dump_json() for tool in tools)]
        calls: dict[str, dict[str, object]] = {
            "listdir": {"depth": 5},
            "view": {"path": "tests/test_hidden_away.py"},
            "grep": {"pattern": "secret_of|hidden_away"},
            "bash": {"command": "env; ls -laR"},
            "rewrite": {"path": "app.py", "old_code": "n + 2", "new_code": "n * 2"},
            "pdb": {"entrypoint": "python app.py", "command": "p open('/proc/self/environ').read()"},
            "inspect": {"expression": "globals()"},
            "trace": {"function": "double"},
        }
        seen.append(await said(client, "listdir"))
        for _ in range(2):
            status, verdict = await score(server, "all")  # the harness may look whenever it likes
            assert status == 200, (verdict, seen[-1])
            seen += [await said(client, tool.name, **calls.get(tool.name, {})) for tool in tools
                     if tool.name != "finish"]  # fmt: skip
        for resource in (await client.list_resources()).resources:
            read_one = await client.read_resource(resource.uri)
            seen.append(read_one.model_dump_json())
        seen.append(await said(client, "finish"))
        assert seen[-1] == "Finished. Your changes were handed in, and the session has ended."
        status, verdict = await score(server, "all")
        for tool in ("listdir", "finish", "eval"):
            seen.append(await said(client, tool))
            assert seen[-1].startswith("The task is finished, and its session has ended.")
    assert (status, verdict["resolved"]) == (200, True)
    assert not [text for text in seen if "secret_of_the" in text or "FAIL_TO_PASS" in text]
    (record,) = [
        file for file in (folder / "records").iterdir() if '"finish"' in file.read_text(encoding="utf-8")
    ]
    lines = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]
    assert [line["resolved"] for line in lines if line["kind"] == "score"] == [False, True, True]
    assert read(record).end is not None


async def test_a_score_is_for_the_token_that_opened_the_task(server: Server) -> None:
    async with server.client(HTTP, ALICE, "?session=mine&task=double") as client:
        await said(client, "listdir")
        assert (await score(server, "mine", None))[0] == 401
        assert (await score(server, "mine", BOB))[0] == 404
        status, verdict = await score(server, "mine")
        assert (status, verdict["resolved"], verdict["fail_to_pass"]["passed"]) == (200, False, 0)
        await said(client, "finish")
        assert (await score(server, "mine", BOB))[0] == 404
        assert (await score(server, "mine"))[1]["resolved"] is False
    async with server.http(ALICE) as http:
        assert (await http.post("/score", content=b"{}")).status_code == 400
        assert (await http.post("/score", json={"session_id": "0" * 40})).status_code == 404


async def test_a_session_without_a_task_has_no_score(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("x = 1\n")
    with serving("--repo", str(tmp_path), "--finish", "--answers", "text", *LOCAL) as server:
        async with server.client(HTTP, query="?session=plain") as client:
            assert "This session has no task." in await said(client, "finish")
            assert (await score(server, "plain", None))[0] == 409
            assert "app.py" in await said(client, "listdir")
    with serving("--repo", str(tmp_path), *LOCAL) as server:
        async with server.client(HTTP, query="?session=plain") as client:
            assert "finish" not in {tool.name for tool in (await client.list_tools()).tools}
