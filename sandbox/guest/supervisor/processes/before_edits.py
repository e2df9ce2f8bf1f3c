"""Tells of failing tests whether they failed before the files were edited as well.

Known are the outcomes of runs in which the files were those of the baseline. Other failing tests are run once more,
alone, while the baseline is in the place of the edited files. What neither tells stays open.
"""

from __future__ import annotations

import re
import zlib

from ..errors import GuestError
from ..files.changes import changes_of
from ..files.unedited import LostEdits, Unedited
from ..files.workspace import workspace_of

BAD = ("failed", "error")
_MAX_KNOWN = 50_000
_MAX_SIZE = 4 << 20
"""Characters of the ids that are remembered."""
_MAX_AGAIN = 20
_MAX_S = 60.0
_MIN_S = 5.0
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")


class Outcomes:
    """Outcomes of tests with the files of the baseline: id -> hash of a failure's message, None for another outcome."""

    def __init__(self) -> None:
        self._known: dict = {}
        self._size = 0

    def add(self, tests) -> None:
        """Remember `tests`. One that has failed once has failed before the edits, whatever it does later."""
        for test in tests:
            name, cause = test["id"], _cause(test)
            if name not in self._known:
                self._size += len(name)
                if self._size > _MAX_SIZE or len(self._known) >= _MAX_KNOWN:
                    return
            if self._known.get(name) is None or cause is not None:
                self._known[name] = cause

    def mark(self, tests: list) -> list:
        """Set `failed_before` and `as_before` (for the same reason) of the known ones; return the others."""
        others = []
        for test in tests:
            if test["id"] in self._known:
                before = self._known[test["id"]]
                test["failed_before"] = before is not None
                test["as_before"] = before is not None and before == _cause(test)
            else:
                others.append(test)
        return others


def _cause(test: dict):
    if test["outcome"] not in BAD:
        return None
    text = test["outcome"] + _ADDRESS.sub("0x", test["message"])
    return zlib.crc32(text.encode("utf-8", "replace"))


class BeforeEdits:
    """Comparison of one run with the state before the edits. To be made before the run."""

    def __init__(self, call) -> None:
        self._call = call
        self._workspace = workspace_of(call.state)
        state = call.state
        # A walk through 10,000 files takes a quarter of a second: not if nobody can have edited files since.
        is_known = state.touched - call.operation.edits_files == state.unedited_until
        self._unedited = not self._workspace.written and (is_known or self._changes() == [])
        if self._unedited:
            state.unedited_until = state.touched

    def remember(self, tests: list) -> None:
        """Remember the outcomes of a run without edits."""
        if self._unedited:
            self._call.state.outcomes.add(tests)

    def mark(self, tests: list, run_again) -> None:
        """Mark the failing ones of `tests` as `Outcomes.mark` does, if there are edits.

        `run_again(call, ids)` runs tests, and gives those with an outcome.
        """
        outcomes = self._call.state.outcomes
        bad = [test for test in tests if test["outcome"] in BAD]
        changes = self._changes() if bad and not self._unedited else None
        if not changes or not self._are_edits(changes):
            return
        unknown = outcomes.mark(bad)
        added = {change.path for change in changes if change.kind == "added"}
        for test in unknown:
            if _file_of(test) in added:
                test["failed_before"] = False
        unknown = [test for test in unknown if _file_of(test) not in added][:_MAX_AGAIN]
        if unknown:
            found = self._run_again(changes, unknown, run_again)
            outcomes.add(found)
            _mark_modules(outcomes.mark(unknown), found)

    def _changes(self):
        """Changes since the baseline; None if they are not known."""
        baseline = self._workspace.baseline
        if baseline is None:
            return None
        try:
            baseline.wait(self._call.cancelled.is_set)
            return changes_of(self._workspace, baseline)
        except GuestError:
            return None

    def _are_edits(self, changes: list) -> bool:
        """True if somebody has edited files, all of which can be undone.

        Files that were only added may be what the tests have written.
        """
        written, ignored = self._workspace.written, self._workspace.baseline.rules.ignore
        if any(ignored.takes(path) for path in written):
            return False
        return bool(written) or any(change.kind != "added" for change in changes)

    def _run_again(self, changes: list, tests: list, run_again) -> list:
        state, inner = self._call.state, _Interruptible(self._call)
        edited = {change.path for change in changes}
        # An edited file may have other tests than before, and pytest runs none if one of many ids is unknown.
        ids = [_file_of(test) if _file_of(test) in edited else test["id"] for test in tests]
        if state.program_runs or not state.sole_use.take(inner.cancel):
            return []
        try:
            with Unedited(self._workspace, changes):
                return run_again(inner, list(dict.fromkeys(ids)))
        except LostEdits:
            raise
        except GuestError:
            return []  # interrupted, or tests can't be chosen in this command
        finally:
            state.sole_use.release()


def time_for(duration_s: float, timeout_s: float) -> float:
    """Seconds for running failing tests again, after a run of `duration_s`."""
    return min(_MAX_S, max(_MIN_S, duration_s), timeout_s - duration_s)


def environment(own) -> dict:
    """Environment of a run without the edits: it leaves no compiled code of files that are there for a while."""
    return dict(own or {}, PYTHONDONTWRITEBYTECODE="1")


def _file_of(test: dict) -> str:
    path = test["id"].partition("::")[0]
    return path if path.endswith(".py") else ""


def _mark_modules(unknown: list, found: list) -> None:
    """A module that could not be collected, and whose tests have run before, did not fail."""
    for test in unknown:
        if any(other["id"].startswith(test["id"] + "::") for other in found):
            test["failed_before"] = False


class _Interruptible:
    """The call of a run that others may interrupt: it reports no progress, and ends with the call around it."""

    def __init__(self, call) -> None:
        self.state = call.state
        self.cancelled = _Either(call.cancelled)
        self._call = call
        self._callbacks: list = []

    def progress(self, data: dict, payload: bytes = b"") -> None:
        """Report nothing."""

    def on_cancel(self, callback) -> None:
        """Call `callback()` when either is cancelled; at once if that has happened."""
        self._callbacks.append(callback)
        self._call.on_cancel(callback)
        if self.cancelled.is_set():
            callback()

    def cancel(self) -> None:
        """End the run; may be called several times, in any thread."""
        self.cancelled.own = True
        for callback in list(self._callbacks):
            callback()


class _Either:
    """Flag that is set when its own or another one is."""

    def __init__(self, other) -> None:
        self._other = other
        self.own = False

    def is_set(self) -> bool:
        return self.own or self._other.is_set()
