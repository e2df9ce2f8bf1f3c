"""The guest as it is sent into a sandbox: one zip, and the command that unpacks and starts it."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

from sandbox.base import Lifetime

GUEST = Path(__file__).parent / "guest"
PACKAGE = "pdbox_guest"
PROTOCOL = 1
_EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class Boot:
    """How one guest is started."""

    home: PurePosixPath
    """Where it unpacks itself; made by it, for its user alone."""
    workdir: PurePosixPath
    lifetime: Lifetime
    stdio: bool = True
    """Its standard input and output are its first connection."""
    reap_all: bool = False
    """It has a pid namespace of its own: every process in it may be killed."""
    pooled: bool = False
    """It waits for its session: no time runs, and it ends when its server does."""
    cleanup: tuple[PurePosixPath, ...] = ()
    """Folders that it removes when it ends."""

    @property
    def socket(self) -> PurePosixPath:
        """Where it listens for further connections."""
        return self.home / "socket"

    @property
    def relay(self) -> PurePosixPath:
        """The program that joins its standard streams to `socket`."""
        return self.home / PACKAGE / "relay.py"

    def arguments(self) -> Sequence[str]:
        """What comes behind the interpreter's name."""
        return ["-I", "-u", "-c", _boot_source(), json.dumps(self._config())]

    def relay_arguments(self) -> Sequence[str]:
        """The same for a further connection, with the guest running."""
        return ["-I", "-u", str(self.relay), str(self.socket)]

    def _config(self) -> dict[str, object]:
        return {
            "protocol": PROTOCOL,
            "home": str(self.home),
            "workdir": str(self.workdir),
            "socket": str(self.socket),
            "stdio": self.stdio,
            "reap_all": self.reap_all,
            "idle_s": self.lifetime.idle_s,
            "max_age_s": self.lifetime.max_age_s,
            "grace_s": self.lifetime.grace_s,
            "pooled": self.pooled,
            "cleanup": [str(folder) for folder in self.cleanup],
        }


@cache
def package() -> bytes:
    """The guest's code with its length in front, as its boot reads it. The same bytes on every call and machine."""
    archive = zipped(GUEST)
    return struct.pack(">I", len(archive)) + archive


def zipped(folder: Path) -> bytes:
    """The Python files below `folder` as a zip of the package `pdbox_guest`."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.rglob("*.py")):
            name = f"{PACKAGE}/{file.relative_to(folder).as_posix()}"
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.external_attr = 0o100644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, file.read_bytes())
    return buffer.getvalue()


def lay_arguments(workdir: PurePosixPath) -> Sequence[str]:
    """What comes behind the interpreter's name to extract a tar stream on standard input into `workdir`."""
    return ["-I", "-u", "-c", (GUEST / "lay.py").read_text(encoding="utf-8"), str(workdir)]


@cache
def _boot_source() -> str:
    return (GUEST / "boot.py").read_text(encoding="utf-8")
