"""Cache of the guest's bytecode on this machine: one file for each image.

The bytecode is compiled in a sandbox that runs nothing but the image's own Python, and is only sent to
sandboxes of the same image. A malicious image that returns false bytecode could run the same code there
anyway. The host never executes it.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from sandbox.user_folders import cache_folder

log = logging.getLogger(__name__)

MAX_BYTES = 4 << 20
"""Maximum size for one image; the real one is a tenth of it."""
_MAX_KEPT = 64


@dataclass(frozen=True)
class BytecodeCache:
    """Bytecode files of one version of the guest's source."""

    folder: Path

    @classmethod
    def of(cls, environ: Mapping[str, str], digest: str) -> Self:
        """Return the cache of this user for the source with this digest."""
        return cls((cache_folder(environ) or Path(os.devnull)) / "guest" / digest[:32])

    def read(self, image: str) -> bytes:
        """Read the bytecode for an image id; empty if there is none."""
        try:
            with self._file(image).open("rb") as file:
                data = file.read(MAX_BYTES + 1)
        except OSError:
            return b""
        return data if is_whole(data) else b""

    def write(self, image: str, data: bytes) -> None:
        """Store the bytecode. If that fails, every session goes on compiling."""
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor, draft = tempfile.mkstemp(dir=self.folder)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
            Path(draft).replace(self._file(image))
            self._prune()
        except OSError as exc:
            log.info("the guest's bytecode is not kept: %s", exc)

    def _file(self, image: str) -> Path:
        return self.folder / hashlib.sha256(image.encode()).hexdigest()[:32]

    def _prune(self) -> None:
        """Remove the oldest files of all images and versions."""
        ages: list[tuple[float, Path]] = []
        for file in self.folder.parent.glob("*/*"):
            with contextlib.suppress(OSError):  # another server may do the same
                ages.append((file.stat().st_mtime, file))
        for _, file in sorted(ages, reverse=True)[_MAX_KEPT:]:
            file.unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # not the last one there
                file.parent.rmdir()


def is_whole(data: bytes) -> bool:
    """True if it is one complete part of a package, within the size limit."""
    return 4 < len(data) <= MAX_BYTES and int.from_bytes(data[:4], "big") == len(data) - 4
