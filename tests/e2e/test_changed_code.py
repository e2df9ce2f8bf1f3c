"""`diagnose` runs a test with changed code, where that reaches a copy of the repository alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bubblewrap import UNSAFE
from tests.e2e.client import pdbox
from tests.repository import repository

pytestmark = pytest.mark.anyio

SHOP = """import shutil


def total(prices, clean=False):
    if clean:
        shutil.rmtree("data")
    result = 0
    for price in prices:
        if price > 1:
            result += price
    return result
"""
FILES = {
    "shop.py": SHOP,
    "test_shop.py": "from shop import total\n\n\ndef test_all():\n    assert total([1, 2]) == 3\n",
    "data/prices.txt": "1\n2\n",
}
FOUND = "shop.py:9 total(): if `price > 1` were true"


async def test_a_change_with_which_the_test_passes_is_told_and_no_file_is_changed(
    tmp_path: Path, backend: list[str]
) -> None:
    repo = repository(tmp_path, FILES)
    async with pdbox("--repo", str(repo), *backend) as session:
        assert FOUND in (await session.call("diagnose"))["diagnosis"]
        assert (await session.call("diff"))["files"] == []


async def test_without_isolation_no_changed_code_runs(tmp_path: Path) -> None:
    repo = repository(tmp_path, FILES)
    async with pdbox("--repo", str(repo), *UNSAFE) as session:
        assert "changes with which" not in (await session.call("diagnose"))["diagnosis"]


@pytest.mark.docker
async def test_with_a_network_no_changed_code_runs(tmp_path: Path) -> None:
    repo = repository(tmp_path, FILES)
    async with pdbox("--repo", str(repo), "--backend", "docker", "--network") as session:
        await session.call("start_session", repo=str(repo), network=True)
        assert "changes with which" not in (await session.call("diagnose"))["diagnosis"]
