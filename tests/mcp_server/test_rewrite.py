"""Several edits in one call of `rewrite`, and the test run after them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from tests.mcp_server.conftest import Connect
from tests.mcp_server.test_calls import data, refused, text

pytestmark = pytest.mark.anyio


async def lines_of(client: Client, path: str) -> list[str]:
    return (await data(client, "bash", command=f"cat {path}"))["output"].splitlines()


@pytest.fixture
def two_files(repo: Path) -> None:
    (repo / "a.txt").write_text("1\n2\n3\n4\n5")
    (repo / "b.txt").write_text("x\r\ny\r\n")


@pytest.mark.usefixtures("two_files")
async def test_edits_of_one_call_mean_the_files_as_they_were(connect: Connect) -> None:
    async with connect() as client:
        edits: list[dict[str, Any]] = [
            {"start": 1, "end": 2, "new_code": "one\ntwo\nand a half"},
            {"start": 4, "new_code": ""},
            {"old_code": "3\n", "new_code": "three\n"},
            {"start": 6, "new_code": "six"},
            {"path": "b.txt", "old_code": "y", "new_code": "z"},
            {"path": "deep/new.txt", "new_code": "new\n", "start": None, "old_code": None},
        ]
        done = await client.call_tool("rewrite", {"path": "a.txt", "edits": edits})
        assert "3 files rewritten: a.txt, b.txt, deep/new.txt (created)\n```diff\n+++ b/a.txt\n@@ " in text(
            done
        )
        assert await lines_of(client, "a.txt") == ["one", "two", "and a half", "three", "5", "six"]
        assert (await data(client, "bash", command="od -c b.txt"))["output"].startswith(
            "0000000   x  \\r  \\n   z  \\r"
        )
        assert await lines_of(client, "deep/new.txt") == ["new"]


async def test_old_code_needs_no_spaces_at_the_ends_of_lines(repo: Path, connect: Connect) -> None:
    (repo / "c.py").write_text("def f():  \n    x = 1\n   \n    y = 2\t\n    return x\n\n\nx = 1 \n")
    async with connect() as client:
        edit = {"old_code": "    x = 1\n\n    y = 2", "new_code": "    z = 3"}
        await client.call_tool("rewrite", {"path": "c.py", **edit})
        assert (await data(client, "bash", command="cat -A c.py"))["output"].split("\n") == [
            "def f():  $",
            "    z = 3$",
            "    return x$",
            "$",
            "$",
            "x = 1 $",
            "",
        ]
        twice = await client.call_tool("rewrite", {"path": "c.py", "old_code": "x \n", "new_code": "y"})
        assert "`old_code` does not occur" not in text(twice) and not twice.is_error
        for absent in ("    x = 1\n\n    y = 3", " \t\n "):
            refused = await client.call_tool("rewrite", {"path": "c.py", "old_code": absent, "new_code": ""})
            assert refused.is_error and "does not occur in c.py" in text(refused)


@pytest.mark.usefixtures("two_files")
@pytest.mark.parametrize(
    ("edit", "said"),
    [
        ({"start": 9, "new_code": "x"}, "Edit 2 of 2 (b.txt): Lines 9-9 don't exist: the file has 2."),
        ({"old_code": "nope", "new_code": "x"}, "Edit 2 of 2 (b.txt): `old_code` does not occur in b.txt."),
        ({"path": "../c", "new_code": "x"}, "Edit 2 of 2 (../c): ../c is outside of the repository."),
        ({"path": "a.txt", "start": 1, "new_code": "x"}, "Edit 2 of 2 (a.txt): It overlaps with edit 1."),
        ({"path": "a.txt/c", "new_code": "x"}, "a.txt/c"),
    ],
)
async def test_of_edits_with_an_error_none_is_made(connect: Connect, edit: dict[str, Any], said: str) -> None:
    async with connect() as client:
        edits = [{"path": "a.txt", "start": 1, "end": 3, "new_code": "x"}, {"path": "b.txt", **edit}]
        assert said in await refused(client, "rewrite", edits=edits)
        assert (await data(client, "diff"))["files"] == []


async def test_edits_and_a_single_edit_exclude_each_other(connect: Connect) -> None:
    async with connect() as client:
        edit = {"path": "app.py", "new_code": "x"}
        assert "not both" in await refused(client, "rewrite", path="app.py", new_code="y", edits=[edit])
        assert "`new_code` is missing." in await refused(client, "rewrite", path="app.py")
        assert "`path` is missing." in await refused(client, "rewrite", new_code="x")
        assert "An edit has no `path`." in await refused(client, "rewrite", edits=[{"new_code": "x"}])
        assert "edits.0.new" in await refused(client, "rewrite", edits=[{**edit, "new": "x"}])
        assert "half of a surrogate pair" in await refused(
            client, "rewrite", edits=[{**edit, "old_code": "\ud800"}]
        )


@pytest.fixture
def tested(repo: Path) -> None:
    (repo / "mod.py").write_text("VALUE = 1\n")
    (repo / "test_mod.py").write_text(
        "import mod\n\ndef test_a():\n    assert mod.VALUE == 2\n\ndef test_b():\n    assert mod.VALUE < 3\n"
    )


@pytest.mark.usefixtures("tested")
async def test_an_edit_and_the_tests_take_one_call(connect: Connect) -> None:
    async with connect(entrypoint="python -m pytest -q") as client:

        async def run(value: str, what: str) -> str:
            arguments = {"path": "mod.py", "new_code": f"VALUE = {value}\n", "run": what}
            return text(await client.call_tool("rewrite", arguments))

        first = await run("3", "tests")
        assert (
            "mod.py rewritten:\n```diff\n" in first
            and "\n2 failed (exit code 1); 1 of the 2 failed before your edits too\n" in first
        )
        second = await run("2", "eval")
        assert "\n2 passed (exit code 0)\nfixed since the last run: " in second
        assert "\n1 passed (exit code 0)" in await run("0", "test_mod.py::test_b")
        assert "\n1 passed (exit code 0)" in await run("2", "python -m pytest -q -k test_a")
        wrong = await run("(", "tests")
        assert "syntax error in the new text: line 1" in wrong
        assert wrong.endswith("Nothing was run: the new text has a syntax error.")
        failed = await run("4", "cd nowhere")
        assert "mod.py rewritten:" in failed and "(exit code " in failed


async def test_what_cannot_be_run_does_not_hide_that_the_file_is_changed(connect: Connect) -> None:
    async with connect(entrypoint="make test") as client:
        done = await client.call_tool("rewrite", {"path": "app.py", "new_code": "", "run": "app.py::test"})
        assert not done.is_error
        assert "app.py rewritten:" in text(done) and "\nNothing was run: " in text(done)
