"""The store of results of set-up commands: its limits."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from sandbox.opening import kept_setups
from sandbox.opening.kept_setups import MAX_AGE_S, KeptSetups


def keep(kept: KeptSetups, key: str, size: int = 10) -> None:
    """Keep an archive."""
    stream, draft = kept.begin()
    with stream:
        stream.write(b"x" * size + b"\npdbox: whole\n")
    kept.finish(draft, key)


def names(kept: KeptSetups) -> set[str]:
    """The keys that there are."""
    return {file.name for file in kept.folder.iterdir()}


def age(kept: KeptSetups, key: str, *, used_s: float, made_s: float) -> None:
    """Make an archive older."""
    os.utime(kept.folder / key, (time.time() - used_s, time.time() - made_s))


@pytest.mark.parametrize("limit", ["bytes", "number"])
def test_beyond_the_limit_what_was_not_used_for_longest_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    if limit == "number":
        monkeypatch.setattr(kept_setups, "MAX_FILES", 2)
    kept = KeptSetups(tmp_path / "setups", 60 if limit == "bytes" else 1000)
    keep(kept, "a")
    keep(kept, "b")
    age(kept, "a", used_s=100, made_s=200)
    age(kept, "b", used_s=90, made_s=90)
    stream = kept.open("a")  # used again
    assert stream is not None
    stream.close()
    keep(kept, "c")
    assert names(kept) == {"a", "c"}


def test_what_is_old_is_neither_given_nor_kept(tmp_path: Path) -> None:
    kept = KeptSetups(tmp_path / "setups", 1000)
    keep(kept, "a")
    age(kept, "a", used_s=0, made_s=MAX_AGE_S + 60)
    assert kept.open("a") is None
    keep(kept, "b")
    assert names(kept) == {"b"}


def test_what_was_cut_is_not_given(tmp_path: Path) -> None:
    kept = KeptSetups(tmp_path / "setups", 1000)
    keep(kept, "a")
    os.truncate(kept.folder / "a", 20)
    assert kept.open("a") is None


def test_archives_are_their_users_and_no_link_is_followed(tmp_path: Path) -> None:
    kept = KeptSetups(tmp_path / "setups", 1000)
    keep(kept, "a")
    assert kept.folder.stat().st_mode & 0o777 == 0o700
    assert (kept.folder / "a").stat().st_mode & 0o777 == 0o600
    (kept.folder / "b").symlink_to(kept.folder / "a")
    assert kept.open("b") is None


def test_with_no_byte_allowed_nothing_is_kept(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path)}
    assert KeptSetups.in_state_folder(environ, 0) is None
    assert KeptSetups.in_state_folder(environ, 1) == KeptSetups(tmp_path / "pdbox" / "setups", 1)
