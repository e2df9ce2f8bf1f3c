"""The end of a server on HTTP by a signal, whatever its clients do: in time, and with nothing left."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from signal import SIGINT, SIGTERM, Signals
from typing import Any

import anyio
import pytest

from tests.bubblewrap import LOCAL
from tests.e2e.client import Session
from tests.e2e.endless import ENDLESS, long_call, opened, over_http, until
from tests.e2e.served import OVER_HTTP, Server, Way, serving
from tests.e2e.test_lifecycle import containers
from tests.polling import pause

pytestmark = pytest.mark.anyio
FIRST = OVER_HTTP[0]


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(ENDLESS)
    return tmp_path


@asynccontextmanager
async def idle(server: Server) -> AsyncIterator[str]:
    async with server.connected(FIRST) as client:
        place = (await opened(client))["place"]
    yield place


@asynccontextmanager
async def in_a_call(server: Server) -> AsyncIterator[str]:
    async with open_stream(server, FIRST, call=True) as place:
        yield place


@asynccontextmanager
async def with_a_stream(server: Server) -> AsyncIterator[str]:
    """Clients of the older era listen on a GET that never ends."""
    async with open_stream(server, Way("http", "legacy")) as place:
        yield place


@asynccontextmanager
async def over_sse(server: Server) -> AsyncIterator[str]:
    async with open_stream(server, Way("sse", "auto"), call=True) as place:
        yield place


@asynccontextmanager
async def open_stream(server: Server, way: Way, *, call: bool = False) -> AsyncIterator[str]:
    """A connected client; what it says when its server goes is its own affair."""
    place = ""
    with suppress(Exception):
        async with server.client(way) as client, anyio.create_task_group() as tasks:
            session = Session(client)
            own = await opened(session)
            place = own["place"]
            if call:
                tasks.start_soon(quietly, long_call, session, own["session_id"])
                await until(session, own["session_id"], "running")
            yield place
            tasks.cancel_scope.cancel()
    assert place


async def quietly(function: Any, *args: Any) -> None:
    with suppress(Exception):
        await function(*args)


SITUATIONS = [idle, in_a_call, with_a_stream, over_sse]


@pytest.mark.parametrize("number", [SIGTERM, SIGINT], ids=lambda number: number.name)
@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda situation: situation.__name__)
async def test_a_signal_ends_the_server_with_nothing_left(
    repo: Path, backend: list[str], situation: Any, number: Signals
) -> None:
    with over_http(repo, backend) as server:
        async with situation(server) as place:
            # Where something hangs it takes a minute, and raises.
            assert await server.end(number) == 128 + number
        with anyio.fail_after(60):
            while place in (containers() if "docker" in backend else running()):
                await pause()
        assert "Traceback" not in "".join(server.said)


# Our server has no changes to tell and serves no such streams; one that does must not be held by them.
LISTENING = """
import sys
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.types import SubscriptionsListenRequestParams
from mcp_server import cli; from mcp_server.transports import http
from mcp_server.server import build_server

def listening(*args):
    server = build_server(*args)
    handler = ListenHandler(InMemorySubscriptionBus())
    server._lowlevel_server.add_request_handler("subscriptions/listen", SubscriptionsListenRequestParams, handler)
    return server

http.build_server = listening
sys.exit(cli.main(sys.argv[1:]))
"""


@pytest.mark.parametrize("number", [SIGTERM, SIGINT], ids=lambda number: number.name)
async def test_a_client_that_listens_cannot_hold_the_server(repo: Path, number: Signals) -> None:
    program = [sys.executable, "-c", LISTENING]
    env = {"PYTHONPATH": str(Path(__file__).parents[2])}
    with serving("--repo", str(repo), *LOCAL, program=program, **env) as server, suppress(Exception):
        async with server.client(FIRST) as client, client.listen(tools_list_changed=True):
            # Where something hangs it takes a minute, and raises.
            code = await server.end(number)
    assert code == 128 + number


def running() -> set[str]:
    """Process ids of all that runs, as the process backend names its sandboxes."""
    stats = (file.read_text() for file in Path("/proc").glob("[0-9]*/stat") if file.exists())
    return {stat.split()[0] for stat in stats if stat.rpartition(")")[2].split()[0] != "Z"}
