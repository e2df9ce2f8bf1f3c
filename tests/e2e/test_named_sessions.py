"""Sessions named in the URL or in a header of a connection, and calls without session_id with a token."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from mcp import Client
from mcp.types import ResourceTemplateReference, TextContent

from tests.bubblewrap import LOCAL
from tests.e2e.served import OVER_HTTP, STREAMABLE, Server, Way, initialize, serving
from tests.polling import pause

pytestmark = pytest.mark.anyio

SESSION_TOOLS = {"start_session", "list_sessions", "close_session"}
HTTP = OVER_HTTP[0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("named")
    (folder / "repo").mkdir()
    (folder / "repo" / "app.py").write_text("n = 0\nn += 1\nn += 1\nn += 1\nn += 1\n")
    (folder / "tokens").write_text(f"alice {'a' * 40}\nbob {'b' * 40}\n")
    (folder / "tokens").chmod(0o600)
    return folder


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    with serving("--repo", str(folder / "repo"), "--entrypoint", "python app.py", *LOCAL) as running:
        yield running


@pytest.fixture(scope="module")
def guarded(folder: Path) -> Iterator[Server]:
    arguments = ["--repo", str(folder / "repo"), "--entrypoint", "python app.py"]
    with serving(*arguments, "--token-file", str(folder / "tokens"), *LOCAL) as running:
        yield running


async def said(client: Client, tool: str, *, error: bool = False, **arguments: object) -> str:
    result = await client.call_tool(tool, arguments)
    (block,) = result.content
    assert isinstance(block, TextContent)
    assert bool(result.is_error) is error, block.text
    return block.text


async def end(server: Server, name: str, token: str | None = None) -> int:
    async with server.http(token) as http:
        return (await http.delete(f"/mcp?session={name}")).status_code


@pytest.mark.parametrize("way", OVER_HTTP, ids=str)
async def test_the_first_call_opens_it_and_each_connection_finds_it(server: Server, way: Way) -> None:
    name = f"rollout-{way}"
    async with server.client(way, query=f"?session={name}") as client:
        tools = (await client.list_tools()).tools
        assert not SESSION_TOOLS & {tool.name for tool in tools}
        assert not any("session_id" in tool.input_schema["properties"] for tool in tools)
        assert not any(name in (client.instructions or "") for name in SESSION_TOOLS)
        for prompt in (await client.list_prompts()).prompts:
            assert "session_id" not in {argument.name for argument in prompt.arguments or []}
        assert "app.py:2" in await said(client, "pdb", command="n")
        told = await said(client, "start_session", error=True)
        assert told.startswith(
            "`start_session` is not for this connection, which has its own session. There are: listdir"
        )
        assert "takes no session_id here" in await said(
            client, "pdb", error=True, command="n", session_id="x" * 40
        )
    async with server.client(way, **{"Pdbox-Session": name}) as again:
        assert "app.py:3" in await said(again, "pdb", command="n", session_id="")
        async with server.client(HTTP, query=f"?session={name}-2") as other:
            assert "app.py:2" in await said(other, "pdb", command="n")
            own = {str(one.uri) for one in (await other.list_resources()).resources}
            theirs = {str(one.uri) for one in (await again.list_resources()).resources}
            assert own and theirs and not own & theirs
            source = ResourceTemplateReference(uri="pdbox://session/{session_id}/patch{?offset}")
            found = await other.complete(source, {"name": "session_id", "value": ""})
            assert [f"pdbox://session/{one}/patch" in own for one in found.completion.values] == [True]
            with pytest.raises(Exception, match="its own session"):
                await other.read_resource(next(iter(theirs)))
        assert "app.py:4" in await said(again, "pdb", command="n")
    assert await end(server, name) == 204
    assert await end(server, name) == 404


async def test_a_named_session_may_be_of_a_task(server: Server) -> None:
    async with server.client(HTTP, query="?session=of-task&task=intervals_hidden") as client:
        assert client.instructions is not None
        assert "\nYour task\n" in client.instructions and not any(
            name in client.instructions for name in SESSION_TOOLS
        )
        assert "intervals/" in await said(client, "listdir")
    async with server.client(HTTP, query="?session=of-nothing&task=nope") as client:
        assert (await said(client, "listdir", error=True)).startswith("There is no task 'nope'.")
    async with server.http() as http:
        answer = await http.post("/mcp?task=intervals_hidden", json=initialize(), headers=STREAMABLE)
    assert answer.status_code == 400 and "?session=NAME&task=ID" in answer.text


async def test_calls_at_once_open_one_session(server: Server) -> None:
    said_by: list[str] = []

    async def call() -> None:
        async with server.client(HTTP, query="?session=at-once") as client:
            said_by.append(await said(client, "bash", command="echo $$ >> pids; wc -l < pids"))

    async with anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(call)
    assert max(int(text.split("```")[1]) for text in said_by) == 4


async def test_delete_with_a_protocol_session_ends_that_one_alone(server: Server) -> None:
    async with server.http(**STREAMABLE) as http:
        opened = await http.post("/mcp?session=kept", json=initialize())
        connection = {"Mcp-Session-Id": opened.headers["mcp-session-id"]}
        async with server.client(HTTP, query="?session=kept") as client:
            assert "app.py:2" in await said(client, "pdb", command="n")
            ended = await http.delete("/mcp?session=kept", headers=connection)
            assert ended.status_code == 200
            assert "app.py:3" in await said(client, "pdb", command="n")
            assert await end(server, "kept") == 204
            anew = await said(client, "pdb", command="n")
            assert "app.py:2" in anew and "note:" not in anew


@pytest.mark.parametrize("name", ["a/b", "-x", "x" * 129, "é", "a b"])
async def test_names_of_other_characters_or_lengths_are_refused(server: Server, name: str) -> None:
    async with server.http() as http:
        answer = await http.post("/mcp", params={"session": name}, json=initialize(), headers=STREAMABLE)
    assert answer.status_code == 400
    assert "It is set by ?session= in the URL, or by the header Pdbox-Session." in answer.text


async def test_a_name_is_its_principals(guarded: Server) -> None:
    alice, bob = "a" * 40, "b" * 40
    async with (
        guarded.client(HTTP, alice, query="?session=one") as hers,
        guarded.client(HTTP, bob, query="?session=one") as his,
    ):
        assert "app.py:2" in await said(hers, "pdb", command="n")
        assert "app.py:2" in await said(his, "pdb", command="n")
        assert await end(guarded, "one") == 401
        assert await end(guarded, "one", "c" * 40) == 401
        assert await end(guarded, "one", bob) == 204
        assert "app.py:3" in await said(hers, "pdb", command="n")


@pytest.mark.parametrize("way", OVER_HTTP, ids=str)
async def test_with_a_token_the_only_session_needs_no_handle(guarded: Server, way: Way) -> None:
    async with (
        guarded.client(way, "a" * 40) as client,
        guarded.client(HTTP, "a" * 40, query="?session=apart") as named,
    ):
        assert "session_id is missing" in await said(client, "pdb", error=True, command="n")
        await said(named, "listdir")
        assert "session_id is missing" in await said(client, "pdb", error=True, command="n")
        await said(client, "start_session")
        assert "app.py:2" in await said(client, "pdb", command="n")
        second = (await said(client, "start_session")).split()[1]
        assert "2 sessions are open" in await said(client, "pdb", error=True, command="n")
        await said(client, "close_session", session_id=second)
        assert "app.py:3" in await said(client, "pdb", command="n")
        await said(client, "close_session")


async def test_without_a_token_each_call_names_its_session(server: Server) -> None:
    async with server.client(HTTP) as client:
        handle = (await said(client, "start_session")).split()[1]
        assert "session_id is missing" in await said(client, "pdb", error=True, command="n")
        await said(client, "close_session", session_id=handle)


async def test_a_session_that_was_lost_is_opened_anew_with_a_notice(folder: Path) -> None:
    arguments = [
        "--repo",
        str(folder / "repo"),
        "--entrypoint",
        "python app.py",
        "--session-ttl",
        "2",
        *LOCAL,
    ]
    with serving(*arguments) as server:
        async with server.client(HTTP, query="?session=short") as client, server.client(HTTP) as witness:
            assert "app.py:2" in await said(client, "pdb", command="n")
            with anyio.fail_after(60):
                while await said(witness, "list_sessions") != "No sessions. `start_session` opens one.":
                    await pause()
            anew = await said(client, "pdb", command="n")
            assert "app.py:2" in anew
            assert anew.startswith("note: the session of this name had ended, and its changes with it")


async def test_a_named_session_of_a_server_that_was_killed_is_found_by_the_next(folder: Path) -> None:
    arguments = ["--repo", str(folder / "repo"), "--entrypoint", "python app.py", *LOCAL]
    with serving(*arguments) as first:
        async with first.client(HTTP, query="?session=stays") as client:
            assert "app.py:2" in await said(client, "pdb", command="n")
        first.process.kill()
        first.process.wait()
        with serving(*arguments, XDG_RUNTIME_DIR=first.env["XDG_RUNTIME_DIR"]) as second:
            async with second.client(HTTP, query="?session=stays") as client:
                assert "app.py:3" in await said(client, "pdb", command="n")
            assert await end(second, "stays") == 204
