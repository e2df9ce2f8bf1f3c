"""What `rewrite` acknowledged survives its sandbox and its server, on both backends."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from tests.bubblewrap import UNSAFE
from tests.docker_client import docker
from tests.e2e.client import Session, ToolFailed
from tests.e2e.served import OVER_HTTP, serving

pytestmark = pytest.mark.anyio
FILL = "head -c 64M /dev/zero > big; head -c 64M /dev/zero > big2; wc -c < big2"


async def place_of(client: Session, session_id: str) -> str:
    """Container of a session, or its process."""
    own = (await client.call("list_sessions"))["sessions"]
    return next(one["place"] for one in own if one["session_id"] == session_id)


async def lose(client: Session, session_id: str, backend: list[str]) -> None:
    """Kill the sandbox of a session from outside."""
    place = await place_of(client, session_id)
    if "docker" in backend:
        await anyio.to_thread.run_sync(docker, "kill", place)
    else:
        os.kill(int(place), signal.SIGKILL)


async def refusal(client: Session, tool: str, **arguments: object) -> str:
    with pytest.raises(ToolFailed) as caught:
        await client.call(tool, **arguments)
    return str(caught.value)


async def test_edits_are_there_after_server_and_sandbox_were_killed_together(
    backend: list[str], tmp_path: Path
) -> None:
    (tmp_path / "app.py").write_text("print(1)\n")
    flags = [*backend, "--root", str(tmp_path), "--workspace-size", "48MiB"]
    with serving(*flags) as first:
        async with first.connected(OVER_HTTP[0]) as client:
            handle = (await client.call("start_session", repo=str(tmp_path)))["session_id"]
            of = {"session_id": handle}
            await client.call("rewrite", path="app.py", new_code="print(2)\n", **of)
            if "process" not in backend:  # there the disk is the machine's
                await client.call("bash", command=FILL, **of)
                told = await refusal(client, "rewrite", path="app.py", new_code="#" * 100_000, **of)
                assert "space" in told
                await client.call("bash", command="rm big*", **of)
            await lose(client, handle, backend)
        first.process.kill()
    with serving(*flags) as second:
        async with second.connected(OVER_HTTP[0]) as client:
            told = await refusal(client, "view", path="app.py", **of)
            assert told.startswith("The sandbox of this session is gone. 1 edited file is kept: app.py. ")
            assert "1 edited file is back: app.py." in await client.text("start_session", resume=handle)
            assert (await client.call("bash", command="python3 app.py", **of))["output"].strip() == "2"
            await client.call("close_session", **of)
            assert "No edits of such a session" in await refusal(client, "start_session", resume=handle)


async def test_a_session_that_answers_nothing_is_closed_and_its_edits_are_kept(
    backend: list[str], tmp_path: Path
) -> None:
    (tmp_path / "app.py").write_text("print(1)\n")
    with serving(*backend, "--root", str(tmp_path)) as server:
        async with server.connected(OVER_HTTP[0]) as client:
            handle = (await client.call("start_session", repo=str(tmp_path)))["session_id"]
            of = {"session_id": handle}
            await client.call("rewrite", path="app.py", new_code="print(2)\n", **of)
            place = await place_of(client, handle)
            if "docker" in backend:
                await anyio.to_thread.run_sync(docker, "pause", place)
            else:
                os.kill(int(place), signal.SIGSTOP)
            with anyio.fail_after(60):  # far less than the patch of a slow sandbox may take
                text = await client.text("close_session", **of)
            assert text.startswith(
                "Closed. Its patch could not be read: The sandbox doesn't answer any more. 1 edited file is kept: app.py. "
            )
            if "docker" in backend:
                assert not await anyio.to_thread.run_sync(docker, "ps", "-aq", "--filter", f"id={place}")
            else:
                assert not await anyio.Path("/proc", place).exists()
            assert "1 edited file is back: app.py." in await client.text("start_session", resume=handle)
            assert (await client.call("bash", command="python3 app.py", **of))["output"].strip() == "2"


async def test_the_session_of_a_connection_is_resumed_by_its_next_call(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("print(1)\n")
    with serving(*UNSAFE, "--repo", str(tmp_path)) as server:
        async with server.client(OVER_HTTP[0], query="?session=mine") as connected:
            client = Session(connected)
            await client.call("rewrite", path="app.py", new_code="print(2)\n")
            supervisor = (await client.call("bash", command="echo $PPID"))["output"]
            os.kill(int(supervisor), signal.SIGKILL)
            try:
                text = await client.text("bash", command="python3 app.py")
            except ToolFailed as exc:
                if "kept: app.py. Anything else in it is lost. The next call opens it again" not in str(exc):
                    raise
                text = await client.text("bash", command="python3 app.py")
            assert "note: This session's sandbox was gone; this is a new one. 1 edited file is back" in text
            assert "\n2\n" in f"{text}\n"
