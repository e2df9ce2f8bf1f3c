"""`.debugreadonly` against programs, in real containers."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

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


async def test_no_program_changes_a_read_only_file_or_a_folder_above_it(repo: Path) -> None:
    async with pdbox("--repo", str(repo)) as session:
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


async def test_where_it_cannot_be_kept_from_programs_the_session_says_so(repo: Path, tmp_path: Path) -> None:
    archive = tmp_path / "release.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(repo, "release-1.0")
    async with pdbox("--root", str(tmp_path)) as session:
        opened = await session.call("start_session", repo=str(archive), entrypoint="python -m pytest -q")
        assert "put back before each `eval`" in str(opened)
        await session.call("bash", command="echo 'def test_double(): pass' > tests/unit/test_code.py")
        result = await session.call("eval")
        assert (result["failed"], result["restored"]) == (1, ["tests/unit/test_code.py"])
        await session.call("close_session")
        opened = await session.call("start_session", repo=str(repo), entrypoint="python -m pytest -q")
        assert "put back" not in str(opened)
