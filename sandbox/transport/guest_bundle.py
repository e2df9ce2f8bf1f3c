"""Package of the guest for a sandbox: its files in one piece, and the command that unpacks and starts it."""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePosixPath

from sandbox.spec import Lifetime

GUEST = Path(__file__).resolve().parents[1] / "guest"
PACKAGE = "pdbox_guest"


@dataclass(frozen=True)
class Boot:
    """Start parameters of one guest."""

    home: PurePosixPath
    """Folder into which it unpacks itself. It creates the folder for its user only."""
    workdir: PurePosixPath
    lifetime: Lifetime = Lifetime()
    reap_all: bool = False
    """True if it has its own pid namespace: every process in it may be killed."""
    pooled: bool = False
    """True if it waits for its session: no time runs, and it ends with its server."""
    user_bin: PurePosixPath | None = None
    """Folder put first on the PATH of programs: `pip install --user` puts commands there."""
    size_settings: Mapping[PurePosixPath, str] = field(default_factory=dict[PurePosixPath, str])
    """Folders of limited size, each with the setting that enlarges it."""
    elsewhere: Sequence[PurePosixPath] = ()
    """Folders to take instead of `home` if it can't be created, in this order."""
    remove_home: bool = False
    """True if its files must go with it, because the place that it runs in stays."""
    filter_calls: bool = False
    """True if it must refuse io_uring and vsock to programs, because what it runs in may let them through."""

    @property
    def socket(self) -> PurePosixPath:
        """Socket on which it listens for further connections."""
        return self.home / "socket"

    @property
    def relay(self) -> PurePosixPath:
        """Program that connects its standard streams to `socket`."""
        return self.home / PACKAGE / "relay.py"

    def arguments(self) -> Sequence[str]:
        """Return the arguments for the interpreter."""
        return _boot_arguments(self._config())

    def relay_arguments(self) -> Sequence[str]:
        """Return the arguments for a further connection to the running guest."""
        if not self.elsewhere:
            return ["-I", "-S", "-u", str(self.relay), str(self.socket)]
        sockets = [str(home / self.socket.name) for home in self.homes]
        return ["-I", "-S", "-u", "-c", _source("relay.py"), *sockets]

    @property
    def homes(self) -> Sequence[PurePosixPath]:
        """Folders of which one is its home."""
        return (self.home, *self.elsewhere)

    def _config(self) -> dict[str, object]:
        return {
            "homes": [str(home) for home in self.homes],
            "workdir": str(self.workdir),
            "stdio": True,  # its standard input and output are its first connection
            "reap_all": self.reap_all,
            "idle_s": self.lifetime.idle_s,
            "max_age_s": self.lifetime.max_age_s,
            "grace_s": self.lifetime.grace_s,
            "pooled": self.pooled,
            "user_bin": str(self.user_bin) if self.user_bin else None,
            "remove_home": self.remove_home,
            "filter_calls": self.filter_calls,
            "size_settings": {str(folder): setting for folder, setting in self.size_settings.items()},
        }


def package(bytecode: bytes = b"") -> bytes:
    """Build the package that the boot program reads.

    `bytecode`: output of `compile_arguments` in a sandbox of the same image.
    """
    return part(pack(GUEST)) + (bytecode or part(b""))


def part(data: bytes) -> bytes:
    """Prefix `data` with its length."""
    return struct.pack(">I", len(data)) + data


@cache
def pack(folder: Path) -> bytes:
    """Pack the Python files below `folder` as the package `pdbox_guest`: names and sizes, then the files; deflated."""
    files = _files(folder)
    table = json.dumps([[name, len(data)] for name, data in files.items()]).encode()
    return zlib.compress(part(table) + b"".join(files.values()))


@cache
def digest(folder: Path) -> str:
    """Hash the Python files below `folder`."""
    files = [(name, hashlib.sha256(data).hexdigest()) for name, data in _files(folder).items()]
    return hashlib.sha256(json.dumps(files).encode()).hexdigest()


def _files(folder: Path) -> dict[str, bytes]:
    """Read the Python files below `folder` in a fixed order, so that the result is reproducible."""
    return {
        f"{PACKAGE}/{file.relative_to(folder).as_posix()}": file.read_bytes()
        for file in sorted(folder.rglob("*.py"))
    }


def compile_arguments(home: PurePosixPath) -> Sequence[str]:
    """Return the arguments to compile the package on standard input, for guests with the home `home`."""
    return _boot_arguments({"homes": [str(home)], "compile": True})


def _boot_arguments(config: dict[str, object]) -> Sequence[str]:
    # Without `site`: the guest imports only the standard library.
    return ["-I", "-S", "-u", "-c", _source("boot.py"), json.dumps(config)]


def clean_up_arguments(mark: str, homes: Sequence[PurePosixPath]) -> Sequence[str]:
    """Return the arguments to end the guest that `mark` identifies, with all that it started, and to remove its `homes`."""
    return ["-I", "-S", "-u", "-c", _source("clean_up.py"), mark, *map(str, homes)]


def find_guests_arguments(folders: Sequence[str]) -> Sequence[str]:
    """Return the arguments to list the guests whose homes are in `folders`."""
    return ["-I", "-S", "-u", "-c", _source("find_guests.py"), *folders]


def lock_readonly_arguments(workdir: PurePosixPath, *folder: str) -> Sequence[str]:
    """Return the arguments to open `workdir`, which is root's, to all users, or to move what is in its `folder` into it."""
    return ["-I", "-S", "-u", "-c", _source("lock_readonly.py"), str(workdir), *folder]


def setup_changes_arguments(*arguments: str) -> Sequence[str]:
    """Return the arguments to save or load changes; the folders that may have them follow."""
    return ["-I", "-u", "-c", _source("setup_changes.py"), *arguments]


@cache
def _source(name: str) -> str:
    return (GUEST / name).read_text(encoding="utf-8")
