from __future__ import annotations

import contextlib
import fcntl
import io
import os
import stat
import tarfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sandbox.guest.supervisor.errors import GuestError
from sandbox.guest.supervisor.files import extract as extraction
from tests.guest.operations.conftest import Guest

Member = tuple[tarfile.TarInfo, bytes]


def member(
    name: str, data: bytes = b"", kind: bytes = tarfile.REGTYPE, mode: int = 0o644, target: str = ""
) -> Member:
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.mtime, info.linkname, info.size = kind, mode, 1_500_000_000, target, len(data)
    return info, data


MEMBERS = [
    member("pkg", kind=tarfile.DIRTYPE, mode=0o755),
    member("pkg/mod.py", b"x = 1\n"),
    member("pkg/run.sh", b"#!/bin/sh\n", mode=0o755),
    member("pkg/" + "long" * 40 + "é.txt", b"long"),
    member("link", kind=tarfile.SYMTYPE, target="/etc/passwd"),
    member("pkg/up", kind=tarfile.SYMTYPE, target="../pkg/mod.py"),
]


def tar(members: list[Member], mode: str = "w") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode, format=tarfile.PAX_FORMAT) as archive:  # type: ignore[call-overload]
        for info, data in members:
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def extract(guest: Guest, data: bytes, size: int = 700, **args: object) -> dict[str, int]:
    guest.ask("files.extract", data="begin", **args)
    for number, start in enumerate(range(0, len(data), size)):
        assert guest.ask("files.extract", data[start : start + size], data="more", number=number) == {}
    return guest.ask("files.extract", data="end")


@pytest.fixture(params=["program", "module"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The system's tar, and Python's where there is none."""
    monkeypatch.setattr(extraction, "_gnu_tar", request.param == "program")
    return request.param


def test_pieces_that_overtake_each_other_are_taken_in_their_order(guest: Guest, way: str) -> None:
    data = tar(MEMBERS)
    pieces = [data[start : start + 700] for start in range(0, len(data), 700)]
    guest.ask("files.extract", data="begin")
    with ThreadPoolExecutor(len(pieces)) as pool:
        for number, piece in reversed([*enumerate(pieces)]):
            pool.submit(guest.ask, "files.extract", piece, data="more", number=number)
    assert guest.ask("files.extract", data="end")["bytes"] == len(data)
    assert (guest.root / "pkg" / "run.sh").read_bytes() == b"#!/bin/sh\n"


def test_the_pipe_of_the_connection_is_wide_as_long_as_an_archive_comes(guest: Guest) -> None:
    call = guest.call()
    call.pipe, other = os.pipe()
    sizes = [fcntl.fcntl(call.pipe, fcntl.F_GETPIPE_SZ)]
    for step in ("begin", "end"):
        extraction.extract({"data": step}, b"", call)  # pyright: ignore[reportUnknownMemberType]
        sizes.append(fcntl.fcntl(call.pipe, fcntl.F_GETPIPE_SZ))
    os.close(call.pipe)
    os.close(other)
    assert sizes == [1 << 16, 1 << 20, 1 << 16]


def test_a_piece_that_came_before_is_refused(guest: Guest) -> None:
    guest.ask("files.extract", data="begin")
    guest.ask("files.extract", b"x" * 700, data="more", number=0)
    with pytest.raises(GuestError, match="Piece 1 of the archive is missing, 0 came"):
        guest.ask("files.extract", b"x" * 700, data="more", number=0)
    guest.ask("files.extract", data="begin")  # gives the first one up


def test_a_tar_stream_becomes_files_with_modes_times_and_links(guest: Guest, way: str) -> None:
    answer = extract(guest, tar(MEMBERS))
    assert answer["files"] == 5
    assert (guest.root / "pkg" / "mod.py").read_bytes() == b"x = 1\n"
    assert (guest.root / "pkg" / "mod.py").stat().st_mtime == 1_500_000_000
    assert stat.S_IMODE((guest.root / "pkg" / "run.sh").stat().st_mode) == 0o755
    assert str((guest.root / "link").readlink()) == "/etc/passwd"
    assert str((guest.root / "pkg" / "up").readlink()) == "../pkg/mod.py"
    assert (guest.root / "pkg" / ("long" * 40 + "é.txt")).read_bytes() == b"long"


def test_nothing_is_written_through_a_link_or_outside(guest: Guest, tmp_path: Path, way: str) -> None:
    (tmp_path / "outside").mkdir()
    for members in (
        [member("l", kind=tarfile.SYMTYPE, target=str(tmp_path / "outside")), member("l/evil", b"x")],
        [member("../outside/evil", b"x")],
        [member(str(tmp_path / "outside" / "evil"), b"x")],
    ):
        with contextlib.suppress(GuestError):  # told, or left out: both will do
            extract(guest, tar(members))
        assert list((tmp_path / "outside").iterdir()) == []


@pytest.mark.parametrize("compression", ["gz", "bz2", "xz"])
def test_compressed_archives_are_taken_too(guest: Guest, compression: str) -> None:
    extract(guest, tar(MEMBERS, f"w:{compression}"))
    assert (guest.root / "pkg" / "mod.py").read_bytes() == b"x = 1\n"


def test_zip_archives_are_taken_too(guest: Guest) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("pkg/mod.py", "x = 1\n")
        script = zipfile.ZipInfo("pkg/run.sh")
        script.external_attr = 0o100755 << 16
        archive.writestr(script, "#!/bin/sh\n")
    assert extract(guest, buffer.getvalue())["files"] == 2
    assert (guest.root / "pkg" / "mod.py").read_bytes() == b"x = 1\n"
    assert stat.S_IMODE((guest.root / "pkg" / "run.sh").stat().st_mode) == 0o755


def test_the_one_top_folder_of_a_release_can_be_taken_off(guest: Guest) -> None:
    members = [member("app-1.0/app-1.0/x.py", b"1"), member("app-1.0/.hidden", b"2")]
    extract(guest, tar(members, "w:gz"), unwrap=True)
    assert sorted(path.name for path in guest.root.iterdir()) == [".hidden", "app-1.0"]
    assert (guest.root / "app-1.0" / "x.py").read_bytes() == b"1"


BROKEN = [b"not an archive at all" * 100, tar(MEMBERS)[:1500], tar(MEMBERS)[:1536], tar(MEMBERS)[:1900]]


@pytest.mark.parametrize("data", [*BROKEN, tar(MEMBERS, "w:gz")[:200], tar(MEMBERS, "w:gz")[:-30]])
def test_a_broken_archive_is_one_clear_error(guest: Guest, way: str, data: bytes) -> None:
    with pytest.raises(GuestError) as caught:
        extract(guest, data)
    assert caught.value.code == "invalid"
    assert "could not be extracted" in caught.value.message


def test_pieces_without_a_beginning_are_refused(guest: Guest) -> None:
    with pytest.raises(GuestError) as caught:
        guest.ask("files.extract", b"x", data="more", number=0)
    assert caught.value.code == "conflict"
