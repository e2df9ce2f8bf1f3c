"""When sessions end, who reaches them, and how many there may be. Process backend: the store is the same for all."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import pytest

from mcp_server import backends
from mcp_server.commands.serve import defaults, policy, stdio_store
from mcp_server.server import owner_of
from mcp_server.sessions.admission import SessionLimits
from mcp_server.sessions.opening import new_handle
from mcp_server.sessions.store import SessionStore
from mcp_server.settings import Settings
from sandbox.errors import Conflict, NotFound, SandboxLost
from sandbox.opening.request import SessionRequest
from sandbox.session.session import Session
from tests.mcp_server.conftest import Connect
from tests.mcp_server.test_calls import data, refused
from tests.polling import pause

pytestmark = pytest.mark.anyio

UNKNOWN = "This session_id is unknown or has expired. `start_session` opens a new session."
ME, YOU = "aa" * 16, "bb" * 16


@asynccontextmanager
async def opened(repo: Path, **settings: Any) -> AsyncGenerator[SessionStore]:
    """A store for `repo`, as a server has it."""
    usual = {"repo": repo, "backend": "process", "unsafe_no_isolation": True, "queue_timeout_s": 0}
    chosen = {**usual, **settings}
    async with stdio_store(Settings(**chosen)) as store:
        yield store


async def start(store: SessionStore, owner: str = ME) -> Session:
    return await store.open(owner, SessionRequest(), quiet)


def quiet(message: str, done: float | None = None, total: float | None = None) -> None:
    """Nobody reads it."""


async def answer_to(store: SessionStore, owner: str, handle: str | None) -> str:
    with pytest.raises(NotFound) as caught:
        await store.get(owner, handle, quiet)
    return str(caught.value)


async def gone(store: SessionStore, owner: str = ME) -> None:
    with anyio.fail_after(60):
        while await store.list_own(owner):
            await pause()


def test_no_handle_looks_like_an_option_of_a_command_line() -> None:
    handles = {new_handle() for _ in range(2000)}
    assert len(handles) == 2000
    assert all(handle.isalnum() and len(handle) >= 32 for handle in handles)


async def test_foreign_unknown_and_expired_handles_get_one_text(repo: Path) -> None:
    async with opened(repo, session_ttl_s=6) as store:
        session = await start(store)
        foreign = await answer_to(store, YOU, session.handle)
        await gone(store)
        texts = {foreign, await answer_to(store, ME, session.handle), await answer_to(store, ME, "nonsense")}
        assert texts == {UNKNOWN}


async def test_a_session_past_its_maximum_age_is_unknown_however_busy_it_was(repo: Path) -> None:
    async with opened(repo, session_max_age_s=8) as store:
        session = await start(store)
        # The guest's clock began a little earlier, and ends it between two requests.
        with anyio.fail_after(60), suppress(SandboxLost):
            while session.expiry.age_left_s > 0:
                await session.workspace.list()
        await gone(store)
        assert await answer_to(store, ME, session.handle) == UNKNOWN


async def test_a_call_that_runs_keeps_its_session(connect: Connect) -> None:
    async with connect(session_ttl_s=6) as client:
        handle = (await data(client, "start_session"))["session_id"]
        result = await data(client, "bash", command="sleep 8; echo done", session_id=handle)
        assert result["output"] == "done\n"
        await data(client, "listdir", session_id=handle)


async def test_a_call_that_runs_at_the_maximum_age_is_answered_whole_and_no_other_begins(
    connect: Connect, tmp_path: Path
) -> None:
    async with connect(session_max_age_s=8) as client:
        handle = (await data(client, "start_session"))["session_id"]
        answers: list[str] = []

        async def long_call() -> None:
            command = f"until [ -e {tmp_path}/go ]; do sleep 0.05; done; echo done"
            done = await data(client, "bash", command=command, timeout_s=600, session_id=handle)
            answers.append(done["output"])

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(long_call)
            with anyio.fail_after(60):
                while (await data(client, "list_sessions"))["sessions"]:
                    await pause()
            assert not answers
            assert await refused(client, "listdir", session_id=handle) == UNKNOWN
            (tmp_path / "go").touch()
        assert answers == ["done\n"]


async def test_listing_sessions_does_not_keep_them(repo: Path) -> None:
    async with opened(repo, session_ttl_s=6) as store:
        await start(store)
        await gone(store)


async def test_the_place_of_an_expired_session_is_free_without_anybody_touching_it(repo: Path) -> None:
    async with opened(repo, session_ttl_s=5, max_sessions=1) as store:
        await start(store)
        with pytest.raises(Conflict):
            await start(store)
        with anyio.fail_after(60):
            while store.list_held(ME):
                await pause()
        await start(store)


async def test_the_end_of_a_guest_is_learnt_from_its_connection(repo: Path) -> None:
    async with opened(repo, max_sessions=1) as store:
        session = await start(store)
        os.kill(int(session.sandbox.place), signal.SIGKILL)
        await gone(store)
        await start(store)
        assert await answer_to(store, ME, session.handle) == UNKNOWN


async def test_what_another_server_uses_is_not_idle(repo: Path) -> None:
    async with opened(repo, session_ttl_s=5) as first, opened(repo, session_ttl_s=5) as second:
        session = await start(first)
        same = await second.get(ME, session.handle, quiet)
        with anyio.fail_after(60):
            while session.expiry.idle_left_s > 0.5:
                await same.workspace.list()
            # The first server's idle time is over; it asks the guest, which knows better.
            while session.expiry.idle_left_s <= 0.5:
                await same.workspace.list()
        assert session.expiry.idle_left_s <= 5
        await first.get(ME, session.handle, quiet)


async def test_no_owner_has_more_sessions_than_allowed_and_another_still_gets_one(repo: Path) -> None:
    async with opened(repo, max_sessions=3, max_sessions_per_principal=2) as store:
        await start(store)
        await start(store)
        with pytest.raises(Conflict, match="You have 2 sessions open"):
            await start(store)
        await start(store, YOU)
        with pytest.raises(Conflict, match="3 sessions are open"):
            await start(store, YOU)


async def test_a_cancelled_opening_leaves_nothing(repo: Path) -> None:
    async with opened(repo, max_sessions=1, setup=["sleep 1000"]) as store:
        seen: list[str] = []
        begun = anyio.Event()

        def note(message: str, done: float | None = None, total: float | None = None) -> None:
            seen.append(message)
            if message.startswith("set-up"):
                begun.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(store.open, ME, SessionRequest(), note)
            with anyio.fail_after(60):
                await begun.wait()
            tasks.cancel_scope.cancel()
        assert await store.list_own(ME) == []
        await store.open(ME, SessionRequest(setup=()), quiet)


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No session of other servers on this machine is seen."""
    # Not below pytest's folder: the path of a socket has 108 bytes at most.
    with TemporaryDirectory(prefix="pdbox-test-") as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        yield


@pytest.mark.usefixtures("alone")
async def test_a_session_that_is_being_opened_is_not_one_of_another_server(repo: Path) -> None:
    async with opened(repo, keep_sessions=True, max_sessions=2) as store:
        begun = anyio.Event()

        def note(message: str, done: float | None = None, total: float | None = None) -> None:
            if message.startswith("set-up"):
                begun.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(store.open, ME, SessionRequest(setup=("sleep 1000",)), note)
            with anyio.fail_after(60):
                await begun.wait()
            assert await store.list_own(ME) == []
            await store.close(await start(store))  # the second of two
            tasks.cancel_scope.cancel()


@pytest.mark.usefixtures("alone")
async def test_a_kept_session_is_taken_over_once_by_calls_with_and_without_its_handle(repo: Path) -> None:
    async with opened(repo, keep_sessions=True) as store:
        handle = (await start(store)).handle
    async with opened(repo, keep_sessions=True) as store:
        found: set[Session] = set()

        async def get(handle: str | None) -> None:
            found.add(await store.get(ME, handle, quiet))

        async with anyio.create_task_group() as tasks:
            for given in (handle, None, handle, None):
                tasks.start_soon(get, given)
        for session in found:
            await store.close(session)
    assert len(found) == 1


@pytest.mark.usefixtures("alone")
async def test_a_session_that_breaks_the_protocol_is_not_taken_over_and_its_owner_is_told_so(
    repo: Path,
) -> None:
    async with opened(repo, keep_sessions=True) as store:
        kept = await start(store)
        await kept.request("meta.set", {"meta": ["no object"]})  # as a program in it may do
    async with opened(repo, keep_sessions=True) as store:
        assert await answer_to(store, ME, kept.handle) == (
            "The session can't be taken over: The sandbox's greeting is malformed. "
            "`start_session` opens a new session."
        )
        assert await answer_to(store, YOU, kept.handle) == UNKNOWN
        assert (await store.get(ME, None, quiet)).key != kept.key
    await kept.sandbox.aclose()


async def test_one_slow_opening_holds_up_no_other_call(repo: Path) -> None:
    async with opened(repo) as store:
        quick = await start(store)
        async with anyio.create_task_group() as tasks:
            slow = SessionRequest(setup=("sleep 1000",))
            tasks.start_soon(store.open, ME, slow, quiet)
            with anyio.fail_after(60):
                await start(store)
                await (await store.get(ME, quick.handle, quiet)).workspace.list()
            tasks.cancel_scope.cancel()


async def test_sessions_that_a_living_server_holds_for_itself_count_for_no_other_server(repo: Path) -> None:
    async with (
        opened(repo, max_sessions=2) as other,
        opened(repo, keep_sessions=True, max_sessions=2) as store,
    ):
        await start(other)
        await start(other)
        await start(store)
        await start(store)
        with pytest.raises(Conflict, match="2 sessions are open"):
            await start(store)
        for session in store.list_held(ME):
            await store.close(session)


async def test_kept_sessions_of_one_owner_take_no_place_of_another(repo: Path) -> None:
    kept: list[str] = []
    async with opened(repo, keep_sessions=True, max_sessions=2) as store:
        for _ in range(2):
            kept.append((await start(store)).handle or "")
    async with opened(repo, keep_sessions=True, max_sessions=2) as store:
        with pytest.raises(Conflict, match="2 sessions are open") as caught:
            await start(store)
        assert "30 min after their last call" in str(caught.value)
        await store.close(await start(store, YOU))
        for handle in kept:
            await store.close(await store.get(ME, handle, quiet))


async def test_the_machine_holds_a_bounded_number_of_sandboxes_however_many_owners_there_are(
    repo: Path,
) -> None:
    settings = Settings(repo=repo, backend="process", unsafe_no_isolation=True, keep_sessions=True)
    store = SessionStore(
        partial(backends.open_backend, settings),
        policy(settings, repo),
        defaults(settings, repo),
        allowed=SessionLimits(1, machine=2),
        default_session=False,
        user=owner_of(),
    )
    async with opened(repo) as other, store:
        await start(other)
        await store.close(await start(store, YOU))
        await start(other)
        with pytest.raises(Conflict, match="2 sandboxes of this user are running") as caught:
            await start(store, YOU)
        assert "pdbox sessions" in str(caught.value)


async def test_a_server_for_one_client_that_has_opened_no_session_names_the_option_for_a_server_per_call(
    repo: Path,
) -> None:
    async with opened(repo) as store:
        unknown = await answer_to(store, ME, "nonsense")
        assert unknown == await answer_to(store, YOU, "another")
        assert unknown.startswith("This session_id is unknown or has expired. ")
        assert "--keep-sessions" in unknown
        await start(store)
        assert await answer_to(store, ME, "nonsense") == UNKNOWN
    async with opened(repo, keep_sessions=True) as store:
        assert await answer_to(store, ME, "nonsense") == UNKNOWN


async def test_the_first_call_without_a_handle_takes_over_no_session_that_a_living_server_holds(
    repo: Path,
) -> None:
    async with opened(repo) as other, opened(repo, keep_sessions=True) as store:
        theirs = await start(other)
        ours = await store.get(ME, None, quiet)
        assert ours.key != theirs.key
        await store.close(ours)


@pytest.mark.long
async def test_a_sandbox_that_is_slow_with_one_request_is_not_taken_for_a_silent_one(repo: Path) -> None:
    async with opened(repo) as store:
        session = await start(store)
        # Longer than a silent one is waited for.
        ran = await session.while_answering(lambda: session.run("sleep 14; echo done", timeout_s=60))
        assert ran.output == "done\n"
