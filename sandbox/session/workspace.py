"""The copy of the repository in the sandbox. Only this module turns strings into paths."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import Field

from sandbox.errors import InvalidArgument, NotFound, PathRefused, ProtocolViolation, ReadOnlyFile
from sandbox.host_files import in_thread
from sandbox.ignore_rules import lenient
from sandbox.session.debugger import Breakpoint
from sandbox.session.edits import MAX_EDITS, Absent, Edit, FileEdit
from sandbox.session.file_text import FileText, decode, decode_text, encode, is_binary
from sandbox.session.guest_data import GuestData, Number, Request, Short, validate

MAX_PATH = 4096
"""Maximum characters of a path on any system."""
MAX_LEVELS = 250
"""Maximum depth of a path. Python's own functions for folders call themselves once for each level."""
MAX_FILE = 8 << 20
_FIRST_DEPTH = 6
_LONG = 1 << 18
"""Minimum bytes of a file that is decoded in a thread, so that other calls can run."""
MAX_PATCH = 1 << 20
"""Maximum bytes of a patch in memory."""
MAX_CHANGES = 2000
"""Maximum number of changed files that are listed by name."""
DIFF_S = 120.0
_GLOB = re.compile(r"[*?\[]|\{[^{}]*,[^{}]*\}")
_PLAIN = {"encoding": "utf-8", "newline": "\n"}


class Entry(GuestData):
    """One name in a folder; `path` is relative to the repository."""

    path: Short
    kind: Literal["file", "dir", "link", "other"]
    size: Number = 0
    read_only: bool = False
    target: Short | None = None


class Listing(GuestData):
    """Content of a folder; `omitted` entries were left out."""

    entries: Annotated[list[Entry], Field(max_length=10_000)]
    omitted: Number = 0


class Match(GuestData):
    """One line that matches, with its neighbours."""

    path: Short
    line: Number
    text: Short
    before: Annotated[list[Short], Field(max_length=100)] = []
    after: Annotated[list[Short], Field(max_length=100)] = []


class Matches(GuestData):
    """Result of a search; `omitted` matches were left out, `skipped` files were not text.

    `omitted_files` have omitted matches only.
    """

    matches: Annotated[list[Match], Field(max_length=10_000)]
    omitted: Number = 0
    complete: bool = True
    """True if everything was searched. Else the time was over, and there are at least `omitted` more."""
    omitted_files: Number = 0
    searched: Number = 0
    skipped: Number = 0


class Definitions(GuestData):
    """Definitions of one name in a file, or similar names."""

    name: Short
    found: Annotated[list[tuple[Short, Number, Number]], Field(max_length=100)] = []
    """Qualified name, first and last line of each."""
    nearest: Annotated[list[Short], Field(max_length=100)] = []


class Marks(GuestData):
    """Marks of a file: breakpoints, the line at which the program has stopped, and what else was asked for."""

    breakpoints: Annotated[list[Breakpoint], Field(max_length=1024)] = []
    current: Number | None = None
    loaded_line: Number | None = None
    """Line in the text that the program has loaded, if the file has changed since.

    `current` is None if that line is gone.
    """
    definitions: Annotated[list[Definitions], Field(max_length=100)] = []
    unexecuted: Annotated[list[tuple[Number, Number]], Field(max_length=1000)] = []
    """First and last lines of blocks that the failing test of the last diagnosis has not run, in order."""


class Rewritten(GuestData):
    """Result of an edit: a unified diff, the breakpoints it moved, and the remaining syntax error, if any."""

    path: str
    created: bool
    diff: str
    omitted_bytes: int = 0
    """Bytes left out of the diff."""
    breakpoints: list[Breakpoint] = []
    syntax_error: str | None = None


@dataclass(frozen=True)
class WrittenFile:
    """A file that was written, with the digest of its content before; None if there was no such file."""

    path: str
    content: bytes
    before: str | None


class FileChange(GuestData):
    """One file of a patch: lines added and removed.

    An `omitted` one is too large for the patch, and its lines aren't counted.
    """

    path: Short
    kind: Literal["added", "modified", "deleted", "mode"]
    added: Number = 0
    removed: Number = 0
    omitted: bool = False


class Patch(GuestData):
    """A git-format patch of everything changed since the session began, or the beginning of it."""

    text: str
    files: list[FileChange]
    """The first changed files."""
    total: int = 0
    """Number of changed files."""
    omitted_bytes: int = 0
    """Bytes of files that are too large for a patch, or can't be read."""
    cut_bytes: int = 0
    """Bytes of the patch after `text`."""


class PatchWindow:
    """Collects at most `size` bytes from `start` on, of a patch that arrives in pieces."""

    def __init__(self, start: int, size: int) -> None:
        self.data = bytearray()
        self.total = 0
        self._start = start
        self._size = size

    def take(self, piece: bytes) -> None:
        """Add the next piece."""
        begin = max(0, self._start - self.total)
        self.data += piece[begin : begin + self._size - len(self.data)]
        self.total += len(piece)

    def whole_lines(self) -> bytes:
        """Return the collected bytes without an incomplete last line."""
        data = bytes(self.data)
        if self._start + len(data) >= self.total:
            return data
        return data[: data.rfind(b"\n") + 1] or data


class _WrittenFile(GuestData):
    omitted: Number = 0
    diff_size: Annotated[int, Field(ge=0, le=1 << 20)] = 0
    syntax_error: Short | None = None
    breakpoints: Annotated[list[Breakpoint], Field(max_length=1024)] = []


class _Written(GuestData):
    files: Annotated[list[_WrittenFile], Field(max_length=MAX_EDITS)]


class _First(GuestData):
    paths: Annotated[list[Short | None], Field(max_length=16)]


class _Nearest(GuestData):
    line: Number = 0
    text: Short = ""


class _FileInfo(GuestData):
    size: Number
    digest: Short
    truncated: bool = False
    read_only: bool = False


class _DiffPiece(GuestData):
    files: Annotated[list[FileChange], Field(max_length=1000)] = []
    omitted: Number = 0


class Workspace:
    """Files of one session. All paths are relative to the repository; nothing outside of it is reachable."""

    def __init__(self, request: Request, root: PurePosixPath) -> None:
        self._request = request
        self.root = root
        self.keep: Callable[[Sequence[WrittenFile]], Awaitable[None]] | None = None
        """Stores what was written, before the caller of `rewrite` is told so."""

    def path(self, text: str) -> str:
        """Normalize `text` to a path relative to the repository; `.` is its root.

        Raises:
            PathRefused: it leaves the repository. The sandbox refuses what `.debugignore` hides.
        """
        if not text or "\0" in text or len(text) > MAX_PATH:
            raise PathRefused(
                f"{text[:200]!r}{'…' if len(text) > 200 else ''} is not a path.",
                "Paths are relative to the repository root, for example src/app.py.",
            )
        levels = text.count("/") + 1
        if levels > MAX_LEVELS:
            raise PathRefused(
                f"{text[:100]!r}… has {levels:,} levels; {MAX_LEVELS} are possible.",
                "Paths are relative to the repository root.",
            )
        inside = posixpath.normpath(text)
        if inside.startswith("/"):
            inside = posixpath.relpath(inside, str(self.root))
        if inside == ".." or inside.startswith(("../", "/")):
            raise PathRefused(
                f"{text[:200]} is outside of the repository.", "Paths are relative to the repository root."
            )
        if inside == ".git" or inside.startswith(".git/"):
            raise PathRefused(f"{inside} is hidden in this session (.debugignore).")
        return inside

    async def list(self, path: str = ".", depth: int = 1, limit: int = 1000) -> Listing:
        """List names below the folder `path`, `depth` levels down, sorted."""
        args = {"path": self.path(path), "depth": depth, "limit": limit}
        return validate(Listing, (await self._request("files.list", args))[0])

    async def first_of(self, *kinds: Sequence[str]) -> list[str | None]:
        """Find for each of these lists of `.gitignore` patterns the first file, not too deep, that matches one of them.

        A file of the first kind ends the search.
        """
        args = {"named": [lenient(patterns) for patterns in kinds], "depth": _FIRST_DEPTH}
        found = validate(_First, (await self._request("files.first", args))[0]).paths
        if len(found) != len(kinds):
            raise ProtocolViolation(f"The sandbox answered with {len(found)} files instead of {len(kinds)}.")
        return found

    async def read(self, path: str) -> FileText:
        """Read the text of `path`, decoded by its BOM or coding comment, else as UTF-8, else as Latin-1.

        Raises:
            NotFound: no such file.
            InvalidArgument: a folder, a binary file, or larger than 8 MiB.
        """
        return (await self._read(self.path(path)))[0]

    async def read_marked(
        self, path: str, names: Sequence[str] = (), *, unexecuted: bool = False
    ) -> tuple[FileText, Marks]:
        """Read the text of `path` as `read` does, with the debugger's marks and the definitions of `names` in it.

        `unexecuted`: also the blocks that a diagnosed test has not run. That takes one request.
        """
        file, header = await self._read(self.path(path), marks=True, names=names, unexecuted=unexecuted)
        return file, validate(Marks, header)

    async def content(self, path: str) -> tuple[bytes, str | None]:
        """Read the bytes of `path`, and its text as `read` decodes it; None if it is binary.

        Raises:
            NotFound: no such file.
            InvalidArgument: a folder, or larger than 8 MiB.
        """
        data, _, _ = await self._read_bytes(self.path(path))
        return data, None if is_binary(data) else decode_text(data)[0]

    async def search(
        self,
        pattern: str,
        path: str = ".",
        *,
        regex: bool = True,
        ignore_case: bool = False,
        context: int = 0,
        max_results: int = 100,
        definitions: bool = False,
    ) -> Matches:
        """Search lines that match `pattern` in a file, a folder, or the files that match a glob.

        `definitions`: lines of Python that define the name `pattern`.

        Raises:
            InvalidArgument: the regular expression is invalid or too slow.
        """
        folder, glob = self._split_glob(path)
        args = {
            "pattern": pattern,
            "regex": regex,
            "ignore_case": ignore_case,
            "path": folder,
            "glob": glob,
            "context": context,
            "max_results": max_results,
            "definitions": definitions,
        }
        return validate(Matches, (await self._request("files.search", args))[0])

    async def rewrite(self, edits: Sequence[Edit]) -> list[Rewritten]:
        """Make all `edits` or none; positions mean the files before the call. Returns one result for each file.

        Encoding, line ends, a missing last newline and the file's mode stay as they are.

        Raises:
            ReadOnlyFile: `.debugreadonly` protects it.
            InvalidArgument: lines don't exist, `old_code` does not occur exactly once, or edits overlap.
        """
        files: dict[str, FileEdit] = {}
        for number, edit in enumerate(edits, 1):
            with _named_edit(number, edit, len(edits)):
                inside = self.path(edit.path)
                if inside not in files:
                    files[inside] = FileEdit(inside, await self._read_to_edit(inside))
                file = files[inside]
                try:
                    if file.size < _LONG:
                        file.add(number, edit)
                    else:
                        await in_thread(file.add, number, edit)
                except Absent as exc:
                    raise InvalidArgument(
                        f"`old_code` does not occur in {inside}.{await self._describe_nearest(inside, exc.text)}",
                        "`view` shows the text as it is now.",
                    ) from None
        return await self._write(list(files.values()))

    async def _read_to_edit(self, inside: str) -> FileText | None:
        """The text of a file that may be changed; None if there is no file yet."""
        try:
            old = await self.read(inside)
        except NotFound:
            return None
        if old.read_only:
            raise ReadOnlyFile(
                f"{inside} is read-only in this session (.debugreadonly).",
                "Change the code it tests instead.",
            )
        return old

    async def _write(self, files: Sequence[FileEdit]) -> list[Rewritten]:
        contents = [encode(file.text(), file.old) for file in files]
        args = {
            "make": True,
            "files": [
                {
                    "path": file.path,
                    "expect_digest": file.old.digest if file.old else None,
                    "size": len(content),
                    "diff": {"encoding": file.old.encoding, "newline": file.old.newline}
                    if file.old
                    else _PLAIN,
                }
                for file, content in zip(files, contents, strict=True)
            ],
        }
        header, diffs = await self._request("files.write", args, b"".join(contents))
        answers = validate(_Written, header).files
        if len(answers) != len(files):
            raise ProtocolViolation("The sandbox answered for another number of files than were written.")
        if self.keep is not None:
            await self.keep(
                [
                    WrittenFile(file.path, content, file.old.digest if file.old else None)
                    for file, content in zip(files, contents, strict=True)
                ]
            )
        done: list[Rewritten] = []
        at = 0
        for file, answer in zip(files, answers, strict=True):
            diff = diffs[at : at + answer.diff_size]
            at += answer.diff_size
            done.append(
                Rewritten(
                    path=file.path,
                    created=file.old is None,
                    diff=diff.decode("utf-8", "backslashreplace"),
                    omitted_bytes=answer.omitted,
                    breakpoints=answer.breakpoints,
                    syntax_error=answer.syntax_error,
                )
            )
        return done

    async def put_back(self, file: WrittenFile) -> bool:
        """Write a file as it was in an earlier session. False if it replaced another text than the one that was edited there.

        Raises:
            PdboxError: it can't be written.
        """
        inside = self.path(file.path)
        try:
            digest = (await self._read_bytes(inside))[1].digest
        except NotFound:
            digest = None
        described = {"path": inside, "expect_digest": digest, "size": len(file.content)}
        await self._request("files.write", {"make": True, "files": [described]}, file.content)
        return digest == file.before

    async def _describe_nearest(self, inside: str, old_code: str) -> str:
        wanted = next((line.strip() for line in old_code.split("\n", 100) if line.strip()), "")
        line = wanted[:1000].encode("utf-8", "replace")
        found = validate(_Nearest, (await self._request("files.nearest", {"path": inside}, line))[0])
        return f" Line {found.line} is close: {found.text!r}." if found.line else ""

    async def diff(self, max_bytes: int = MAX_PATCH) -> Patch:
        """Return everything changed since the session began, including new and binary files.

        A long patch is cut after a line.
        """
        head = PatchWindow(0, max_bytes)
        files: list[FileChange] = []
        total, omitted = await self.read_patch(head.take, files)
        data = head.whole_lines()
        return Patch(
            text=data.decode("utf-8", "surrogateescape"),
            files=files,
            total=total,
            omitted_bytes=omitted,
            cut_bytes=head.total - len(data),
        )

    async def read_patch(
        self, take: Callable[[bytes], object], files: list[FileChange] | None = None
    ) -> tuple[int, int]:
        """Call `take` with each piece of the patch, which may have any size.

        Returns (number of changed files, bytes left out). Appends the first changes to `files`.
        """
        total = 0

        def piece(header: dict[str, Any], payload: bytes) -> None:
            nonlocal total
            changes = validate(_DiffPiece, header).files
            total += len(changes)
            if files is not None:
                files.extend(changes[: MAX_CHANGES - len(files)])
            take(payload)

        header, payload = await self._request("files.diff", timeout_s=DIFF_S, on_progress=piece)
        piece(header, payload)
        return total, validate(_DiffPiece, header).omitted

    async def _read(
        self, inside: str, *, marks: bool = False, names: Sequence[str] = (), unexecuted: bool = False
    ) -> tuple[FileText, dict[str, Any]]:
        data, info, header = await self._read_bytes(inside, marks=marks, names=names, unexecuted=unexecuted)
        if len(data) < _LONG:
            return decode(inside, data, info.digest, info.read_only), header
        return await in_thread(decode, inside, data, info.digest, info.read_only), header

    async def _read_bytes(
        self, inside: str, *, marks: bool = False, names: Sequence[str] = (), unexecuted: bool = False
    ) -> tuple[bytes, _FileInfo, dict[str, Any]]:
        args = {
            "path": inside,
            "max_bytes": MAX_FILE - 1,
            "marks": marks,
            "names": list(names),
            "unexecuted": unexecuted,
        }
        header, data = await self._request("files.read", args)
        info = validate(_FileInfo, header)
        if info.truncated:
            raise InvalidArgument(
                f"{inside} has {info.size} bytes; files up to {MAX_FILE >> 20} MiB can be shown."
            )
        return data, info, header

    def _split_glob(self, path: str) -> tuple[str, str | None]:
        path = posixpath.normpath(path) if path else path
        found = _GLOB.search(path)
        if found is None:
            return self.path(path), None
        parts = path.split("/")
        first = path.count("/", 0, found.start())  # folders before the first sign of a glob
        if ".." in parts:
            raise PathRefused(f"{path[:200]} is outside of the repository.")
        return (self.path("/".join(parts[:first])) if first else "."), "/".join(parts)


@contextmanager
def _named_edit(number: int, edit: Edit, count: int) -> Generator[None]:
    """Name the edit in an error about it, if there are several."""
    try:
        yield
    except (InvalidArgument, NotFound, PathRefused, ReadOnlyFile) as exc:
        if count == 1:
            raise
        where = f"Edit {number} of {count} ({edit.path[:200]}): "
        raise type(exc)(f"{where}{exc.message}", f"{exc.hint} Nothing was changed.".lstrip()) from exc
