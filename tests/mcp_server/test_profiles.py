"""Profiles: the tools that a client sees, texts that name no others, and the debugger after N rewrites."""

from __future__ import annotations

import re
from pathlib import Path

import anyio
import pytest
from mcp import Client

from mcp_server.profiles import parse, show
from sandbox.errors import InvalidArgument
from tests.mcp_server.conftest import Connect
from tests.mcp_server.test_calls import data, refused, text
from tests.polling import pause
from tools._advice import leave_out
from tools._catalog import catalog

pytestmark = pytest.mark.anyio

DEBUGGER = {"diagnose", "pdb", "wait", "inspect", "trace"}
SESSIONS = {"start_session", "list_sessions", "close_session"}
CHECK = "import app\nassert app.double(2) == 4\nassert app.double(3) == 6\n"


@pytest.fixture(params=["auto", "legacy"])
def era(request: pytest.FixtureRequest) -> str:
    """2026-07-28, and the eras with a handshake."""
    return request.param


@pytest.fixture
def shop(repo: Path) -> Path:
    (repo / "app.py").write_text("def double(n):\n    return n\n")
    (repo / "check.py").write_text(CHECK)
    return repo


def named(words: str) -> set[str]:
    """The tools that a text names in backticks."""
    return set(re.findall(r"`(\w+)`", words)) & set(catalog())


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        ("debug", set(catalog())),
        ("rewrite", set(catalog()) - DEBUGGER),
        ("debug_5", set(catalog())),
        ("pdb, eval,rewrite", {"pdb", "eval", "rewrite"}),
        ("view,grep", {"view", "grep"}),
    ],
)
async def test_a_client_sees_exactly_its_tools_and_no_text_names_another(
    connect: Connect, era: str, profile: str, expected: set[str]
) -> None:
    async with connect(era, profile=profile) as client:
        tools = (await client.list_tools()).tools
        assert {tool.name for tool in tools} == expected
        said = [client.instructions or "", *(tool.description or "" for tool in tools)]
        said += [
            schema.get("description", "")
            for tool in tools
            for schema in tool.input_schema["properties"].values()
        ]
        assert named("\n".join(said)) <= expected
        assert all(tool.description for tool in tools)
        for prompt in (await client.list_prompts()).prompts:
            (message,) = (await client.get_prompt(prompt.name, {"test": "t.py::test_x"})).messages
            assert named(message.model_dump_json()) <= expected
        for hidden in set(catalog()) - expected:
            told = await refused(client, hidden)
            assert told.startswith(f"`{hidden}` is not a tool of the profile {profile!r}. There are: ")
            assert all(name in told for name in expected)


async def test_a_list_keeps_the_tools_for_sessions_where_no_call_opens_one(connect: Connect) -> None:
    async with connect(profile="eval", repo=None, root=[Path("/usr")]) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == {"eval", *SESSIONS}


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        ("debug", ["debug", "rewrite", "debug_5", "explain_failure"]),
        ("rewrite", ["rewrite"]),
        ("debug_3", ["rewrite", "debug_3"]),
        ("eval,pdb", ["explain_failure"]),
        ("grep", []),
    ],
)
async def test_prompts_fit_the_profile(connect: Connect, profile: str, expected: list[str]) -> None:
    async with connect(profile=profile) as client:
        prompts = (await client.list_prompts()).prompts
        assert [prompt.name for prompt in prompts] == expected
        if profile == "debug_3":
            assert "after 3 rewrites" in (prompts[1].description or "")
            (message,) = (await client.get_prompt("debug_3")).messages
            assert "before 3 rewrites that did not fix" in message.model_dump_json()


async def fail(client: Client, number: int, *, tests: bool = True) -> None:
    """A rewrite that fixes nothing."""
    arguments = {"path": "app.py", "new_code": f"    return n + {number}", "start": 2}
    answer = await data(client, "rewrite", **arguments, **({"run": "tests"} if tests else {}))
    assert "run" not in answer or answer["run"]["exit_code"] == 1


async def test_the_debugger_answers_after_the_rewrites_that_did_not_fix_the_tests(
    connect: Connect, shop: Path, era: str
) -> None:
    async with connect(era, profile="debug_3", entrypoint="python check.py") as client:
        assert "answer only after 3 rewrites" in (client.instructions or "")
        for tool, arguments in (
            ("pdb", {"command": "c"}),
            ("diagnose", {}),
            ("wait", {}),
            ("inspect", {"expression": "n"}),
            ("trace", {"of": ["double"]}),
        ):
            told = await refused(client, tool, **arguments)
            assert told.startswith(f"`{tool}` answers after 3 rewrites that did not fix the tests: 3 left. ")
        await data(client, "eval")  # it fails, but nothing has been changed
        assert "3 left. Find" in await refused(client, "pdb", command="c")
        await fail(client, 1)
        assert "2 left. Find" in await refused(client, "pdb", command="c")
        await refused(client, "rewrite", path="app.py", old_code="nowhere", new_code="x", run="tests")
        await data(client, "rewrite", path="app.py", new_code="    return n + 1", start=2, run="tests")
        assert "2 left. Find" in await refused(client, "pdb", command="c")  # neither changed anything
        await fail(client, 2, tests=False)
        assert "2 left. 1 not tested yet. " in await refused(client, "pdb", command="c")
        await fail(client, 3, tests=False)
        await data(client, "eval", entrypoint="python check.py")
        assert (await data(client, "pdb", command="p 6 * 7"))["reply"] == "42\n"


async def test_rewrites_that_fix_the_tests_do_not_count(connect: Connect, shop: Path) -> None:
    async with connect(profile="debug_2", entrypoint="python check.py") as client:
        await fail(client, 1, tests=False)
        await data(client, "rewrite", path="app.py", new_code="    return n * 2", start=2, run="tests")
        await data(client, "eval", entrypoint="false")
        assert "2 left. Find" in await refused(client, "pdb", command="c")


async def test_a_passing_part_of_the_tests_does_not_make_them_fixed(connect: Connect, shop: Path) -> None:
    (shop / "test_app.py").write_text(
        "from app import double\ndef test_zero(): assert double(0) == 0\ndef test_two(): assert double(2) == 4\n"
    )
    async with connect(profile="debug_1", entrypoint="python -m pytest -q") as client:
        await data(client, "eval")
        await data(
            client,
            "rewrite",
            path="app.py",
            new_code="    return n * 3",
            start=2,
            run="test_app.py::test_zero",
        )
        assert "1 left. 1 not tested yet. " in await refused(client, "pdb", command="c")
        await data(client, "eval", tests=["test_app.py::test_two"])
        assert (await data(client, "pdb", command="p 1"))["reply"] == "1\n"


async def test_the_count_is_the_sessions_and_is_there_for_the_next_server(
    connect: Connect, shop: Path
) -> None:
    settings = {"profile": "debug_2", "entrypoint": "python check.py", "keep_sessions": True}
    async with connect(**settings) as client:
        await fail(client, 1)
        await fail(client, 2, tests=False)
    async with connect(**settings) as client:
        assert "1 left. 1 not tested yet." in await refused(client, "pdb", command="c")
        await data(client, "eval")
        assert (await data(client, "pdb", command="p 1"))["reply"] == "1\n"
        other = (await data(client, "start_session"))["session_id"]
        assert "2 left." in await refused(client, "pdb", command="c", session_id=other)
        await data(client, "close_session", session_id=other)
        await data(client, "close_session")


@pytest.mark.parametrize("profile", ["rewrite", "debug_9", "eval"])
async def test_wait_stays_where_calls_answer_early(
    connect: Connect, shop: Path, tmp_path: Path, profile: str
) -> None:
    (shop / "check.py").write_text(
        f"import os, time\nwhile not os.path.exists('{tmp_path}/go'): time.sleep(0.05)\n"
    )
    settings = {"answers": "text", "answer_within_s": 2, "entrypoint": "python check.py"}
    async with connect(profile=profile, **settings) as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        assert "wait" in tools and ("pdb" in tools) == (profile == "debug_9")
        said = text(await client.call_tool("eval", {"timeout_s": 600}))
        assert said.startswith("running: `eval` has not ended")
        (tmp_path / "go").touch()
        with anyio.fail_after(60):
            while (said := text(await client.call_tool("wait", {}))).startswith("running"):
                await pause()
        assert "exit code 0" in said


async def test_hints_of_errors_and_answers_name_no_hidden_tool(connect: Connect, shop: Path) -> None:
    (shop / "long.txt").write_text("x" * 50_000)
    async with connect(profile="rewrite,bash") as client:
        told = await refused(client, "rewrite", path="app.py", old_code="nowhere", new_code="x")
        assert told == "`old_code` does not occur in app.py."
        cut = text(await client.call_tool("bash", {"command": "cat long.txt"}))
        assert "left out" in cut and "view" not in cut
    async with connect() as client:
        assert "`view`" in await refused(client, "rewrite", path="app.py", old_code="nowhere", new_code="x")
        assert "view(path=" in text(await client.call_tool("bash", {"command": "cat long.txt"}))
    async with connect(profile="rewrite") as client:
        started = text(await client.call_tool("start_session", {}))
        assert named(started) == {"eval", "close_session"}


def test_sentences_are_left_out_as_a_whole() -> None:
    whole = 'First, e.g. "x". Use `pdb` or `view`. The start_session tool opens one! Then pdb is a word.'
    assert leave_out(whole, frozenset({"pdb"})) == (
        'First, e.g. "x". The start_session tool opens one! Then pdb is a word.'
    )
    assert leave_out(whole, frozenset({"start_session"})) == (
        'First, e.g. "x". Use `pdb` or `view`. Then pdb is a word.'
    )
    assert leave_out(whole, frozenset({"diff"})) is whole


@pytest.mark.parametrize(
    "wrong", ["debug_0", "debug_x", "debug_", "", " , ", "pdb,nope", "Rewrite", "pdb," * 600]
)
def test_an_unknown_profile_is_refused_with_those_that_there_are(wrong: str) -> None:
    with pytest.raises(
        InvalidArgument, match=r"There is no profile or tool .* Profiles: debug, rewrite, debug_N"
    ):
        parse(wrong)


def test_a_bound_connection_has_no_tools_for_sessions() -> None:
    for profile in ("debug", "rewrite", "eval,start_session"):
        shown = show(profile, is_bound=True, needs_opening=True, answers_early=False)
        assert not SESSIONS & set(shown.tools)


async def test_a_profile_without_a_workflow_has_no_heading_for_one(
    connect: Connect, shop: Path, era: str
) -> None:
    for profile, told in (("bash", False), ("debug", True)):
        async with connect(era, profile=profile) as client:
            assert ("Workflow" in (client.instructions or "")) is told
