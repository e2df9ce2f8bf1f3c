"""Changes of the workspace since its baseline, as a patch; and restoring of read-only files."""

from __future__ import annotations

import os
import stat
import threading
import time

from ..errors import GuestError
from . import patch
from .blob_store import Blob, Contents, git_mode, is_same, read_pieces
from .ignore_rules import RuleSet
from .read_write import replace
from .workspace import Workspace, escape_path, os_errors, workspace_of

MAX_FILE = 32 << 20
"""Bytes; of larger files a diff says only that they changed."""
_PIECE = 1 << 18
"""Bytes of a patch that are sent at once."""
_PIECE_FILES = 500
_PIECE_NAMES = 1 << 17
"""Characters of their paths."""


class Snapshot:
    """Files and links at one time: path -> Blob."""

    def __init__(self, contents: Contents, rules: RuleSet) -> None:
        self.contents = contents
        self.rules = rules
        self.files: dict[str, Blob] = {}
        self._taken = threading.Event()
        self._failure = GuestError("conflict", "The baseline of this session could not be taken.")

    def take(self, workspace: Workspace, entries: list) -> None:
        """Store the `entries`. Raises GuestError."""
        try:
            self._keep(workspace, entries)
            self._failure = None
        except GuestError as exc:
            self._failure = exc
            raise
        finally:
            self._taken.set()

    def take_later(self, workspace: Workspace, entries: list) -> None:
        """`take` in a thread; `settle` has to be called before anything that changes files."""
        threading.Thread(
            target=self._take_quietly, args=(workspace, entries), name="snapshot", daemon=True
        ).start()

    @property
    def is_taken(self) -> bool:
        """True if files may be changed: all of them are stored, or that has failed."""
        return self._taken.is_set()

    def settle(self, is_cancelled) -> None:
        """Wait until files may be changed. Raises GuestError (cancelled)."""
        while not self._taken.wait(0.1):
            if is_cancelled():
                raise GuestError("cancelled", "The request was cancelled.")

    def wait(self, is_cancelled) -> None:
        """Wait until it is taken. Raises GuestError if that has failed."""
        self.settle(is_cancelled)
        if self._failure is not None:
            raise self._failure

    def _take_quietly(self, workspace: Workspace, entries: list) -> None:
        try:
            self.take(workspace, entries)
        except GuestError:
            pass  # `wait` raises it

    def _keep(self, workspace: Workspace, entries: list) -> None:
        now_ns = time.time_ns()
        for entry in entries:
            try:
                self.files[entry.path] = self.contents.keep(entry.full, entry.info, now_ns)
            except (FileNotFoundError, PermissionError):
                continue  # gone meanwhile, or not readable for us: then nothing in here can change it either
            except OSError as exc:
                with os_errors(entry.path):
                    raise exc
        with os_errors(workspace.home):
            self.contents.flush()


class Change:
    __slots__ = ("path", "kind", "old", "full", "info")

    def __init__(self, path: str, kind: str, old, full: str, info) -> None:
        self.path = path
        self.kind = kind
        self.old = old
        self.full = full
        self.info = info


def take_snapshot(args: dict, payload: bytes, call) -> tuple[dict, bytes]:
    """{rules} -> {}: from now on `files.diff` compares with this, by its rules.

    `.git` is left out. If there is space for all of it, it is stored after the answer: operations that could
    change files wait for that (`Snapshot.settle`), and a client that thinks about its first step does not
    wait.
    """
    workspace, rules = workspace_of(call.state), RuleSet(args.get("rules"))
    entries = _entries(workspace, rules, lambda entry: True)
    size = sum(entry.info.st_size for entry in entries)
    snapshot = _empty(workspace, rules)
    if size <= snapshot.contents.room:
        try:
            snapshot.take_later(workspace, entries)
        except RuntimeError:  # no thread can be started
            snapshot.take(workspace, entries)
    else:
        snapshot.take(workspace, entries)
    old, workspace.baseline = workspace.baseline, snapshot
    if old is not None:
        old.settle(call.cancelled.is_set)
        old.contents.close()
    return {}, b""


def _entries(workspace: Workspace, rules: RuleSet, wanted) -> list:
    """Files and links for a snapshot."""
    return [entry for entry in workspace.walk(".", rules) if entry.kind in ("file", "link") and wanted(entry)]


def _empty(workspace: Workspace, rules: RuleSet) -> Snapshot:
    with os_errors(workspace.home):
        return Snapshot(Contents(workspace.home), rules)


def _baseline(workspace: Workspace, call) -> Snapshot:
    if workspace.baseline is None:
        raise GuestError("conflict", "There is no baseline to compare with.")
    workspace.baseline.wait(call.cancelled.is_set)
    return workspace.baseline


def changes_of(workspace: Workspace, baseline: Snapshot) -> list[Change]:
    now_ns, rules = time.time_ns(), baseline.rules
    missing = {path for path in baseline.files if not rules.ignore.takes(path)}
    found = []
    for entry in workspace.walk(".", rules):
        if entry.kind not in ("file", "link"):
            continue
        missing.discard(entry.path)
        kind = _kind(baseline.files.get(entry.path), entry, now_ns)
        if kind is not None:
            found.append(Change(entry.path, kind, baseline.files.get(entry.path), entry.full, entry.info))
    found += [Change(path, "deleted", baseline.files[path], "", None) for path in missing]
    return sorted(found, key=lambda change: os.fsencode(change.path))


def _kind(old, entry, now_ns: int):
    if old is None:
        return "added"
    try:
        if is_same(old, entry.full, entry.info, now_ns):
            return None
        if (
            stat.S_ISREG(entry.info.st_mode)
            and old.mode != 0o120000
            and git_mode(entry.info.st_mode) != old.mode
        ):
            return "mode" if _same_content(old, entry, now_ns) else "modified"
    except FileNotFoundError:
        return "deleted"
    except OSError:
        pass  # it can't be read any more
    return "modified"


def _same_content(old: Blob, entry, now_ns: int) -> bool:
    probe = Blob(git_mode(entry.info.st_mode), old.bits, old.size, old.digest, None, None)
    return is_same(probe, entry.full, entry.info, now_ns)


def diff(args: dict, payload: bytes, call) -> tuple[dict, bytes]:
    """{paths|null} -> {"omitted": bytes, "files": [{"path", "kind", "added", "removed", "omitted"?}]} + a git
    patch.

    A patch that is too large for one answer is sent ahead in pieces, as progress {"files": [...]} + a part of
    the patch each. The pieces and the answer, joined, are the whole patch, which `git apply` accepts. Files
    that are too large, or can't be read, are left out of the patch and marked. Raises GuestError (conflict)
    without a baseline.
    """
    workspace, paths = workspace_of(call.state), args.get("paths")
    wanted = None if paths is None else {os.path.normpath(path) for path in paths}
    parts, files, size, names, omitted = [], [], 0, 0, 0
    baseline = _baseline(workspace, call)
    for change in changes_of(workspace, baseline):
        if wanted is not None and change.path not in wanted:
            continue
        if call.cancelled.is_set():
            raise GuestError("cancelled", "`files.diff` was cancelled.")
        part, described, left_out = _part(baseline, change)
        omitted += left_out
        size += len(part)
        names += len(described["path"])
        parts.append(part)
        files.append(described)
        if size > _PIECE or len(files) >= _PIECE_FILES or names > _PIECE_NAMES:
            text = b"".join(parts)
            for start in range(0, max(size, 1), _PIECE):
                call.progress({"files": files if not start else []}, text[start : start + _PIECE])
            parts, files, size, names = [], [], 0, 0
    return {"omitted": omitted, "files": files}, b"".join(parts)


def _part(baseline: Snapshot, change: Change) -> tuple[bytes, dict, int]:
    described = {"path": escape_path(change.path), "kind": change.kind, "added": 0, "removed": 0}
    size = (change.old.size if change.old else 0) + (change.info.st_size if change.info else 0)
    if size > 2 * MAX_FILE:
        return b"", dict(described, omitted=True), size
    try:
        new = _version(change)
    except OSError:
        return b"", dict(described, omitted=True), size
    old = None if change.old is None else (change.old.mode, baseline.contents.get(change.old))
    text, added, removed = patch.of_file(os.fsencode(change.path), old, new)
    described.update(added=added, removed=removed)
    return text, described, 0


def _version(change: Change):
    if change.info is None:
        return None
    mode = git_mode(change.info.st_mode)
    if mode == 0o120000:
        return mode, os.fsencode(os.readlink(change.full))
    return mode, b"".join(read_pieces(change.full))


def protect(args: dict, payload: bytes, call) -> tuple[dict, bytes]:
    """{rules} -> {}: store the read-only files, and the rules on files that tools may not reach by a link."""
    workspace, rules = workspace_of(call.state), RuleSet(args.get("rules"))
    everything = RuleSet(
        {"read_only": (args.get("rules") or {}).get("read_only")}
    )  # hidden files are protected as well
    snapshot = _empty(workspace, everything)
    if everything.read_only:
        snapshot.take(workspace, _entries(workspace, everything, lambda entry: entry.read_only))
    with workspace.lock:
        old, workspace.protected, workspace.rules = workspace.protected, snapshot, rules
        if old is not None:
            old.contents.close()
    return {}, b""


def restore(args: dict, payload: bytes, call) -> tuple[dict, bytes]:
    """{new} -> {"restored": [paths]}: restore the read-only files that were changed, removed or replaced.

    `new`: true: also remove files and links that the rules name and that were not there.
    """
    workspace = workspace_of(call.state)
    restored = []
    if workspace.protected is not None:
        with workspace.lock:
            if args.get("new"):
                restored += _remove_new(workspace, workspace.protected)
            for path in sorted(workspace.protected.files):
                if put_back(workspace, path, workspace.protected):
                    restored.append(path)
    return {"restored": [escape_path(path) for path in restored]}, b""


def _remove_new(workspace: Workspace, snapshot: Snapshot) -> list[str]:
    found = [
        entry
        for entry in workspace.walk(".", snapshot.rules)
        if entry.read_only and entry.kind != "dir" and entry.path not in snapshot.files
    ]
    for entry in found:
        with os_errors(entry.path):
            os.unlink(entry.full)
    return [entry.path for entry in found]


def put_back(workspace: Workspace, path: str, snapshot: Snapshot) -> bool:
    kept, full = snapshot.files[path], os.path.join(workspace.root, path)
    with os_errors(path):
        if _is_kept(kept, full):
            return False
        make_way(workspace, path)
        data = snapshot.contents.get(kept)
        if kept.mode == 0o120000:
            os.symlink(os.fsdecode(data), full)
        else:
            replace(full, data)
            os.chmod(full, kept.bits)
    return True


def _is_kept(kept: Blob, full: str) -> bool:
    folder = os.path.dirname(full)
    if os.path.realpath(folder) != folder:
        return False  # a folder on the way has become a link
    try:
        info = os.lstat(full)
        if not (stat.S_ISREG(info.st_mode) or stat.S_ISLNK(info.st_mode)):
            return False
        return is_same(kept, full, info, time.time_ns())
    except OSError:
        return False


def make_way(workspace: Workspace, path: str) -> None:
    """Remove anything that stands in the way of `path` and the folders above it."""
    import shutil

    place = workspace.root
    parts = path.split("/")
    for number, part in enumerate(parts, 1):
        place = os.path.join(place, part)
        is_last = number == len(parts)
        if os.path.isdir(place) and not os.path.islink(place):
            if is_last:
                shutil.rmtree(place)
        elif os.path.lexists(place):
            os.unlink(place)
        if not is_last:
            os.makedirs(place, exist_ok=True)


OPS = {
    "files.snapshot": take_snapshot,
    "files.diff": diff,
    "files.protect": protect,
    "files.restore": restore,
}
