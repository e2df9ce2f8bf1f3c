"""`--keep-sessions`: each call may come from a server process of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.bubblewrap import LOCAL
from tests.e2e.client import PDBOX, ToolFailed, pdbox
from tests.polling import pause

pytestmark = [pytest.mark.anyio, pytest.mark.long]

KEEP = "--keep-sessions"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with one program."""
    folder = tmp_path / "repo"
    folder.mkdir()
    (folder / "app.py").write_text("import os\n\nfirst = os.getpid()\nprint(first)\n")
    return folder


async def one_call(flags: list[str], tool: str, **arguments: Any) -> tuple[str, Any]:
    """What one call gives, from a server that is started for it and ends after it: text and data."""
    async with pdbox(*flags) as session:
        result = await session.client.call_tool(tool, arguments)
    text = "\n".join(block.text for block in result.content if block.type == "text")
    if result.is_error:
        raise ToolFailed(text)
    return text, result.structured_content


async def places(flags: list[str]) -> set[str]:
    done = await anyio.run_process([str(PDBOX), "sessions", "list", "--json", *flags])
    return {one["place"] for one in json.loads(done.stdout)["sessions"]}


async def test_a_handle_works_in_the_server_of_the_next_call(backend: list[str], repo: Path) -> None:
    flags = [*backend, "--repo", str(repo), KEEP]
    _, opened = await one_call(flags, "start_session", entrypoint="python app.py")
    handle = opened["session_id"]
    _, stop = await one_call(flags, "pdb", command="b app.py:4\nc", session_id=handle)
    assert (stop["state"], stop["frame"]["line"]) == ("stopped", 4)
    _, value = await one_call(flags, "pdb", command="p first == os.getpid()", session_id=handle)
    assert (value["reply"].strip(), value["run"]) == ("True", stop["run"])
    with pytest.raises(ToolFailed, match="unknown or has expired"):
        await one_call(flags, "pdb", command="w", session_id=handle[::-1])
    await one_call(flags, "close_session", session_id=handle)
    with pytest.raises(ToolFailed, match="unknown or has expired"):
        await one_call(flags, "pdb", command="w", session_id=handle)


async def test_the_session_of_a_repository_is_found_again_without_its_handle_and_that_is_said(
    backend: list[str], repo: Path
) -> None:
    flags = [*backend, "--repo", str(repo), KEEP]
    text, _ = await one_call(flags, "bash", command="echo mine > note")
    assert "note: this is" not in text
    text, data = await one_call(flags, "bash", command="cat note")
    assert text.startswith("note: this is the session that was opened for this repository ")
    assert data["output"] == "mine\n"
    _, other = await one_call(flags, "start_session")
    with pytest.raises(ToolFailed, match="2 sessions are kept for this repository"):
        await one_call(flags, "bash", command="cat note")
    await one_call(flags, "close_session", session_id=other["session_id"])
    await one_call(flags, "close_session")
    text, _ = await one_call(flags, "bash", command="ls")
    assert "note" not in text
    await one_call(flags, "close_session")


async def test_kept_sessions_end_by_themselves_when_they_are_idle(backend: list[str], repo: Path) -> None:
    flags = [*backend, "--repo", str(repo), KEEP, "--session-ttl", "10"]
    async with pdbox(*flags) as session:
        handle = (await session.call("start_session"))["session_id"]
        own = (await session.call("list_sessions"))["sessions"]
        (place,) = [one["place"] for one in own if one["session_id"] == handle]
    with anyio.fail_after(120):
        while place in await places(backend):
            await pause(1)  # each look starts a program
    with pytest.raises(ToolFailed, match="unknown or has expired"):
        await one_call(flags, "listdir", session_id=handle)


async def test_kept_sessions_count_where_there_may_be_no_more(repo: Path) -> None:
    flags = [*LOCAL, "--repo", str(repo), KEEP, "--max-sessions", "1", "--queue-timeout", "0"]
    async with pdbox(*flags) as session:
        handle = (await session.call("start_session"))["session_id"]
    async with pdbox(*flags) as session:
        with pytest.raises(ToolFailed, match="1 sessions are open"):
            await session.call("start_session")
        await session.call("close_session", session_id=handle)
        await session.call("close_session", session_id=(await session.call("start_session"))["session_id"])


async def test_a_client_that_starts_a_server_for_each_call_is_told_of_the_option(
    backend: list[str], repo: Path
) -> None:
    flags = [*backend, "--repo", str(repo)]
    _, opened = await one_call(flags, "start_session")
    with pytest.raises(ToolFailed, match="unknown or has expired") as caught:
        await one_call(flags, "listdir", session_id=opened["session_id"])
    assert "`--keep-sessions`" in str(caught.value)


async def test_sandboxes_of_another_living_server_leave_room_for_calls(repo: Path) -> None:
    # Without Docker, where sessions that are kept for others on this machine would count.
    limit = [*LOCAL, "--repo", str(repo), "--max-sessions", "1", "--queue-timeout", "0"]
    async with pdbox(*limit) as other:
        await other.call("start_session")
        flags = [*limit, KEEP]
        text, _ = await one_call(flags, "bash", command="echo free")
        assert "free" in text
        with pytest.raises(ToolFailed, match="1 sessions are open"):
            await one_call(flags, "start_session")
        await one_call(flags, "close_session")
