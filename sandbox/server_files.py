"""Files of this user that tell which servers live: a sandbox without one is removed, whatever programs in it do.

A program can stop or patch the supervisor of its sandbox, which then never ends by itself. So a server holds a lock on a
file of its own while it lives. A sandbox names its server in its label or record, which programs inside can't change; a
server that adopts one writes that into its file.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import secrets
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sandbox.spec import Lifetime, SandboxInfo
from sandbox.user_folders import state_folder

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

log = logging.getLogger(__name__)

BEAT_S = 60.0
"""Interval at which a server shows the time until which it has lived."""
SLACK_S = 2 * BEAT_S
_PRUNE_S = 24 * 3600.0
_MAX_SIZE = 1 << 20


@dataclass(frozen=True)
class _Server:
    is_alive: bool
    last_seen: float
    adopted: Mapping[str, float]
    """Place of a sandbox -> how long it may go on without a server."""


class ServerFiles:
    """The file of this server, for one kind of sandbox, and those of other servers."""

    def __init__(self, environ: Mapping[str, str], backend: str) -> None:
        self._folder = _folder(environ)
        self._backend = backend
        self._name = ""
        self._descriptor = -1
        self._held: dict[str, float | None] = {}
        self._opening = threading.Lock()

    @property
    def name(self) -> str:
        """Name of this server; empty as long as it holds no file."""
        return self._name

    def hold(self) -> str:
        """Create and lock the file of this server, at the first call; it names the server. Empty if that is impossible."""
        with self._opening:
            if not self._name and fcntl is not None:
                try:
                    self._create()
                except OSError as exc:
                    log.info("what this server might leave behind is swept by age only: %s", exc)
                    self._close()
            return self._name

    def note(self, place: str, lifetime: Lifetime | None = None) -> None:
        """Note a sandbox of this server; `lifetime`: of one that another server started."""
        self._held[place] = None if lifetime is None else lifetime.alone_s
        if lifetime is not None and self.hold():
            adopted = {one: grace_s for one, grace_s in self._held.items() if grace_s is not None}
            data = json.dumps(adopted).encode()
            with contextlib.suppress(OSError):
                os.pwrite(self._descriptor, data, 0)
                os.ftruncate(self._descriptor, len(data))
        self.beat()

    def drop(self, place: str) -> None:
        """Note that a sandbox is removed."""
        self._held.pop(place, None)

    def beat(self) -> None:
        """Show that this server lives, for the time after it was killed."""
        if self._name:
            with contextlib.suppress(OSError):
                os.utime(self._descriptor)

    def release(self) -> None:
        """Give up the file at the end of this server. It stays if sandboxes do."""
        if self._name:
            self.beat()
            if not self._held:
                (self._folder / self._name).unlink(missing_ok=True)
            self._close()

    def orphans(self, found: Sequence[SandboxInfo]) -> list[SandboxInfo]:
        """Return those of `found` that have had no living server for longer than they may.

        Ones of servers that have no file here are left out: they may be of another machine.
        """
        servers = dict(_read_all(self._folder, f"{self._backend}-*"))
        self._prune(servers, found)
        return [one for one in found if _is_orphan(one, servers)]

    def unserved(self, found: Sequence[SandboxInfo]) -> list[SandboxInfo]:
        """Return those of `found` whose servers are known here and gone, however short since. None that is kept on purpose."""
        servers = dict(_read_all(self._folder, f"{self._backend}-*"))
        return [one for one in found if not one.kept and _is_unserved(_keepers(one, servers))]

    def dead(self) -> set[str]:
        """Return the names of servers that are known here and gone: what one of them was starting is never finished."""
        return {name for name, one in _read_all(self._folder, f"{self._backend}-*") if not one.is_alive}

    def alive(self) -> Mapping[str, bool]:
        """Return the names of servers, and whether each lives. Files that nobody needs any more are removed before."""
        self.orphans([])
        return {name: one.is_alive for name, one in _read_all(self._folder, f"{self._backend}-*")}

    def forget(self, names: Iterable[str]) -> None:
        """Remove the files of servers of which nothing is left; not those of living ones."""
        states = self.alive()
        for name in names:
            if states.get(name) is False:
                with contextlib.suppress(OSError):
                    (self._folder / name).unlink()

    def _create(self) -> None:
        assert fcntl is not None
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        name = f"{self._backend}-{secrets.token_hex(8)}"
        self._descriptor = os.open(self._folder / name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        self._name = name

    def _prune(self, servers: Mapping[str, _Server], found: Sequence[SandboxInfo]) -> None:
        """Remove old files of dead servers that no sandbox needs."""
        needed = {one.server for one in found}
        places = {one.place for one in found}
        for name, server in servers.items():
            is_old = server.last_seen < time.time() - _PRUNE_S
            if is_old and not server.is_alive and name not in needed and places.isdisjoint(server.adopted):
                with contextlib.suppress(OSError):
                    (self._folder / name).unlink()

    def _close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor, self._name = -1, ""


def _folder(environ: Mapping[str, str]) -> Path:
    """Folder of this user that outlives logins; the runtime folder does not."""
    return (state_folder(environ) or Path(os.devnull)) / "servers"


def has_dead_servers(environ: Mapping[str, str] | None = None) -> bool:
    """True if a server of this user has ended and may have left sandboxes behind."""
    servers = _read_all(_folder(os.environ if environ is None else environ), "*")
    return any(not server.is_alive for _, server in servers)


def _read_all(folder: Path, pattern: str) -> Iterator[tuple[str, _Server]]:
    for file in folder.glob(pattern):
        with contextlib.suppress(OSError):
            yield file.name, _read(file)


def _is_orphan(one: SandboxInfo, servers: Mapping[str, _Server]) -> bool:
    keepers = _keepers(one, servers)
    if not _is_unserved(keepers):
        return False
    alone_s = 0.0 if one.pooled else max(one.alone_s, *(_grace(server, one) for server in keepers.values()))
    last_seen = max(server.last_seen for server in keepers.values())
    return time.time() > last_seen + alone_s + SLACK_S


def _keepers(one: SandboxInfo, servers: Mapping[str, _Server]) -> dict[str, _Server]:
    """Return the servers that a sandbox may be in use by: the one that started it, and those that adopted it."""
    keepers = {name: server for name, server in servers.items() if one.place in server.adopted}
    if one.server in servers:
        keepers[one.server] = servers[one.server]
    return keepers


def _is_unserved(keepers: Mapping[str, _Server]) -> bool:
    return bool(keepers) and not any(server.is_alive for server in keepers.values())


def _grace(server: _Server, one: SandboxInfo) -> float:
    return server.adopted.get(one.place, 0.0)


def _read(file: Path) -> _Server:
    """Read the file of a server. Raises OSError if it is gone."""
    descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    try:
        is_alive = fcntl is None
        if fcntl is not None:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                is_alive = True
        return _Server(is_alive, os.fstat(descriptor).st_mtime, _adopted(os.read(descriptor, _MAX_SIZE)))
    finally:
        os.close(descriptor)


def _adopted(data: bytes) -> dict[str, float]:
    try:
        return {str(place): float(grace_s) for place, grace_s in json.loads(data or b"{}").items()}
    except (ValueError, TypeError, AttributeError):
        return {}  # written half
