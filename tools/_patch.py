"""How sets of changed files read."""

from __future__ import annotations

from collections.abc import Sequence

from sandbox.workspace import FileChange
from tools._text import plural


def changes(files: Sequence[FileChange]) -> str:
    """One line a file."""
    lines = [f"  {file.path} ({file.kind}, +{file.added} -{file.removed})" for file in files]
    return "\n".join([f"{plural(len(files), 'file')} changed:", *lines])
