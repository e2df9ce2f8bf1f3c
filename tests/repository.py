"""Repositories for tests, written down in them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def repository(folder: Path, files: Mapping[str, str]) -> Path:
    """`folder`, with these files in it: path -> text."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder
