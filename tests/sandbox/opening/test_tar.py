"""What of a folder goes into the sandbox."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from pathlib import Path
from threading import Event, Thread

import pytest

from sandbox.errors import InvalidArgument, NotFound, PathRefused
from sandbox.opening.tar import FIRST_PIECE, MAX_NEEDED, PIECE, pieces, resolve_repository, select
from tests.repository import repository


def members(folder: Path) -> dict[str, tarfile.TarInfo]:
    stream = io.BytesIO(b"".join(pieces(folder, select(folder, 1 << 30).paths)))
    with tarfile.open(fileobj=stream) as archive:
        return {member.name: member for member in archive}


def test_ignored_files_and_virtual_environments_stay_out(tmp_path: Path) -> None:
    repository(
        tmp_path,
        {
            ".gitignore": "*.log\n!keep.log\n/build/\n",
            "a.log": "",
            "keep.log": "",
            "build/x.o": "",
            "src/build/y.py": "",
            "env39/pyvenv.cfg": "",
            "env39/bin/python": "",
            "node_modules/m.js": "",
            "src/__pycache__/y.pyc": "",
            "src/.gitignore": "*.tmp\n!a.log\n",
            "src/z.tmp": "",
            "src/a.log": "",
        },
    )
    assert set(members(tmp_path)) == {
        ".gitignore", "keep.log", "src", "src/.gitignore", "src/build", "src/build/y.py", "src/a.log",
    }  # fmt: skip


def files(folder: Path) -> set[str]:
    return {name for name, info in members(folder).items() if info.isreg()}


def test_ignored_files_that_python_imports_go_in(tmp_path: Path) -> None:
    needed = {
        "pkg/_version.py",
        "pkg/local_settings.pyi",
        "pkg/core.cpython-311-x86_64-linux-gnu.so",
        "pkg/fast.abi3.so",
        "pkg/native.so",
        "grammar/parsetab.py",
    }
    lines = "_version.py\nlocal_settings.*\n*.so\n*.pyd\n/grammar/*\n"
    repository(
        tmp_path, {".gitignore": lines, "pkg/core.pyx": "", "pkg/core.pyd": "", "grammar/parser.out": ""}
    )
    repository(tmp_path, dict.fromkeys(needed, ""))
    assert files(tmp_path) == {".gitignore", "pkg/core.pyx", *needed}


def test_a_compiled_copy_of_a_python_file_stays_out_for_it_would_be_imported_instead(tmp_path: Path) -> None:
    repository(tmp_path, {".gitignore": "*.so\n", "pkg/lexer.py": "", "pkg/lexer.cpython-311-darwin.so": ""})
    assert files(tmp_path) == {".gitignore", "pkg/lexer.py"}


def test_metadata_of_an_installed_checkout_goes_in(tmp_path: Path) -> None:
    repository(
        tmp_path,
        {
            ".gitignore": "*.egg-info/\n/vendor/*.dist-info/*\n.eggs/\n",
            "src/shop.egg-info/PKG-INFO": "",
            "src/shop.egg-info/entry_points.txt": "",
            "vendor/six-1.dist-info/METADATA": "",
            ".eggs/old.egg-info/PKG-INFO": "",
        },
    )
    assert files(tmp_path) == {
        ".gitignore", "src/shop.egg-info/PKG-INFO", "src/shop.egg-info/entry_points.txt",
        "vendor/six-1.dist-info/METADATA",
    }  # fmt: skip


def test_other_ignored_files_stay_out(tmp_path: Path) -> None:
    names = (
        ".env", ".secrets.py", ".#app.py", "weights.pth", "db.sqlite3", "run.log", "notes.ipynb", "app.pyc",
        "build/lib/app.py", "dist/app.py", ".venv/app.py", "gen/app.py", "data/app.egg-info/PKG-INFO",
    )  # fmt: skip
    folders = "build/\ndist/\n.venv\ngen\n/data/\n"
    plain = "\n".join(name for name in names if "/" not in name).replace("#", "\\#")
    repository(tmp_path, {".gitignore": folders + plain + "\n", **dict.fromkeys(names, "")})
    assert files(tmp_path) == {".gitignore"}


def test_ignored_code_that_stays_out_is_named(tmp_path: Path) -> None:
    repository(
        tmp_path,
        {
            ".gitignore": "*.so\ngen/\nbuild/\n*.log\n",
            "proto/gen/__init__.py": "",
            "build/lib/pkg/__init__.py": "",
            "node_modules/gyp/__init__.py": "",
            "a.log": "",
            "small.so": "",
            "large.so": "",
        },
    )
    os.truncate(tmp_path / "small.so", MAX_NEEDED)
    os.truncate(tmp_path / "large.so", MAX_NEEDED + 1)
    selected = select(tmp_path, 1 << 30)
    assert "small.so" in selected.paths and "large.so" not in selected.paths
    assert selected.missing == ("large.so", "proto/gen/")


def test_files_that_vanish_meanwhile_are_left_out(tmp_path: Path) -> None:
    names = [f"{number}.tmp" for number in range(50)]
    repository(tmp_path, {"app.py": "", "z.py": ""})
    over = Event()

    def churn() -> None:
        while not over.is_set():
            for name in names:
                (tmp_path / name).touch()
            for name in names:
                (tmp_path / name).unlink()

    thread = Thread(target=churn)
    thread.start()
    try:
        for _ in range(100):
            assert {"app.py", "z.py"} <= set(select(tmp_path, 1 << 30).paths)
    finally:
        over.set()
        thread.join()


def test_git_agrees_on_what_is_ignored(tmp_path: Path) -> None:
    repository(
        tmp_path,
        {".gitignore": "doc/*.txt\n**/gen/\n*.o\n!lib/*.o\nfoo/**/bar\n", "doc/a.txt": "", "doc/s/b.txt": ""},
    )
    repository(
        tmp_path, {"x/gen/c": "", "lib/m.o": "", "m.o": "", "foo/a/b/bar": "", "foo/bar": "", "bar": ""}
    )
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=tmp_path, check=True, capture_output=True
    )
    ours = {name for name, info in members(tmp_path).items() if info.isreg() and not name.startswith(".git/")}
    assert ours == set(listed.stdout.decode().split())


def test_links_go_in_as_links_and_bring_nothing_along(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    repository(secret, {"key": "PRIVATE"})
    repo = repository(tmp_path / "repo", {"a.py": "x = 1\n"})
    (repo / "folder").symlink_to(secret)
    (repo / "file").symlink_to(secret / "key")
    data = b"".join(pieces(repo, select(repo, 1 << 20).paths))
    assert b"PRIVATE" not in data
    found = members(repo)
    assert found["folder"].issym() and found["file"].linkname == str(secret / "key")


def test_a_read_only_checkout_is_writable_inside_and_programs_stay_executable(tmp_path: Path) -> None:
    repository(tmp_path, {"run.sh": "#!/bin/sh\n", "d/a.py": ""})
    (tmp_path / "run.sh").chmod(0o555)
    (tmp_path / "d/a.py").chmod(0o444)
    found = members(tmp_path)
    assert (found["run.sh"].mode, found["d/a.py"].mode, found["d"].mode) == (0o755, 0o644, 0o755)


def test_pipes_and_deep_folders_are_left_out(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    deep = tmp_path / "/".join(["d"] * 120)
    deep.mkdir(parents=True)
    (deep / "a.py").touch()
    names = set(members(tmp_path))
    assert "pipe" not in names
    assert max(name.count("/") for name in names) <= 100


def test_a_pattern_that_would_take_for_ever_is_passed_over(tmp_path: Path) -> None:
    repository(tmp_path, {".gitignore": "*a*a*a*a*a*a*a*a*a*a*a*b\n*.log\n", "a" * 200: "", "x.log": ""})
    assert set(members(tmp_path)) == {".gitignore", "a" * 200}


@pytest.mark.parametrize("size", [100, FIRST_PIECE + 10, 1_500_000])
def test_a_file_that_shrinks_while_it_is_copied_keeps_the_stream_whole(tmp_path: Path, size: int) -> None:
    repository(tmp_path, {"a.bin": "x" * 3_000_000, "b.py": "ok = 1\n"})
    stream = pieces(tmp_path, ["a.bin", "b.py"])
    first = next(stream)
    os.truncate(tmp_path / "a.bin", size)
    with tarfile.open(fileobj=io.BytesIO(first + b"".join(stream))) as archive:
        content, file = archive.extractfile("a.bin"), archive.extractfile("b.py")
        assert content is not None and content.read().rstrip(b"\0").strip(b"x") == b""
        assert file is not None and file.read() == b"ok = 1\n"


def test_content_of_every_size_goes_in_as_it_is_and_into_the_digest(tmp_path: Path) -> None:
    edges = [
        0,
        1,
        511,
        512,
        (1 << 16) - 1,
        1 << 16,
        FIRST_PIECE,
        PIECE - 512,
        PIECE,
        PIECE + 1,
        3 * PIECE + 7,
    ]
    contents = {f"{size}.bin": os.urandom(size) for size in edges}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    digest = Recorded()
    stream = b"".join(pieces(tmp_path, list(contents), digest=digest))
    with tarfile.open(fileobj=io.BytesIO(stream)) as archive:
        found = {name: file.read() for name in contents if (file := archive.extractfile(name)) is not None}
    assert found == contents
    assert all(content in digest.data for content in contents.values())


class Recorded:
    """All that a digest was updated with."""

    def __init__(self) -> None:
        self.data = bytearray()

    def update(self, data: bytes | memoryview, /) -> None:
        """Take in more bytes."""
        self.data += data


def test_a_repository_over_the_limit_is_refused_with_both_sizes(tmp_path: Path) -> None:
    repository(tmp_path, {"big": "x" * (3 << 20)})
    with pytest.raises(InvalidArgument, match="has 3 MiB without ignored files; a sandbox takes 2 MiB"):
        select(tmp_path, 2 << 20)


def test_only_allowed_roots_can_be_named(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "repo").mkdir(parents=True)
    (root / "out").symlink_to(tmp_path)
    assert resolve_repository(str(root / "repo"), [root]) == root / "repo"
    for name in (tmp_path, "/etc", "~/.ssh", root / "out", root / "repo/../.."):
        with pytest.raises(PathRefused, match="outside of the folders"):
            resolve_repository(str(name), [root])
    with pytest.raises(PathRefused):
        resolve_repository(str(root), [])
    with pytest.raises(NotFound, match="No such repository"):
        resolve_repository(str(root / "nope"), [root])


def test_the_first_pieces_are_small(tmp_path: Path) -> None:
    repository(tmp_path, {f"{number}.py": "x" * 10_000 for number in range(400)})
    sizes = [len(piece) for piece in pieces(tmp_path, select(tmp_path, 1 << 30).paths)]
    for number, size in enumerate(sizes[:-1]):
        least = min(FIRST_PIECE << number, PIECE)
        assert least <= size < least + 20_000
    assert len(sizes) > 5


def test_thousands_of_empty_files_and_folders_come_in_pieces_too(tmp_path: Path) -> None:
    for number in range(1500):
        (tmp_path / f"folder{number}").mkdir()
        (tmp_path / f"folder{number}" / "__init__.py").touch()
    stream = list(pieces(tmp_path, select(tmp_path, 1 << 30).paths))
    assert max(map(len, stream)) <= 2 * PIECE
    with tarfile.open(fileobj=io.BytesIO(b"".join(stream))) as archive:
        assert sum(member.isreg() for member in archive) == 1500
