"""Calls that wait for a place, since as many sessions are open as there may be."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from mcp_server.sessions.places import PlaceQueue, Refusal
from sandbox.errors import Conflict, NotFound
from sandbox.opening.request import SessionRequest
from tests.bubblewrap import UNSAFE
from tests.e2e.client import pdbox
from tests.mcp_server.conftest import Connect
from tests.mcp_server.sessions.test_lifetimes import ME, YOU, answer_to, opened, quiet, start
from tests.mcp_server.test_calls import refused

pytestmark = pytest.mark.anyio


class Hall:
    """Places for `total`, of one owner `each`, and the calls that asked for them."""

    def __init__(self, total: int, each: int) -> None:
        self.total, self.each = total, each
        self.queue = PlaceQueue()
        self.inside: list[str] = []
        self.order: list[str] = []
        self.said: dict[str, str] = {}
        self.scopes: dict[str, anyio.CancelScope] = {}

    def take(self, owner: str) -> Refusal | None:
        if self.inside.count(owner) >= self.each:
            return Refusal(Conflict(f"{owner} has enough."), is_own=True)
        if len(self.inside) >= self.total:
            return Refusal(Conflict("All are taken."))
        self.inside.append(owner)
        return None

    async def enter(self, name: str, owner: str) -> None:
        def report(message: str, done: float | None = None, total: float | None = None) -> None:
            self.said[name] = message

        with anyio.CancelScope() as self.scopes[name]:
            await self.queue.take(owner, lambda: self.take(owner), within_s=600, report=report)
            self.order.append(name)

    def leave(self, owner: str) -> None:
        self.inside.remove(owner)
        self.queue.wake()


async def until(is_true: Callable[[], bool]) -> None:
    with anyio.fail_after(60):
        while not is_true():
            await anyio.lowlevel.checkpoint()


async def test_places_are_given_in_order_and_a_principal_with_enough_blocks_no_other() -> None:
    hall = Hall(total=2, each=1)
    async with anyio.create_task_group() as tasks:
        for name, owner in (("a1", "a"), ("a2", "a"), ("a3", "a"), ("b1", "b"), ("c1", "c"), ("d1", "d")):
            tasks.start_soon(hall.enter, name, owner)
            await anyio.lowlevel.checkpoint()
        # a2 came before b1 but waits for a1 alone.
        await until(lambda: len(hall.said) == 4)
        assert hall.order == ["a1", "b1"]
        assert hall.said == {
            "a2": "waiting for a place, number 1 in the queue: a has enough.",
            "a3": "waiting for a place, number 2 in the queue: a has enough.",
            "c1": "waiting for a place, number 1 in the queue: All are taken.",
            "d1": "waiting for a place, number 2 in the queue: All are taken.",
        }
        hall.leave("b")
        await until(lambda: len(hall.order) == 3)
        assert hall.said["d1"] == "waiting for a place, number 1 in the queue: All are taken."
        hall.leave("a")  # a2 came first of all
        await until(lambda: len(hall.order) == 4)
        hall.scopes["d1"].cancel()
        hall.leave("c")
        hall.leave("a")
        await until(lambda: len(hall.order) == 5)
    assert hall.order == ["a1", "b1", "c1", "a2", "a3"]


async def test_a_session_opens_as_soon_as_another_ends_and_says_its_place_in_the_queue(repo: Path) -> None:
    async with opened(repo, max_sessions=1, queue_timeout_s=600) as store:
        first, said = await start(store), []
        done = anyio.Event()

        def note(message: str, done: float | None = None, total: float | None = None) -> None:
            said.append(message)

        async def second() -> None:
            await store.open(YOU, SessionRequest(), note)
            done.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(second)
            await until(lambda: bool(said))
            assert not done.is_set()
            await store.close(first)
            with anyio.fail_after(60):
                await done.wait()
    assert said[0].startswith("waiting for a place, number 1 in the queue: 1 sessions are open")


async def test_a_call_that_gave_up_or_was_cancelled_holds_no_place(repo: Path) -> None:
    async with opened(repo, max_sessions=1, queue_timeout_s=600) as store:
        first, said = await start(store), anyio.Event()

        def note(message: str, done: float | None = None, total: float | None = None) -> None:
            said.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(store.open, ME, SessionRequest(), note)
            with anyio.fail_after(60):
                await said.wait()
            tasks.cancel_scope.cancel()
        with pytest.raises(Conflict, match=r"there may be no more. None ended within 0.1 s.") as caught:
            await store.open(ME, SessionRequest(), quiet, within_s=0.1)
        assert "`close_session` ends one" in str(caught.value)
        await store.close(first)
        await start(store)


async def test_calls_that_wait_are_refused_when_the_server_closes(repo: Path) -> None:
    refusals: list[str] = []
    async with opened(repo, max_sessions=1, queue_timeout_s=600) as store:
        await start(store)
        said = anyio.Event()

        def note(message: str, done: float | None = None, total: float | None = None) -> None:
            said.set()

        async def wait() -> None:
            with pytest.raises(Conflict) as caught:
                await store.open(ME, SessionRequest(), note)
            refusals.append(str(caught.value))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            with anyio.fail_after(60):
                await said.wait()
            await store.aclose()
    assert refusals == ["The server is closing."]


async def test_a_client_is_told_that_it_waits_and_gets_its_session(repo: Path) -> None:
    # Over a transport: in memory the SDK passes no progress token, by which it is known who wants to be told.
    async with pdbox(*UNSAFE, "--repo", str(repo), "--max-sessions", "1", "--queue-timeout", "600") as server:
        first = (await server.call("start_session"))["session_id"]
        told = anyio.Event()

        async def note(progress: float, total: float | None, message: str | None) -> None:
            if "number 1 in the queue" in (message or ""):
                told.set()

        results: list[bool | None] = []

        async def second() -> None:
            done = await server.client.call_tool("start_session", {}, progress_callback=note)
            results.append(done.is_error)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(second)
            with anyio.fail_after(60):
                await told.wait()
            await server.call("close_session", session_id=first)
        assert results == [False]


async def test_a_call_that_must_answer_soon_waits_no_longer_for_a_place(connect: Connect) -> None:
    async with connect(max_sessions=1, queue_timeout_s=600, answer_within_s=8, answers="text") as client:
        await client.call_tool("listdir")
        began = time.monotonic()
        text = await refused(client, "start_session")
        assert "there may be no more. None ended within" in text
        assert time.monotonic() - began < 60


async def test_an_unknown_handle_is_refused_at_once_where_all_places_are_taken(repo: Path) -> None:
    async with opened(repo, max_sessions=1, queue_timeout_s=600) as store:
        await start(store)
        with pytest.raises(NotFound):
            await store.get(ME, "nonsense", quiet)
        assert await answer_to(store, YOU, "nonsense")
