"""One server for all attacks of a file: what one of them leaves behind, the next ones meet."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.e2e.client import pdbox
from tests.e2e.hostile.attacked import ENTRY, Attacked, write_repo


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return write_repo(tmp_path)


@pytest.fixture(scope="module")
async def attacked(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Attacked]:
    repo = write_repo(tmp_path_factory.mktemp("other"))
    async with pdbox("--root", str(tmp_path_factory.getbasetemp())) as server:
        other = (await server.call("start_session", repo=str(repo), **ENTRY))["session_id"]
        await server.call("pdb", command="b double\nc", session_id=other)
        yield Attacked(server, other)
