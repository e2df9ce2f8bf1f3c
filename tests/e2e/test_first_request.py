"""Requests that come as early as a client can send them: with the start of the server, and without `notifications/initialized`."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.bubblewrap import LOCAL
from tests.e2e.client import PDBOX
from tests.e2e.served import STREAMABLE, initialize, serving
from tests.repository import repository

pytestmark = pytest.mark.anyio

LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {
        "jsonrpc": "2.0",
        "id": 3,
        "method": "tools/call",
        "params": {"name": tool, "arguments": arguments},
    }


@pytest.mark.parametrize(
    "messages",
    [
        [initialize(), LIST, call("bash", command="echo here")],
        [initialize(), LIST, call("bash", command="echo here"), INITIALIZED],
        [initialize(), INITIALIZED, LIST, call("bash", command="echo here")],
    ],
    ids=["never initialized", "initialized last", "in order"],
)
def test_requests_that_are_sent_with_the_start_of_the_server_are_answered(
    tmp_path: Path, messages: Sequence[dict[str, Any]]
) -> None:
    repo = repository(tmp_path, {"app.py": ""})
    # In the pipe before the server's first instruction.
    with subprocess.Popen(
        [str(PDBOX), "serve", "--repo", str(repo), *LOCAL], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write("".join(json.dumps(message) + "\n" for message in messages).encode())
        process.stdin.flush()
        answers = {}
        while len(answers) < 3:
            answer = json.loads(process.stdout.readline())
            answers[answer["id"]] = answer["result"]
        process.stdin.close()
    assert answers[1]["serverInfo"]["name"] == "pdbox"
    assert "bash" in [tool["name"] for tool in answers[2]["tools"]]
    assert "here" in answers[3]["content"][0]["text"]


async def test_the_announced_url_takes_calls_at_once_and_before_the_client_says_that_it_is_initialized(
    tmp_path: Path,
) -> None:
    repo = repository(tmp_path, {"app.py": ""})
    with serving(*LOCAL, "--repo", str(repo)) as server:
        async with server.http(**STREAMABLE) as http:
            greeted = await http.post("/mcp", json=initialize())
            own = {"Mcp-Session-Id": greeted.headers["mcp-session-id"]}
            answer = await http.post("/mcp", json=call("start_session"), headers=own)
    assert greeted.status_code == 200
    assert "session_id: " in answer.text
