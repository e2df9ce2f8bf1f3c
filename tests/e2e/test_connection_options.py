"""Options that a client sets for its own connection, by the query of the URL or by headers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.bubblewrap import LOCAL
from tests.e2e.served import OVER_HTTP, STREAMABLE, Server, Way, initialize, serving

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server whose answers are text, as by default."""
    with serving("--answers", "text", *LOCAL) as running:
        yield running


async def has_schemas(server: Server, way: Way, query: str = "", **headers: str) -> bool:
    """True if the tools are listed with output schemas."""
    async with server.client(way, query=query, **headers) as client:
        schemas = [tool.output_schema for tool in (await client.list_tools()).tools]
    assert len({schema is None for schema in schemas}) == 1
    return schemas[0] is not None


@pytest.mark.parametrize("way", OVER_HTTP, ids=str)
async def test_each_connection_gets_the_answers_that_it_asks_for(server: Server, way: Way) -> None:
    assert not await has_schemas(server, way)
    assert await has_schemas(server, way, "?answers=both")
    assert await has_schemas(server, way, **{"Pdbox-Answers": "structured"})
    assert not await has_schemas(server, way)


@pytest.mark.parametrize("way", OVER_HTTP, ids=str)
async def test_the_query_wins_over_headers_and_both_over_the_settings(way: Way) -> None:
    with serving("--answers", "both", *LOCAL) as server:
        assert await has_schemas(server, way)
        assert not await has_schemas(server, way, "?answers=text")
        assert not await has_schemas(server, way, **{"pdbox-answers": "text"})
        assert await has_schemas(server, way, "?answers=structured", **{"pdbox-answers": "text"})
        assert await has_schemas(server, way, "?answers=")


@pytest.mark.parametrize("way", OVER_HTTP, ids=str)
async def test_each_connection_sees_the_tools_of_its_profile(server: Server, way: Way) -> None:
    async with (
        server.client(way) as whole,
        server.client(way, query="?profile=rewrite") as fewer,
        server.client(way, **{"Pdbox-Profile": "debug_7"}) as later,
    ):
        for client, has_pdb, first in (
            (whole, True, "`diagnose`"),
            (fewer, False, "`eval`"),
            (later, True, "`eval`"),
        ):
            assert ("pdb" in {tool.name for tool in (await client.list_tools()).tools}) is has_pdb
            assert f"2. {first}" in (client.instructions or "")
        assert "after 7 rewrites" in (later.instructions or "")
        refused = await fewer.call_tool("pdb", {"command": "c"})
        assert refused.is_error and "is not a tool of the profile" in refused.model_dump_json()


@pytest.mark.parametrize(
    ("query", "headers", "said"),
    [
        ("?answers=all", {}, "answers=all: Input should be 'text', 'structured' or 'both'."),
        ("", {"Pdbox-Answers": "json"}, "answers=json: Input should be 'text', 'structured' or 'both'."),
        ("?answer_within=0", {}, "answer_within=0: Input should be greater than 0."),
        ("?answer_within=soon", {}, "answer_within=soon: Input should be a valid number"),
        ("", {"Pdbox-Answer-Within": "inf"}, "answer_within=inf: Input should be a finite number."),
        ("?profile=debug_0", {}, "profile=debug_0: There is no profile or tool 'debug_0'. Profiles: debug, "),
        ("", {"Pdbox-Profile": "eval,nope"}, "profile=eval,nope: There is no profile or tool 'nope'. "),
    ],
)
async def test_options_that_do_not_fit_are_refused_and_named(
    server: Server, query: str, headers: dict[str, str], said: str
) -> None:
    async with server.http(**headers) as http:
        posted = await http.post(f"/mcp{query}", json=initialize(), headers=STREAMABLE)
        streamed = await http.get(f"/sse{query}")
    for response in (posted, streamed):
        assert response.status_code == 400
        assert said in response.json()["error"]["message"]
        assert "It is set by ?" in response.json()["error"]["message"]
