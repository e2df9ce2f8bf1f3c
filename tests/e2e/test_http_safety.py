"""Who gets to a server on HTTP, and who doesn't."""

from __future__ import annotations

import json
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import MCPError

from tests.bubblewrap import LOCAL
from tests.e2e.client import PDBOX, ToolFailed
from tests.e2e.served import OVER_HTTP, STREAMABLE, Server, Way, initialize, serving
from tools._json import MAX_VALUES

pytestmark = pytest.mark.anyio

ALICE, ALICE_TOO, BOB = "a" * 32, "A" * 32, "b" * 32
TOKENS = f"# people\nalice {ALICE}\nalice {ALICE_TOO}  # her other machine\n\nbob\t{BOB}\n"
ENDPOINTS = [("POST", "/mcp"), ("GET", "/mcp"), ("DELETE", "/mcp"), ("GET", "/sse"), ("POST", "/messages/")]


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("repo")
    (folder / "app.py").write_text("n = 42\nprint(n)\n")
    return folder


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("tokens") / "tokens"
    file.touch(mode=0o600)
    file.write_text(TOKENS)
    return file


@pytest.fixture(scope="module")
def guarded(repo: Path, tokens: Path) -> Iterator[Server]:
    """On every address, with tokens."""
    names = ["--allowed-host", "box.example", "--allowed-origin", "https://app.example"]
    program = ["--entrypoint", "python app.py"]
    with serving(
        "--host", "0.0.0.0", "--repo", str(repo), "--token-file", str(tokens), *names, *program, *LOCAL
    ) as server:
        server.base = server.base.replace("0.0.0.0", "127.0.0.1")
        yield server


@pytest.mark.parametrize(("method", "path"), ENDPOINTS)
@pytest.mark.parametrize(
    ("header", "value", "status"),
    [
        ("Host", "evil.example", 421),
        ("Host", "evil.example:80", 421),
        ("Host", "127.0.0.1.evil.example", 421),
        ("Host", "box.example.evil.example", 421),
        ("Origin", "http://evil.example", 403),
        ("Origin", "https://app.example.evil.example", 403),
        ("Origin", "null", 403),
    ],
)
async def test_a_page_of_another_site_is_refused_whatever_its_token(
    guarded: Server, method: str, path: str, header: str, value: str, status: int
) -> None:
    async with guarded.http(ALICE, **{header: value}) as http:
        response = await http.request(method, path, json=initialize() if method == "POST" else None)
        assert response.status_code == status


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "box.example"},
        {"Host": "box.example:8717"},
        {"Host": "[::1]:1"},
        {"Origin": "https://app.example"},
    ],
)
async def test_allowed_names_and_origins_are_served(guarded: Server, headers: dict[str, str]) -> None:
    async with guarded.http(ALICE, **headers, **STREAMABLE) as http:
        response = await http.post("/mcp", json=initialize())
        assert response.status_code == 200
        assert response.headers.get("access-control-allow-origin") == headers.get("Origin")


async def test_the_browser_of_an_allowed_page_may_send_its_token(guarded: Server) -> None:
    asks = {
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,mcp-session-id",
    }
    async with guarded.http() as http:
        allowed = await http.options("/mcp", headers={"Origin": "https://app.example", **asks})
        assert allowed.status_code == 200
        assert "authorization" in allowed.headers["access-control-allow-headers"]
        assert (
            await http.options("/mcp", headers={"Origin": "https://evil.example", **asks})
        ).status_code == 403


@pytest.mark.parametrize(("method", "path"), ENDPOINTS)
@pytest.mark.parametrize(
    "authorization", [None, "Bearer wrong", "Bearer", f"Basic {ALICE}", f"Bearer {ALICE}x"]
)
async def test_nothing_is_served_without_a_token(
    guarded: Server, method: str, path: str, authorization: str | None
) -> None:
    async with guarded.http() as http:
        headers = {"Authorization": authorization} if authorization else {}
        response = await http.request(
            method, path, headers=headers, json=initialize() if method == "POST" else None
        )
        assert response.status_code == 401
        assert response.headers["www-authenticate"].startswith("Bearer ")


@pytest.mark.parametrize("way", OVER_HTTP, ids=str)
async def test_a_session_is_its_principals_own(guarded: Server, way: Way) -> None:
    async with guarded.connected(way, ALICE) as alice, guarded.connected(way, BOB) as bob:
        handle = (await alice.call("start_session"))["session_id"]
        unknown = await refusal(bob, "view", path="app.py", session_id="x" * len(handle))
        for tool, arguments in (
            ("view", {"path": "app.py"}),
            ("pdb", {"command": "p 1"}),
            ("wait", {"interrupt": True}),
            ("close_session", {}),
        ):
            assert (await refusal(bob, tool, session_id=handle, **arguments)) == unknown
        assert handle not in str(await bob.call("list_sessions"))
        refused: set[str] = set()
        for name in (handle, "x" * len(handle)):
            with pytest.raises(MCPError) as caught:
                await bob.client.read_resource(f"pdbox://session/{name}/patch")
            refused.add(str(caught.value).replace(name, "…"))
        assert len(refused) == 1
        assert (await alice.call("pdb", command="p 6 * 7", session_id=handle))["reply"] == "42\n"
        async with guarded.connected(way, ALICE_TOO) as elsewhere:
            assert handle in str(await elsewhere.call("list_sessions"))
            await elsewhere.call("close_session", session_id=handle)
        assert (await refusal(alice, "view", path="app.py", session_id=handle)) == unknown


async def test_the_operator_sees_the_sessions_of_all_principals(guarded: Server) -> None:
    async with guarded.connected(OVER_HTTP[0], BOB) as bob:
        handle = (await bob.call("start_session"))["session_id"]
        (own,) = (await bob.call("list_sessions"))["sessions"]
        done = await anyio.run_process([str(PDBOX), "sessions", "list", *LOCAL], env=guarded.env)
        assert own["place"] in done.stdout.decode()
        await bob.call("close_session", session_id=handle)


async def test_a_connection_of_another_principal_is_as_good_as_unknown(guarded: Server) -> None:
    async with guarded.http(ALICE, **STREAMABLE) as alice, guarded.http(BOB, **STREAMABLE) as bob:
        opened = await alice.post("/mcp", json=initialize())
        ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
        own = {"Mcp-Session-Id": opened.headers["mcp-session-id"]}
        foreign = await bob.post("/mcp", json=ping, headers=own)
        unknown = await bob.post("/mcp", json=ping, headers={"Mcp-Session-Id": "0" * 32})
        assert (foreign.status_code, foreign.text) == (unknown.status_code, unknown.text)
        assert foreign.status_code == 404
        assert (await bob.request("DELETE", "/mcp", headers=own)).status_code == 404
        assert (await alice.post("/mcp", json=ping, headers=own)).status_code == 200
        async with alice.stream("GET", "/sse") as stream:
            lines = stream.aiter_lines()  # ends the stream when it is collected
            endpoint = await anext(line[6:] async for line in lines if line.startswith("data: "))
            assert (await bob.post(endpoint, json=initialize())).status_code == 404
            assert (await alice.post(endpoint, json=initialize())).status_code == 202


@pytest.mark.parametrize("path", ["/mcp", "/messages/?session_id=00000000000000000000000000000000"])
@pytest.mark.parametrize("declared", [True, False])
async def test_a_request_of_more_than_a_megabyte_is_refused(
    guarded: Server, path: str, declared: bool
) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(6):
            yield b" " * (1 << 18)

    async with guarded.http(ALICE, **STREAMABLE, **{"Content-Type": "application/json"}) as http:
        content: Any = b" " * (6 << 18) if declared else pieces()
        assert (await http.post(path, content=content)).status_code == 413


@pytest.mark.parametrize("path", ["/mcp", "/messages/?session_id=00000000000000000000000000000000"])
@pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])
async def test_a_request_of_too_many_values_is_refused_before_it_is_decoded(
    guarded: Server, path: str, era: str
) -> None:
    headers = {**STREAMABLE, "Content-Type": "application/json", "MCP-Protocol-Version": era}
    many = json.dumps([[]] * (MAX_VALUES + 1))
    async with guarded.http(ALICE, **headers) as http:
        response = await http.post(path, content=many)
        assert response.status_code == 413
        assert response.text == "The request has more than 10,000 values. Send fewer at a time."
        # In this encoding, quotes that are escaped can't be told from others.
        assert (await http.post(path, content=many.encode("utf-16"))).status_code == 400
    async with guarded.http(**headers) as http:
        assert (await http.post(path, content=many)).status_code == 401


async def test_a_long_text_full_of_punctuation_is_taken(guarded: Server) -> None:
    code = 'x = [{"a": (1, 2)}, "\\\\", \'"\']\n' * 20_000
    async with guarded.connected(OVER_HTTP[0], ALICE) as alice:
        handle = (await alice.call("start_session"))["session_id"]
        await alice.call("rewrite", path="long.py", new_code=code, session_id=handle)
        shown = await alice.text("view", path="long.py", start=20_000, session_id=handle)
        assert 'x = [{"a": (1, 2)}' in shown


async def test_health_is_open_and_tells_nothing(guarded: Server) -> None:
    async with guarded.http(Host="10.1.2.3:8717") as http:
        for path, text in (("/health", '{"status":"ok"}'), ("/ready", '{"status":"ready"}')):
            response = await http.get(path)
            assert (response.status_code, response.text) == (200, text)


async def test_a_server_without_its_engine_lives_but_is_not_ready(tmp_path: Path) -> None:
    with serving(
        "--repo", str(tmp_path), "--backend", "docker", DOCKER_HOST="unix:///nowhere.sock"
    ) as server:
        async with server.http() as http:
            assert (await http.get("/health")).status_code == 200
            response = await http.get("/ready")
            assert (response.status_code, response.text) == (503, '{"status":"not ready"}')


def test_tokens_are_never_logged(guarded: Server) -> None:
    assert not any(token in "".join(guarded.said) for token in (ALICE, ALICE_TOO, BOB))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", ""])
def test_an_address_that_others_reach_needs_tokens(tmp_path: Path, host: str) -> None:
    command = [
        PDBOX,
        "serve",
        "--transport",
        "http",
        "--port",
        "0",
        f"--host={host}",
        "--repo",
        tmp_path,
        *LOCAL,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("pdbox: ") and "Add --token-file" in line


def test_a_port_in_use_is_one_line(tmp_path: Path, guarded: Server) -> None:
    port = guarded.base.rpartition(":")[2]
    command = [PDBOX, "serve", "--transport", "sse", "--port", port, "--repo", tmp_path, *LOCAL]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"pdbox: 127.0.0.1:{port} is not available: ") and "--port 0" in line


async def test_without_tokens_loopback_is_served_and_checked(repo: Path) -> None:
    with serving("--transport", "sse", "--repo", str(repo), *LOCAL) as server:
        assert server.url.endswith("/sse")
        async with server.http(**STREAMABLE) as http:
            assert (await http.post("/mcp", json=initialize())).status_code == 200
            assert (
                await http.post("/mcp", json=initialize(), headers={"Host": "evil.example"})
            ).status_code == 421
            origin = {"Origin": "http://localhost:3000"}
            assert (await http.post("/mcp", json=initialize(), headers=origin)).status_code == 200
            assert (await http.get("/sse", headers={"Origin": "http://evil.example"})).status_code == 403
        await server.end()
        assert "Traceback" not in "".join(server.said)


async def test_a_client_on_http_has_no_repository_but_those_given(tmp_path: Path, repo: Path) -> None:
    with serving("--root", str(repo), *LOCAL) as server:
        async with server.connected(OVER_HTTP[0]) as client:
            assert "start_session" in await refusal(client, "listdir")
            await refusal(client, "start_session", repo=str(tmp_path))
            assert (await client.call("start_session", repo=str(repo)))["session_id"]


async def refusal(client: Any, tool: str, **arguments: Any) -> str:
    """The text of a call that is refused."""
    with pytest.raises(ToolFailed) as caught:
        await client.call(tool, **arguments)
    return str(caught.value)
