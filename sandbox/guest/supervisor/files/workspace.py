"""The folder of the session: resolve paths inside of it, and walk it."""

from __future__ import annotations

import errno
import operator
import os
import stat
import threading

from ..errors import GuestError
from .ignore_rules import RuleSet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_DEPTH = 100
_MAKING = threading.Lock()


class Entry:
    """File, folder or link in the workspace. `path` is relative to it; `info` is its lstat."""

    __slots__ = ("path", "full", "info", "read_only")

    def __init__(self, path: str, full: str, info, read_only: bool) -> None:
        self.path = path
        self.full = full
        self.info = info
        self.read_only = read_only

    @property
    def kind(self) -> str:
        """file, dir, link or other."""
        return kind_of(self.info.st_mode)


class Workspace:
    """Turns paths of requests into paths of the system, and never one that lies outside."""

    def __init__(self, root: str, home: str) -> None:
        self.root = os.path.realpath(root)
        self.home = home
        self.lock = threading.Lock()
        self.extraction: Any = None
        """The archive that is being extracted (`extract.py`)."""
        self.baseline: Any = None
        self.protected: Any = None
        """Snapshots (`changes.py`): of all files, for `diff`; of the protected ones, to put them back."""
        self.written: set = set()
        """Paths of the files that tools have written."""
        self.rules = RuleSet(None)
        """Files that tools may not see or change, once the rules are known: a link must not lead there."""

    def locate(self, path: str) -> str:
        """The real path of `path`, which need not exist.

        Raises GuestError (path) when it is outside or hidden, or a link leads to a hidden file.
        """
        full = os.path.join(self.root, path)
        with os_errors(path):
            real = os.path.realpath(full)
        if not self.holds(real):
            raise GuestError("path", f"{escape_path(path)} points outside of the workspace.")
        asked, inside = os.path.normpath(path), self.relative(real)
        if self._is_hidden(asked):
            raise GuestError("path", f"{escape_path(asked)} is hidden in this session (.debugignore).")
        if inside != asked and self._is_hidden(inside):
            raise GuestError(
                "path", f"{escape_path(path)} is a link to a file that is hidden in this session."
            )
        return real

    def holds(self, real: str) -> bool:
        """True if a real path is in the workspace."""
        return real == self.root or real.startswith(self.root.rstrip("/") + "/")

    def relative(self, real: str) -> str:
        """Make a real path inside relative to the workspace; `.` for the workspace itself."""
        return os.path.relpath(real, self.root)

    def is_read_only(self, inside: str) -> bool:
        """True if tools may not change the file `inside`."""
        return self.rules.read_only.takes(inside) or self.rules.read_only.takes(inside + "/")

    def _is_hidden(self, inside: str) -> bool:
        if inside == ".":
            return False
        if ".git" in inside.split("/"):
            return True
        return self.rules.ignore.takes(inside) or self.rules.ignore.takes(inside + "/")

    def walk(self, path: str, rules: RuleSet, depth: int = MAX_DEPTH):
        """Yield the entries below the folder `path` in the order of a tree: a folder before its contents.

        Ignored ones and `.git` are left out, links are not followed. A folder that can't be read has no
        entries; for `path`: Raises GuestError (not_found, invalid, path).
        """
        real = self.locate(path)
        prefix = "" if path in (".", "") else os.path.normpath(path) + "/"
        with os_errors(path):
            names = sorted(os.listdir(real))
        read_only = bool(prefix) and rules.read_only.takes(prefix)
        return self._below(real, prefix, names, rules, depth, read_only)

    def regular_files(self, path: str, rules: RuleSet):
        """Yield (path, real path) of the regular files that `walk` gives for the folder `path`, in its order.

        Quicker: the folders tell the kinds of their entries, so only links and the like cost a look at each.
        """
        real = self.locate(path)
        with os_errors(path):
            os.listdir(real)
        waiting = [(real, "" if path in (".", "") else os.path.normpath(path) + "/", 1)]
        while waiting:
            place, prefix, depth = waiting.pop()
            if depth == 0:
                yield prefix, place
                continue
            found = []
            for entry in _scan(place):
                name = prefix + entry.name
                is_folder, is_file = _kinds(entry)
                if not (is_folder or is_file) or entry.name == ".git":
                    continue
                if not rules.ignore.names(name + "/" if is_folder else name):
                    if is_file:
                        found.append((entry.path, name, 0))
                    elif depth < MAX_DEPTH:
                        found.append((entry.path, name + "/", depth + 1))
            found.reverse()
            waiting += found

    def _below(self, real: str, prefix: str, names: list, rules: RuleSet, depth: int, read_only: bool):
        for name in names:
            if name == ".git":
                continue
            entry = _entry(prefix + name, os.path.join(real, name), rules, read_only)
            if entry is None:
                continue
            yield entry
            if depth > 1 and stat.S_ISDIR(entry.info.st_mode):
                below = _names(entry.full)
                for found in self._below(
                    entry.full, entry.path + "/", below, rules, depth - 1, entry.read_only
                ):
                    yield found


def workspace_of(state) -> Workspace:
    """Workspace of a supervisor, made on first use."""
    with _MAKING:
        if state.workspace is None:
            state.workspace = Workspace(state.workdir, state.home)
        return state.workspace


def path_of(args: dict) -> str:
    """The `path` of a request. Raises GuestError (invalid)."""
    path = args.get("path")
    if not isinstance(path, str) or not path or "\0" in path:
        raise GuestError("invalid", f"{path!r} is not a path.")
    return path


def kind_of(mode: int) -> str:
    """file, dir, link or other for a `st_mode`."""
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "dir"
    return "link" if stat.S_ISLNK(mode) else "other"


def escape_path(path: str) -> str:
    """Make `path` a text that every JSON reader accepts: bytes that are not UTF-8 become \\xNN."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


class os_errors:
    """Context manager that turns an OSError about `path` into a GuestError."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind, exc, trace) -> None:
        if isinstance(exc, OSError):
            raise _refusal(escape_path(self._path), exc) from exc
        if isinstance(exc, ValueError) and not isinstance(exc, UnicodeError):
            raise GuestError("invalid", f"{self._path!r} is not a path.") from exc


def stamp_of(file: str | int) -> tuple | None:
    """Value that changes with the content of a file (path or descriptor); None if there is none."""
    try:
        status = os.stat(file)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def open_regular(real: str, path: str) -> int:
    """Open the regular file `real` for reading. Never waits for the other end of a pipe.

    Raises GuestError (not_found, invalid), in which it is called `path`.
    """
    with os_errors(path):
        fd = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(fd).st_mode
    if not stat.S_ISREG(mode):
        os.close(fd)
        what = "a folder" if stat.S_ISDIR(mode) else "not a regular file"
        raise GuestError("invalid", f"{escape_path(path)} is {what}.")
    return fd


def _refusal(path: str, exc: OSError) -> GuestError:
    if exc.errno == errno.ENOTDIR:
        return GuestError("not_found", f"{path}: a part of this path is a file, or it is not a folder.")
    if exc.errno == errno.ENOENT:
        return GuestError("not_found", f"No such file or folder: {path}.")
    if exc.errno == errno.EISDIR:
        return GuestError("invalid", f"{path} is a folder.")
    if exc.errno == errno.ENOSPC:
        return GuestError(
            "conflict",
            f"No space is left in the sandbox for {path}.",
            "Remove what is not needed with `bash`.",
        )
    if exc.errno == errno.ELOOP:
        return GuestError("path", f"{path} is a link that leads to itself.")
    return GuestError("invalid", f"{path}: {os.strerror(exc.errno or 0)}.")


def _entry(path: str, full: str, rules: RuleSet, read_only: bool):
    try:
        info = os.lstat(full)
    except OSError:
        return None  # removed since its folder was read
    name = path + "/" if stat.S_ISDIR(info.st_mode) else path
    if rules.ignore.names(name):
        return None
    return Entry(path, full, info, read_only or rules.read_only.names(name))


def _scan(folder: str) -> list:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=_name_of)
    except OSError:
        return []  # gone, or not readable for us


_name_of = operator.attrgetter("name")


def _kinds(entry) -> tuple[bool, bool]:
    """(is a folder, is a regular file) of an entry of a folder."""
    try:
        is_file = entry.is_file(follow_symlinks=False)
        return not is_file and entry.is_dir(follow_symlinks=False), is_file
    except OSError:
        return False, False


def _names(folder: str) -> list:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []  # gone, or not readable for us
