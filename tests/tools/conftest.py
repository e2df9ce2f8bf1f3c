"""Small repositories for whole calls of a tool."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

MakeRepo = Callable[[dict[str, str]], Path]


@pytest.fixture
def make_repo(tmp_path: Path, runtime: str, monkeypatch: pytest.MonkeyPatch) -> MakeRepo:
    """Writes a repository. Other servers on this machine are not seen."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)

    def make(files: dict[str, str]) -> Path:
        folder = tmp_path / "repo"
        folder.mkdir()
        for name, text in files.items():
            (folder / name).write_text(text)
        return folder

    return make
