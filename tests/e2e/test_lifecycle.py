"""Sessions outlive a server that is killed, and nothing outlives one that ends."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.docker_client import docker
from tests.e2e.client import PDBOX, Session, pdbox
from tests.polling import pause

pytestmark = [pytest.mark.anyio, pytest.mark.docker]
PROGRAM = "import os\n\ndef inner(n):\n    here = n * 2\n    return here\n\nprint(os.getpid())\ninner(21)\n"


def containers() -> set[str]:
    """The containers of pdbox as `list_sessions` names them, whoever started them."""
    return {name[:12] for name in docker("ps", "-aq", "--filter", "label=pdbox=1").split()}


async def test_a_session_goes_on_in_the_same_process_after_kill_9_of_its_server(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(PROGRAM)
    pid_file = tmp_path.parent / "server.pid"
    command = ["pdbox", "serve", "--root", str(tmp_path), "--answers", "both"]
    write_pid = f"open({str(pid_file)!r}, 'w').write(str(os.getpid()))"
    wrapper = f"import os; {write_pid}; os.execv({str(PDBOX)!r}, {command!r})"
    parameters = StdioServerParameters(command=sys.executable, args=["-c", wrapper])
    with pytest.raises(Exception):  # noqa: B017 - the client's way of saying that its server died differs by version
        async with Client(stdio_client(parameters)) as client:
            session = Session(client)
            opened = await session.call("start_session", repo=str(tmp_path), entrypoint="python app.py")
            first = await session.call("pdb", command="b inner\nc\nn", session_id=opened["session_id"])
            first = {
                **first,
                "pid": (await session.call("pdb", command="p os.getpid()", session_id=opened["session_id"]))[
                    "reply"
                ],
            }
            os.kill(int(pid_file.read_text()), signal.SIGKILL)
            await session.call("list_sessions")
    async with pdbox("--root", str(tmp_path)) as session:
        again: dict[str, Any] = await session.call("pdb", command="w", session_id=opened["session_id"])
        assert (again["frame"], again["stop"], again["run"]) == (first["frame"], first["stop"], first["run"])
        assert "inner()" in again["reply"]
        pid = await session.call("pdb", command="p os.getpid()", session_id=opened["session_id"])
        assert pid["reply"] == first["pid"]
        own = (await session.call("list_sessions"))["sessions"]
        place = next(one["place"] for one in own if one["session_id"] == opened["session_id"])
        assert place in containers()
        await session.call("close_session", session_id=opened["session_id"])
        assert place not in containers()


@pytest.mark.parametrize("way", ["eof", "SIGTERM", "SIGINT"])
async def test_a_server_that_ends_while_a_program_runs_leaves_no_container(tmp_path: Path, way: str) -> None:
    (tmp_path / "app.py").write_text("while True:\n    pass\n")
    command = [str(PDBOX), "serve", "--repo", str(tmp_path), "--answers", "both"]
    process = await anyio.open_process(command, stderr=None)
    assert process.stdin is not None and process.stdout is not None
    await _call(
        process,
        1,
        "initialize",
        {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    )
    await process.stdin.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
    begin = {"command": "p 1", "entrypoint": "python app.py"}
    await _call(process, 2, "tools/call", {"name": "pdb", "arguments": begin})
    go_on = {"command": "c", "timeout_s": 0.2}
    await _call(process, 3, "tools/call", {"name": "pdb", "arguments": go_on})
    listed = await _call(process, 4, "tools/call", {"name": "list_sessions", "arguments": {}})
    place = next(
        one["place"] for one in listed["result"]["structuredContent"]["sessions"] if one["session_id"]
    )
    assert place in containers()
    # How long exactly is no test's to tell on a busy machine; tests/mcp_server/transports/test_shutdown.py shows that nothing can hold it.
    with anyio.fail_after(60):
        if way == "eof":
            await process.stdin.aclose()
        else:
            process.send_signal(getattr(signal, way))
        await process.wait()
        while place in containers():
            await pause()
    await process.aclose()


async def _call(
    process: anyio.abc.Process, number: int, method: str, params: dict[str, Any]
) -> dict[str, Any]:
    assert process.stdin is not None and process.stdout is not None
    await process.stdin.send(
        json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"
    )
    buffer = b""
    with anyio.fail_after(60):
        while True:
            buffer += await process.stdout.receive()
            for line in buffer.splitlines():
                try:
                    message = json.loads(line)
                except ValueError:
                    continue
                if message.get("id") == number:
                    return message
