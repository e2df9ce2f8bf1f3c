"""What remains readable of the git history of an image: nothing that came after the start of the task."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from mcp_server.tasks.importing.git_history import FORGET_LATER
from mcp_server.tasks.importing.importer import ImportRequest
from tests.mcp_server.tasks.importing.layouts import FIXED, SHOP, files_in, git, import_all, record, write

SECRET = "the fix of the secret bug"


def later(clone: Path, *words: str) -> str:
    """Make a commit with the fix and go back to the start. `words`: a git command while the fix is checked out."""
    (clone / "shop.py").write_text(FIXED, "utf-8")
    git(clone, "commit", "-qam", SECRET)
    commit = git(clone, "rev-parse", "HEAD")
    if words:
        git(clone, *words)
    git(clone, "reset", "-q", "--hard", "HEAD^")
    return commit


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository with two commits and a tag between them."""
    clone = write(tmp_path / "clone", {"shop.py": "", "README": "shop\n"})
    git(clone, "init", "-q", "-b", "main")
    git(clone, "add", ".")
    git(clone, "commit", "-qm", "first")
    git(clone, "tag", "-a", "v1", "-m", "one")
    (clone / "shop.py").write_text(SHOP, "utf-8")
    git(clone, "commit", "-qam", "start")
    return clone


def forget(clone: Path) -> subprocess.CompletedProcess[str]:
    """Run the command as the set-up of a session does."""
    home = clone.parent / "home"
    home.mkdir(exist_ok=True)
    env = {**{k: v for k, v in os.environ.items() if not k.startswith("GIT_")}, "HOME": str(home)}
    done = subprocess.run(["/bin/sh", "-c", FORGET_LATER], cwd=clone, env=env, capture_output=True, text=True)
    assert not list(home.iterdir()) or done.returncode
    return done


def everything_in(clone: Path) -> str:
    """Read all that git can list of a repository, and the files of its own."""
    objects = git(clone, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)")
    contents = subprocess.run(
        ["git", "cat-file", "--batch"], cwd=clone, input=objects.encode(), capture_output=True, check=True
    )
    files = [path for path in (clone / ".git").rglob("*") if path.is_file() and "objects" not in path.parts]
    texts = [path.read_bytes() for path in files]
    return b"\n".join([contents.stdout, *texts]).decode("utf-8", "replace")


def on_branches_and_tags(clone: Path) -> str:
    git(clone, "branch", "future")
    commit = later(clone, "tag", "-a", "v2", "-m", SECRET)
    git(clone, "update-ref", "refs/heads/future", commit)
    git(clone, "update-ref", "refs/remotes/origin/main", commit)
    git(clone, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    git(clone, "update-ref", "refs/pull/7/head", commit)
    git(clone, "tag", "blob", git(clone, "rev-parse", f"{commit}:shop.py"))
    git(clone, "pack-refs", "--all")
    return commit


def in_a_stash_and_notes(clone: Path) -> str:
    commit = later(clone)
    git(clone, "notes", "add", "-m", SECRET)
    (clone / "shop.py").write_text(FIXED, "utf-8")
    git(clone, "stash", "push", "-q", "-m", SECRET)
    return commit


def in_a_pack_that_is_kept(clone: Path) -> str:
    commit = later(clone, "repack", "-q", "-a", "-d")
    for pack in (clone / ".git/objects/pack").glob("*.pack"):
        pack.with_suffix(".keep").touch()
    return commit


def in_borrowed_objects(clone: Path) -> str:
    commit = later(clone)
    (clone / ".git/objects").rename(clone.parent / "lender")
    write(clone, {".git/objects/info/alternates": f"{clone.parent}/lender\n"})
    return commit


def in_a_partial_clone(clone: Path) -> str:
    commit = later(clone, "branch", "future")
    origin = clone.rename(clone.with_name("origin"))
    git(origin, "config", "uploadpack.allowFilter", "true")
    git(origin.parent, "clone", "-q", "--filter=blob:none", f"file://{origin}", str(clone))
    git(clone, "show", commit)  # fetches its files
    git(clone, "config", "remote.origin.url", "/nowhere")
    return commit


def in_another_working_tree(clone: Path) -> str:
    commit = later(clone)
    git(clone, "worktree", "add", "-q", "--detach", str(clone.parent / "other"), commit)
    return commit


def in_a_merge_that_waits(clone: Path) -> str:
    commit = later(clone)
    write(clone, {".git/FETCH_HEAD": f"{commit}\t\t{SECRET}\n", ".git/MERGE_MSG": f"{SECRET}\n"})
    git(clone, "update-ref", "ORIG_HEAD", commit)
    return commit


@pytest.mark.parametrize(
    "hide",
    [
        on_branches_and_tags,
        in_a_stash_and_notes,
        in_a_pack_that_is_kept,
        in_borrowed_objects,
        in_a_partial_clone,
        in_another_working_tree,
        in_a_merge_that_waits,
    ],
)
@pytest.mark.parametrize("is_detached", [False, True])
def test_nothing_of_a_later_commit_can_be_read(
    clone: Path, hide: Callable[[Path], str], is_detached: bool
) -> None:
    start = git(clone, "rev-parse", "HEAD")
    commit = hide(clone)
    if is_detached:
        git(clone, "checkout", "-q", "--detach")
    assert SECRET in everything_in(clone)
    done = forget(clone)
    assert done.returncode == 0, done.stderr
    text = everything_in(clone)
    assert SECRET not in text and FIXED not in text and commit not in text
    assert git(clone, "log", "--all", "--format=%s") == "start\nfirst"
    assert git(clone, "reflog") == ""
    named = git(clone, "rev-list", "--objects", "--no-object-names", "--missing=allow-any", "--all")
    there = git(clone, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)")
    assert set(there.split()) <= set(named.split())
    # Of a partial clone it calls all commits but the last one unreachable.
    assert hide is in_a_partial_clone or git(clone, "fsck", "--unreachable", "--no-reflogs") == ""
    git(clone, "fsck")
    assert (git(clone, "rev-parse", "HEAD"), git(clone, "status", "--porcelain")) == (start, "")
    assert git(clone, "symbolic-ref", "-q", "--short", "HEAD") == "main" if not is_detached else True


def test_git_works_on_at_the_start_with_what_was_changed_and_staged(clone: Path) -> None:
    later(clone, "branch", "future")
    write(clone, {"shop.py": SHOP + "# changed\n", "staged.py": "x = 1\n"})
    git(clone, "add", "staged.py")
    before = git(clone, "diff"), git(clone, "diff", "--cached"), git(clone, "status", "--porcelain")
    assert forget(clone).returncode == 0
    assert (git(clone, "diff"), git(clone, "diff", "--cached"), git(clone, "status", "--porcelain")) == before
    assert git(clone, "describe") == f"v1-1-g{git(clone, 'rev-parse', '--short', 'HEAD')}"
    git(clone, "stash")
    assert (clone / "shop.py").read_text("utf-8") == SHOP and not (clone / "staged.py").exists()
    git(clone, "stash", "pop")
    assert git(clone, "diff"), git(clone, "diff", "--cached") == before[:2]
    git(clone, "commit", "-qam", "more")
    git(clone, "checkout", "-qb", "other", "v1")
    assert git(clone, "log", "--topo-order", "--format=%s", "main") == "more\nstart\nfirst"
    git(clone, "fsck", "--strict")


def test_a_shallow_clone_stays_one(clone: Path) -> None:
    later(clone, "branch", "future")
    origin = clone.rename(clone.with_name("origin"))
    git(origin.parent, "clone", "-q", "--depth", "1", "--no-single-branch", f"file://{origin}", str(clone))
    assert forget(clone).returncode == 0
    assert SECRET not in everything_in(clone)
    assert git(clone, "log", "--all", "--format=%s") == "start"
    assert git(clone, "fsck") == ""


def test_a_tree_or_a_clone_is_imported_without_any_history(clone: Path, tmp_path: Path) -> None:
    start = git(clone, "rev-parse", "HEAD")
    git(clone, "branch", "start")
    later(clone, "branch", "future")
    git(tmp_path, "clone", "-q", "--bare", str(clone), "bare")
    write(tmp_path / "tree", {"shop.py": SHOP, "vendored/x.py": ""})
    for place in (".git", "vendored/.git"):
        shutil.copytree(clone / ".git", tmp_path / "tree" / place)
    with tarfile.open(tmp_path / "archive.tar", "w") as archive:
        archive.add(tmp_path / "tree", "shop-1.0")
    (tmp_path / "rows.json").write_text(json.dumps([record(base_commit=start)]), "utf-8")
    for source in ("clone", "bare", "tree", "archive.tar"):
        request = ImportRequest(tmp_path / f"of-{source}", source=tmp_path / source)
        (task,) = import_all(tmp_path / "rows.json", request)[0].values()
        assert "shop.py" in files_in(task)
        assert not [path for path in task.folder.rglob("*") if path.name in (".git", "objects", "HEAD")]


def test_a_folder_without_history_is_left_alone_and_one_that_cannot_be_read_is_refused(
    tmp_path: Path,
) -> None:
    plain = write(tmp_path / "plain", {"shop.py": SHOP})
    assert forget(plain).returncode == 0
    damaged = write(tmp_path / "damaged", {".git/HEAD": "?\n"})
    assert forget(damaged).returncode != 0
    unborn = write(tmp_path / "unborn", {"shop.py": SHOP})
    git(unborn, "init", "-q")
    assert forget(unborn).returncode != 0
