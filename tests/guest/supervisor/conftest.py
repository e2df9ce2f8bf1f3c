from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.guest.supervisor.guest import Guest


@pytest.fixture
def guest(tmp_path: Path) -> Iterator[Guest]:
    """A guest with an empty workspace."""
    with Guest(tmp_path) as running:
        yield running
