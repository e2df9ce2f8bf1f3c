"""`pdbox clean`: what servers that are gone left goes, and nothing of those that live."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.types import TextContent

from mcp_server.cli import main
from tests.bubblewrap import LOCAL
from tests.e2e.served import Server, serving

PLACES = [
    pytest.param(LOCAL, id="local"),
    pytest.param(["--backend", "docker"], marks=pytest.mark.docker, id="docker"),
]


def clean(capfd: pytest.CaptureFixture[str], *words: str, code: int = 0) -> list[dict[str, Any]]:
    """Run it; gives what it found."""
    capfd.readouterr()
    assert main(["clean", "--json", *words]) == code
    said = json.loads(capfd.readouterr().out)
    assert said["dry_run"] is ("--dry-run" in words)
    return said["found"]


def call(server: Server, tool: str, **arguments: object) -> str:
    """One call in a session of that server, which lives on between them."""

    async def make() -> str:
        async with Client(f"{server.url}?session=server-{server.process.pid}") as client:
            (block, *_) = (await client.call_tool(tool, arguments)).content
        assert isinstance(block, TextContent)
        return block.text

    return anyio.run(make)


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder of what is kept for the user, and a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Path(os.environ["XDG_STATE_HOME"]) / "pdbox"


@pytest.mark.parametrize("place", PLACES)
def test_sandboxes_of_a_killed_server_go_and_those_of_a_living_one_stay(
    place: list[str], kept: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    (repo / "app.py").write_text("n = 1\nn += 1\nn += 1\n")
    flags = ["--repo", str(repo), "--entrypoint", "python app.py", "--answers", "text", *place]
    runtime = os.environ["XDG_RUNTIME_DIR"]
    with serving(*flags, XDG_RUNTIME_DIR=runtime) as living, serving(*flags, XDG_RUNTIME_DIR=runtime) as gone:
        for server in (living, gone):
            assert "app.py:2" in call(server, "pdb", command="n")
            call(server, "rewrite", path="app.py", old_code="n = 1", new_code="n = 10")
        assert clean(capfd) == []
        gone.process.kill()
        gone.process.wait()
        (shown,) = clean(capfd, "--dry-run")
        assert shown["kind"] == "sandbox"
        assert shown["size"] > 0 or "docker" in place  # there the files are in memory
        assert [one["name"] for one in clean(capfd)] == [shown["name"]]
        # Its edits can be had back for a day; those of the living server's session always.
        (edits,) = [one for one in clean(capfd, "--older-than", "0") if one["kind"] == "edits"]
        assert edits["size"] > 0
        assert clean(capfd, "--older-than", "0") == []
        assert len(list(kept.glob("edits/*/*"))) == 1
        assert "app.py:2" in call(living, "pdb", command="w")


def test_a_sandbox_that_was_kept_on_purpose_stays(
    kept: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "repo").mkdir()
    assert main(["call", "listdir", "--repo", str(tmp_path / "repo"), *LOCAL]) == 0
    assert [one for one in clean(capfd, "--older-than", "0") if one["kind"] == "sandbox"] == []
    capfd.readouterr()
    assert main(["sessions", "reap", *LOCAL]) == 0
    assert "removed" in capfd.readouterr().out


def test_what_was_not_used_lately_goes_and_the_rest_stays(
    kept: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    cache = tmp_path / "cache" / "pdbox"
    elsewhere = tmp_path / "precious"
    elsewhere.write_text("mine")
    old = time.time() - 30 * 3600
    name = "a" * 64
    files = {
        kept / "setups" / name: old,
        kept / "setups" / ("b" * 64): time.time(),
        kept / "setups" / "draft-xyz": time.time() - 60,
        kept / "edits" / "owner" / name: old,
        cache / "guest" / "digest" / name: old,
        kept / "shell_history": old,
    }
    for file, used in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"x" * 1_500_000)
        os.utime(file, (used, used))
    (kept / "setups" / ("c" * 64)).symlink_to(elsewhere)
    kinds = ["set-up", "edits", "bytecode"]
    assert [one["kind"] for one in clean(capfd, "--dry-run")] == kinds
    assert all(file.exists() for file in files)
    capfd.readouterr()
    assert main(["clean"]) == 0
    said = capfd.readouterr().out
    assert "set-up       1.5 MB  1800 min" in said and "3 removed, 4.5 MB." in said
    assert [file.name for file in files if file.exists()] == ["b" * 64, "draft-xyz", "shell_history"]
    assert [one["name"] for one in clean(capfd, "--older-than", "0")] == [str(kept / "setups" / ("b" * 64))]
    assert elsewhere.read_text() == "mine" and (kept / "setups" / "draft-xyz").exists()


@pytest.mark.parametrize("days", ["-1", "nan", "inf"])
def test_an_age_that_is_none_is_refused(days: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["clean", f"--older-than={days}"]) == 2
    assert "is not a number of days" in capfd.readouterr().err
