"""Puts the files of the baseline in the place of edited ones for a while."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile

from ..errors import GuestError
from .blob_store import Contents
from .changes import Snapshot, make_way, put_back
from .ignore_rules import RuleSet
from .workspace import Entry, Workspace, escape_path, os_errors

_MAX_CHANGES = 200
_MAX_BYTES = 32 << 20


class LostEdits(GuestError):
    """Edited files are not in their place again."""


class Unedited:
    """Context manager in which the workspace has the files of its baseline. Raises GuestError if that can't be.

    Edited files are moved to a folder beside them and moved back, so they stay the same files with the same times:
    neither needs space on a disk that a program has filled. A second copy that no program can reach is in an unnamed
    file, for those that a program removes from that folder.
    """

    def __init__(self, workspace: Workspace, changes: list) -> None:
        self._workspace = workspace
        self._changes = changes
        self._moved: list = []
        """(path, where it is now) of edited files."""
        self._placed: list = []
        """Paths of files of the baseline."""

    def __enter__(self) -> None:
        workspace = self._workspace
        present = [change for change in self._changes if change.info is not None]
        if len(self._changes) > _MAX_CHANGES or sum(one.info.st_size for one in present) > _MAX_BYTES:
            raise GuestError("conflict", "Too much has changed to undo it for a while.")
        with os_errors(workspace.root):
            self._edited = Snapshot(Contents(workspace.home), RuleSet(None))
            try:
                self._edited.take(workspace, [Entry(one.path, one.full, one.info, False) for one in present])
                if len(self._edited.files) < len(present):
                    raise GuestError("conflict", "An edited file can't be read.")
                self._folder = tempfile.mkdtemp(prefix=".pdbox-edits-", dir=workspace.root)
            except BaseException:
                self._edited.contents.close()
                raise
        try:
            self._undo(present)
        except BaseException:
            self._redo()
            raise

    def __exit__(self, *exc: object) -> None:
        self._redo()

    def _undo(self, present: list) -> None:
        workspace, baseline = self._workspace, self._workspace.baseline
        for number, change in enumerate(present):
            aside = os.path.join(self._folder, str(number))
            with os_errors(change.path):
                os.rename(change.full, aside)
            self._moved.append((change.path, aside))
        for change in self._changes:
            if change.old is None:
                continue
            full = os.path.join(workspace.root, change.path)
            if os.path.lexists(full):
                raise GuestError("conflict", f"{escape_path(change.path)} has become a folder.")
            self._placed.append(change.path)
            put_back(workspace, change.path, baseline)
            if change.info is not None and stat.S_ISREG(os.lstat(full).st_mode):
                # Compiled code is current if the source has its size and its time, in whole seconds.
                later = int(change.info.st_mtime) + 1
                os.utime(full, (later, later))

    def _redo(self) -> None:
        """Put the edited files back, whatever has happened to any of them. Raises GuestError if one can't be."""
        workspace, lost = self._workspace, []
        for path in self._placed:
            self._remove(path)
        for path, aside in self._moved:
            try:
                make_way(workspace, path)
                os.rename(aside, os.path.join(workspace.root, path))
            except OSError:
                pass  # it is written anew
        for path in self._edited.files:
            try:
                put_back(workspace, path, self._edited)
            except (GuestError, OSError):
                lost.append(escape_path(path))
        if lost:
            # The folder stays, and so does the copy as long as the supervisor lives.
            name = os.path.basename(self._folder)
            raise LostEdits(
                "conflict",
                "After a run without your edits these files can't be put back: {}.".format(", ".join(lost)),
                f"They are in the folder {name}.",
            )
        self._edited.contents.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _remove(self, path: str) -> None:
        full = os.path.join(self._workspace.root, path)
        try:
            if os.path.isdir(full) and not os.path.islink(full):
                shutil.rmtree(full)
            elif os.path.lexists(full):
                os.unlink(full)
        except OSError:
            pass  # what is to stand there is written over it
