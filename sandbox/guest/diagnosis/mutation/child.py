"""A child process that runs a test with changed code: what its parent knows of it, and what it reports."""

from __future__ import annotations

import json
from signal import ITIMER_PROF, SIG_DFL, SIGPROF, setitimer, signal

from ...debugger.isolation.pristine import os, time
from .quick_failures import QuickFailures

_MAX_REPORT = 1 << 20
_ENCODE = json.JSONEncoder().encode  # a test may replace `json.dumps`
_HOW = "type", "path", "line"
"""Parts of a failure that are the same where a test fails in the same way."""


class Child:
    """A child process as its parent sees it."""

    def __init__(self, changed, others, seconds=None, prepare=None):
        """`changed`: (function, its code); `others`: names of the other tests that pass, and that fail, without a change."""
        self.changed, self.seconds, self.prepare = changed, seconds, prepare
        self._others, self._failing = others
        self.goes_on = False
        """True for one that runs the other tests also if the first one fails."""
        self.limit = 0.0
        """Processor time for the first test."""
        self.is_only_here = False
        """True for a change of a line that no passing test runs: that they still pass says little."""
        self.is_hollow = False
        """True for a change that leaves out all that a function does."""
        self.is_of_tests = False
        """True for a change of a test case, which may only have made it fail no longer."""
        self.is_served = False
        """True if a fork server makes it: it runs the first test alone then, and not from its start."""

    def begin(self, reading, seconds, more, pid=None):
        """Begin to listen. Its first test may take so many seconds, and all others `more`; `pid` where it is of this process."""
        self.reading, self._more, self._pid, self._own_pid = reading, more, pid, pid
        self._begun = time.monotonic()
        self.ends = self._begun + seconds
        self.latest = float("inf")
        """It ends then, whatever it has to do."""
        self._data, self._is_over = b"", False
        self.outcomes = []
        """(test, outcome, failure) of each that has ended."""
        self.made = []
        """Files and folders of the repository that it has made."""
        self.has_changed = False
        """True if it has made or changed files or folders, wherever they are."""
        self.imported = {}
        """Path -> lines that the module of the test runs when it is imported."""
        self.way = []
        """[path, first line of the function, line] of each frame in tests that the first failure has passed, the outermost first."""
        self.first_s = self.all_s = 0.0

    @property
    def has_begun(self):
        return self._pid is not None

    @property
    def has_passed(self):
        return bool(self.outcomes) and self.outcomes[0][1] == "passed"

    def of_others(self):
        """Numbers of the other tests that have not passed here, and that have run."""
        return len(self.breaks()), sum(name in self._others for name, _, _ in self.outcomes[1:])

    def breaks(self):
        """Names of the other tests that have not passed here."""
        return [
            name for name, outcome, _ in self.outcomes[1:] if name in self._others and outcome != "passed"
        ]

    def mended(self):
        """Number of the failing tests that have passed here."""
        return sum(outcome == "passed" for name, outcome, _ in self.outcomes[1:] if name in self._failing)

    def read(self):
        """Read what there is. False at the end."""
        data = os.read(self.reading, 1 << 16)
        self._is_over = not data
        if not data or len(self._data) > _MAX_REPORT:
            return False
        *lines, self._data = (self._data + data).split(b"\n")
        for line in lines:
            told = json.loads(line)
            if type(told) is str:
                self.made.append(told)
            elif told is True:
                self.has_changed = True
            elif type(told) is int:
                self._pid = told
            elif type(told) is dict:
                self.way = told.get("way", self.way)
                self.imported.update(
                    (path, set(numbers)) for path, numbers in told.get("imported", {}).items()
                )
            else:
                self._hear(told)
        return True

    def _hear(self, outcome):
        self.outcomes.append(tuple(outcome))
        self.all_s = time.monotonic() - self._begun
        if len(self.outcomes) == 1:
            self.first_s = self.all_s
            self.ends = min(self.ends + self._more, self.latest)

    def end(self):
        os.close(self.reading)
        # The number of a server's child that has ended may be that of another process by now.
        pid = self._own_pid if self._is_over else self._pid
        if pid is not None:
            try:
                os.kill(pid, 9)
            except ProcessLookupError:
                pass
        if self._own_pid is not None:
            os.waitpid(self._own_pid, 0)
        for path in self.made:
            _remove(path)


def _remove(path):
    """Remove a file or a folder with all that is in it."""
    try:
        os.unlink(path)
        return
    except IsADirectoryError:
        pass
    except OSError:
        return
    for folder, folders, files in os.walk(path, topdown=False):
        for name in files:
            _remove(os.path.join(folder, name))
        for name in folders:
            below = os.path.join(folder, name)
            try:
                os.unlink(below) if os.path.islink(below) else os.rmdir(below)
            except OSError:
                pass
    try:
        os.rmdir(path)
    except OSError:
        pass


class Report:
    """Reports from a child to its parent."""

    def __init__(self, writing, is_changed, count, seconds, more):
        self._writing, self._is_changed, self._left = writing, is_changed, count
        self._is_first, self._more = True, more
        self._ends = None if seconds is None else time.monotonic() + seconds
        self._quick = QuickFailures()
        self._quick.begin()

    @property
    def is_waiting(self):
        """True as long as the changed test has not passed."""
        return self._is_changed and self._is_first

    def tell_begun(self):
        """Tell which process this is, and end it if nobody hears that any more."""
        try:
            self._write(os.getpid())
        except OSError:
            os._exit(1)

    def tell_changed(self):
        """Tell that something outside of this process is changed."""
        self._write(True)

    def tell_made(self, path):
        """Tell of a file or folder that is about to be made in the repository."""
        self._write(path)

    def tell_imported(self, lines):
        """Tell {path: lines that run when the test's module is imported}."""
        self._write({"imported": lines})

    def tell_way(self, way):
        """Tell the frames in tests that the failure of the first test has passed."""
        if self._is_first:
            self._write({"way": way})

    def tell(self, name, outcome, failed):
        """Tell how a test has ended. The child ends if that is all that is asked of it."""
        self._write([name, outcome, failed])
        self._left -= 1
        is_over = self._left <= 0 or (self._ends is not None and time.monotonic() > self._ends)
        is_failure = self.is_waiting and outcome != "passed"
        if self._is_first:
            limit_processor(self._more)
            self._quick.end()
        self._is_first = False
        if is_over or is_failure:
            os._exit(0)

    def _write(self, told):
        os.write(self._writing, _ENCODE(told).encode() + b"\n")


def fail_alike(one, other):
    """True for two failures, as they are described, in the same way at the same place."""
    return all(one.get(key) == other.get(key) for key in _HOW)


def limit_processor(seconds):
    """End this process when it has computed for so long; never for 0 seconds."""
    signal(SIGPROF, SIG_DFL)
    setitimer(ITIMER_PROF, seconds)
