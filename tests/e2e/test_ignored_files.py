"""Ignored files that a program can't do without: they are in the sandbox, and in no diff."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from tests.e2e.client import pdbox
from tests.repository import repository

pytestmark = pytest.mark.anyio


async def checkout(folder: Path) -> Path:
    """A repository as a developer has it: what its build has made is there, and git tracks none of it."""
    tracked = {
        ".gitignore": "_version.py\n*.egg-info/\ngen/\nkept/\n.env\n",
        "kept/__init__.py": "",
        "shop/__init__.py": "from shop._version import __version__\n",
        "test_shop.py": "import importlib.metadata, shop\n\n"
        "def test_version():\n    assert shop.__version__ == importlib.metadata.version('shop') == '1.2'\n",
    }
    made = {
        "shop/_version.py": "__version__ = '1.2'\n",
        "shop.egg-info/PKG-INFO": "Metadata-Version: 2.1\nName: shop\nVersion: 1.2\n",
        "shop/gen/__init__.py": "",
        ".env": "KEY=PRIVATE\n",
    }
    repository(folder, tracked)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for command in (["init", "-q"], ["add", "-f", "."], ["commit", "-qm", "all"]):
        await anyio.run_process([*git, *command], cwd=folder)
    return repository(folder, made)


async def test_tests_pass_that_need_an_ignored_version_file_and_no_diff_shows_it(
    tmp_path: Path, backend: list[str]
) -> None:
    async with pdbox("--repo", str(await checkout(tmp_path)), *backend) as session:
        started = await session.text("start_session", entrypoint="python -m pytest -q")
        assert (
            "note: Code that `.gitignore` matches was left out: shop/gen/. If an import needs it, " in started
        )
        result = await session.call("eval")
        assert (result["passed"], result["failed"]) == (1, 0)
        assert (await session.call("diff"))["files"] == []
        listed = await session.call("bash", command="git status --porcelain; cat .env")
        assert "_version" not in listed["output"] and "PRIVATE" not in listed["output"]
        await session.call("bash", command="echo '__version__ = 2' > shop/_version.py")
        assert (await session.call("diff"))["files"] == []
