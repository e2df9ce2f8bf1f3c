"""Records of sessions in files: what they have, and what they keep when something goes wrong."""

from __future__ import annotations

import json
import logging
import resource
import stat
import threading
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcp_server.trajectories.record import Record, read
from mcp_server.trajectories.recorder import QUEUE, Environment, Recorder
from sandbox.errors import InvalidArgument
from tests.bubblewrap import UNSAFE
from tests.e2e.client import pdbox
from tests.e2e.served import Way, serving
from tests.mcp_server.conftest import Connect, cancel_once_begun
from tests.polling import pause

pytestmark = pytest.mark.anyio
KEY = "ghp_" + "a1B2c3D4e5F6" * 3


def only(folder: Path) -> Record:
    """The one record in `folder`."""
    (file,) = folder.glob("*.jsonl")
    return read(file)


async def test_a_record_has_the_session_its_calls_and_its_end(connect: Connect, tmp_path: Path) -> None:
    folder = tmp_path / "records"
    async with connect(record=folder, answers="text") as client:
        opened = await client.call_tool("start_session", {})
        handle = opened.content[0].text.split()[1]  # pyright: ignore[reportAttributeAccessIssue]
        trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        meta: Any = {"traceparent": trace, "claudecode/toolUseId": "toolu_7"}
        stopped = await client.call_tool("pdb", {"command": "b app.py:2\nc", "session_id": handle}, meta=meta)
        await client.call_tool("pdb", {"comand": "n", "session_id": handle})
        await client.call_tool("list_sessions", {})
        await client.call_tool(
            "rewrite", {"path": "app.py", "old_code": "n * 2", "new_code": "n * 3", "session_id": handle}
        )
        await client.call_tool("close_session", {"session_id": handle})
        await client.call_tool("view", {"path": "app.py", "session_id": handle})
    (file,) = folder.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert handle not in file.read_text() and handle not in file.name

    record = read(file)
    header = record.header
    assert file.name.endswith(f"Z-{header.session}.jsonl")
    assert (header.client and header.client.name, header.backend, header.answers) == (
        "mcp",
        "process",
        "text",
    )
    assert header.pdbox and header.python and header.mcp and header.sandbox_python
    assert (header.repository, header.entrypoint) == ("repo", "python app.py")
    assert "pdb" in [tool["name"] for tool in header.tools]

    calls = record.calls
    assert [call.number for call in calls] == list(range(1, 7))
    assert [call.tool for call in calls] == [
        "start_session",
        "pdb",
        "pdb",
        "list_sessions",
        "rewrite",
        "close_session",
    ]
    pdb = calls[1]
    assert pdb.arguments == {"command": "b app.py:2\nc"}
    assert pdb.text == stopped.content[0].text  # pyright: ignore[reportAttributeAccessIssue]
    assert pdb.structured is not None and pdb.structured["frame"]["line"] == 2
    assert (pdb.state, pdb.stop, pdb.text_characters) == ("stopped", pdb.structured["stop"], len(pdb.text))
    assert (pdb.traceparent, pdb.tool_call_id) == (trace, "toolu_7")
    assert calls[2].is_error and "comand" in calls[2].text
    assert "<session_id>" in calls[0].text

    assert record.end is not None
    assert (record.end.reason, record.end.calls, record.end.lost) == ("closed", 6, 0)
    assert record.end.patch is not None and "+    result = n * 3" in record.end.patch


async def test_each_session_has_a_record_of_its_own(connect: Connect, tmp_path: Path) -> None:
    async with connect(record=tmp_path / "records") as client:
        handles: list[str] = []
        for word in ("one", "two"):
            opened = await client.call_tool("start_session", {})
            assert opened.structured_content is not None
            handles.append(opened.structured_content["session_id"])
            await client.call_tool("bash", {"command": f"echo {word}", "session_id": handles[-1]})
        # Whose it was is not known; it has the handles of both.
        await client.call_tool("list_sessions", {})
    records = sorted(map(read, (tmp_path / "records").iterdir()), key=lambda one: one.header.time)
    assert [[call.arguments for call in record.calls] for record in records] == [
        [{}, {"command": "echo one"}],
        [{}, {"command": "echo two"}],
    ]
    assert [record.end and record.end.reason for record in records] == ["server ended"] * 2
    whole = "".join(file.read_text() for file in (tmp_path / "records").iterdir())
    assert not any(handle in whole for handle in handles)


async def test_secrets_are_masked_in_arguments_answers_and_patch(connect: Connect, tmp_path: Path) -> None:
    settings = {"record": tmp_path / "records", "env": ["DB_PASSWORD=c0rrect-Horse-9"]}
    async with connect(**settings) as client:
        await client.call_tool("bash", {"command": f"echo {KEY}; echo $DB_PASSWORD; echo c0rrect-Horse-9"})
        await client.call_tool("bash", {"command": f"echo {KEY[:10]}''{KEY[10:]} > secret.txt"})
        await client.call_tool("close_session", {})
    (file,) = (tmp_path / "records").iterdir()
    assert KEY not in file.read_text() and "c0rrect-Horse-9" not in file.read_text()
    record = read(file)
    assert record.end is not None and record.end.patch_redacted


async def test_a_cancelled_call_is_recorded_as_one(connect: Connect, repo: Path, tmp_path: Path) -> None:
    async with connect(record=tmp_path / "records") as client:
        await cancel_once_begun(client, repo)
        await client.call_tool("bash", {"command": "true"})
    cancelled = [call.cancelled for call in only(tmp_path / "records").calls]
    assert sorted(cancelled) == [False, True]


async def test_the_record_of_a_killed_server_is_read_to_its_last_whole_line(
    repo: Path, tmp_path: Path
) -> None:
    with serving(*UNSAFE, "--repo", str(repo), "--record", str(tmp_path / "records")) as server:
        async with server.client(Way("http", "auto")) as client:
            opened = await client.call_tool("start_session", {})
            assert opened.structured_content is not None
            handle = opened.structured_content["session_id"]
            await client.call_tool("bash", {"command": "echo here", "session_id": handle})
            with anyio.fail_after(60):
                while (
                    not (found := list((tmp_path / "records").glob("*.jsonl")))
                    or len(read(found[0]).calls) < 2
                ):
                    await pause()
            server.process.kill()
            server.process.wait()
    (file,) = found
    with file.open("ab") as stream:
        stream.write(b'{"kind":"call","number":3,"tool":"ba')
    record = read(file)
    assert [call.tool for call in record.calls] == ["start_session", "bash"]
    assert record.is_torn and record.end is None


async def test_a_full_disk_costs_lines_but_no_call(
    connect: Connect, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "records"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    async with connect(record=folder) as client:
        await client.call_tool("bash", {"command": "echo first"})
        with anyio.fail_after(60):
            while not list(folder.glob("*.jsonl")) or not only(folder).calls:
                await pause()
        (file,) = folder.iterdir()
        # As on a full disk, the beginning of the next line is still written.
        resource.setrlimit(resource.RLIMIT_FSIZE, (file.stat().st_size + 100, hard))
        try:
            for word in ("second", "third"):
                answer = await client.call_tool("bash", {"command": f"echo {word}"})
                assert (
                    answer.structured_content is not None
                    and answer.structured_content["output"] == f"{word}\n"
                )
            with anyio.fail_after(60):
                while "calls are missing" not in caplog.text:
                    await pause()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        await client.call_tool("bash", {"command": "echo fourth"})
    record = only(folder)
    numbers = [call.number for call in record.calls]
    assert numbers[0] == 1 and numbers[-1] == 4 and 2 not in numbers
    assert record.end is not None and record.end.lost == 4 - len(numbers)
    assert caplog.text.count("calls are missing") == 1


def test_a_disk_that_is_too_slow_delays_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    recorder = Recorder.open(tmp_path, Environment())
    freed = threading.Event()
    with caplog.at_level(logging.WARNING):
        for _ in range(QUEUE + 10):
            recorder._put(freed.wait)  # pyright: ignore[reportPrivateUsage]
    freed.set()
    assert caplog.text.count("the disk is too slow") == 1


def test_a_folder_that_cannot_be_written_is_refused_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InvalidArgument, match="--record"):
        Recorder.open(tmp_path / "file" / "below", Environment())


async def test_a_session_that_expires_has_its_patch_on_record(connect: Connect, tmp_path: Path) -> None:
    async with connect(record=tmp_path / "records", session_ttl_s=4) as client:
        await client.call_tool("rewrite", {"path": "app.py", "old_code": "n * 2", "new_code": "n * 5"})
        with anyio.fail_after(120):
            while not list((tmp_path / "records").glob("*.jsonl")) or only(tmp_path / "records").end is None:
                await pause()
    end = only(tmp_path / "records").end
    assert end is not None and (end.reason, end.patch_missing) == ("expired", "")
    assert end.patch is not None and "n * 5" in end.patch


async def test_over_stdio_the_end_is_there_when_the_client_has_left(repo: Path, tmp_path: Path) -> None:
    flags = [*UNSAFE, "--repo", str(repo), "--record", str(tmp_path / "records")]
    async with pdbox(*flags) as session:
        await session.call("rewrite", path="app.py", old_code="n * 2", new_code="n * 4")
    end = only(tmp_path / "records").end
    assert end is not None and end.patch is not None and "n * 4" in end.patch


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["[]"], "line 1 is no line of a record"),
        (["{}"], "line 1 is out of place"),
        ([json.dumps({"kind": "header", "format": "pdbox-trajectory", "version": 99})], "version"),
        (["no"], "line 1 is not JSON"),
        (["[" * 100_000], "line 1 is not JSON"),
        (["[" * 300 + "]" * 300], "nested too deeply"),
        ([json.dumps({"kind": "header"}), json.dumps({"kind": "call", "number": -1, "tool": "x"})], "line 2"),
        ([], "is no record"),
    ],
)
def test_other_files_are_refused_with_the_line(lines: list[str], message: str, tmp_path: Path) -> None:
    file = tmp_path / "other.jsonl"
    file.write_text("".join(f"{line}\n" for line in lines))
    with pytest.raises(InvalidArgument, match=message):
        read(file)
