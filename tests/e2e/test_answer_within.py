"""`--answer-within`: calls answer in time and go on, and `wait` gives their own answers. All of it through a real client."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcp_server.sessions.pending import MAX_CALLS
from tests.bubblewrap import LOCAL, UNSAFE
from tests.e2e.client import Session, ToolFailed, pdbox
from tests.e2e.served import Way, serving
from tests.polling import pause
from tests.repository import repository

pytestmark = pytest.mark.anyio

WITHIN = ["--answer-within", "1"]
UNTIL_GO = "until [ -e go ]; do sleep 0.05; done; echo gone on"
UNKNOWN = "This session_id is unknown or has expired. `start_session` opens a new session."
PATIENCE_S = 120


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository whose programs go on once there is a file `go`."""
    return repository(
        tmp_path / "repo",
        {
            "app.py": "import os, time\n\n\ndef until_go():\n    while not os.path.exists('go'):\n        time.sleep(0.05)\n"
            "    return 'gone on'\n\n\nprint('begun', flush=True)\nprint(until_go())\n",
            "test_app.py": "from app import until_go\n\n\ndef test_go():\n    assert until_go() == 'gone on'\n",
        },
    )


@pytest.fixture
def signal(tmp_path: Path, backend: list[str]) -> tuple[Path, str, list[str]]:
    """A file that set-up commands can wait for: here, its path in the sandbox, and the flags for that."""
    folder = tmp_path / "signal"
    folder.mkdir()
    if "process" in backend:
        return folder / "go", str(folder / "go"), []
    return folder / "go", "/signal/go", ["--mount", f"{folder}:/signal"]


def until(file: str, then: str = "true") -> str:
    return f"until [ -e {file} ]; do sleep 0.05; done; {then}"


async def own_answer(call: Callable[[], Awaitable[str]]) -> str:
    """The first answer that is not `running`."""
    with anyio.fail_after(PATIENCE_S):
        while True:
            text = await call()
            if "running: " not in text:
                return text


async def first_stop(session: Session, handle: str) -> str:
    """The answer at a breakpoint in line 11, whichever way it is told before that the program has not stopped yet."""
    with anyio.fail_after(PATIENCE_S):
        text = await session.text("pdb", command="b app.py:11\nc", session_id=handle)
        while text.startswith("running"):
            text = await session.text("wait", session_id=handle)
    return text


async def opened(session: Session, **arguments: Any) -> str:
    """The handle of a session that is open."""
    first = await session.text("start_session", **arguments)
    handle = first.split()[1]
    if "running: " in first:
        await own_answer(lambda: session.text("wait", session_id=handle))
    return handle


async def go_on(session: Session, handle: str) -> None:
    await session.text("rewrite", path="go", new_code="", session_id=handle)


async def test_a_long_command_is_left_running_and_wait_gives_its_own_answer(
    backend: list[str], repo: Path
) -> None:
    async with pdbox(*backend, "--repo", str(repo), *WITHIN) as session:
        handle = await opened(session)
        text = await session.text("bash", command=UNTIL_GO, session_id=handle, timeout_s=PATIENCE_S)
        assert text.startswith("running: `bash` has not ended after ")
        assert "`wait` gives its answer" in text
        assert (await session.text("wait", session_id=handle)).startswith("running: `bash`")
        await go_on(session, handle)
        answer = await own_answer(lambda: session.text("wait", session_id=handle))
        assert answer == "exit code 0, output:\n```\ngone on\n```"
        # Given once: `wait` is about the debugger again.
        assert (await session.text("wait", session_id=handle)).startswith("not started")


async def test_a_long_test_run_is_left_running_and_wait_gives_its_outcome(
    backend: list[str], repo: Path
) -> None:
    repository(repo, {"test_first.py": "def test_first():\n    pass\n"})
    flags = ["--entrypoint", "python -m pytest -q -p no:cacheprovider test_first.py test_app.py"]
    async with pdbox(*backend, "--repo", str(repo), *flags, *WITHIN) as session:
        handle = await opened(session)
        assert (await session.text("eval", session_id=handle)).startswith("running: `eval`")
        await go_on(session, handle)
        answer = await own_answer(lambda: session.text("wait", session_id=handle))
        assert answer.startswith("2 passed (exit code 0)")


async def test_a_second_program_beside_one_that_is_left_running_is_refused_and_files_can_be_read(
    repo: Path,
) -> None:
    async with pdbox(*LOCAL, "--repo", str(repo), *WITHIN) as session:
        handle = await opened(session)
        await session.text("bash", command=UNTIL_GO, session_id=handle, timeout_s=PATIENCE_S)
        for tool, arguments in (
            ("bash", {"command": "true"}),
            ("eval", {"entrypoint": "true"}),
            ("pdb", {"command": "w"}),
        ):
            with pytest.raises(ToolFailed, match="`bash` is still running in this session") as caught:
                await session.text(tool, session_id=handle, **arguments)
            assert "`wait`" in str(caught.value)
        read = await own_answer(lambda: session.text("view", path="app.py", session_id=handle))
        assert "def until_go" in read
        await go_on(session, handle)
        await own_answer(lambda: session.text("wait", session_id=handle))
        after = await own_answer(lambda: session.text("bash", command="echo free", session_id=handle))
        assert "free" in after


async def test_wait_with_interrupt_stops_what_was_left_running(backend: list[str], repo: Path) -> None:
    async with pdbox(*backend, "--repo", str(repo), *WITHIN) as session:
        handle = await opened(session)
        command = f"echo $$ > pid; {UNTIL_GO}"
        await session.text("bash", command=command, session_id=handle, timeout_s=PATIENCE_S)
        stopped = await session.text("wait", interrupt=True, session_id=handle)
        assert stopped.startswith("`bash` was stopped after ")
        gone = "while kill -0 $(cat pid) 2>/dev/null; do sleep 0.01; done; echo over"
        found = await session.text("bash", command=gone, session_id=handle, timeout_s=PATIENCE_S)
        if "running: " in found:
            found = await own_answer(lambda: session.text("wait", session_id=handle))
        assert "over" in found


async def test_a_program_in_the_debugger_is_running_in_time_and_wait_goes_on_with_it(
    backend: list[str], repo: Path
) -> None:
    async with pdbox(*backend, "--repo", str(repo), "--entrypoint", "python app.py", *WITHIN) as session:
        handle = await opened(session)

        async def state(tool: str, **arguments: Any) -> str:
            return (await session.text(tool, session_id=handle, **arguments)).splitlines()[0]

        with anyio.fail_after(PATIENCE_S):
            line = await state("pdb", command="c")
            while line.startswith("running: "):  # on a busy machine its start takes longer
                line = await state("wait")
        assert line == "running"
        stopped = await own_answer(lambda: session.text("wait", interrupt=True, session_id=handle))
        assert stopped.startswith("stopped at app.py:")
        await go_on(session, handle)
        ended = await own_answer(lambda: session.text("pdb", command="c", session_id=handle))
        assert "gone on" in ended


async def test_an_evaluation_longer_than_the_limit_is_not_broken_off(backend: list[str], repo: Path) -> None:
    async with pdbox(*backend, "--repo", str(repo), "--entrypoint", "python app.py", *WITHIN) as session:
        handle = await opened(session)
        assert (await first_stop(session, handle)).startswith("stopped at app.py:11")
        text = await session.text("pdb", command="p until_go() * 2", timeout_s=PATIENCE_S, session_id=handle)
        assert text.startswith("running: `pdb` has not ended after ")
        await go_on(session, handle)
        answer = await own_answer(lambda: session.text("wait", session_id=handle))
        assert "'gone ongone on'" in answer


async def test_interrupting_an_evaluation_shows_where_the_program_is(repo: Path) -> None:
    async with pdbox(*LOCAL, "--repo", str(repo), "--entrypoint", "python app.py", *WITHIN) as session:
        handle = await opened(session)
        await first_stop(session, handle)
        await session.text("pdb", command="p until_go()", timeout_s=PATIENCE_S, session_id=handle)
        stopped = await own_answer(lambda: session.text("wait", interrupt=True, session_id=handle))
        assert stopped.startswith("stopped at app.py:11")


async def test_a_session_that_is_still_starting_has_its_handle_and_calls_wait_for_it(
    backend: list[str], repo: Path, signal: tuple[Path, str, list[str]]
) -> None:
    here, inside, flags = signal
    async with pdbox(*backend, "--repo", str(repo), *flags, *WITHIN) as session:
        started = await session.text("start_session", setup=[until(inside, "echo made > made")])
        first, second, *_ = started.splitlines()
        handle = first.removeprefix("session_id: ")
        assert second.startswith("running: `start_session` has not ended after ")
        text = await session.text("bash", command="cat made", session_id=handle)
        assert text.startswith("running: `bash`")
        here.touch()
        answer = await own_answer(lambda: session.text("wait", session_id=handle))
        assert answer == "exit code 0, output:\n```\nmade\n```"


async def test_a_first_call_says_that_it_ends_with_its_server_where_a_client_may_start_one_for_each(
    repo: Path,
) -> None:
    said = "If this client starts a server for each call"
    flags = [*UNSAFE, "--repo", str(repo), *WITHIN]
    async with pdbox(*flags, "--keep-sessions") as session:
        text = await session.text("bash", command=UNTIL_GO, timeout_s=PATIENCE_S)
        assert text.startswith("running: `bash`") and text.count(said) == 1
        assert "`--answer-within`" in text
        assert said not in await session.text("wait")
        await session.text("close_session")
    async with pdbox(*flags) as session:
        assert said not in await session.text("bash", command=UNTIL_GO, timeout_s=PATIENCE_S)


async def test_wait_gives_the_answer_of_a_start(repo: Path, tmp_path: Path) -> None:
    async with pdbox(*UNSAFE, "--repo", str(repo), *WITHIN) as session:
        started = await session.text("start_session", setup=[until(str(tmp_path / "go"))])
        handle = started.split()[1]
        # It is this client's only session, also before it is open.
        assert "running: `start_session`" in await session.text("wait")
        (tmp_path / "go").touch()
        answer = await own_answer(lambda: session.text("wait"))
        assert answer.startswith(f"session_id: {handle}\nisolation: ")
        assert "entrypoint: " in answer


async def test_a_start_that_fails_is_told_to_the_next_call_that_uses_its_handle(
    repo: Path, tmp_path: Path
) -> None:
    async with pdbox(*UNSAFE, "--repo", str(repo), *WITHIN) as session:
        setup = [until(str(tmp_path / "go"), "echo no such wheel; exit 3")]
        handle = (await session.text("start_session", setup=setup)).split()[1]
        (tmp_path / "go").touch()
        with pytest.raises(ToolFailed, match=r"(?s)The session could not be opened\. .*no such wheel"):
            await own_answer(lambda: session.text("listdir", session_id=handle))
        with pytest.raises(ToolFailed, match="unknown or has expired"):
            await session.text("listdir", session_id=handle)


async def test_the_first_call_on_stdio_answers_in_time_while_it_opens_the_session(
    repo: Path, tmp_path: Path
) -> None:
    setup = until(str(tmp_path / "go"), "echo made > made")
    async with pdbox(*UNSAFE, "--repo", str(repo), "--setup", setup, *WITHIN) as session:
        assert (await session.text("bash", command="cat made")).startswith("running: `bash`")
        with pytest.raises(ToolFailed, match="`bash` is still running"):
            await session.text("eval")
        (tmp_path / "go").touch()
        answer = await own_answer(lambda: session.text("wait"))
        assert answer == "exit code 0, output:\n```\nmade\n```"
        assert (await session.text("list_sessions")).startswith("1 session:")


async def test_a_call_that_its_client_cancels_in_time_stops_its_program(repo: Path) -> None:
    async with pdbox(*LOCAL, "--repo", str(repo), "--answer-within", str(PATIENCE_S)) as session:
        handle = await opened(session)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(
                lambda: session.text("bash", command=f"echo $$ > pid; {UNTIL_GO}", session_id=handle)
            )
            with anyio.fail_after(PATIENCE_S):
                while "pid" not in await session.text("listdir", session_id=handle):
                    await pause()
            tasks.cancel_scope.cancel()
        over = "while kill -0 $(cat pid) 2>/dev/null; do sleep 0.05; done; echo over"
        assert "over" in await session.text("bash", command=over, session_id=handle)
        assert (await session.text("wait", session_id=handle)).startswith("not started")


async def test_a_closed_session_takes_its_pending_answers_with_it(repo: Path) -> None:
    async with pdbox(*LOCAL, "--repo", str(repo), *WITHIN) as session:
        handle = await opened(session)
        await session.text("bash", command=UNTIL_GO, session_id=handle, timeout_s=PATIENCE_S)
        await go_on(session, handle)
        await session.text("close_session", session_id=handle)  # on a busy machine: that it is running
        with anyio.fail_after(PATIENCE_S):
            while (await session.text("list_sessions")) != "No sessions. `start_session` opens one.":
                await pause()
        with pytest.raises(ToolFailed) as caught:
            while True:
                await session.text("wait", session_id=handle)
        assert str(caught.value) == UNKNOWN


async def test_what_closing_a_session_gave_is_not_lost_when_it_took_longer(
    repo: Path, tmp_path: Path
) -> None:
    async with pdbox(*UNSAFE, "--repo", str(repo), *WITHIN) as session:
        setup = [until(str(tmp_path / "go"))]
        handle = (await session.text("start_session", setup=setup)).split()[1]
        closing = await session.text("close_session", session_id=handle)
        assert closing.startswith("running: `close_session`")
        (tmp_path / "go").touch()
        with anyio.fail_after(PATIENCE_S):
            while (await session.text("list_sessions")) != "No sessions. `start_session` opens one.":
                await pause()
        answer = await own_answer(lambda: session.text("wait", session_id=handle))
        assert answer.startswith("Closed. ")
        with pytest.raises(ToolFailed, match="unknown or has expired"):
            await session.text("wait", session_id=handle)


async def test_a_limit_is_each_connections_own_and_answers_are_only_for_whose_session_it_is(
    repo: Path, tmp_path: Path
) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("me 1234567890123456\nyou 6543210987654321\n")
    tokens.chmod(0o600)
    way = Way("http", "auto")
    with serving(*LOCAL, "--repo", str(repo), "--token-file", str(tokens)) as server:
        async with (
            server.client(way, "1234567890123456", query="?answer_within=1") as hasty,
            server.client(way, "1234567890123456", query="?answers=text") as patient,
            server.client(way, "6543210987654321", query="?answer_within=1") as stranger,
        ):
            handle = await opened(Session(hasty))
            await Session(hasty).text("bash", command=UNTIL_GO, session_id=handle, timeout_s=PATIENCE_S)
            with pytest.raises(ToolFailed, match="unknown or has expired"):
                await Session(stranger).text("wait", session_id=handle)
            await go_on(Session(patient), handle)
            answer = await Session(patient).text("wait", session_id=handle, timeout_s=PATIENCE_S)
            assert answer == "exit code 0, output:\n```\ngone on\n```"


async def test_with_a_limit_answers_have_data_without_a_schema_that_running_would_not_fit(repo: Path) -> None:
    flags = [*LOCAL, "--repo", str(repo), "--answers", "both", *WITHIN]
    async with pdbox(*flags) as session:
        assert all(tool.output_schema is None for tool in (await session.client.list_tools()).tools)
        handle = await opened(session)
        data = await session.call("bash", command=UNTIL_GO, session_id=handle, timeout_s=PATIENCE_S)
        assert (data["state"], data["tool"]) == ("running", "bash")


async def test_calls_that_nobody_waits_for_are_bounded(repo: Path, tmp_path: Path) -> None:
    async with pdbox(*UNSAFE, "--repo", str(repo), *WITHIN) as session:
        setup = [until(str(tmp_path / "go"))]
        handle = (await session.text("start_session", setup=setup)).split()[1]
        refused: list[str] = []

        async def listed() -> None:
            try:
                await session.text("listdir", session_id=handle)
            except ToolFailed as exc:
                refused.append(str(exc))

        async with anyio.create_task_group() as tasks:
            for _ in range(MAX_CALLS):
                tasks.start_soon(listed)
        assert refused == [f"{MAX_CALLS} earlier calls are still running: this one was stopped."]
