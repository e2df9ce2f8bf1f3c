"""Files of kept edits: whole records only, bounded in size, number and age."""

from __future__ import annotations

import os
import time
from pathlib import Path

import anyio
import pytest

from mcp_server.sessions import kept_edits
from mcp_server.sessions.kept_edits import Journal, KeptEdits, Opened
from sandbox.errors import SandboxError
from sandbox.session.workspace import WrittenFile

pytestmark = pytest.mark.anyio
OPENED = Opened(source="s", repo="/r")


async def begin(edits: KeptEdits, key: str = "k") -> Journal:
    """The journal of a session."""
    journal = await edits.begin("o", key, OPENED)
    assert journal is not None
    return journal


async def contents(edits: KeptEdits, key: str = "k") -> dict[str, bytes]:
    """All files that are kept of a session."""
    kept = await edits.load("o", key)
    assert kept is not None and kept.opened == OPENED
    return {path: file.content for path, file in kept.files.items()}


async def test_a_record_that_was_cut_anywhere_costs_that_record_alone(tmp_path: Path) -> None:
    edits = KeptEdits(tmp_path)
    journal = await begin(edits)
    await journal.keep([WrittenFile("a", b"1\n", "d")])
    file = tmp_path / "o" / "k"
    whole = file.read_bytes()
    await journal.keep([WrittenFile("a", b"2\n\0\xff", "e"), WrittenFile("b", b"", None)])
    longer = file.read_bytes()
    for size in range(len(whole), len(longer)):
        file.write_bytes(longer[:size])
        assert await contents(edits) == {"a": b"1\n"}
    file.write_bytes(longer[:-1] + b"?")
    again = await begin(edits)
    assert again.count == 2
    file.write_bytes(longer[:-3])
    again = await begin(edits)
    await again.keep([WrittenFile("c", b"3", None)])
    assert await contents(edits) == {"a": b"1\n", "c": b"3"}
    kept = await edits.load("o", "k")
    assert kept and (kept.files["a"].before, kept.files["c"].before) == ("d", None)


async def test_a_file_edited_often_takes_a_bounded_place_and_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_edits, "MAX_BYTES", 3000)
    monkeypatch.setattr(kept_edits, "_SLACK", 1000)
    edits = KeptEdits(tmp_path)
    journal = await begin(edits)
    for number in range(100):
        await journal.keep([WrittenFile("a", b"%04d" % number * 250, "first" if not number else "later")])
        assert (tmp_path / "o" / "k").stat().st_size < 6000
    assert await contents(edits) == {"a": b"0099" * 250}
    kept = await edits.load("o", "k")
    assert kept and kept.files["a"].before == "first"
    with pytest.raises(OSError, match="3,000 are kept"):
        await journal.keep([WrittenFile("b", b"x" * 4000, None)])
    assert await contents(edits) == {"a": b"0099" * 250}
    assert [path.name for path in (tmp_path / "o").iterdir()] == ["k"]


async def test_what_is_old_or_too_much_is_swept_but_not_that_of_open_sessions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_edits, "MAX_FILES", 4)
    edits = KeptEdits(tmp_path)
    now = time.time()
    ages = {"new": 0.0, "hour": 3600.0, "day": 25 * 3600.0, "held": 99 * 3600.0, "future": -99 * 3600.0}
    for name, age in ages.items():
        await begin(edits, name)
        os.utime(tmp_path / "o" / name, (now - age, now - age))
    (gone := tmp_path / "p").mkdir()
    await edits.sweep({"held"})
    assert {path.name for path in (tmp_path / "o").iterdir()} == {"new", "hour", "held", "future"}
    assert (tmp_path / "o" / "future").stat().st_mtime < now + 3600
    (tmp_path / "o" / "future").unlink()
    assert not gone.exists()
    for number in range(5):
        await begin(edits, str(number))
        os.utime(tmp_path / "o" / str(number), (now - 10 * number - 10, now - 10 * number - 10))
    await edits.sweep({"held"})
    assert {path.name for path in (tmp_path / "o").iterdir()} == {"new", "0", "1", "2", "held"}


async def test_a_session_that_begins_during_sweeps_is_kept(tmp_path: Path) -> None:
    edits, others = KeptEdits(tmp_path), KeptEdits(tmp_path)
    async with anyio.create_task_group() as tasks:

        async def sweep() -> None:
            while True:
                await others.sweep(())

        tasks.start_soon(sweep)
        for number in range(300):
            await begin(edits, str(number))
            await edits.remove("o", str(number))
        tasks.cancel_scope.cancel()


async def test_a_folder_that_can_not_be_written_costs_the_keeping_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert await KeptEdits(tmp_path / "file").begin("o", "k", OPENED) is None
    (tmp_path / "o").mkdir()
    (tmp_path / "o" / "link").symlink_to(tmp_path / "file")
    with pytest.raises(SandboxError, match="can't be read"):
        await KeptEdits(tmp_path).load("o", "link")
    assert await KeptEdits(tmp_path).begin("o", "link", OPENED) is None
    assert (tmp_path / "o" / "link").is_symlink()
