"""Hands the read-only files over to root (`lock_readonly.py`), who makes them files that programs can't change.

Root has no capabilities and can't write to folders of other users. So all is moved aside first: the workspace itself is
root's.
"""

from __future__ import annotations

import os
import shutil
import stat

from ..errors import GuestError
from .ignore_rules import RuleSet
from .workspace import Workspace, os_errors, workspace_of

_FIRST = "first"
"""Folder for what root moves, in the folder of the request."""
_REST = "rest"


def lock(args: dict, payload: bytes, call) -> tuple[dict, bytes]:
    """{step: begin|end, aside, rules} -> {}: around root's move of `ASIDE/first` into the workspace.

    `begin` moves all into the new folder `aside`: what `rules` name as read-only into `first`. `end` moves the
    rest back. Files of git are never read-only: git has to write them. Raises GuestError (conflict, invalid).
    """
    workspace: Workspace = workspace_of(call.state)
    aside = os.path.join(workspace.root, os.path.basename(str(args["aside"])))
    rest = os.path.join(aside, _REST)
    with os_errors("."):
        if args.get("step") == "end":
            _merge(rest, workspace.root)
            shutil.rmtree(aside)
            return {}, b""
        rules = RuleSet({"read_only": (args.get("rules") or {}).get("read_only")})
        # Before the move: a walk leaves no entry of the workspace's root out but `.git`.
        entries = [entry for entry in workspace.walk(".", rules) if entry.read_only]
        names = os.listdir(workspace.root)
        first = _Skeleton(os.path.join(aside, _FIRST), aside, rest)
        for name in names:
            _move(os.path.join(workspace.root, name), os.path.join(rest, name))
        for entry in entries:
            first.add(entry.path, entry.info.st_mode)
    return {}, b""


class _Skeleton:
    """Folders that root can move entries out of, as it can't out of a user's own."""

    def __init__(self, root: str, aside: str, rest: str) -> None:
        self._root = root
        self._rest = rest
        self._made: set = {""}
        os.mkdir(aside, 0o755)
        os.mkdir(rest, 0o755)
        os.mkdir(root)
        os.chmod(root, 0o777)

    def add(self, path: str, mode: int) -> None:
        """Make a folder, or move a file or link from the rest. Others (pipes, sockets) stay there."""
        if stat.S_ISDIR(mode):
            self._folder(path)
        elif stat.S_ISREG(mode) or stat.S_ISLNK(mode):
            self._folder(os.path.dirname(path))
            place = os.path.join(self._rest, path)
            if stat.S_ISREG(mode):
                os.chmod(place, stat.S_IMODE(mode) & 0o777 | 0o444)
            _move(place, os.path.join(self._root, path))

    def _folder(self, path: str) -> None:
        if path in self._made:
            return
        self._folder(os.path.dirname(path))
        self._made.add(path)
        place = os.path.join(self._root, path)
        os.mkdir(place)
        os.chmod(place, 0o777)


def _merge(source: str, target: str) -> None:
    """Move the entries of `source` into the folder `target`, which may have some of its folders."""
    for name in os.listdir(source):
        old, new = os.path.join(source, name), os.path.join(target, name)
        if not os.path.lexists(new):
            _move(old, new)
        elif _is_folder(old) and _is_folder(new):
            _merge(old, new)
        else:
            raise GuestError("conflict", "A file came into the workspace while it was being made read-only.")


def _is_folder(place: str) -> bool:
    return os.path.isdir(place) and not os.path.islink(place)


def _move(old: str, new: str) -> None:
    """Rename an entry, whatever the modes of its folder and of itself."""
    try:
        os.rename(old, new)
    except PermissionError:
        for place in (os.path.dirname(old), old):
            mode = os.lstat(place).st_mode
            if stat.S_ISDIR(mode) and mode & 0o300 != 0o300:
                os.chmod(place, stat.S_IMODE(mode) | 0o700)
        os.rename(old, new)


OPS = {"files.lock": lock}
