"""Edits of open sessions, kept on this machine: a session that loses its sandbox can be resumed with them.

Each session has one file below the state folder, named by its owner and the hash of its handle. The file grows by a
record for each acknowledged edit, with the whole content of the files, so that a record is there as a whole or not at all.
The system writes it to the disk when it likes: a machine that loses its power may lose the edits of the last seconds.
"""

from __future__ import annotations

import logging
import os
import time
import zlib
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import anyio.to_thread
from pydantic import BaseModel, ConfigDict, NonNegativeInt, ValidationError

from sandbox.errors import SandboxError
from sandbox.opening.request import SessionRequest
from sandbox.session.workspace import WrittenFile
from sandbox.user_folders import state_folder

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

log = logging.getLogger(__name__)

MAX_BYTES = 32 << 20
"""Of the edited files of one session."""
MAX_AGE_S = 24 * 3600.0
"""Time since the last edit after which the file of a session is removed; never less than a session may last."""
MAX_FILES = 200
"""Sessions of one owner."""
_SLACK = 1 << 20
"""Bytes of outdated records that a file may have before it is written anew."""
_MAX_HEAD = 4 << 20
_HEAD = 27
"""Characters of the line that begins a record: checksum, size of its JSON, size of the contents."""
_FLAGS = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_CLOEXEC", "O_BINARY"))
_THREADS = 4


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


class Opened(_Record):
    """The request that opened a session, as its client made it, with the names of its environment only: values may be secret."""

    source: str
    """Hash of the repository."""
    repo: str | None = None
    ref: str | None = None
    image: str | None = None
    python: str | None = None
    entrypoint: str | None = None
    debug_entrypoint: str | None = None
    setup: tuple[str, ...] | None = None
    network: bool = False
    task: str | None = None
    env: tuple[str, ...] = ()

    @classmethod
    def of(cls, request: SessionRequest, source: str) -> Opened:
        """Take what is needed to open the session again."""
        same = {name: getattr(request, name) for name in _SAME}
        return cls(source=source, env=tuple(request.env), **same)

    def merge(self, request: SessionRequest) -> SessionRequest:
        """Fill in what `request` leaves open."""
        given = {name: getattr(request, name) for name in _SAME}
        filled = {
            name: getattr(self, name) if value in (None, False) else value for name, value in given.items()
        }
        return SessionRequest(env=request.env, **filled)


_SAME = tuple(name for name in Opened.model_fields if name not in ("source", "env"))


class _File(_Record):
    path: str
    size: NonNegativeInt
    before: str | None = None


class _Files(_Record):
    files: list[_File]


@dataclass
class Kept:
    """The edits of one session: each file with its last content, and the digest of the one before its first edit."""

    opened: Opened
    files: dict[str, WrittenFile] = field(default_factory=dict[str, WrittenFile])
    end: int = 0
    """Bytes of the file up to the end of the last whole record."""

    def add(self, written: WrittenFile) -> None:
        """Put a content in place of an earlier one of the same file."""
        earlier = self.files.get(written.path)
        before = earlier.before if earlier else written.before
        self.files[written.path] = WrittenFile(written.path, written.content, before)


class KeptEdits:
    """The files of all sessions, in `folder`."""

    def __init__(self, folder: Path, max_age_s: float = 0.0) -> None:
        self._folder = folder
        self._max_age_s = max(MAX_AGE_S, max_age_s)
        self._threads: anyio.CapacityLimiter | None = None

    @classmethod
    def in_state_folder(cls, environ: Mapping[str, str], max_age_s: float) -> KeptEdits | None:
        """Keep them where programs of this user keep their state; None if there is no such place."""
        state = state_folder(environ)
        return None if state is None else cls(state / "edits", max_age_s)

    async def begin(self, owner: str, key: str, opened: Opened | None = None) -> Journal | None:
        """Return the journal of a session, begun anew unless it has one; None, with a line in the log, if none can be written.

        `opened`: None for one that was begun.
        """
        journal = Journal(self._path(owner, key), self._limiter())
        try:
            await anyio.to_thread.run_sync(journal.begin, opened, limiter=self._limiter())
        except OSError as exc:
            log.warning("edits of a session are not kept: %s", exc)
            return None
        return journal

    async def load(self, owner: str, key: str) -> Kept | None:
        """The edits of that session of `owner`, if there are any kept.

        Raises:
            SandboxError: they can't be read.
        """
        try:
            return await anyio.to_thread.run_sync(_load, self._path(owner, key), limiter=self._limiter())
        except OSError as exc:
            raise SandboxError(
                f"The edits that are kept can't be read: {exc.strerror}.", "Call again."
            ) from exc

    async def remove(self, owner: str, key: str) -> None:
        """Forget the session."""
        await anyio.to_thread.run_sync(_remove, self._path(owner, key), limiter=self._limiter())

    async def sweep(self, held: Collection[str]) -> None:
        """Remove what is too old or too much; not that of sessions with one of the keys `held`."""
        await anyio.to_thread.run_sync(self._sweep, frozenset(held), limiter=self._limiter())

    def _limiter(self) -> anyio.CapacityLimiter:
        # Of their own: edits must not wait for threads that read slow file systems.
        self._threads = self._threads or anyio.CapacityLimiter(_THREADS)
        return self._threads

    def _path(self, owner: str, key: str) -> Path:
        return self._folder / owner / key

    def _sweep(self, held: frozenset[str]) -> None:
        for owner in _scan(self._folder):
            found = sorted(
                ((info.st_mtime, path) for path, info in _scan(owner).items() if path.name not in held),
                reverse=True,
            )
            limit = time.time() - self._max_age_s
            for number, (changed, path) in enumerate(found):
                if changed < limit or number >= MAX_FILES:
                    _remove(path)
                elif changed > time.time() + 60:
                    with suppress(OSError):
                        os.utime(path)  # the clock was wrong: neither lost nor kept for ever
            with suppress(OSError), _hold(self._folder):
                owner.rmdir()  # if it is empty


class Journal:
    """The file of one open session."""

    def __init__(self, path: Path, limiter: anyio.CapacityLimiter) -> None:
        self._path = path
        self._limiter = limiter
        self._lock = anyio.Lock()
        self._rewrite_at = 0
        self.count = 0
        """Records of edits in it."""

    def begin(self, opened: Opened | None) -> None:
        """Create the file, or go on after its last whole record.

        Raises:
            OSError: it can't be written.
        """
        kept = _load(self._path)
        if kept is not None:
            os.truncate(self._path, kept.end)
            self.count = len(kept.files)
        elif opened is None:
            raise FileNotFoundError(f"{self._path} is missing")
        else:
            folder = self._path.parent
            folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with _hold(folder.parent):
                folder.mkdir(mode=0o700, exist_ok=True)
                _replace(self._path, [_pack(opened.model_dump_json().encode(), b"")], sync=False)
        self._rewrite_at = self._path.stat().st_size + _SLACK

    async def keep(self, files: Sequence[WrittenFile]) -> None:
        """Add a record, in a thread.

        Raises:
            OSError: it could not be written, or would be too large.
        """
        # Edits that are made at the same time are in the order of their answers.
        async with self._lock:
            await anyio.to_thread.run_sync(self._append, files, limiter=self._limiter)
            self.count += 1

    def _append(self, files: Sequence[WrittenFile]) -> None:
        record = _pack_files(files)
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | _FLAGS)
        try:
            size = os.fstat(descriptor).st_size
            if size + len(record) <= self._rewrite_at:
                _write(descriptor, record, size)
                return
        finally:
            os.close(descriptor)
        self._write_anew(files)

    def _write_anew(self, files: Sequence[WrittenFile]) -> None:
        kept = _load(self._path)
        if kept is None:
            raise FileNotFoundError(f"{self._path} is not readable any more")
        for file in files:
            kept.add(file)
        size = sum(len(file.content) for file in kept.files.values())
        if size > MAX_BYTES:
            raise OSError(f"its edited files have {size:,} bytes, and {MAX_BYTES:,} are kept")
        records = [_pack(kept.opened.model_dump_json().encode(), b"")]
        records += [_pack_files([file]) for file in kept.files.values()]
        _replace(self._path, records, sync=True)
        self._rewrite_at = 2 * sum(map(len, records)) + _SLACK


@contextmanager
def _hold(folder: Path) -> Generator[None]:
    """Hold the lock of the folder of all sessions: a sweep of any server may remove an empty folder that is to get a file.

    File systems and systems without such locks do without.
    """
    descriptor = os.open(folder, os.O_RDONLY) if fcntl is not None else -1
    try:
        if fcntl is not None:
            with suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def _pack_files(files: Sequence[WrittenFile]) -> bytes:
    head = _Files(
        files=[_File(path=one.path, size=len(one.content), before=one.before) for one in files]
    ).model_dump_json()
    return _pack(head.encode(), b"".join(one.content for one in files))


def _pack(head: bytes, contents: bytes) -> bytes:
    checksum = zlib.crc32(contents, zlib.crc32(head))
    return b"%08x %08x %08x\n%s%s\n" % (checksum, len(head), len(contents), head, contents)


def _write(descriptor: int, record: bytes, size: int) -> None:
    """Append a record to the file of `size` bytes: all of it or nothing."""
    try:
        if os.write(descriptor, record) != len(record):
            raise OSError("No space left on device")
    except OSError:
        with suppress(OSError):
            os.ftruncate(descriptor, size)
        raise


def _replace(path: Path, records: Sequence[bytes], *, sync: bool) -> None:
    temporary = path.with_name(f".{path.name}.{os.urandom(6).hex()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.writelines(records)
            file.flush()
            if sync:  # there must not be an empty file in place of a full one
                os.fsync(descriptor)
        temporary.replace(path)
    except BaseException:
        _remove(temporary)
        raise


def _load(path: Path) -> Kept | None:
    """Read the whole records. None if there is no such file, or it doesn't begin with one.

    Raises:
        OSError: it can't be read.
    """
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | _FLAGS), "rb") as file:
            data = file.read(4 * MAX_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return None
    records = _split(data)
    try:
        head, _, end = next(records)
        kept = Kept(Opened.model_validate_json(head), end=end)
        for head, contents, end in records:
            at = 0
            for file in _Files.model_validate_json(head).files:
                kept.add(WrittenFile(file.path, contents[at : at + file.size], file.before))
                at += file.size
            kept.end = end
    except (StopIteration, ValidationError) as exc:
        log.warning("the edits in %s are not readable: %s", path, type(exc).__name__)
        return None
    return kept


def _split(data: bytes) -> Iterator[tuple[bytes, bytes, int]]:
    """Yield (JSON, contents, end) of each record, up to one that was not written as a whole."""
    at = 0
    while len(line := data[at : at + _HEAD]) == _HEAD:
        try:
            checksum, head_size, size = (int(part, 16) for part in line[:26].split())
        except ValueError:
            return
        middle = at + _HEAD + head_size
        head, contents = data[at + _HEAD : middle], data[middle : middle + size]
        if head_size > _MAX_HEAD or zlib.crc32(contents, zlib.crc32(head)) != checksum:
            return
        at = middle + size + 1
        if at > len(data):
            return
        yield head, contents, at


def _scan(folder: Path) -> Mapping[Path, os.stat_result]:
    found: dict[Path, os.stat_result] = {}
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):
                found[Path(entry.path)] = entry.stat(follow_symlinks=False)
    return found


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()
