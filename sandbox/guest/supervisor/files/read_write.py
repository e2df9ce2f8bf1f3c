"""Files of the workspace, one at a time: list, read, write."""

from __future__ import annotations

import hashlib
import os
import stat
import sys

from ..errors import GuestError
from .ignore_rules import Rules
from .workspace import escape_path, open_regular, os_errors, path_of, workspace_of

MAX_READ = (8 << 20) - 1
_MAX_NAMES = 50
MAX_CHECKED = 2 << 20
"""Bytes; larger sources are not looked through for syntax errors."""


def list_folder(args: dict, payload: bytes, call) -> tuple[dict, bytes]:
    """{path, depth, limit} -> {"entries": [{path, kind, size, read_only, target?}], "omitted": n}, in
    the order of a tree.
    """
    workspace = workspace_of(call.state)
    path, limit = path_of({"path": ".", **args}), int(args.get("limit", 1000))
    entries: list[dict] = []
    omitted = 0
    for entry in workspace.walk(path, workspace.rules, int(args.get("depth", 1))):
        if len(entries) < limit:
            entries.append(_describe(entry))
        else:
            omitted += 1
    return {"entries": entries, "omitted": omitted}, b""


def first_files(args: dict, payload: bytes, call) -> tuple[dict, bytes]:
    """{named, depth} -> {"paths"}: for each list of rules in `named` the first file, in the order of a tree, that
    they include; null if none. A file that the first list includes ends the search.
    """
    workspace = workspace_of(call.state)
    sought = {number: Rules(rules) for number, rules in enumerate(args.get("named") or [])}
    paths: list = [None] * len(sought)
    for entry in workspace.walk(".", workspace.rules, int(args.get("depth", 1))):
        if call.cancelled.is_set():
            raise GuestError("cancelled", "`files.first` was cancelled.")
        if entry.kind != "file":
            continue
        for number in [number for number, rules in sought.items() if rules.names(entry.path)]:
            paths[number] = escape_path(entry.path)
            del sought[number]
        if 0 not in sought:
            break
    return {"paths": paths}, b""


def _describe(entry) -> dict:
    kind = entry.kind
    size = entry.info.st_size if kind == "file" else 0
    described = {"path": escape_path(entry.path), "kind": kind, "size": size, "read_only": entry.read_only}
    if kind == "link":
        try:
            described["target"] = escape_path(os.readlink(entry.full))
        except OSError:
            pass  # gone since it was listed
    return described


def read_file(args: dict, payload: bytes, call) -> tuple[dict, bytes]:
    """{path, max_bytes, marks, names, unexecuted} -> {"size", "digest", "truncated", "read_only"} + the first `max_bytes`
    bytes.

    `files.write` takes the `digest` as `expect_digest`; it is empty when truncated. With `marks`: true also
    "breakpoints", those in the file, and the line at which the program has stopped: "current" in the present
    text, and "loaded_line" in the text that it has loaded, if that is another. With `names` also "definitions",
    as `definitions.find` gives them, and with `unexecuted`: true "unexecuted", the blocks that the failing test of the last
    diagnosis has not run, as `executed_lines.find_unexecuted` gives them. Raises GuestError (not_found, invalid, path).
    """
    path = path_of(args)
    limit = min(int(args.get("max_bytes") or MAX_READ), MAX_READ)
    workspace = workspace_of(call.state)
    real = workspace.locate(path)
    fd = open_regular(real, path)
    with os.fdopen(fd, "rb", buffering=0) as file, os_errors(path):
        info = os.fstat(fd)
        data = _read_up_to(file, limit + 1)
    truncated = len(data) > limit
    data = data[:limit]
    header = {
        "size": max(info.st_size, len(data)),
        "digest": "" if truncated else digest_of(data),
        "truncated": truncated,
        "read_only": workspace.is_read_only(workspace.relative(real)),
    }
    if args.get("marks"):
        header.update(_marks(call.state, path))
    if args.get("names"):
        from . import definitions

        header["definitions"] = definitions.find(data, list(args["names"])[:_MAX_NAMES])
    if args.get("unexecuted") and call.state.executed_lines is not None:
        header["unexecuted"] = call.state.executed_lines.unexecuted(workspace.relative(real), real, data)
    return header, data


def read_texts(args: dict, payload: bytes, call) -> tuple[dict, bytes]:
    """{paths, max_bytes} -> {"sizes": [of each; null for a missing file]} + the first `max_bytes` bytes of
    each.
    """
    sizes, contents = [], []
    for path in args.get("paths") or ():
        try:
            content = read_file({"path": path, "max_bytes": args.get("max_bytes")}, b"", call)[1]
        except GuestError:
            sizes.append(None)
        else:
            sizes.append(len(content))
            contents.append(content)
    return {"sizes": sizes}, b"".join(contents)


def _marks(state, path: str) -> dict:
    state.breakpoints.file_changed(path)  # other programs may have edited it
    points = [point for point in state.breakpoints.table() if point["path"] == path]
    return dict(state.program.stopped_line(path), breakpoints=points)


def _read_up_to(file, limit: int) -> bytes:
    pieces = []
    while limit > 0:
        piece = file.read(min(limit, 1 << 20))
        if not piece:
            break
        pieces.append(piece)
        limit -= len(piece)
    return b"".join(pieces)


def digest_of(data: bytes) -> str:
    """Hash that identifies a content."""
    return hashlib.sha256(data).hexdigest()


def write_files(args: dict, payload: bytes, call) -> tuple[dict, bytes]:
    """{files: [{path, expect_digest, size, diff}], make} + contents -> {"files": [{"created", "syntax_error",
    "breakpoints", "omitted", "diff_size"}]} + diffs.

    All files are replaced or none, each as a whole; they keep their modes. `make` makes missing folders. `size`
    bytes of the payload are the new content of a file; without `size` all of them. `expect_digest` is the digest
    of the present content, null if there must be no such file. `diff` is {"encoding", "newline"} of the text if a
    diff is requested; `omitted` bytes of it are left out. `syntax_error` is set for Python files that this
    interpreter can't compile. Raises GuestError: conflict when a content is another one, read_only, path,
    invalid, not_found.
    """
    workspace = workspace_of(call.state)
    changes = [_Change(workspace, file, content) for file, content in _contents(args, payload)]
    if args.get("make"):
        for change in changes:
            with os_errors(change.path):
                os.makedirs(os.path.dirname(change.real), exist_ok=True)
    with workspace.lock:
        for change in changes:
            change.check()
        _write_all(changes)
        workspace.written.update(workspace.relative(change.real) for change in changes)
    answers, texts = [], []
    for change in changes:
        text, omitted = _difference(change.path, change.before, change.content, change.form)
        texts.append(text)
        answers.append(
            {
                "created": change.old is None,
                "syntax_error": syntax_error(change.real, change.content),
                "breakpoints": call.state.breakpoints.file_changed(workspace.relative(change.real)),
                "omitted": omitted,
                "diff_size": len(text),
            }
        )
    return {"files": answers}, b"".join(texts)


def _contents(args: dict, payload: bytes) -> list:
    """[(file, its new content)] of a request."""
    found, at = [], 0
    for file in args.get("files") or ():
        size = file.get("size")
        end = len(payload) if size is None else at + int(size)
        found.append((file, payload[at:end]))
        at = end
    if not found:
        raise GuestError("invalid", "There is no file to write.")
    return found


class _Change:
    """New content for one file. Raises GuestError (read_only, path, invalid)."""

    def __init__(self, workspace, file: dict, content: bytes) -> None:
        self.path, self.content, self.form = path_of(file), content, file.get("diff")
        self.real = workspace.locate(self.path)
        self.old, self.before = None, b""
        self._digest = file.get("expect_digest")
        if workspace.is_read_only(workspace.relative(self.real)):
            raise GuestError(
                "read_only",
                f"{escape_path(self.path)} is read-only in this session (.debugreadonly).",
                "Change the code it tests instead.",
            )

    def check(self) -> None:
        """Note the present content. Raises GuestError (conflict) if it is not the expected one."""
        self.old, self.before = _read_expected(self.real, self.path, self._digest)

    def write(self) -> None:
        """Raises GuestError."""
        with os_errors(self.path):
            replace(self.real, self.content, self.old)

    def undo(self) -> None:
        """Raises OSError."""
        if self.old is None:
            os.unlink(self.real)
        else:
            replace(self.real, self.before, self.old)


def _write_all(changes: list) -> None:
    written: list = []
    try:
        for change in changes:
            change.write()
            written.append(change)
    except GuestError:
        for change in reversed(written):
            with os_errors(change.path):
                change.undo()
        raise


def _difference(path: str, old: bytes, new: bytes, form) -> tuple[bytes, int]:
    if not form:
        return b"", 0
    from .edit_diff import unified

    return unified(path, old, new, form["encoding"], form["newline"])


def _read_expected(real: str, path: str, digest):
    """(stat, content) of the present file, or (None, b"").

    Raises GuestError (conflict) if it is not the expected one.
    """
    if not os.path.lexists(real):
        if digest is not None:
            raise GuestError(
                "conflict", f"{escape_path(path)} has been removed meanwhile.", "List the folder."
            )
        return None, b""
    fd = open_regular(real, path)
    with os.fdopen(fd, "rb") as file, os_errors(path):
        if digest is None:
            raise GuestError("conflict", f"{escape_path(path)} exists by now.", "View it and try again.")
        data = file.read()
        if digest_of(data) != digest:
            raise GuestError(
                "conflict", f"{escape_path(path)} has changed since it was read.", "View it and try again."
            )
        return os.fstat(fd), data


def replace(real: str, data: bytes, old=None) -> None:
    """Replace the content of `real` atomically by `data`; `old` is the stat of the present file.

    Raises OSError.
    """
    folder, name = os.path.split(real)
    temporary = os.path.join(folder, f".{name[:100]}.{os.urandom(6).hex()}")
    mode = stat.S_IMODE(old.st_mode) if old is not None else 0o666
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            if old is not None:
                _adopt(fd, old, len(data))
        os.replace(temporary, real)
    except BaseException:
        os.unlink(temporary)
        raise


def _adopt(fd: int, old, size: int) -> None:
    now = os.fstat(fd)
    if (now.st_uid, now.st_gid) != (old.st_uid, old.st_gid):
        try:
            os.fchown(fd, old.st_uid, old.st_gid)
        except PermissionError:
            pass  # not root: the file belongs to us from now on
    os.fchmod(fd, stat.S_IMODE(old.st_mode))  # again: the umask was applied, and fchown clears bits
    # Python considers compiled code current when the source has the same size and the same mtime in whole
    # seconds.
    if size == old.st_size and int(now.st_mtime) <= int(old.st_mtime):
        os.utime(fd, (now.st_atime, int(old.st_mtime) + 1))


def syntax_error(real: str, data: bytes):
    """`line 3: invalid syntax` for a Python file that does not compile here, else None."""
    if not real.endswith((".py", ".pyi")) or len(data) > MAX_CHECKED:
        return None
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # The whole way to bytecode: some errors, such as a `return` outside of a function, show up late.
            compile(data, os.path.basename(real), "exec", dont_inherit=True)
    except SyntaxError as exc:
        where = "line %d: " % exc.lineno if exc.lineno else ""
        return "%s%s (Python %d.%d)" % ((where, str(exc.msg)[:500]) + sys.version_info[:2])
    except (ValueError, OverflowError, RecursionError, MemoryError) as exc:
        return f"{type(exc).__name__}: {str(exc)[:500]}"
    return None


OPS = {
    "files.list": list_folder,
    "files.first": first_files,
    "files.read": read_file,
    "files.texts": read_texts,
    "files.write": write_files,
}
