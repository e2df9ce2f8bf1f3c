"""Packs a folder of this machine into a tar stream, already while its sandbox starts."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio

from sandbox.concurrency import run_alongside
from sandbox.host_files import in_thread, send_pieces
from sandbox.opening import tar

AHEAD = 4
"""Maximum number of pieces that wait for their sandbox."""


class Packing:
    """Selection of the files of a folder for a sandbox, and their tar stream."""

    def __init__(self, folder: Path, limit_bytes: int, *, whole: bool, hashed: bool) -> None:
        """`whole`: all that `.gitignore` matches too. `hashed`: compute `digest`."""
        self._folder = folder
        self._limit_bytes = limit_bytes
        self._whole = whole
        self.digest = hashlib.sha256() if hashed else None
        """Of the names, modes and contents that were packed, without times."""
        self.late: frozenset[str] = frozenset()
        """Files that were copied after the selected ones: git tracks them although `.gitignore` matches them."""
        self._chosen: tar.Selected | None = None
        self._known = anyio.Event()
        self._packed, self.pieces = anyio.create_memory_object_stream[bytes](AHEAD)
        """The stream, in pieces."""

    async def run(self) -> None:
        """Select and pack. Returns when all pieces have been taken.

        Raises:
            InvalidArgument: not a readable folder, or too large.
        """
        with self._packed:
            self._chosen = await in_thread(
                partial(tar.select, self._folder, self._limit_bytes, whole=self._whole)
            )
            self._known.set()
            await send_pieces(tar.pieces(self._folder, self._chosen.paths, digest=self.digest), self._packed)

    async def selection(self) -> tar.Selected:
        """Wait for `run` to select the files, and return them."""
        await self._known.wait()
        assert self._chosen is not None
        return self._chosen


@asynccontextmanager
async def packing(
    folder: Path | None, limit_bytes: int, *, whole: bool, hashed: bool
) -> AsyncGenerator[Packing | None]:
    """Pack `folder` while the body runs; None if there is no folder.

    Raises:
        InvalidArgument: not a readable folder, or too large. The body is cancelled.
    """
    if folder is None:
        yield None
        return
    work = Packing(folder, limit_bytes, whole=whole, hashed=hashed)
    with work.pieces:
        async with run_alongside(work.run):
            yield work
