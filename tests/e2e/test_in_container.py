"""Debugging in a container that is there already: its own files, its own Python, and nothing left in it."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
from mcp import MCPError
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.docker_client import docker
from tests.e2e.client import PDBOX, Session, ToolFailed, pdbox
from tests.polling import pause

pytestmark = [pytest.mark.anyio, pytest.mark.docker, pytest.mark.long]

IMAGE = "pdbox-sandbox:3.11"
PROGRAM = "def double(n):\n    result = n * 2\n    return result\n\nprint(double(21))\n"
TEST = "from app import double\n\ndef test_double():\n    assert double(2) == 4\n"
STOPPED_AT_2 = "stopped at app.py:2 in double"


@contextmanager
def container(*options: str, files: str = "/testbed") -> Iterator[str]:
    """A container of somebody else, with a program in the folder `files`; its name."""
    name = f"pdbox-test-{uuid.uuid4().hex[:12]}"
    # Without an init process, as most are: what its children leave is nobody's.
    command = ("--entrypoint", "sh", IMAGE, "-c", "sleep infinity")
    docker("run", "-d", "--name", name, "--network", "none", *options, *command)
    try:
        for path, text in (("app.py", PROGRAM), ("test_app.py", TEST)):
            inside(name, f"mkdir -p {files}; cat > {files}/{path}", text)
        yield name
    finally:
        docker("rm", "-f", name)


# One that is killed takes others with it, perhaps before `kill` comes to them.
KILL_GUEST = """\
pids=$(grep -l 'pdbox superviso[r]' /proc/[0-9]*/cmdline | cut -d/ -f3)
kill -9 $pids
test -n "$pids"
"""


def inside(name: str, command: str, text: str = "") -> str:
    """What a command in the container prints."""
    argv = ["docker", "exec", "-i", name, "sh", "-c", command]
    done = subprocess.run(argv, input=text, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def left_in(name: str) -> list[str]:
    """Files of pdbox in the container, and processes besides its own two."""
    find = "find / -xdev -name 'pdbox-*' 2>/dev/null; ls -d /dev/shm/pdbox-* 2>/dev/null; true"
    files = inside(name, find).splitlines()
    running = docker("top", name, "-eo", "pid,args").splitlines()[1:]
    return files + [line for line in running if "sleep infinity" not in line]


def servers_with_files() -> int:
    """Count the servers that have, or may have left, a guest."""
    return len(list(Path(os.environ["XDG_STATE_HOME"], "pdbox", "servers").iterdir()))


async def fails(server: Session) -> str:
    with pytest.raises(ToolFailed) as caught:
        await server.text("listdir")
    return str(caught.value)


async def test_an_agent_debugs_the_files_that_it_edits_itself() -> None:
    with container() as name:
        async with pdbox("--container", name, "--workdir", "/testbed") as server:
            listed = (await server.client.list_tools()).tools
            assert "start_session" not in {tool.name for tool in listed}
            assert not any("session_id" in tool.input_schema["properties"] for tool in listed)
            first = await server.text("pdb", entrypoint="python app.py", command="b app.py:2\nc")
            assert STOPPED_AT_2 in first
            assert f"note: isolation: the container {name} as it was found (no network" in first
            assert "no copy, programs and tools change its files in /testbed" in first
            inside(name, "sed -i 's/n \\* 2/n * 3/' /testbed/app.py")
            assert "app.py changed after the program had loaded it" in await server.text("pdb", command="n")
            await server.text("rewrite", path="app.py", old_code="n * 3", new_code="n + n")
            assert "+    result = n + n" in await server.text("diff")
            assert "1 passed" in await server.text("eval")
        assert "result = n + n" in inside(name, "cat /testbed/app.py")
        assert left_in(name) == []


async def test_nothing_is_left_when_the_guest_is_killed_and_its_children_go_on() -> None:
    with container() as name:
        async with pdbox("--container", name, "--workdir", "/testbed") as server:
            await server.text(
                "pdb",
                entrypoint="python app.py",
                command='!import os; os.spawnlp(1, "sleep", "sleep", "9999")',
            )
            inside(name, KILL_GUEST)
            with suppress(ToolFailed):  # or the loss is known already, and a new session opens
                await server.text("listdir")
        assert left_in(name) == []
        assert "sleep" in inside(name, "cat /proc/1/cmdline | tr '\\0' ' '")


async def test_the_guest_of_a_killed_server_ends_by_itself() -> None:
    with container() as name:
        argv = [PDBOX, "serve", "--container", name, "--workdir", "/testbed", "--session-grace", "1"]
        server = await anyio.open_process([*map(str, argv)], stderr=subprocess.DEVNULL)
        assert server.stdin is not None and server.stdout is not None
        await server.stdin.send(INITIALIZE + CALL)
        with anyio.fail_after(120):
            data = b""
            while b'"id":2' not in data.replace(b" ", b""):
                data += await server.stdout.receive()
            assert left_in(name) != []
            server.kill()
            while await anyio.to_thread.run_sync(left_in, name):
                await pause()


async def test_the_next_server_ends_what_a_killed_one_left_and_nothing_of_a_living_one() -> None:
    spawn = '!import os; os.spawnlp(1, "sleep", "sleep", "9999")'
    with container() as name:
        flags = ("--container", name, "--workdir", "/testbed")
        async with pdbox(*flags) as living:
            stopped = await living.text("pdb", entrypoint="python app.py", command="b app.py:2\nc")
            assert STOPPED_AT_2 in stopped
            kept = left_in(name)
            async with killed_server(*flags) as kill:
                await kill.text("pdb", entrypoint="python app.py", command=spawn)
                ended = set(left_in(name)) - set(kept)
                # It would never end by itself: its supervisor does not run.
                (mark,) = {line.rsplit("pdbox-")[-1] for line in ended if line.startswith("/")}
                inside(
                    name, f"kill -STOP $(grep -l {mark[:31]}[{mark[31]}] /proc/[0-9]*/cmdline | cut -d/ -f3)"
                )
            assert ended <= set(left_in(name))
            # It sees the killed one's file, and looks before the first call.
            async with pdbox(*flags) as following:
                await following.client.list_tools()
                with anyio.fail_after(40):
                    while (
                        ended & set(await anyio.to_thread.run_sync(left_in, name)) or servers_with_files() > 1
                    ):
                        await anyio.lowlevel.checkpoint()
            assert "n = 21" in await living.text("pdb", command="a")
        assert left_in(name) == []


async def test_the_next_server_removes_what_a_killed_guest_left() -> None:
    with container() as name:
        flags = ("--container", name, "--workdir", "/testbed")
        async with killed_server(*flags) as kill:
            await kill.text("pdb", entrypoint="python app.py", command="n")
            inside(name, KILL_GUEST)
        assert left_in(name) != []
        # Of a server that nobody knows here, as one of another machine.
        inside(name, "mkdir /var/tmp/pdbox-" + "1f" * 16)
        async with pdbox(*flags) as server:
            await server.text("listdir")
            with anyio.fail_after(40):
                while (
                    len([line for line in await anyio.to_thread.run_sync(left_in, name) if line[0] == "/"])
                    > 1
                ):
                    pass
        assert left_in(name) == []


@asynccontextmanager
async def killed_server(*flags: str) -> AsyncIterator[Session]:
    """Serve a client, and kill the server at the end."""
    command = ["sh", "-c", 'echo $$ >"$0"; exec "$@"']
    with tempfile.NamedTemporaryFile("r") as file:
        argv = [*command, file.name, str(PDBOX), "serve", "--answers", "both", *flags]
        parameters = StdioServerParameters(command=argv[0], args=argv[1:], env=dict(os.environ))
        with suppress(MCPError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            async with Client(stdio_client(parameters)) as client:
                yield Session(client)
                os.kill(int(file.read()), signal.SIGKILL)


INITIALIZE = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},'
    b'"clientInfo":{"name":"t","version":"1"}}}\n{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
)
CALL = b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"listdir","arguments":{}}}\n'


async def test_its_own_user_works_in_a_container_whose_root_is_read_only() -> None:
    place = ("--read-only", "--user", "1234:1234", "--tmpfs", "/testbed:mode=1777,exec")
    with container(*place) as name:
        async with pdbox("--container", name, "--workdir", "/testbed") as server:
            assert "1 passed" in await server.text(
                "eval", entrypoint="python -m pytest -q -p no:cacheprovider"
            )
            assert "uid=1234" in await server.text("bash", command="id")
        assert left_in(name) == []


@pytest.mark.parametrize(
    ("options", "before", "workdir", "said"),
    [
        ((), "", "/nowhere", "There is no folder /nowhere in the container"),
        ((), "", "/", "The folder / of the container"),
        (("--workdir", "/proc"), "", None, "The folder /proc of the container"),
        (
            (),
            "rm -f $(command -v python3) $(command -v python)",
            "/testbed",
            "There is no Python 3.8 or newer",
        ),
        (
            ("--read-only", "--ipc", "none", "--tmpfs", "/testbed"),
            "",
            "/testbed",
            "Nothing can be written in",
        ),
        ((), "rm -f $(readlink -f /bin/sh) /bin/sh", "/testbed", "The debugger did not start in"),
    ],
)
async def test_a_container_that_does_not_serve_is_said_why(
    options: tuple[str, ...], before: str, workdir: str | None, said: str
) -> None:
    with container(*options) as name:
        inside(name, before)
        flags = ["--workdir", workdir] if workdir else []
        async with pdbox("--container", name, *flags) as server:
            assert said in await fails(server)


async def test_a_container_that_does_not_run_is_said_so_and_then_served_once_it_does() -> None:
    async with pdbox("--container", "pdbox-test-none", "--workdir", "/testbed") as server:
        assert "There is no container 'pdbox-test-none' at " in await fails(server)
    with container("--workdir", "/testbed") as name:
        docker("pause", name)
        async with pdbox("--container", name) as server:
            assert f"The container {name} is paused. `docker unpause {name}`" in await fails(server)
            docker("unpause", name)
            assert "app.py" in await server.text("listdir")
            docker("kill", name)
            told = await fails(server)  # by the connection that ends, or by the container's state
            assert "`docker start" in told or "gone" in told
