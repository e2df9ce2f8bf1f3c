"""The same server on every transport, in both eras of the protocol: sessions, progress, cancellation, and its end."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path

import anyio
import pytest

from tests.bubblewrap import LOCAL
from tests.e2e.client import Session, pdbox
from tests.e2e.endless import ENDLESS, begun, long_call, opened, over_http, until
from tests.e2e.served import OVER_HTTP, STREAMABLE, Server, Way, initialize, serving

pytestmark = pytest.mark.anyio

EVERYWHERE = [Way("stdio", "auto"), Way("stdio", "legacy"), *OVER_HTTP]
FIRST, LAST = OVER_HTTP[0], OVER_HTTP[-1]


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(ENDLESS)
    return tmp_path


Serving = Callable[[str, list[str]], Server]


@pytest.fixture(scope="module")
def server_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """The server for a transport and a backend: one for all tests that look at nothing but their own session."""
    servers: dict[tuple[str, ...], Server] = {}
    repo, state = tmp_path_factory.mktemp("repo"), tmp_path_factory.mktemp("state")
    (repo / "app.py").write_text(ENDLESS)
    flags = ["--repo", str(repo), "--entrypoint", "python app.py"]
    with ExitStack() as stack:

        def started(transport: str, backend: list[str]) -> Server:
            key = (transport, *backend)
            if key not in servers:
                one = serving("--transport", transport, *flags, *backend, XDG_STATE_HOME=str(state))
                servers[key] = stack.enter_context(one)
            return servers[key]

        yield started


@asynccontextmanager
async def connected(
    way: Way, repo: Path, backend: list[str], server_of: Serving
) -> AsyncIterator[tuple[Session, str]]:
    """A client by any transport, and its new session."""
    if way.transport == "stdio":
        async with pdbox(
            "--repo", str(repo), "--entrypoint", "python app.py", *backend, mode=way.mode
        ) as client:
            yield client, await begun(client)
    else:
        async with server_of(way.transport, backend).connected(way) as client:
            handle = await begun(client)
            yield client, handle
            await client.call("close_session", session_id=handle)


async def test_a_session_is_reached_from_every_connection(repo: Path, backend: list[str]) -> None:
    with over_http(repo, backend) as server:
        async with server.connected(FIRST) as client:
            handle = (await opened(client))["session_id"]
            first = await client.call("pdb", command="b 3\nc", session_id=handle)
            assert (first["state"], first["frame"]["line"]) == ("stopped", 3)
            for way in OVER_HTTP:
                async with server.connected(way) as other:
                    assert (await other.call("pdb", command="p n", session_id=handle))["reply"] == "0\n"
        # The one who opened it has left; again, over each.
        for way in OVER_HTTP:
            async with server.connected(way) as other:
                again = await other.call("pdb", command="w", session_id=handle)
                assert (again["stop"], again["run"]) == (first["stop"], first["run"])


async def test_a_client_that_leaves_takes_no_others_session_along(repo: Path, backend: list[str]) -> None:
    with over_http(repo, backend) as server:
        async with server.connected(LAST) as staying:
            async with server.connected(LAST) as leaving:
                theirs = (await opened(leaving))["session_id"]
                ours = (await opened(staying))["session_id"]
            for handle in (ours, theirs):
                assert (await staying.call("pdb", command="p 6 * 7", session_id=handle))["reply"] == "42\n"


@pytest.mark.parametrize("way", EVERYWHERE, ids=str)
async def test_a_cancelled_call_interrupts_the_program(
    repo: Path, backend: list[str], way: Way, server_of: Serving
) -> None:
    async with connected(way, repo, backend, server_of) as (client, handle):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(long_call, client, handle)
            await until(client, handle, "running")
            tasks.cancel_scope.cancel()
        await until(client, handle, "stopped")
        stop = await client.call("pdb", command="p n >= 0", session_id=handle)
        assert stop["reply"] == "True\n"
        assert (await client.call("pdb", command="n", session_id=handle))["reason"] == "step"


@pytest.mark.parametrize("way", EVERYWHERE, ids=str)
async def test_a_running_program_is_reported_on(repo: Path, way: Way, server_of: Serving) -> None:
    told: list[float] = []
    enough = anyio.Event()

    async def heard(progress: float, total: float | None, message: str | None) -> None:
        told.append(progress)
        if len(told) == 3:
            enough.set()

    async with connected(way, repo, LOCAL, server_of) as (client, handle):
        arguments = {"command": "c", "timeout_s": 300, "session_id": handle}

        async def call() -> None:
            await client.client.call_tool("pdb", arguments, progress_callback=heard)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            with anyio.fail_after(60):
                await enough.wait()
            tasks.cancel_scope.cancel()
    assert told == sorted(set(told))


CALLS = """
import anyio, sys
from tests.e2e.endless import ENDLESS, begun, long_call, opened, over_http, until
from tests.e2e.served import Way, Server

async def main(base, transport, mode, handle):
    server = Server.__new__(Server)
    server.base = base
    async with server.connected(Way(transport, mode)) as client:
        await client.call("pdb", command="c", timeout_s=300, session_id=handle)

anyio.run(main, *sys.argv[1:])
"""


@pytest.mark.parametrize("way", OVER_HTTP, ids=str)
async def test_the_session_of_a_client_that_was_killed_can_be_interrupted(repo: Path, way: Way) -> None:
    with over_http(repo, LOCAL) as server:
        async with server.connected(FIRST) as witness:
            handle = await begun(witness)
            command = [sys.executable, "-c", CALLS, server.base, way.transport, way.mode, handle]
            victim = await anyio.open_process(
                command, cwd=Path(__file__).parents[2], stdout=None, stderr=None
            )
            await until(witness, handle, "running")
            victim.kill()
            await victim.wait()
            if way == Way("http", "legacy"):
                # Nothing tells the server of it: the call goes on until its deadline, or until somebody else interrupts.
                stop = await witness.call("wait", interrupt=True, session_id=handle)
                assert (stop["state"], stop["reason"]) == ("stopped", "interrupt")
            await until(witness, handle, "stopped")
            assert (await witness.call("pdb", command="p n >= 0", session_id=handle))["reply"] == "True\n"
        # The dead client's call has ended, so that nothing holds the server back.
        assert await server.end() == 143
        assert "Traceback" not in "".join(server.said)


async def test_a_call_nobody_waits_for_is_interrupted_from_another_connection(repo: Path) -> None:
    with over_http(repo, LOCAL) as server:
        async with server.connected(FIRST) as witness, server.http(**STREAMABLE) as http:
            handle = await begun(witness)
            answer = await http.post("/mcp", json=initialize())
            arguments = {"command": "c", "timeout_s": 1, "session_id": handle}
            call = {"name": "pdb", "arguments": arguments}
            message = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}
            connection = {"Mcp-Session-Id": answer.headers["mcp-session-id"]}
            async with http.stream("POST", "/mcp", json=message, headers=connection):
                pass  # gone before the answer
            await until(witness, handle, "running")
            # A `pdb` command has to wait for the end of the one before.
            with anyio.fail_after(60):
                stop = await witness.call("wait", interrupt=True, session_id=handle)
            assert stop["state"] == "stopped"


async def test_64_mb_of_output_leave_every_client_connected(repo: Path, backend: list[str]) -> None:
    (repo / "app.py").write_text("for _ in range(64):\n    print('x' * (1 << 20))\nn = 1\n")
    with over_http(repo, backend) as server:
        async with AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(server.connected(way)) for way in OVER_HTTP]
            handle = (await opened(clients[0]))["session_id"]
            before = peak_kb(server)
            for client in clients:
                result = await client.client.call_tool(
                    "pdb",
                    {
                        "command": "tbreak 3\nrun\nc" if client is not clients[0] else "tbreak 3\nc",
                        "session_id": handle,
                    },
                )
                assert not result.is_error
                assert len(result.model_dump_json()) < 30_000
                assert result.structured_content is not None
                assert result.structured_content["frame"]["line"] == 3
                cut = [one for one in result.structured_content["omitted"] if one["field"] == "output"]
                assert sum(one["count"] for one in cut) > 60 << 20
            for client in clients:
                assert (await client.call("pdb", command="p 1", session_id=handle))["reply"] == "1\n"
            assert peak_kb(server) - before < 64 << 10


def peak_kb(server: Server) -> int:
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
