"""The forms of an answer: text, data, or both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from mcp import Client
from mcp.types import CallToolResult, TextContent

from mcp_server.settings import Settings
from tests.mcp_server.conftest import Connect
from tools._catalog import catalog
from tools._truncation import LIMIT

pytestmark = pytest.mark.anyio

MANY = """\
import pytest

@pytest.mark.parametrize("number", range(300))
def test_many(number):
    assert number != 7
"""


@pytest.fixture(params=["auto", "legacy"])
def era(request: pytest.FixtureRequest) -> str:
    """2026-07-28, and the eras with a handshake."""
    return request.param


@pytest.fixture
def suite(repo: Path) -> Path:
    """A repository of 300 tests, one of which fails."""
    (repo / "test_many.py").write_text(MANY)
    return repo


def text_of(result: CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


async def data(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The data of a call, as its schema describes it and within the limit."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text_of(result)
    jsonschema.validate(result.structured_content, catalog()[tool].output_schema)
    assert isinstance(result.structured_content, dict)
    dense = json.dumps(result.structured_content, ensure_ascii=False, separators=(",", ":"))
    assert len(dense) <= LIMIT
    return result.structured_content


async def test_answers_are_text_alone_unless_asked_otherwise(connect: Connect, era: str) -> None:
    async with connect(era, answers=Settings().answers) as client:
        assert not any(tool.output_schema for tool in (await client.list_tools()).tools)
        stop = await client.call_tool("pdb", {"command": "b app.py:3\nc"})
        assert stop.structured_content is None
        assert text_of(stop).startswith("stopped at app.py:3 in double (breakpoint 1)")
        refused = await client.call_tool("view", {"path": "nope.py"})
        assert refused.is_error and "nope.py" in text_of(refused)


async def test_structured_answers_have_no_second_copy_as_text(connect: Connect, era: str) -> None:
    async with connect(era, answers="structured") as client:
        schemas = {tool.name: tool.output_schema for tool in (await client.list_tools()).tools}
        assert schemas == {name: tool.output_schema for name, tool in catalog().items()}
        stop = await client.call_tool("pdb", {"command": "b app.py:3\nc"})
        assert text_of(stop) == "The answer is in structuredContent."
        assert (stop.structured_content or {})["frame"]["line"] == 3


async def test_errors_have_their_text_in_every_form(connect: Connect) -> None:
    async with connect(answers="structured") as client:
        refused = await client.call_tool("view", {"path": "nope.py"})
        assert refused.is_error and refused.structured_content is None
        assert "nope.py" in text_of(refused)


async def test_data_of_a_test_run_lists_only_what_did_not_pass(connect: Connect, suite: Path) -> None:
    async with connect(entrypoint="python -m pytest -q") as client:
        run = await data(client, "eval")
        assert (run["passed"], run["failed"]) == (299, 1)
        assert [test["id"] for test in run["tests"]] == ["test_many.py::test_many[7]"]
        await client.call_tool("rewrite", {"path": "test_many.py", "old_code": "!= 7", "new_code": ">= 0"})
        run = await data(client, "eval")
        assert (run["passed"], run["tests"], run["output"]) == (300, [], "")
        assert run["fixed"] == ["test_many.py::test_many[7]"]


async def test_the_outcome_of_each_test_is_readable_in_every_form(connect: Connect, suite: Path) -> None:
    async with connect(entrypoint="python -m pytest -q", answers="text") as client:
        opened = text_of(await client.call_tool("start_session", {}))
        handle = opened.splitlines()[0].removeprefix("session_id: ")
        await client.call_tool("eval", {"session_id": handle})
        (content,) = (await client.read_resource(f"pdbox://session/{handle}/tests")).contents
        outcomes = getattr(content, "text", "").splitlines()
        assert len(outcomes) == 300
        assert "failed test_many.py::test_many[7]" in outcomes


async def test_data_has_lines_of_code_with_numbers_and_marks_like_the_text(connect: Connect) -> None:
    async with connect() as client:
        stop = await client.call_tool("pdb", {"command": "b app.py:3\nc"})
        source: list[str] = (stop.structured_content or {})["source"]
        assert source[2] == ">3\t    return result"
        assert "\n".join(source) in text_of(stop)
        shown = await client.call_tool("view", {"path": "app.py", "start": 2, "end": 3})
        assert (shown.structured_content or {})["lines"] == [
            "2\t    result = n * 2",
            "B>3\t    return result",
        ]
        assert text_of(shown).splitlines()[1:3] == (shown.structured_content or {})["lines"]


async def test_a_value_is_not_sent_with_the_code_around(connect: Connect) -> None:
    async with connect() as client:
        await client.call_tool("pdb", {"command": "b app.py:3\nc"})
        assert (await data(client, "pdb", command="p result"))["source"] is None


async def test_data_says_what_to_do_next(connect: Connect) -> None:
    async with connect() as client:
        ended = await client.call_tool("pdb", {"command": "c"})
        following = (ended.structured_content or {})["next"]
        assert following == "Breakpoints are kept: `c` or `run` starts it again."
        assert text_of(ended).endswith(following)


async def test_text_of_a_new_session_says_when_it_ends(connect: Connect) -> None:
    async with connect(answers="text", session_ttl_s=600) as client:
        opened = text_of(await client.call_tool("start_session", {}))
        assert "it ends by itself after 10 min without a call." in opened


async def test_an_answer_of_one_form_has_the_whole_limit(connect: Connect, repo: Path) -> None:
    (repo / "quotes.txt").write_text('"\n' * 3000)
    async with connect(answers="both") as client:
        both = text_of(await client.call_tool("view", {"path": "quotes.txt"}))
    async with connect(answers="text") as client:
        alone = text_of(await client.call_tool("view", {"path": "quotes.txt"}))
    assert len(both) < len(alone) <= LIMIT
    assert "(left out: " in alone


HIDDEN = "\x1b[2J \x9b31m \u202e"


async def test_control_characters_and_bidi_marks_are_escaped_in_text_and_raw_in_data(
    connect: Connect, repo: Path
) -> None:
    (repo / "app.py").write_text(f"said = {HIDDEN!a}\nprint(said)\nraise ValueError(said)\n")
    (repo / "hidden.txt").write_text(HIDDEN)
    async with connect() as client:
        for tool, arguments in (
            ("bash", {"command": "python3 app.py"}),
            ("view", {"path": "hidden.txt"}),
            ("pdb", {"command": "c"}),
            ("eval", {}),
            ("grep", {"pattern": "2J", "path": "hidden.txt"}),
        ):
            answer = await client.call_tool(tool, arguments)
            text = text_of(answer)
            assert r"\x1b[2J \x9b31m \u202e" in text, tool
            assert all(character.isprintable() or character in "\n\t" for character in text), tool
        output = (await data(client, "bash", command="python3 app.py"))["output"]
        assert output.startswith(HIDDEN)
        refused = text_of(await client.call_tool("view", {"path": f"{HIDDEN}.txt"}))
        assert r"\x1b[2J" in refused and "\x1b" not in refused
