"""Whatever a client sends, it gets an answer or a refusal that it can use, and its session lives on."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar
from urllib.parse import quote

import jsonschema
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp import Client, MCPError
from mcp.types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    CallToolResult,
    PromptReference,
    ResourceTemplateReference,
    TextContent,
)

from mcp_server.prompts import PROMPTS
from mcp_server.resources import KINDS
from tests.bubblewrap import LOCAL
from tests.e2e.client import pdbox
from tools._catalog import catalog
from tools._truncation import WIDE_LIMIT

PROGRAM = "def double(n):\n    result = n * 2\n    return result\n\nprint(double(21))\n"
TESTS = "import app\n\n\ndef test_double():\n    assert app.double(2) == 5\n"
T = TypeVar("T")
MOST = 400_000
EXAMPLES = {"start_session": 8, "eval": 6, "diagnose": 8, "pdb": 20, "bash": 15}


@dataclass
class World:
    """A server over stdio with two open sessions, so that none is meant by itself."""

    portal: BlockingPortal
    client: Client
    own: str = ""

    def call(self, tool: str, arguments: Mapping[str, Any]) -> CallToolResult:
        return self.portal.call(self.client.call_tool, tool, dict(arguments))

    def open(self) -> str:
        result = self.call("start_session", {})
        assert isinstance(result.structured_content, dict)
        return result.structured_content["session_id"]

    def assert_alive(self) -> None:
        """The session still has its files, and whatever its program was brought to, a new one runs."""
        self.call("pdb", {"command": "end\nq", "session_id": self.own})
        last = {"reply": ""}
        for tool, arguments in (
            ("wait", {}),
            ("rewrite", {"path": "alive.py", "new_code": "x = 1\n"}),
            ("pdb", {"command": "run\np 6 * 7", "entrypoint": "python alive.py"}),
        ):
            result = self.call(tool, {**arguments, "session_id": self.own})
            assert not result.is_error, result.content
            assert isinstance(result.structured_content, dict)
            last = result.structured_content
        assert "42" in last["reply"]
        listed = self.call("list_sessions", {}).structured_content
        assert isinstance(listed, dict)
        assert self.own in [session["session_id"] for session in listed["sessions"]]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Generator[World]:
    repo = tmp_path_factory.mktemp("repo")
    (repo / "app.py").write_text(PROGRAM)
    (repo / "test_app.py").write_text(TESTS)
    flags = (
        "--repo",
        str(repo),
        *LOCAL,
        "--debug-entrypoint",
        "python app.py",
    )
    with ExitStack() as stack:
        portal = stack.enter_context(start_blocking_portal())
        session = stack.enter_context(portal.wrap_async_context_manager(pdbox(*flags)))
        world = World(portal, session.client)
        world.own = world.open()
        world.open()
        yield world


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
WILD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
PATHS = st.sampled_from(
    [
        "app.py",
        ".",
        "",
        "..",
        "/etc/passwd",
        "test_app.py",
        "*.py",
        "a\0b",
        "x/" * 60,
        "app.py/",
        ".git",
        "pdbox:",
        "~",
    ]
)
# Programs run without isolation here: what is run is ours, what it is given is anything.
COMMANDS = st.sampled_from(
    ["true", "exit 3", "(", "'", "", " ", "kill $$", "cat", "seq 30000", "nope"]
) | TEXT.map(lambda text: f"printf %s {shlex.quote(text.replace(chr(0), ''))}")
ENTRYPOINTS = st.sampled_from(
    [
        "python app.py",
        "pytest",
        "pytest nope.py",
        "python -m pytest -q",
        "nope",
        "",
        "python",
        "'",
        "((",
        "A=1",
        "python app.py &",
    ]
)
WORDS: dict[str, st.SearchStrategy[str]] = {
    "path": PATHS | TEXT,
    "cwd": PATHS | TEXT,
    "repo": PATHS | TEXT,
    "command": COMMANDS,
    "entrypoint": ENTRYPOINTS,
    "debug_entrypoint": ENTRYPOINTS,
    "setup": COMMANDS,
    "expression": st.sampled_from(["n", "locals()", "(", "1/0", "[0] * 10**6"]) | TEXT,
    "pattern": st.sampled_from(["(", "(a+)+$", "def", ".", "\\", "[[:x:]]"]) | TEXT,
    "image": st.just("x"),
    "env": st.just("X=1") | TEXT,
}
PDB_COMMANDS = st.lists(
    st.sampled_from(["c", "n", "s", "w", "b 2", "b nope", "p result", "run", "q", "ll", "commands 1"]) | TEXT,
    max_size=3,
).map("\n".join)


def values(tool: str, name: str, schema: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    """What fits the schema of an argument, mostly."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    match schema["type"]:
        case "boolean":
            return st.booleans()
        case "integer":
            return st.integers(-3, 40) | st.sampled_from([-(1 << 70), 1 << 31, 1 << 53, 1 << 70])
        case "number":
            return st.floats(0.01, 0.5) | st.sampled_from([-1, 0, 3601, 1e308])
        case "array":
            return st.lists(values(tool, name, schema["items"]), max_size=3)
        case _:
            return PDB_COMMANDS if (tool, name) == ("pdb", "command") else WORDS.get(name, TEXT)


def arguments_of(tool: str, own: str) -> st.SearchStrategy[dict[str, Any]]:
    """Arguments by the schema, some of them replaced by anything, and some that don't exist."""
    schema = catalog()[tool].input_schema
    properties: dict[str, Any] = schema.get("properties", {})
    fitting = {name: values(tool, name, one) for name, one in properties.items()}
    harmless = {
        name: WILD
        for name in properties
        if name not in ("command", "entrypoint", "debug_entrypoint", "setup")
    }
    if "session_id" in fitting:
        handles = st.none() | TEXT if tool == "close_session" else st.just(own)
        fitting["session_id"], harmless["session_id"] = handles, handles | WILD
    required = set(schema.get("required", ()))
    return st.one_of(
        st.fixed_dictionaries(
            {name: one for name, one in fitting.items() if name in required or name == "session_id"},
            optional={
                name: one for name, one in fitting.items() if name not in required and name != "session_id"
            },
        ),
        st.fixed_dictionaries({}, optional=harmless),
        st.dictionaries(TEXT | st.sampled_from(["paths", "session", "file"]), WILD, max_size=3),
    )


def check(tool: str, result: CallToolResult) -> None:
    (block,) = result.content
    assert isinstance(block, TextContent)
    assert block.text
    assert "unexpectedly" not in block.text, block.text
    if result.is_error:
        assert len(block.text) <= 4000
        assert "Traceback (most recent call last)" not in block.text
        assert result.structured_content is None
        return
    assert len(block.text) <= WIDE_LIMIT
    data = json.dumps(result.structured_content, ensure_ascii=False, separators=(",", ":"))
    assert len(data) <= WIDE_LIMIT
    jsonschema.validate(result.structured_content, catalog()[tool].output_schema)


def answered(portal: BlockingPortal, call: Callable[..., Awaitable[T]], *arguments: Any) -> T | MCPError:
    """What came of a request: its result, or the error of the protocol."""
    try:
        return portal.call(call, *arguments)
    except MCPError as exc:
        return exc


@pytest.mark.parametrize("tool", list(catalog()))
def test_any_arguments_get_an_answer_or_a_refusal(world: World, tool: str) -> None:
    @settings(max_examples=EXAMPLES.get(tool, 40), deadline=None, database=None)
    @given(arguments_of(tool, world.own))
    def prove(arguments: dict[str, Any]) -> None:
        result = world.call(tool, arguments)
        check(tool, result)
        if tool == "start_session" and isinstance(result.structured_content, dict):
            world.call("close_session", {"session_id": result.structured_content["session_id"]})

    prove()
    world.assert_alive()


PIECES = st.sampled_from(
    [
        "output",
        "patch",
        "tests",
        "trajectory",
        "source",
        "app.py",
        "..",
        "%2e%2e",
        "%00",
        "%",
        "?offset=",
        "?",
        "#",
        "0",
        "",
    ]
) | TEXT.map(lambda text: quote(text, safe=""))


def test_any_uri_is_read_or_refused(world: World) -> None:
    own = f"pdbox://session/{world.own}/"
    uris = st.one_of(
        TEXT,
        st.lists(PIECES, max_size=4).map(lambda parts: own + "/".join(parts)),
        st.lists(PIECES | TEXT, max_size=4).map(lambda parts: own + "".join(parts)),
        st.lists(PIECES, max_size=5).map(lambda parts: "pdbox://session/" + "/".join(parts)),
        st.integers(0, 10**20).map(lambda offset: f"{own}source/app.py?offset={offset}"),
        st.integers(0, 10**20).map(lambda number: f"{own}output/{number}"),
        st.just(own + "source/" + "a/" * 40_000),
    )

    @settings(max_examples=150, deadline=None, database=None)
    @given(uris)
    def prove(uri: str) -> None:
        read = answered(world.portal, world.client.read_resource, uri)
        if isinstance(read, MCPError):
            assert read.code in (INVALID_PARAMS, INTERNAL_ERROR)
            assert read.message and "unexpected" not in read.message.lower(), read.message
        else:
            assert len(read.model_dump_json().encode()) <= MOST

    prove()
    world.assert_alive()


def test_any_arguments_of_prompts_are_filled_in_or_refused(world: World) -> None:
    names = st.sampled_from([prompt.name for prompt in PROMPTS]) | TEXT
    keys = st.sampled_from(["problem", "test", "breakpoint", "session_id"]) | TEXT

    @settings(max_examples=80, deadline=None, database=None)
    @given(names, st.dictionaries(keys, TEXT | st.just("x" * 9000), max_size=4))
    def prove(name: str, arguments: dict[str, str]) -> None:
        filled = answered(world.portal, world.client.get_prompt, name, arguments)
        if isinstance(filled, MCPError):
            assert filled.code == INVALID_PARAMS and filled.message
        else:
            (message,) = filled.messages
            assert isinstance(message.content, TextContent) and "`eval`" in message.content.text

    prove()


def test_any_argument_is_completed_without_an_error(world: World) -> None:
    refs = st.one_of(
        st.builds(PromptReference, name=st.sampled_from([prompt.name for prompt in PROMPTS]) | TEXT),
        st.builds(ResourceTemplateReference, uri=st.sampled_from([kind.template for kind in KINDS]) | TEXT),
    )
    names = (
        st.sampled_from(["path", "test", "breakpoint", "session_id", "number", "offset", "problem"]) | TEXT
    )
    known = st.dictionaries(st.just("session_id") | TEXT, st.just(world.own) | TEXT, max_size=2)

    @settings(max_examples=100, deadline=None, database=None)
    @given(refs, names, TEXT | st.sampled_from(["a", "test", "app.py:", "(", "/"]), known)
    def prove(ref: Any, name: str, typed: str, known: dict[str, str]) -> None:
        done = world.portal.call(world.client.complete, ref, {"name": name, "value": typed}, known)
        found = done.completion
        assert len(found.values) <= 100
        assert all(typed.casefold() in value.casefold() for value in found.values)
        if found.total is not None:
            assert found.has_more == (found.total > len(found.values))

    prove()
    world.assert_alive()


LISTS = ("tools/list", "prompts/list", "resources/templates/list")
MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
HANDSHAKE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


class Wire:
    """A server of its own over stdio, spoken to in bytes."""

    def __init__(self, repo: Path, seed: int, meta: dict[str, Any]) -> None:
        flags = ["--repo", str(repo), *LOCAL]
        self._meta = meta
        self._process = subprocess.Popen(
            [sys.executable, "-m", "pdbox", "serve", *flags],
            cwd=Path(__file__).parents[2],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._process.communicate(timeout=30)

    def ask(self, method: str, **params: Any) -> bytes:
        """The line that comes back; ids are always the same."""
        assert self._process.stdin is not None and self._process.stdout is not None
        params = {**params, "_meta": self._meta} if self._meta else params
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()
        return self._process.stdout.readline()


@pytest.mark.parametrize("meta", [{}, MODERN], ids=["2025-11-25", "2026-07-28"])
def test_lists_are_the_same_bytes_in_each_call_and_after_restarts(
    tmp_path: Path, meta: dict[str, Any]
) -> None:
    (tmp_path / "app.py").write_text(PROGRAM)
    seen: dict[str, set[bytes]] = {method: set() for method in LISTS}
    for seed in (1, 2):
        with Wire(tmp_path, seed, meta) as wire:
            if not meta:
                wire.ask("initialize", **HANDSHAKE)
            for _ in range(2):
                for method in LISTS:
                    seen[method].add(wire.ask(method))
                wire.ask("tools/call", name="listdir", arguments={})  # an open session changes nothing
    for method, answers in seen.items():
        (answer,) = answers
        assert "result" in json.loads(answer), method


def test_subscribing_is_not_there(tmp_path: Path) -> None:
    with Wire(tmp_path, 1, {}) as wire:
        wire.ask("initialize", **HANDSHAKE)
        answer = json.loads(wire.ask("resources/subscribe", uri="pdbox://session/x/output"))
    assert answer["error"]["code"] == METHOD_NOT_FOUND
