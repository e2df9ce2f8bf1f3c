"""What clients get, in both eras of the protocol."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import jsonschema
import pytest
from mcp import Client
from mcp.types import CallToolResult, TextContent

from mcp_server.server import build_server
from mcp_server.sessions.admission import SessionLimits
from mcp_server.sessions.store import SessionStore
from sandbox.backend import Backend, Progress, Sandbox
from sandbox.opening.policy import Policy
from sandbox.opening.request import SessionRequest
from sandbox.process import ProcessBackend
from sandbox.spec import SandboxSpec
from tests.e2e.client import pdbox
from tests.mcp_server.conftest import PROGRAM, Connect
from tests.polling import pause
from tools._catalog import catalog
from tools._truncation import LIMIT

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["auto", "legacy"])
def era(request: pytest.FixtureRequest) -> str:
    """2026-07-28, and the eras with a handshake."""
    return request.param


def text(result: CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    assert result.structured_content is None
    return text(result)


async def data(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text(result)
    assert len(text(result)) <= LIMIT
    jsonschema.validate(result.structured_content, catalog()[tool].output_schema)
    assert isinstance(result.structured_content, dict)
    return result.structured_content


async def test_list_is_the_same_in_each_call_and_connection(connect: Connect, era: str) -> None:
    async with connect(era) as client:
        lists = [(await client.list_tools(cache_mode="refresh")).model_dump_json() for _ in range(2)]
    async with connect(era) as client:
        lists.append((await client.list_tools()).model_dump_json())
    assert len(set(lists)) == 1


async def test_every_tool_has_all_annotations_and_a_title(connect: Connect) -> None:
    async with connect() as client:
        for tool in (await client.list_tools()).tools:
            hints = tool.annotations
            assert tool.title and hints is not None
            assert None not in (
                hints.read_only_hint,
                hints.destructive_hint,
                hints.idempotent_hint,
                hints.open_world_hint,
            )


async def test_instructions_are_short_and_name_the_first_call(connect: Connect, era: str) -> None:
    async with connect(era) as client:
        assert client.instructions is not None
        assert len(client.instructions) <= 1500
        assert "`start_session`" in client.instructions


async def test_no_resources_of_a_listener_are_offered(connect: Connect) -> None:
    async with connect() as client:
        tools = client.server_capabilities.tools
        assert tools is not None and not tools.list_changed


async def test_first_call_opens_the_session_and_pdb_lives_between_calls(connect: Connect, era: str) -> None:
    async with connect(era) as client:
        stop = await data(client, "pdb", command="b app.py:3\nc")
        assert (stop["state"], stop["frame"]["line"], stop["breakpoint"]) == ("stopped", 3, 1)
        assert (await data(client, "pdb", command="p result"))["reply"].strip() == "42"
        (session,) = (await data(client, "list_sessions"))["sessions"]
        assert (session["state"], session["isolation"][:5]) == ("stopped", "none:")


async def test_view_marks_breakpoints_and_the_current_line(connect: Connect) -> None:
    async with connect() as client:
        await data(client, "pdb", command="b app.py:3, n > 2\nb app.py:2\nc")
        assert text(await client.call_tool("view", {"path": "app.py"})) == (
            "app.py, lines 1-5 of 5\n"
            "1\tdef double(n):\n"
            "B>2\t    result = n * 2\n"
            "B3\t    return result\n"
            "\n"
            "5\tprint(double(21))\n"
            "B 2: breakpoint 2\n"
            "B 3: breakpoint 1, if n > 2"
        )


async def test_view_after_an_edit_above_the_stop_marks_the_moved_line(connect: Connect) -> None:
    async with connect() as client:
        await data(client, "pdb", command="b app.py:3\nc")
        await data(
            client, "rewrite", path="app.py", start=1, end=1, new_code="import os\n\n\ndef double(n):\n"
        )
        assert text(await client.call_tool("view", {"path": "app.py"})) == (
            "app.py, lines 1-8 of 8\n"
            "1\timport os\n"
            "\n"
            "\n"
            "4\tdef double(n):\n"
            "5\t    result = n * 2\n"
            "B>6\t    return result\n"
            "\n"
            "8\tprint(double(21))\n"
            "B 6: breakpoint 1\n"
            "app.py has changed since the program loaded it: line 3, where it has stopped, is line 6 now."
        )
        await data(client, "rewrite", path="app.py", new_code="print(1)\n")
        assert text(await client.call_tool("view", {"path": "app.py"})) == (
            "app.py, lines 1-1 of 1\n"
            "1\tprint(1)\n"
            "app.py has changed since the program loaded it: line 3, where it has stopped, is not in it any more."
        )


async def test_view_says_which_breakpoints_are_disabled_and_marks_no_lost_ones(connect: Connect) -> None:
    async with connect() as client:
        await data(client, "pdb", command="b app.py:2\nb app.py:3\nb app.py:5\ndisable 2")
        await data(client, "rewrite", path="app.py", start=2, end=2, new_code="    pass\n")
        shown = await data(client, "view", path="app.py")
        assert shown["breakpoints"] == [{"id": 2, "line": 3, "enabled": False}, {"id": 3, "line": 5}]
        assert "breakpoint 2, disabled\n" in text(await client.call_tool("view", {"path": "app.py"}))


async def test_long_file_is_cut_by_lines_and_says_where_to_go_on(connect: Connect, repo: Path) -> None:
    (repo / "long.py").write_text("".join(f"value_{number} = {number}\n" for number in range(1, 2001)))
    async with connect() as client:
        first = await data(client, "view", path="long.py")
        assert len(first["lines"]) == first["end"] < 2000
        hint = f'Go on with view(path="long.py", start={first["end"] + 1}).'
        assert first["omitted"] == [
            {"field": "lines", "count": 2000 - first["end"], "unit": "lines", "hint": hint}
        ]
        shown = text(await client.call_tool("view", {"path": "long.py"}))
        assert shown.endswith(f"(left out: {2000 - first['end']:,} lines. {hint})")
        more = await client.call_tool("view", {"path": "long.py", "start": first["end"] + 1, "end": 700})
        assert more.structured_content is not None
        assert more.structured_content["end"] == 700


async def test_rewrite_gives_a_diff_and_the_syntax_error_it_leaves(connect: Connect) -> None:
    async with connect() as client:
        done = await client.call_tool(
            "rewrite", {"path": "app.py", "start": 2, "end": 2, "new_code": "    result = (n * 2"}
        )
        assert "app.py rewritten:\n```diff\n@@ -1," in text(done)
        assert "syntax error in the new text: " in text(done)
        assert "does not occur" in await refused(client, "rewrite", path="none.py", new_code="", old_code="x")


async def test_bash_and_diff_work_in_the_copy(connect: Connect, repo: Path) -> None:
    async with connect() as client:
        assert (await data(client, "bash", command="echo new > note.txt; exit 3"))["exit_code"] == 3
        changed = await data(client, "diff")
        assert [(file["path"], file["kind"]) for file in changed["files"]] == [("note.txt", "added")]
        assert "patch" in changed and "+new\n" in changed["patch"]
        assert (await data(client, "diff", format="summary"))["patch"] == ""
    assert not (repo / "note.txt").exists()


async def test_closing_gives_the_patch_and_ends_the_session(connect: Connect) -> None:
    async with connect() as client:
        opened = await data(client, "start_session")
        await data(client, "rewrite", path="new.py", new_code="x = 1\n", session_id=opened["session_id"])
        closed = await client.call_tool("close_session", {"session_id": opened["session_id"]})
        assert text(closed).startswith("Closed. 1 file changed:\n  new.py (added, +1 -0)\n```diff\n")
        assert (await data(client, "list_sessions"))["sessions"] == []


@pytest.mark.parametrize("shown", ["patch", "full"])
async def test_a_patch_is_given_once_unless_something_has_changed_since(connect: Connect, shown: str) -> None:
    async with connect() as client:
        await data(client, "rewrite", path="new.py", new_code="x = 1\n")
        await data(client, "diff", format=shown)
        closed = text(await client.call_tool("close_session"))
        assert (
            closed
            == "Closed. 1 file changed:\n  new.py (added, +1 -0)\nThe patch is the one that `diff` gave."
        )
    async with connect() as client:
        await data(client, "rewrite", path="new.py", new_code="x = 1\n")
        await data(client, "diff", format=shown)
        await data(client, "rewrite", path="new.py", new_code="x = 2\n")
        assert "\n+x = 2\n" in text(await client.call_tool("close_session"))


async def test_a_patch_of_which_diff_gave_only_a_part_is_given_again(connect: Connect) -> None:
    async with connect() as client:
        await data(client, "rewrite", path="new.py", new_code="x = 1\n" * 1000)
        await data(client, "diff")
        await data(client, "diff", format="summary")
        closed = text(await client.call_tool("close_session"))
        assert closed.count("\n+x = 1\n") and len(closed) > 7000


async def test_unknown_and_closed_handles_get_the_same_answer(connect: Connect) -> None:
    async with connect() as client:
        handle = (await data(client, "start_session"))["session_id"]
        await data(client, "close_session", session_id=handle)
        texts = {await refused(client, "diff", session_id=name) for name in (handle, "x")}
        assert texts == {"This session_id is unknown or has expired. `start_session` opens a new session."}


async def test_a_call_that_runs_while_its_session_is_closed_says_so(connect: Connect) -> None:
    async with connect() as client:
        handle = (await data(client, "start_session"))["session_id"]
        answers: list[str] = []

        async def run() -> None:
            answers.append(await refused(client, "bash", command="touch begun; sleep 600", timeout_s=500))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            while "begun" not in text(await client.call_tool("listdir", {})):
                await pause()
            await data(client, "close_session", session_id=handle)
        assert answers == ["The session was closed while this call ran. `start_session` opens a new session."]


async def test_an_empty_handle_means_the_only_session(connect: Connect, repo: Path) -> None:
    async with connect() as client:
        handle = (await data(client, "start_session"))["session_id"]
        await data(client, "rewrite", path="app.py", new_code="", session_id=handle)
        assert [file["path"] for file in (await data(client, "diff", session_id=""))["files"]] == ["app.py"]


async def test_a_file_is_changed_where_every_argument_is_filled_in(connect: Connect) -> None:
    whole = PROGRAM.splitlines()

    async with connect() as client:

        async def rewritten(**arguments: Any) -> list[str]:
            await data(client, "rewrite", path="app.py", **arguments)
            lines: list[str] = (await data(client, "view", path="app.py"))["lines"]
            return [line[len("1\t") :] for line in lines]

        assert await rewritten(new_code="# a", start=0, end=0, old_code="") == ["# a", *whole]
        assert await rewritten(new_code="# b", start=0, end=0, old_code="# a") == ["# b", *whole]
        assert await rewritten(new_code="# c", start=1, end=1, old_code="") == ["# c", *whole]
        for arguments, said in (
            ({"start": 0}, "There is no line 0: lines count from 1."),
            ({"old_code": ""}, "`old_code` is empty."),
            ({"old_code": "# c", "start": 1}, "Give `old_code` or `start`/`end`, not both."),
        ):
            assert said in await refused(client, "rewrite", path="app.py", new_code="", **arguments)


async def test_several_sessions_must_be_told_apart(connect: Connect) -> None:
    async with connect() as client:
        first = (await data(client, "start_session"))["session_id"]
        second = (await data(client, "start_session"))["session_id"]
        assert first != second and len(first) >= 32
        assert "session_id must say which" in await refused(client, "diff")
        await data(client, "diff", session_id=second)


async def test_no_more_sessions_than_allowed(connect: Connect) -> None:
    async with connect(max_sessions=1, queue_timeout_s=0) as client:
        await data(client, "start_session")
        assert await refused(client, "start_session") == (
            "1 sessions are open, and there may be no more. `list_sessions` shows yours; `close_session` ends one."
        )


async def test_calls_at_once_share_the_session_that_the_first_opens(connect: Connect) -> None:
    async with connect() as client:
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(data, client, "listdir")
        assert len((await data(client, "list_sessions"))["sessions"]) == 1


async def test_unknown_tool_and_argument_name_what_there_is(connect: Connect, era: str) -> None:
    async with connect(era) as client:
        assert "There are: start_session" in await refused(client, "edit")
        assert await refused(client, "view", file="app.py") == (
            "Unknown argument of `view`: 'file'. `view` takes: path, start, end, name, session_id."
        )


async def test_null_for_every_optional_argument_is_taken(connect: Connect, era: str) -> None:
    required = {
        "view": {"path": "app.py"},
        "grep": {"pattern": "x"},
        "pdb": {"command": "w"},
        "bash": {"command": "true"},
    }
    async with connect(era) as client:
        for tool in ("start_session", "listdir", "view", "grep", "pdb", "wait", "bash", "diff"):
            nulls = dict.fromkeys(catalog()[tool].arguments.model_fields)
            await data(client, tool, **{**nulls, **required.get(tool, {})})


async def test_repository_outside_of_the_roots_is_refused(connect: Connect) -> None:
    async with connect() as client:
        assert "/etc is outside of the folders this server may use" in await refused(
            client, "start_session", repo="/etc"
        )


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="no file that opens and can't be read")
async def test_an_archive_that_cannot_be_read_is_named(connect: Connect) -> None:
    async with connect(root=[Path("/proc")]) as client:
        answer = await refused(client, "start_session", repo="/proc/self/mem")
    assert answer.startswith("Can't read mem: Input/output error.")


class Faulty(ProcessBackend):
    """A backend with a bug."""

    async def start(self, spec: SandboxSpec, progress: Progress) -> Sandbox:
        raise RuntimeError("secret detail")


@asynccontextmanager
async def faulty() -> AsyncGenerator[Backend]:
    yield Faulty()


async def test_bug_of_ours_is_a_number_for_the_client_and_a_traceback_in_the_log(
    repo: Path, caplog: pytest.LogCaptureFixture
) -> None:
    asked = SessionRequest(repo=str(repo))
    store = SessionStore(faulty, Policy(roots=(repo,)), asked, allowed=SessionLimits(1), default_session=True)
    async with store, Client(build_server(store)) as client:
        with caplog.at_level(logging.ERROR):
            answer = await refused(client, "listdir")
    assert "secret" not in answer
    number = answer.partition("incident ")[2][:8]
    assert number in caplog.text and "secret detail" in caplog.text


async def test_cancelled_call_interrupts_the_program_and_the_next_works(
    connect: Connect, repo: Path, era: str
) -> None:
    (repo / "app.py").write_text("n = 0\nprint('on')\nwhile True:\n    n += 1\n")
    async with connect(era) as client:
        await data(client, "pdb", command="b app.py:3\nc\ncl 1")
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.call_tool, "pdb", {"command": "c"})
                while (await data(client, "list_sessions"))["sessions"][0]["state"] != "running":
                    await pause()
                tasks.cancel_scope.cancel()
            stop = await data(client, "wait")
        assert (stop["state"], stop["frame"]["path"]) == ("stopped", "app.py")
        assert (await data(client, "pdb", command="p n >= 0"))["reply"].strip() == "True"


async def test_long_call_reports_progress_that_always_grows(repo: Path, era: str) -> None:
    seen: list[float] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        seen.append(progress)

    # Over a transport: in memory the SDK passes no progress token, by which it is known who wants to be told.
    async with pdbox(
        "--repo", str(repo), "--backend", "process", "--unsafe-no-isolation", mode=era
    ) as session:
        await session.client.call_tool("bash", {"command": "sleep 1.6"}, progress_callback=note)
    assert len(seen) >= 3
    assert seen == sorted(set(seen))


async def test_every_refusal_of_a_bad_path_is_a_tool_error(connect: Connect) -> None:
    async with connect() as client:
        for path in ("../x", "/etc/passwd", "", "a\0b"):
            assert await refused(client, "view", path=path)
