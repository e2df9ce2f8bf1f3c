"""Copies foreign files, within limits: folders, archives, and commits of git clones."""

from __future__ import annotations

import io
import os
import re
import shutil
import stat
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from mcp_server.tasks.folder import MAX_FILE, read_bytes
from sandbox.errors import InvalidArgument
from sandbox.host_files import open_regular

if sys.version_info >= (3, 11, 4):
    import tarfile
else:  # Debian 12's Python can't refuse members that lead out
    from backports import tarfile

MAX_FILES = 200_000
MAX_BYTES = 4 << 30
_MAX_DEPTH = 100
JUNK = frozenset(
    {".git", ".hg", ".svn", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".venv", ".tox"}
)
"""Names of folders that are never part of a task."""
_ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2", ".zip")
_GIT_TIMEOUT_S = 600
_LINK, _SUBMODULE, _EXECUTABLE = "120000", "160000", "100755"
"""Modes of a file in a commit."""
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,200}")
_GROUP_FILES, _GROUP_BYTES = 5000, 64 << 20
"""Files of a commit that are read at once."""


class _Budget:
    """Files and bytes that may still be written."""

    def __init__(self) -> None:
        self._files = MAX_FILES
        self._bytes = MAX_BYTES

    def spend(self, size: int) -> None:
        """Count a file.

        Raises:
            InvalidArgument: there are too many.
        """
        self._files -= 1
        self._bytes -= size
        if self._files < 0:
            raise InvalidArgument(f"It has more than {MAX_FILES} files.")
        if self._bytes < 0:
            raise InvalidArgument(f"It has more than {MAX_BYTES >> 30} GiB.")


def copy_tree(source: Path, to: Path, leave_out: frozenset[str] = frozenset()) -> None:
    """Copy the files below `source`: links as links, without junk, special files, and links that lead out.

    `leave_out`: names at the top that are not copied.

    Raises:
        InvalidArgument: a file can't be read, or there are too many.
    """
    budget = _Budget()
    try:
        to.mkdir(parents=True, exist_ok=True)
        here = to.resolve()
        for relative, entry in _walk(source.resolve(), "", leave_out, avoid=here):
            place = to / relative
            if entry.is_symlink():
                budget.spend(0)
                place.symlink_to(Path(entry.path).readlink())
            elif entry.is_dir(follow_symlinks=False):
                budget.spend(0)
                place.mkdir(exist_ok=True)
            elif entry.is_file(follow_symlinks=False):
                budget.spend(entry.stat(follow_symlinks=False).st_size)
                _copy_file(Path(entry.path), place)
        remove_links_out(to)
    except OSError as exc:
        raise InvalidArgument(f"Can't copy {source.name}: {exc.strerror} ({exc.filename}).") from exc


def _walk(
    folder: Path, prefix: str, leave_out: frozenset[str], avoid: Path | None = None
) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield (relative path, entry) of all below `folder`. Links are not followed, nor is the way to `avoid`."""
    if prefix.count("/") > _MAX_DEPTH:
        raise InvalidArgument(f"It has folders that are more than {_MAX_DEPTH} deep.")
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        if entry.name in JUNK or entry.name in leave_out:
            continue
        if avoid is not None and avoid.is_relative_to(entry.path):
            continue
        relative = f"{prefix}{entry.name}"
        yield relative, entry
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(Path(entry.path), f"{relative}/", frozenset(), avoid)


def _copy_file(source: Path, to: Path) -> None:
    with os.fdopen(open_regular(source), "rb") as stream, to.open("wb") as out:
        shutil.copyfileobj(stream, out, 1 << 20)
        mode = os.fstat(stream.fileno()).st_mode
    to.chmod(0o755 if mode & stat.S_IXUSR else 0o644)


def read_text(path: Path, limit: int = MAX_FILE) -> str:
    """Read a regular file as text; unreadable characters are replaced.

    Raises:
        InvalidArgument: it is too large, or can't be read.
    """
    return read_bytes(path, limit).decode("utf-8", "replace")


def read_inside(folder: Path, name: str, limit: int = MAX_FILE) -> bytes:
    """Read a regular file below `folder`.

    Raises:
        InvalidArgument: a link leads out of the folder, or the file can't be read.
    """
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise InvalidArgument(f"{name} leads out of {folder.name}.")
    return read_bytes(path, limit)


def is_archive(path: Path) -> bool:
    """Tell by its name whether a file is an archive."""
    return path.name.lower().endswith(_ARCHIVES) and path.is_file()


def unpack(archive: Path, to: Path) -> Path:
    """Unpack an archive into the folder `to`. Returns its only top folder, or `to` if it has several entries.

    Raises:
        InvalidArgument: it is damaged, too large, or has members that lead out of the folder.
    """
    to.mkdir(parents=True)
    try:
        if archive.name.lower().endswith(".zip"):
            _unpack_zip(archive, to)
        else:
            _unpack_tar(archive, to)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError, RuntimeError, ValueError) as exc:
        if isinstance(exc, InvalidArgument):
            raise
        raise InvalidArgument(f"Can't unpack {archive.name}: {str(exc)[:200]}.") from exc
    entries = [entry for entry in to.iterdir() if entry.name != "__MACOSX"]
    return entries[0] if len(entries) == 1 and entries[0].is_dir() and not entries[0].is_symlink() else to


def _unpack_tar(archive: Path, to: Path) -> None:
    budget = _Budget()
    with tarfile.open(archive) as tar:
        for member in tar:
            budget.spend(member.size)
            if member.isreg() or member.isdir() or member.issym() or member.islnk():
                tar.extract(member, to, filter="data")  # refuses members and links that lead out


def _unpack_zip(archive: Path, to: Path) -> None:
    budget = _Budget()
    with zipfile.ZipFile(archive) as packed:
        for info in packed.infolist():
            budget.spend(info.file_size)
            parts = PurePosixPath(info.filename).parts
            if not parts or ".." in parts or info.filename.startswith("/") or "\\" in info.filename:
                raise InvalidArgument(f"{archive.name} has a member that leads out: {info.filename[:200]!r}.")
            # Extraction reads no more than `file_size` bytes, and makes files of links.
            packed.extract(info, to)


@dataclass(frozen=True)
class _Blob:
    """A file of a commit."""

    mode: str
    hash: str
    size: int
    path: str


def check_out(clone: Path, commit: str, to: Path) -> bool:
    """Write the files of a commit of a git clone. False if it has no such commit.

    Raises:
        InvalidArgument: git failed, or the commit is too large.
    """
    found = git(clone, "rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}", check=False)
    if commit.startswith("-") or found.returncode != 0:
        return False
    listed = git(clone, "ls-tree", "-r", "-z", "-l", "--full-tree", found.stdout.decode().strip()).stdout
    blobs = [_parse_blob(row) for row in listed.split(b"\0") if row]
    budget = _Budget()
    for blob in blobs:
        budget.spend(blob.size)
    # Links last: no file is written through one.
    for group in _groups(sorted(blobs, key=lambda blob: blob.mode == _LINK)):
        for blob, content in zip(group, _contents(clone, group), strict=True):
            try:
                _write_blob(to, blob, content)
            except OSError as exc:
                raise InvalidArgument(f"Can't write {blob.path[:200]!r}: {exc.strerror}.") from exc
    remove_links_out(to)
    return True


def _parse_blob(row: bytes) -> _Blob:
    facts, _, path = row.partition(b"\t")
    mode, _, name, size = facts.decode().split()
    return _Blob(mode, name, int(size) if size.isdecimal() else 0, os.fsdecode(path))


def _groups(blobs: Sequence[_Blob]) -> Iterator[list[_Blob]]:
    """Yield the files, without submodules, in groups that fit into memory."""
    group: list[_Blob] = []
    size = 0
    for blob in blobs:
        if blob.mode == _SUBMODULE:
            continue
        group.append(blob)
        size += blob.size
        if len(group) >= _GROUP_FILES or size >= _GROUP_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


def _contents(clone: Path, blobs: Sequence[_Blob]) -> Iterator[bytes]:
    """Read files as they are stored: a check-out would run the filters that the clone's configuration names."""
    names = "".join(f"{blob.hash}\n" for blob in blobs).encode()
    stream = io.BytesIO(git(clone, "cat-file", "--batch", stdin=names).stdout)
    for blob in blobs:
        head = stream.readline().split()
        if len(head) != 3:
            raise InvalidArgument(
                f"{clone.name} lacks the content of {blob.path}.", "Fetch it into the clone."
            )
        yield stream.read(int(head[2]))
        stream.read(1)


def _write_blob(to: Path, blob: _Blob, content: bytes) -> None:
    parts = blob.path.split("/")
    if any(part in ("", ".", "..") or part.lower() == ".git" for part in parts):
        raise InvalidArgument(f"The commit has a file {blob.path[:200]!r}, which git itself refuses.")
    path = to.joinpath(*parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    if blob.mode == _LINK:
        path.symlink_to(os.fsdecode(content))
        return
    path.write_bytes(content)
    if blob.mode == _EXECUTABLE:
        path.chmod(0o755)


def remove_links_out(folder: Path) -> None:
    """Remove the links that lead out of a folder, through other links too."""
    top = folder.resolve()
    links = [Path(entry.path) for _, entry in _walk(folder, "", frozenset()) if entry.is_symlink()]
    for link in links:
        try:
            is_inside = link.resolve().is_relative_to(top)
        except (OSError, RuntimeError):  # a loop
            is_inside = False
        if not is_inside:
            link.unlink()


def write_source(source: Path, names: Sequence[str], commits: Sequence[str], to: Path) -> None:
    """Write the files of a repository.

    Args:
        source: a clone, a tree, or a folder of those.
        names: of the repository's folder in `source`, the best one first.
        commits: the first of them that a clone has is written.

    Raises:
        InvalidArgument: the clone has none of them, or the files can't be copied.
    """
    folders = [source / name for name in names if _PLAIN.fullmatch(name) and (source / name).is_dir()]
    # A tree may itself have a folder of its own name, such as the package in it.
    is_tree = is_clone(source) or (source / "setup.py").is_file() or (source / "pyproject.toml").is_file()
    folder = source if is_tree or not folders else folders[0]
    if not is_clone(folder):
        copy_tree(folder, to)
    elif not any(check_out(folder, commit, to) for commit in commits):
        raise InvalidArgument(f"{folder.name} has no commit {commits[0][:40]}", "Fetch it into the clone.")


def check_patches(folder: Path, gold: bytes, test_patch: bytes, *, apply_tests: bool) -> None:
    """Find out whether the patches of a task fit its repository, and apply that of the tests if that is asked for.

    Raises:
        InvalidArgument: one of them can't be applied.
    """
    apply_patch(folder, gold, "Its gold patch", check=True)
    if test_patch:
        apply_patch(folder, test_patch, "Its test patch", check=not apply_tests)
        remove_links_out(folder)


def is_clone(folder: Path) -> bool:
    """Tell whether a folder is a git clone, or the git directory of one."""
    return (folder / ".git").exists() or ((folder / "HEAD").is_file() and (folder / "objects").is_dir())


def apply_patch(folder: Path, patch: bytes, what: str, *, check: bool = False) -> None:
    """Apply a patch to the files in `folder`. Git refuses paths and links that lead out of it.

    `check`: only find out whether that is possible.

    Raises:
        InvalidArgument: it can't be applied.
    """
    # Without the ceiling, git takes paths from the top of a repository that `folder` happens to be in.
    env = {"GIT_CEILING_DIRECTORIES": str(folder.absolute().parent)}
    words = ["apply", "--whitespace=nowarn", *(["--check"] if check else []), "-"]
    done = git(folder, *words, check=False, env=env, stdin=patch)
    if done.returncode != 0:
        raise InvalidArgument(f"{what} can't be applied: {_first_line(done.stderr)}")


def git(
    folder: Path,
    *words: str,
    check: bool = True,
    env: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run git in `folder`, without hooks, connections, and without asking anybody.

    Raises:
        InvalidArgument: there is no git, or it failed.
    """
    # Variables of the person's own git commands would lead to another repository.
    plain = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    safe = ("-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor=false", "-c", "safe.directory=*")
    try:
        done = subprocess.run(
            ["git", *safe, *words],
            cwd=folder,
            # A clone may name a command from which missing objects are fetched.
            env={**plain, "GIT_TERMINAL_PROMPT": "0", "GIT_ALLOW_PROTOCOL": "none", **(env or {})},
            input=stdin,
            stdin=None if stdin is not None else subprocess.DEVNULL,
            capture_output=True,
            timeout=_GIT_TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError as exc:
        raise InvalidArgument("There is no git on this machine, which patches and clones need.") from exc
    except subprocess.TimeoutExpired as exc:
        raise InvalidArgument(f"git {words[0]} took more than {_GIT_TIMEOUT_S} s.") from exc
    if check and done.returncode != 0:
        raise InvalidArgument(f"git {words[0]} failed in {folder.name}: {_first_line(done.stderr)}")
    return done


def _first_line(output: bytes) -> str:
    lines = output.decode("utf-8", "replace").splitlines()
    return next((line.strip()[:300] for line in lines if line.strip()), "no reason given")
