"""What clients and programs can't reach."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.client import ToolFailed, pdbox

pytestmark = pytest.mark.anyio

FILE_TOOLS: list[tuple[str, dict[str, Any]]] = [
    ("view", {}),
    ("listdir", {}),
    ("grep", {"pattern": "."}),
    ("rewrite", {"new_code": "x = 1\n"}),
]


@pytest.mark.parametrize(
    "path",
    ["../secret.txt", "/etc/passwd", "link.txt", "folder/secret.txt", "a/../../secret.txt", ".git/config"],
)
async def test_no_file_tool_leaves_the_workspace(tmp_path: Path, backend: list[str], path: str) -> None:
    (tmp_path / "secret.txt").write_text("PRIVATE")
    repo = tmp_path / "repo"
    (repo / ".git").mkdir(parents=True)
    (repo / ".git/config").write_text("[core]\n")
    (repo / "link.txt").symlink_to("/etc/passwd")
    (repo / "folder").symlink_to("/tmp")
    async with pdbox("--repo", str(repo), *backend) as session:
        for tool, arguments in FILE_TOOLS:
            with pytest.raises(ToolFailed) as caught:
                await session.call(tool, path=path, **arguments)
            assert "PRIVATE" not in str(caught.value) and "root:" not in str(caught.value)


async def test_named_pipes_hold_no_call_up(tmp_path: Path, backend: list[str]) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    for name in ("pipe", "pyproject.toml", ".gitignore", ".debugreadonly"):
        os.mkfifo(repo / name)
    os.mkfifo(tmp_path / "x.tar")
    async with pdbox("--root", str(tmp_path), *backend) as session:
        with pytest.raises(ToolFailed, match="is a named pipe"):
            await session.call("start_session", repo=str(tmp_path / "x.tar"))
        text = await session.text("start_session", repo=str(repo))
        assert "note: Named pipes, sockets and devices were left out: 4." in text


async def test_read_only_and_hidden_files_keep_so(tmp_path: Path, backend: list[str]) -> None:
    (tmp_path / ".debugreadonly").write_text("test_*.py\n")
    (tmp_path / ".debugignore").write_text("secret/\n*.key\n")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/answer.py").write_text("ANSWER = 42\n")
    (tmp_path / "a.key").write_text("ANSWER\n")
    (tmp_path / "test_a.py").write_text("def test_a():\n    assert False\n")
    async with pdbox("--repo", str(tmp_path), *backend) as session:
        with pytest.raises(ToolFailed, match="read-only"):
            await session.call("rewrite", path="test_a.py", new_code="def test_a(): pass\n")
        with pytest.raises(ToolFailed, match="read-only"):
            await session.call("rewrite", path=".debugreadonly", new_code="")
        listed = await session.call("listdir", depth=3)
        assert [entry["path"] for entry in listed["entries"] if not entry["path"].startswith(".")] == [
            "test_a.py"
        ]
        assert (await session.call("grep", pattern="ANSWER"))["matches"] == []
        for path in ("secret/answer.py", "a.key"):
            with pytest.raises(ToolFailed, match="hidden"):
                await session.call("view", path=path)
        await session.call("bash", command="echo 'def test_a(): pass' > test_a.py || true")
        result = await session.call("eval")
        assert result["failed"] == 1 and result["exit_code"] == 1


@pytest.mark.parametrize("repo", ["/etc", "~/.ssh", "/", "nowhere", "a/../../.."])
async def test_a_repository_outside_of_the_roots_is_refused(
    tmp_path: Path, backend: list[str], repo: str
) -> None:
    async with pdbox("--root", str(tmp_path), *backend) as session:
        with pytest.raises(ToolFailed, match=r"outside of the folders|No such"):
            await session.call("start_session", repo=repo)


async def test_a_link_in_the_repository_brings_nothing_of_the_host(
    tmp_path: Path, backend: list[str]
) -> None:
    (tmp_path / "private").mkdir()
    (tmp_path / "private/key").write_text("PRIVATE")
    repo = tmp_path / "repo"
    repo.mkdir()
    (repo / "inside.py").write_text("x = 1\n")
    (repo / "key").symlink_to(tmp_path / "private/key")
    (repo / "private").symlink_to(tmp_path / "private")
    async with pdbox("--repo", str(repo), *backend) as session:
        listed = await session.call("listdir", depth=5)
        assert {entry["path"]: entry["kind"] for entry in listed["entries"]} == {
            "inside.py": "file",
            "key": "link",
            "private": "link",
        }
        if "process" not in backend:
            result = await session.call(
                "bash", command="cat key private/key; ls /home /root; id -u; cat /proc/self/status"
            )
            assert "PRIVATE" not in result["output"]


async def test_an_unknown_session_is_one_readable_error(tmp_path: Path, backend: list[str]) -> None:
    async with pdbox("--root", str(tmp_path), *backend) as session:
        texts: set[str] = set()
        for handle in ("nope", "x" * 32, "../../etc"):
            with pytest.raises(ToolFailed) as caught:
                await session.call("view", path="a.py", session_id=handle)
            texts.add(str(caught.value).replace(handle, "…"))
        assert len(texts) == 1 and "start_session" in texts.pop()
