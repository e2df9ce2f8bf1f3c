"""Uploads, unpacks or clones the repository into a sandbox."""

from __future__ import annotations

import os
import posixpath
import shlex
from collections.abc import AsyncIterable, Iterator
from itertools import count
from pathlib import Path, PurePosixPath
from typing import Self

import anyio

from sandbox.backend import Progress
from sandbox.concurrency import run_alongside
from sandbox.errors import InvalidArgument
from sandbox.host_files import in_thread, open_regular, send_pieces
from sandbox.opening import tar
from sandbox.opening.packing import Packing
from sandbox.opening.plan import Source
from sandbox.session.session import Session

GIT_TIMEOUT_S = 900.0
PIECE_TIMEOUT_S = 120.0
_GIT = "git -c safe.directory='*' -c advice.detachedHead=false"


async def upload_repository(
    session: Session, source: Source, packing: Packing | None, progress: Progress
) -> None:
    """Copy, unpack or clone the repository.

    `packing`: running packing of the folder.

    Raises:
        InvalidArgument: cloning failed, or the image has no such folder.
    """
    if source.url:
        progress(f"cloning {source.url}")
        await _git(session, f"clone -q -- {shlex.quote(source.url)} .", f"clone {source.url}")
    elif source.folder and packing:
        await _copy_in(session, source.folder, packing, progress)
    elif source.inside:
        progress(f"copying {source.inside} of the image")
        async with session.sandbox.image_folder(PurePosixPath(source.inside)) as pieces:
            await _extract(session, pieces)
    elif source.archive:
        progress(f"unpacking {source.archive.name}")
        await _extract(session, _file_pieces(source.archive), unwrap=True)


async def _copy_in(session: Session, folder: Path, packing: Packing, progress: Progress) -> None:
    chosen = await packing.selection()
    progress(f"copying {len(chosen.paths)} files, {chosen.size / (1 << 20):.1f} MiB")
    await _send(session, packing.pieces)
    if chosen.ignored and ".git" in chosen.paths:
        packing.late = frozenset(await _copy_tracked(session, folder, packing))


async def _copy_tracked(session: Session, folder: Path, packing: Packing) -> list[str]:
    """Copy files that git tracks although `.gitignore` matches them. Returns their names."""
    run = await session.run(f"{_GIT} ls-files -d -z", timeout_s=60)
    names = run.output.split("\0") if run.exit_code == 0 else []
    # The list comes from the sandbox: accept only plain names below the folder, not through links.
    inside = [
        name
        for name in names
        if name and posixpath.normpath(name) == name and not name.startswith(("../", "/"))
    ]
    real = [name for name in inside if (folder / name).parent.resolve().is_relative_to(folder)]
    if real:
        await _extract(session, tar.pieces(folder, real, digest=packing.digest))
    return real


async def _extract(session: Session, pieces: Iterator[bytes], *, unwrap: bool = False) -> None:
    packed, ready = anyio.create_memory_object_stream[bytes](1)

    async def work() -> None:
        with packed:
            await send_pieces(pieces, packed)

    with ready:
        async with run_alongside(work):
            await _send(session, ready, unwrap=unwrap)


async def _send(session: Session, pieces: AsyncIterable[bytes], *, unwrap: bool = False) -> None:
    """Send and extract a tar stream.

    `unwrap`: a single top folder, as in release archives, is the repository.
    """
    await session.request("files.extract", {"data": "begin", "unwrap": unwrap})
    numbered = _Numbered(pieces)

    async def send_some() -> None:
        async for number, piece in numbered:
            await session.request(
                "files.extract", {"data": "more", "number": number}, piece, timeout_s=PIECE_TIMEOUT_S
            )

    # Several tasks: one piece is sent while another is being written.
    async with run_alongside(send_some), run_alongside(send_some):
        await send_some()
    await session.request("files.extract", {"data": "end"}, timeout_s=300)


class _Numbered:
    """Numbers the pieces, for several tasks that take them in turns."""

    def __init__(self, pieces: AsyncIterable[bytes]) -> None:
        self._pieces = aiter(pieces)
        self._numbers = count()
        self._lock = anyio.Lock()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> tuple[int, bytes]:
        async with self._lock:
            piece = await anext(self._pieces)
            return next(self._numbers), piece


def _file_pieces(file: Path) -> Iterator[bytes]:
    try:
        with os.fdopen(open_regular(file), "rb") as stream:
            while data := stream.read(tar.PIECE):
                yield data
    except OSError as exc:
        raise InvalidArgument(f"Can't read {file.name}: {exc.strerror}.") from exc


async def upload_files(session: Session, folder: Path, to: str) -> None:
    """Copy the files below `folder` to the folder `to` of the workspace, with no rules applied to them."""
    paths = await in_thread(_names_below, folder)
    await _extract(session, tar.pieces(folder, paths, prefix=f"{to}/"))


def _names_below(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


async def upload_file(session: Session, name: str, content: bytes) -> None:
    """Write one file into the workspace, whatever its content."""
    await _extract(session, iter([tar.of_file(name, content)]))


async def check_out(session: Session, ref: str) -> None:
    """Check out a commit, branch or tag.

    Raises:
        InvalidArgument: there is no such revision.
    """
    if ref.startswith("-"):
        raise InvalidArgument(f"{ref!r} is not a git revision.")
    await _git(session, f"checkout -q --force {shlex.quote(ref)}", f"check out {ref!r}")


async def _git(session: Session, command: str, what: str) -> None:
    result = await session.run(f"{_GIT} {command}", timeout_s=GIT_TIMEOUT_S)
    if result.exit_code != 0:
        raise InvalidArgument(f"git can't {what}: {result.output.strip()[:500]}")
