"""Whatever a model calls, before or after the harness has scored its session: no line of a hidden test is shown to it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Generator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp import Client, MCPError
from mcp.types import Tool

from mcp_server.tasks.folder import TaskContent, write_task
from mcp_server.tasks.model import TaskFacts
from tests.bubblewrap import LOCAL, LOCAL_BACKEND
from tests.e2e.served import OVER_HTTP, Server, serving
from tests.mcp_server.tasks.conftest import GOLD
from tests.repository import repository

EACH = 20
"""Calls of each tool, on average."""
SECRET = "secret_of_the_harness"
# A script starts ten times faster than a test runner, and the subject is what answers show.
FILES = {
    "app.py": "def double(n):\n    return n + 2\n",
    "check.py": "import app\nassert app.double(2) == 4\n",
    "tests/test_app.py": "",
}
TEST_PATCH = f"""\
diff --git a/check.py b/check.py
--- a/check.py
+++ b/check.py
@@ -1,2 +1,3 @@
 import app
 assert app.double(2) == 4
+assert app.double(3) == 6, "{SECRET}"
diff --git a/tests/hidden.py b/tests/hidden.py
new file mode 100644
--- /dev/null
+++ b/tests/hidden.py
@@ -0,0 +1 @@
+TEXT = "{SECRET}"
"""


@dataclass
class World:
    """A client of a session with the task, and the server."""

    portal: BlockingPortal
    client: Client
    server: Server
    tools: list[Tool]
    places: list[str]
    """Paths at which somebody could look for the tests."""

    def call(self, tool: str, arguments: Mapping[str, Any]) -> str:
        return self.portal.call(self.client.call_tool, tool, dict(arguments)).model_dump_json()

    def read(self, uri: str) -> str:
        try:
            return self.portal.call(self.client.read_resource, uri).model_dump_json()
        except MCPError as exc:
            return str(exc)

    def uris(self, path: str) -> list[str]:
        """All resources of the session, those of a path too."""
        listed = self.portal.call(self.client.list_resources).resources
        templates = self.portal.call(self.client.list_resource_templates).resource_templates
        values = {"session_id": "all", "path": path, "number": "1"}
        filled = [re.sub(r"\{(\w+)\}", lambda found: values[found[1]], one.uri_template) for one in templates]
        return [*(str(one.uri) for one in listed), *filled]

    def score(self) -> dict[str, Any]:
        """Have the session scored, as its harness may whenever it likes."""

        async def ask() -> dict[str, Any]:
            async with self.server.http() as http:
                return (await http.post("/score?session=all")).json()

        verdict = self.portal.call(ask)
        assert verdict["applied"], verdict
        return verdict

    def check(self, answers: list[str]) -> None:
        """Find no part of the hidden test in answers."""
        assert not [text for text in answers if "secret_of_the" in text]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Generator[World]:
    folder = tmp_path_factory.mktemp("hidden")
    task = folder / "tasks" / "double"
    facts = TaskFacts(entrypoint="python check.py", tests=["/check.py", "/tests/"])
    source = repository(folder / "source", FILES)
    write_task(task, TaskContent("test/double", "Make `double` double.", facts, source, GOLD, TEST_PATCH))
    places = [
        "app.py",
        "check.py",
        ".",
        "tests/hidden.py",
        "/tests",
        "/logs",
        "/tmp",
        ".pdbox-score-tests",
    ]
    if LOCAL_BACKEND != "process":  # which does not hide files of this machine
        places += [str(task / "tests" / "test.patch"), str(folder / "records"), "/proc/1/environ"]
    flags = ["--tasks", str(folder / "tasks"), "--record", str(folder / "records"), "--finish", *LOCAL]
    with ExitStack() as stack:
        server = stack.enter_context(serving(*flags))
        portal = stack.enter_context(start_blocking_portal())
        client = stack.enter_context(
            portal.wrap_async_context_manager(server.client(OVER_HTTP[0], query="?session=all&task=double"))
        )
        tools = portal.call(client.list_tools).tools
        world = World(portal, client, server, [one for one in tools if one.name != "finish"], places)
        world.call("listdir", {})
        yield world


def look_at(path: str) -> dict[str, dict[str, Any]]:
    """Calls that read a file or a folder, each tool by its own way."""
    opened = f"open({path!r}).read()"
    return {
        "pdb": {"command": f"p {opened}", "entrypoint": "python app.py"},
        "inspect": {"expression": opened},
        "listdir": {"path": path, "depth": 5},
        "view": {"path": path},
        "grep": {"pattern": ".", "regex": True, "path": path},
        "rewrite": {"path": path, "new_code": "n + 2", "old_code": "n + 2", "run": f"cat {path}"},
        "bash": {"command": f"ls -laR {path}; cat {path} $(find {path} -type f); git log --all -p -- {path}"},
        "eval": {"entrypoint": f"python {path}"},
        "diagnose": {"test": path, "expressions": [opened]},
        "trace": {"of": [f"{path}:1"], "expressions": [opened]},
    }


def test_no_place_shows_a_hidden_test_to_any_tool(world: World) -> None:
    assert {"wait", "diff", *look_at("")} == {tool.name for tool in world.tools}
    for _ in ("before", "after"):
        for path in world.places:
            world.check([world.call(tool, arguments) for tool, arguments in look_at(path).items()])
        world.check([world.read(uri) for path in world.places for uri in world.uris(path)])
        # The harness itself is shown why its test failed.
        assert SECRET in world.score()["output"]


def words_of(places: list[str]) -> dict[str, st.SearchStrategy[str]]:
    """Texts for the arguments of that name, or of that tool and name."""
    place = st.sampled_from(places)
    expression = st.one_of(
        st.sampled_from(["globals()", "__import__('os').environ", "__import__('sys').modules", "n"]),
        place.map(lambda path: f"open({path!r}).read()"),
    )
    entrypoint = st.sampled_from(["python check.py", "python app.py", "python tests/hidden.py"])
    return {
        "path": place,
        "cwd": place,
        "pattern": st.sampled_from(["secret_of|hidden", "assert", "."]),
        "old_code": st.sampled_from(["n + 2", "n * 2"]),
        "new_code": st.sampled_from(["n + 2", "n * 2"]),
        "entrypoint": entrypoint,
        "run": entrypoint,
        "test": place,
        "tests": place,
        "against": place,
        "of": st.sampled_from(["double", "app", "check.py:2", "tests/hidden.py:1"]),
        "expressions": expression,
        "expression": expression,
        "env": st.just("PYTHONVERBOSE=1"),
        "name": st.sampled_from(["double", "TEXT"]),
        "stdin": st.just("\n"),
        "command": st.sampled_from(["env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline", "git log --all -p"])
        | place.map(lambda path: f"ls -laR {path}; cat {path}; grep -rs secret_of {path}"),
        "pdb command": st.sampled_from(["run", "run\nn", "b check.py:2\nc", "w", "ll", "q"])
        | expression.map("run\np {}".format),
    }


def values(
    tool: str, name: str, schema: Mapping[str, Any], words: Mapping[str, Any]
) -> st.SearchStrategy[Any]:
    """Values for an argument by its schema."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    match schema["type"]:
        case "boolean":
            return st.booleans()
        case "integer":
            return st.integers(1, 3)
        case "number":
            return st.floats(0.5, 5)
        case "object":
            parts = {part: values(tool, part, one, words) for part, one in schema["properties"].items()}
            return st.fixed_dictionaries({}, optional=parts)
        case "array":
            return st.lists(values(tool, name, schema["items"], words), min_size=1, max_size=2)
        case _:
            return words.get(f"{tool} {name}", words.get(name, st.just("double")))


def calls_of(tool: Tool, words: Mapping[str, Any]) -> st.SearchStrategy[tuple[str, dict[str, Any]]]:
    """Calls by the schema that the client sees."""
    schema = tool.input_schema
    known = {name: values(tool.name, name, one, words) for name, one in schema.get("properties", {}).items()}
    required = {name: known.pop(name) for name in schema.get("required", ())}
    return st.tuples(st.just(tool.name), st.fixed_dictionaries(required, optional=known))


def test_no_call_shows_a_hidden_test(world: World) -> None:
    words = words_of(world.places)
    calls = st.one_of([calls_of(tool, words) for tool in world.tools])
    tried = Counter[str]()

    @settings(max_examples=EACH * len(world.tools), deadline=None, database=None)
    @given(calls)
    def prove(call: tuple[str, dict[str, Any]]) -> None:
        tool, arguments = call
        world.check([world.call(tool, arguments)])
        tried[tool] += 1
        if tried.total() % 50 == 0:  # the harness may look whenever it likes
            world.score()

    prove()
    assert set(tried) == {tool.name for tool in world.tools}, tried
