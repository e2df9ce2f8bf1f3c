"""Folders of the user that outlive logins, by the XDG Base Directory Specification."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def state_folder(environ: Mapping[str, str]) -> Path | None:
    """Return the folder for what is to stay; None for a user without a home."""
    return _folder(environ.get("XDG_STATE_HOME", ""), ".local/state")


def cache_folder(environ: Mapping[str, str]) -> Path | None:
    """Return the folder for what can be made again; None for a user without a home."""
    return _folder(environ.get("XDG_CACHE_HOME", ""), ".cache")


def _folder(given: str, usual: str) -> Path | None:
    """Relative paths don't count."""
    try:
        base = Path(given) if Path(given).is_absolute() else Path.home() / usual
    except RuntimeError:
        return None
    return base / "pdbox"
