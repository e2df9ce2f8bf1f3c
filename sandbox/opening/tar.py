"""Packs a repository on this machine into one tar stream.

Links are stored as links, so nothing outside of the folder is included; virtual environments and `.gitignore`d
files stay out, except for those that Python needs to import the repository (`_is_needed`). No git is run on the
host: a repository's own configuration can make it run programs.
"""

from __future__ import annotations

import io
import json
import os
import stat
import tarfile
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol

from sandbox.errors import InvalidArgument, NotFound, PathRefused
from sandbox.host_files import open_regular, special_kind
from sandbox.ignore_rules import MAX_DEPTH, MAX_TEXT, Decision, Matcher, lenient

PIECE = 1 << 20
"""Bytes of a piece of the stream. With a quarter of it, 100 MB cost the server a third more processor time."""
FIRST_PIECE = PIECE >> 3
"""Bytes of the first piece; each one has twice as many as the one before. A small one is unpacked while the next is packed."""
_LARGE = 1 << 16
"""Bytes of a file, or rest of it, that are read straight into a piece. For fewer, a copy is quicker than finding the place."""
MATCHING_S = 10.0
"""Processor time that matching the names of one repository may take; each pattern is tried on each name."""
ALWAYS_OUT = (
    "__pycache__",
    "node_modules",
    ".tox",
    ".nox",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".hypothesis",
)
MAX_NEEDED = 20 << 20
"""Bytes of an ignored file that is copied nevertheless because Python needs it; larger ones are left out."""
# Not .pth: Python reads it in site-packages only. In a checkout it is a model's weights.
_MODULES = (".py", ".pyi", ".so")
_METADATA = (".egg-info/", ".dist-info/")
"""Folders where `importlib.metadata` finds version and entry points of a package beside them."""


class Digest(Protocol):
    """A running hash."""

    def update(self, data: bytes | memoryview, /) -> None:
        """Take in more bytes."""
        ...


@dataclass(frozen=True)
class Selected:
    """Files of a folder selected for the sandbox: paths relative to it, and their total size in bytes."""

    paths: tuple[str, ...]
    size: int
    ignored: int
    """Number of files and folders that are left out."""
    special: int = 0
    """Number of named pipes, sockets and devices that are left out."""
    missing: tuple[str, ...] = ()
    """Code that is left out and could be imported: ignored packages, files over `MAX_NEEDED`. Folders end with a slash."""


def resolve_repository(text: str, roots: Sequence[Path]) -> Path:
    """Resolve the real path of the repository `text`.

    Raises:
        PathRefused: not inside one of `roots` (links are followed before that is decided).
        NotFound: no such folder or archive.
        InvalidArgument: a pipe, a socket or a device.
    """
    try:
        path = Path(text).expanduser().resolve(strict=False)
        allowed = any(path.is_relative_to(root.resolve()) for root in roots)
    except (OSError, RuntimeError, ValueError) as exc:
        raise InvalidArgument(f"{text[:200]!r} is not a usable path.") from exc
    if not allowed:
        names = ", ".join(str(root) for root in roots) or "none"
        raise PathRefused(
            f"{text[:200]} is outside of the folders this server may use ({names}).",
            "Start the server with `--root DIR` to allow another one.",
        )
    if not path.exists():
        raise NotFound(
            f"No such repository: {text[:200]}.", "Give the path of a folder, or of a tar or zip archive."
        )
    if kind := special_kind(path.stat().st_mode):
        raise InvalidArgument(
            f"{text[:200]} is {kind}.", "Give the path of a folder, or of a tar or zip archive."
        )
    return path


def select(folder: Path, limit_bytes: int, *, whole: bool = False) -> Selected:
    """Select the files to pack. `whole`: all that `.gitignore` matches too.

    Raises:
        InvalidArgument: not a readable folder, or more than `limit_bytes`.
    """
    paths: list[str] = []
    special: list[str] = []
    missing: list[str] = []
    size = ignored = 0
    try:
        for relative, entry_size, out in _walk(folder, special, missing, whole=whole):
            if out:
                ignored += 1
                continue
            paths.append(relative)
            size += entry_size
    except OSError as exc:
        raise InvalidArgument(f"Can't read the repository: {exc.strerror} ({exc.filename}).") from exc
    if size > limit_bytes:
        raise InvalidArgument(
            f"The repository has {size >> 20} MiB without ignored files; a sandbox takes {limit_bytes >> 20} MiB.",
            "Add build products and data to `.gitignore`, or raise `--workspace-size`.",
        )
    return Selected(tuple(paths), size, ignored, len(special), tuple(missing))


def of_file(name: str, content: bytes) -> bytes:
    """Produce a tar archive of one file."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        info = tarfile.TarInfo(name)
        info.size, info.mtime = len(content), int(time.time())
        archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


class _Buffer(io.BytesIO):
    """The next piece of a stream."""

    def __init__(self) -> None:
        super().__init__()
        self._size = FIRST_PIECE

    @property
    def is_full(self) -> bool:
        return self.tell() >= self._size

    def fill(self, file: io.FileIO, most: int, digest: Digest | None) -> int:
        """Read up to `most` bytes of `file` straight to their place, and return their number; 0 at its end."""
        begin = self.tell()
        size = min(most, max(self._size - begin, 1))
        self.seek(begin + size - 1)
        self.write(b"\0")
        with self.getbuffer() as whole, whole[begin:] as place:
            read = file.readinto(place)
            if digest is not None:
                digest.update(place[:read])
        self.seek(begin + read)
        return read

    def take(self) -> bytes:
        """Return the piece, and begin the next one."""
        self.truncate()
        data = self.getvalue()
        self.seek(0)
        self.truncate()
        self._size = min(2 * self._size, PIECE)
        return data


def pieces(
    folder: Path,
    paths: Sequence[str],
    *,
    prefix: str = "",
    digest: Digest | None = None,
) -> Iterator[bytes]:
    """Produce the tar stream of `paths`, in pieces of about `PIECE` bytes, the first ones smaller.

    Files that vanish meanwhile are left out.

    Args:
        prefix: put it before each name.
        digest: is updated with all but the times.
    """
    buffer = _Buffer()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for relative in paths:
            yield from _add(archive, buffer, folder, relative, prefix, digest)
            if buffer.is_full:  # folders, links and empty files by the thousand
                yield buffer.take()
    yield buffer.take()


def _add(
    archive: tarfile.TarFile,
    buffer: _Buffer,
    folder: Path,
    relative: str,
    prefix: str,
    digest: Digest | None,
) -> Iterator[bytes]:
    place = os.path.join(folder, relative)
    try:
        info = _tarinfo(place, prefix + relative)
        if digest is not None:
            digest.update(_facts(info))
        if not info.isreg():
            archive.addfile(info)
            return
        # The file may have been replaced by a link or a pipe since it was listed.
        descriptor = open_regular(place)
    except OSError:
        return
    with io.FileIO(descriptor) as file:
        # Not addfile(fileobj): exactly `size` bytes must follow the header, even if the file changes
        # meanwhile.
        buffer.write(info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape"))
        left = info.size
        while left:
            if left >= _LARGE and (read := buffer.fill(file, left, digest)):
                left -= read
            else:
                chunk = file.read(min(PIECE, left)) or b"\0" * min(PIECE, left)
                left -= len(chunk)
                buffer.write(chunk)
                if digest is not None:
                    digest.update(chunk)
            if buffer.is_full:
                yield buffer.take()
        buffer.write(b"\0" * (-info.size % tarfile.BLOCKSIZE))


def _facts(info: tarfile.TarInfo) -> bytes:
    facts = [info.name, info.type.hex(), info.mode, info.linkname, info.size]
    return json.dumps(facts).encode()


def _tarinfo(place: str, relative: str) -> tarfile.TarInfo:
    found = os.lstat(place)
    info = tarfile.TarInfo(relative)
    info.mtime = int(found.st_mtime)  # a fraction needs one more header, which doubles the work
    if stat.S_ISLNK(found.st_mode):
        info.type, info.linkname, info.mode = tarfile.SYMTYPE, os.readlink(place), 0o777
    elif stat.S_ISDIR(found.st_mode):
        info.type, info.mode = tarfile.DIRTYPE, 0o755
    elif stat.S_ISREG(found.st_mode):
        # Git stores only this bit of the mode; a read-only checkout must be writable inside.
        info.size, info.mode = found.st_size, 0o755 if found.st_mode & 0o100 else 0o644
    else:
        raise OSError(f"{relative} is a device, socket or pipe")
    return info


def _walk(
    folder: Path, special: list[str], missing: list[str], *, whole: bool
) -> Iterator[tuple[str, int, bool]]:
    """Yield (relative path, bytes, is left out) of everything below `folder`.

    Left-out folders are not entered.

    Other special files (pipes, sockets, devices) are appended to `special`, left-out code to `missing`.
    """
    rules = _Ignores()
    for place, folders, files in os.walk(folder, onerror=_raise_unless_below(folder)):
        here = os.path.relpath(place, folder)
        here = "" if here == "." else PurePosixPath(Path(here)).as_posix() + "/"
        inside_git = here.startswith(".git/")
        if here.count("/") >= MAX_DEPTH:
            folders.clear()
            continue
        if not inside_git and not whole:
            rules.read(Path(place), here)
        for name in sorted(folders):
            out = not inside_git and _is_left_out(Path(place, name), here + name + "/", rules)
            if out:
                folders.remove(name)
                if name not in ALWAYS_OUT and os.path.isfile(os.path.join(place, name, "__init__.py")):
                    missing.append(here + name + "/")
            yield here + name, 0, out
        for name in sorted(files):
            out = not inside_git and rules.names(here + name)
            try:
                found = os.lstat(os.path.join(place, name))
            except FileNotFoundError:
                continue  # gone since it was listed
            if out and _is_needed(place, here, name):
                out = found.st_size > MAX_NEEDED
                if out:
                    missing.append(here + name)
            if not out and special_kind(found.st_mode):
                special.append(here + name)
                continue
            yield here + name, found.st_size, out


def _raise_unless_below(
    folder: Path,
):  # an unreadable folder inside is left out; the repository itself must be readable
    def on_error(error: OSError) -> None:
        if error.filename is None or Path(error.filename) == folder:
            raise error

    return on_error


def _is_left_out(path: Path, relative: str, rules: _Ignores) -> bool:
    if path.name in ALWAYS_OUT or (path / "pyvenv.cfg").is_file():
        return True
    return path.name != ".git" and not relative.endswith(_METADATA) and rules.names(relative)


def _is_needed(place: str, here: str, name: str) -> bool:
    """True if Python needs the ignored file `name` in `place` to import or find the packages of the repository."""
    # A leading dot: no module, but what editors and other systems leave behind (`.#app.py`, `._app.py`).
    if name.startswith("."):
        return False
    if here.endswith(_METADATA):
        return True
    if not name.endswith(_MODULES):
        return False
    # Python prefers a compiled module to its source, where breakpoints and edits would have no effect.
    source = os.path.join(place, name.partition(".")[0] + ".py")
    return not (name.endswith(".so") and os.path.lexists(source))


class _Matching:
    """Limits the processor time that this thread spends on matching."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._spent_s = 0.0

    @contextmanager
    def measure(self) -> Generator[None]:
        """Count the time of the body.

        Raises:
            InvalidArgument: the limit is exceeded.
        """
        begin = time.thread_time()
        yield
        self._spent_s += time.thread_time() - begin
        if self._spent_s > MATCHING_S:
            raise InvalidArgument(
                f"Matching the repository's names with its `{self._source}` took over {MATCHING_S:g} s.",
                "Use fewer or simpler patterns.",
            )


class _Ignores:
    """The `.gitignore` files of a repository, by folder."""

    def __init__(self) -> None:
        self._rules: dict[str, Matcher] = {}
        self._matching = _Matching(".gitignore")

    def read(self, place: Path, here: str) -> None:
        """Read the `.gitignore` of the folder `place`, if it has one."""
        try:
            descriptor = open_regular(place / ".gitignore")
        except OSError:
            return
        with os.fdopen(descriptor, "rb") as stream:
            text = stream.read(MAX_TEXT).decode("utf-8", "replace")
        with self._matching.measure():
            self._rules[here] = Matcher(lenient(text.splitlines()))

    def names(self, relative: str) -> bool:
        """True if git ignores `relative`: the deepest `.gitignore` with a matching pattern decides."""
        if not self._rules:
            return False
        with self._matching.measure():
            end = len(relative.rstrip("/"))
            while end >= 0:
                end = relative.rfind("/", 0, end)  # -1: the repository's own
                rules = self._rules.get(relative[: end + 1])
                decision = rules.decide(relative[end + 1 :]) if rules else Decision.OPEN
                if decision is not Decision.OPEN:
                    return decision is Decision.NAMED
        return False
