"""`.debugreadonly` against programs, in real containers."""

from __future__ import annotations

import io
import subprocess
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.client import Session, ToolFailed, pdbox
from tests.repository import repository

pytestmark = [pytest.mark.anyio, pytest.mark.docker]

TEST = "from app.code import double\n\n\ndef test_double():\n    assert double(2) == 4\n"
ATTACKS = [
    "echo 'def test_double(): pass' > tests/unit/test_code.py",
    ": > tests/unit/test_code.py",
    "truncate -s 0 tests/unit/test_code.py",
    "echo >> tests/unit/test_code.py",
    "rm -f tests/unit/test_code.py",
    "mv tests/unit/test_code.py tests/unit/other.py",
    "touch x && mv -f x tests/unit/test_code.py",
    "ln -sf /dev/null tests/unit/test_code.py",
    "ln tests/unit/test_code.py taken && echo x > taken",
    "chmod 666 tests/unit/test_code.py",
    "chown 10001 tests/unit/test_code.py",
    "sed -i s/4/5/ tests/unit/test_code.py",
    "mv tests/unit tests/gone",
    "mv tests gone",
    "rm -rf tests",
    "mkdir fake && mv -T fake tests",
    "chmod 755 tests tests/unit .",
    "chmod -t tests/unit",
    "rm -f data/gold.bin",
    "rm -f tests/link.py",
    "ln -sfn /tmp tests/link.py",
    "rm -f .debugreadonly",
    "echo > .debugreadonly",
    "mv .debugreadonly elsewhere",
    "python3 -c \"open('tests/unit/test_code.py', 'r+').truncate(0)\"",
    "python3 -c \"import os; os.rename('/workspace', '/tmp/w')\"",
    "mount --bind /tmp tests",
]


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A git repository with tests that must stay as they are."""
    files = {
        "app/__init__.py": "",
        "app/code.py": "def double(n):\n    return n * 3\n",
        "tests/__init__.py": "",
        "tests/helpers.py": "x = 1\n",
        "tests/unit/__init__.py": "",
        "tests/unit/test_code.py": TEST,
        "data/gold.bin": "gold",
        ".debugreadonly": "test_*.py\n/data/\ntests/link.py\n",
    }
    folder = repository(tmp_path / "repo", files)
    (folder / "tests/link.py").symlink_to("unit/test_code.py")
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], cwd=folder, check=True)
    return folder


async def state(session: Session) -> str:
    """What the read-only files hold, and what lies where."""
    command = "cat tests/unit/test_code.py tests/link.py data/gold.bin .debugreadonly; ls -ld tests/link.py tests/unit/test_code.py"
    return (await session.call("bash", command=command))["output"]


def packed(repo: Path, kind: str) -> Path:
    """An archive of the repository. `tar` has an entry for the folder itself, the others an only folder at the top."""
    archive = repo.parent / f"release.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(archive, "w") as file:
            for path in sorted(repo.rglob("*")):
                info = zipfile.ZipInfo(f"release-1.0/{path.relative_to(repo)}{'/' * path.is_dir()}")
                is_link = path.is_symlink()
                info.external_attr = (0o120777 if is_link else path.stat().st_mode) << 16
                info.compress_type = zipfile.ZIP_DEFLATED
                content = (
                    str(path.readlink()).encode() if is_link else b"" if path.is_dir() else path.read_bytes()
                )
                file.writestr(info, content)
        return archive
    with tarfile.open(archive, "w:gz" if kind.endswith("gz") else "w") as file:
        file.add(repo, "." if kind == "tar" else "release-1.0")
    return archive


def wish(repo: Path, source: str) -> dict[str, Any]:
    """Arguments of start_session for the repository from this source."""
    if source == "folder":
        return {"repo": str(repo)}
    if source in ("ref", "old ref"):
        if source == "old ref":
            # The files of today have no rules: that there are some is known after the checkout.
            subprocess.run(["git", "rm", "-q", "--cached", ".debugreadonly"], cwd=repo, check=True)
            (repo / ".debugreadonly").unlink()
        return {"repo": str(repo), "ref": "HEAD"}
    return {"repo": str(packed(repo, source))}


@pytest.mark.parametrize("source", ["folder", "ref", "old ref", "tar", "tgz", "zip"])
async def test_no_program_changes_a_read_only_file_or_a_folder_above_it(repo: Path, source: str) -> None:
    asked = wish(repo, source)
    async with pdbox("--root", str(repo.parent)) as session:
        opened = await session.call("start_session", **asked)
        assert "put back" not in str(opened)
        before = await state(session)
        assert before.count("assert double(2) == 4") == 2 and "gold" in before
        for attack in ATTACKS:
            await session.call("bash", command=attack)
            assert await state(session) == before, attack
        with pytest.raises(ToolFailed, match="read-only"):
            await session.call("rewrite", path="tests/unit/test_code.py", new_code="")
        result = await session.call("eval", entrypoint="python -m pytest -q")
        assert (result["failed"], result.get("restored", [])) == (1, [])


async def test_work_beside_read_only_files_goes_on(repo: Path) -> None:
    async with pdbox("--repo", str(repo), "--entrypoint", "python -m pytest -q") as session:
        assert (await session.call("eval"))["failed"] == 1
        made = await session.call(
            "bash", command="ls tests/unit/__pycache__ .pytest_cache; git status --short"
        )
        assert "test_code" in made["output"] and "lastfailed" not in made["output"].split("git")[0]
        assert "dubious" not in made["output"]
        await session.call("rewrite", path="app/code.py", old_code="n * 3", new_code="n * 2")
        await session.call("rewrite", path="tests/helpers.py", new_code="x = 2\n")
        await session.call(
            "rewrite", path="tests/unit/test_more.py".replace("test_", "extra_"), new_code="y = 1\n"
        )
        run = await session.call(
            "bash",
            command="rm tests/unit/__init__.py && mv tests/helpers.py tests/unit/moved.py && git add -A && git diff --cached --stat",
        )
        assert run["exit_code"] == 0, run["output"]
        assert (await session.call("eval"))["passed"] == 1
        changed = {file["path"]: file["kind"] for file in (await session.call("diff"))["files"]}
        assert changed == {
            "app/code.py": "modified",
            "tests/helpers.py": "deleted",
            "tests/unit/__init__.py": "deleted",
            "tests/unit/extra_more.py": "added",
            "tests/unit/moved.py": "added",
        }


async def test_a_hostile_archive_is_kept_in_its_place(tmp_path: Path) -> None:
    archive = tmp_path / "hostile.tar"
    with tarfile.open(archive, "w") as file:

        def add(
            name: str, kind: bytes = tarfile.REGTYPE, mode: int = 0o644, to: str = "", data: str = ""
        ) -> None:
            info = tarfile.TarInfo(name)
            info.type, info.mode, info.linkname, info.size = kind, mode, to, len(data)
            file.addfile(info, io.BytesIO(data.encode()))

        add(".", tarfile.DIRTYPE, 0o700)
        add(".debugreadonly", data="/locked/\n/out\ntest_*\n/deep/**\n")
        add("locked", tarfile.DIRTYPE, 0o555)
        add("locked/private", mode=0o600, data="private")
        add("locked/root", mode=0o4777, data="#!/bin/sh\nid -u\n")
        add("locked/other", tarfile.LNKTYPE, to="locked/private")
        add("locked/a\nb", data="line")
        add("locked/passwd", tarfile.SYMTYPE, to="/etc/passwd")
        add("locked/shadow", tarfile.SYMTYPE, to="/etc/shadow")
        add("out", tarfile.SYMTYPE, to="/tmp")
        add("test_pipe", tarfile.FIFOTYPE)
        add("free", tarfile.LNKTYPE, to="locked/private")
        add("deep/" * 90 + "end", data="deep")
    async with pdbox("--root", str(tmp_path)) as session:
        opened = await session.call("start_session", repo=str(archive))
        assert "put back" not in str(opened)

        async def run(command: str) -> str:
            return (await session.call("bash", command=command))["output"]

        assert await run("cat locked/private locked/other free; cat locked/a*") == "privateprivateprivateline"
        assert await run("stat -c '%u %a' locked locked/private locked/root") == "0 1777\n0 444\n0 555\n"
        assert await run("echo x > free; cat free locked/private") == "x\nprivate"
        assert await run("readlink locked/passwd locked/shadow out") == "/etc/passwd\n/etc/shadow\n/tmp\n"
        assert await run("locked/root; test -p test_pipe && echo pipe") == "10001\npipe\n"
        assert "denied" in await run(f"echo > {'deep/' * 90}end")
        assert await run("find /tmp ~ -mindepth 1 -uid 0") == ""
        assert await run("ls -A | grep pdbox") == ""


async def test_where_it_cannot_be_kept_from_programs_the_session_says_so(repo: Path) -> None:
    async with pdbox("--root", str(repo.parent), "--backend", "bubblewrap") as session:
        opened = await session.call(
            "start_session", repo=str(packed(repo, "tgz")), entrypoint="python -m pytest -q"
        )
        assert "put back before each `eval`" in str(opened)
        await session.call("bash", command="echo 'def test_double(): pass' > tests/unit/test_code.py")
        result = await session.call("eval")
        assert (result["failed"], result["restored"]) == (1, ["tests/unit/test_code.py"])
