"""Child processes that run a test with changed code, some at a time."""

from __future__ import annotations

import json
import signal
import sys

from ...debugger.isolation.pristine import os, select, time
from .guard import Guard, open_files
from .quick_failures import QuickFailures

_MAX_PASSING = 40
"""Changes with which the test passes; from so many on they say little."""
_ENOUGH = 3
"""Such changes after which no more time is taken where no other test can tell which of them do harm."""
_MANY, _LATER = 500, 2
"""Changes that are tried, if in that many times the time for them they can be, before one is believed to be the best."""
_MAX_OTHERS = 60
_MORE_S = 1.0
"""Time for the other tests of a changed program, at least."""
_BASE_S = 3.0
"""Processor time of the unchanged test: of one that takes longer hardly a change could be tried."""
_LEAST_S, _SLOWER = 0.1, 4
"""Processor time that a changed program may take: at least, and in times of the unchanged one's."""
_WAITING = 4
"""Time that it may take in all, in times of its processor time: it may have to wait for a processor."""
_MAX_WORKERS = 4
_MAX_FILE, _MAX_MEMORY = 64 << 20, 256 << 20
"""Bytes that a child may write into a file, and allocate beyond what it begins with."""
_MAX_REPORT = 1 << 20


class Trial:
    """Child processes that run the test, some at a time."""

    def __init__(self, job, folder):
        self._job, self._folder = job, folder
        self._running = []
        self._silent = os.open(os.devnull, os.O_RDWR)
        self._open_files = [number for number, _ in open_files(job.root)]
        self._ends = self._ends_later = self._ends_in_vain = 0.0
        self._workers = min(_MAX_WORKERS, len(os.sched_getaffinity(0)))
        self._limit, self._early_limit, self._more = _BASE_S, _BASE_S, _BASE_S
        """Processor time for the first test, with the module of the test before it, and for the others."""
        self._tried = self._passing = self._harmless = self._mending = 0
        """Numbers of changes; with which the test passes; and no other test fails that could; and one passes that fails, if any does."""
        self.others, self.failing = set(), set()
        """Names of the other tests that pass, and that fail."""
        self._early = set(), set()
        """The same, of those that do so after the module of the test is executed anew, too."""
        self._count = _MAX_OTHERS
        self.report = None

    def expect(self, base, anew):
        """Take the unchanged program as the measure, also such as executes the module of the test anew.

        The time for changes begins now.
        """
        now, settings = time.monotonic(), self._job.settings
        self._ends, self._ends_in_vain = now + settings["budget_s"], now + settings["budget_in_vain_s"]
        self._ends_later = min(now + _LATER * settings["budget_s"], self._ends_in_vain)
        self.others, self.failing = others = _others_of(base)
        self._early = tuple(map(set.intersection, others, _others_of(anew)))
        self._count = len(base.outcomes)
        if base.made or anew.made:
            self._workers = 1  # two would meet at the same files
        self._limit, self._early_limit = (max(_LEAST_S, _SLOWER * one.first_s) for one in (base, anew))
        self._more = max(_MORE_S, _SLOWER * (base.all_s - base.first_s))

    def is_over(self):
        """True if the time is over: the first one if the test is mended and many changes are tried, else twice that, or the longest."""
        ends = self._ends if self._mending and self._tried >= _MANY else self._ends_later
        ends = ends if self._harmless else self._ends_in_vain
        return time.monotonic() > ends or self._job.is_over() or self._passing >= _MAX_PASSING

    def start(self, changed, seconds=None, prepare=None):
        """Fork a child; returns it, and None in the child itself, whose `report` is set, once that has called `prepare`."""
        while len(self._running) >= self._workers:
            self._listen()
        memory = _size() + _MAX_MEMORY
        reading, writing = os.pipe()
        self._tried += changed is not None
        limit = self._limit if prepare is None else self._early_limit
        pid = os.fork()
        if pid:
            os.close(writing)
            others = (self.others, self.failing) if prepare is None else self._early
            child = Child(pid, reading, _WAITING * limit, _WAITING * self._more, others)
            self._running.append(child)
            return child
        try:
            os.close(reading)
            self.report = Report(writing, changed is not None, self._count, seconds, self._more)
            self._change(changed, memory, writing)
            Guard(self._folder, self._job.root, self.report.tell_made).stand()
            _limit_processor(limit)
            if prepare is not None:
                prepare()
        except BaseException:
            os._exit(1)
        return None

    def _change(self, changed, memory, writing):
        """Change the code of this process. Little else is done in each: all that it writes to has to be copied first."""
        import resource

        for number in (1, 2, *self._open_files):
            if number != writing:  # the file may have been closed since
                os.dup2(self._silent, number)
        sys.dont_write_bytecode = True
        limits = (resource.RLIMIT_FSIZE, _MAX_FILE), (resource.RLIMIT_CORE, 0), (resource.RLIMIT_AS, memory)
        for kind, most in limits:
            resource.setrlimit(kind, (most, most))
        for function, code in changed or ():
            function.__code__ = code

    def wait(self, seconds=_WAITING * _BASE_S):
        """Wait for all children, so long."""
        for one in self._running:
            one.ends = min(one.ends, time.monotonic() + seconds)
        while self._running:
            self._listen()

    def _listen(self):
        """Read what children tell, and end those whose time is over."""
        poll = select.poll()
        for one in self._running:
            poll.register(one.reading, select.POLLIN)
        ends = min(one.ends for one in self._running)
        ready = {number for number, _ in poll.poll(max(0, int(1000 * (ends - time.monotonic())) + 1))}
        for one in list(self._running):
            is_open = one.read() if one.reading in ready else time.monotonic() < one.ends
            if not is_open:
                one.end()
                self._running.remove(one)
                self._passing += one.has_passed
                if one.has_passed and (self.others or self._passing >= _ENOUGH):
                    is_harmless = not one.of_others()[0] and not (self.others and one.is_only_here)
                    self._harmless += is_harmless
                    self._mending += is_harmless and (not self.failing or one.mended() > 0)


def _others_of(child):
    """(names of the tests after the first one that have passed, of those that have failed)."""
    return tuple(
        {name for name, outcome, _ in child.outcomes[1:] if outcome == wanted}
        for wanted in ("passed", "failed")
    )


def _size():
    """Bytes of addresses of this process."""
    import resource

    reading = os.open("/proc/self/statm", os.O_RDONLY)
    try:
        return int(os.read(reading, 100).split()[0]) * resource.getpagesize()
    finally:
        os.close(reading)


def _limit_processor(seconds):
    """End this process when it has computed for so long."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)


class Child:
    """A child process as its parent sees it."""

    def __init__(self, pid, reading, limit, more, others):
        """`others`: names of the other tests that pass, and that fail, without a change."""
        self._pid, self.reading, self._more = pid, reading, more
        self._others, self._failing = others
        self._begun = time.monotonic()
        self.ends = self._begun + limit
        self._data = b""
        self.outcomes = []
        """(test, outcome, failure) of each that has ended."""
        self.made = []
        """Files and folders of the repository that it has made."""
        self.imported = {}
        """Path -> lines that the module of the test runs when it is imported."""
        self.first_s = self.all_s = 0.0
        self.is_only_here = False
        """True for a change of a line that no passing test runs: that they still pass says little."""

    @property
    def has_passed(self):
        return bool(self.outcomes) and self.outcomes[0][1] == "passed"

    def of_others(self):
        """Numbers of the other tests that have not passed here, and that have run."""
        outcomes = [outcome for name, outcome, _ in self.outcomes[1:] if name in self._others]
        return sum(outcome != "passed" for outcome in outcomes), len(outcomes)

    def mended(self):
        """Number of the failing tests that have passed here."""
        return sum(outcome == "passed" for name, outcome, _ in self.outcomes[1:] if name in self._failing)

    def read(self):
        """Read what there is. False at the end."""
        data = os.read(self.reading, 1 << 16)
        if not data or len(self._data) > _MAX_REPORT:
            return False
        *lines, self._data = (self._data + data).split(b"\n")
        for line in lines:
            told = json.loads(line)
            if type(told) is str:
                self.made.append(told)
                continue
            if type(told) is dict:
                self.imported = {path: set(numbers) for path, numbers in told.items()}
                continue
            self.outcomes.append(tuple(told))
            self.all_s = time.monotonic() - self._begun
            if len(self.outcomes) == 1:
                self.first_s = self.all_s
                self.ends += self._more
        return True

    def end(self):
        os.close(self.reading)
        try:
            os.kill(self._pid, 9)
        except ProcessLookupError:
            pass
        os.waitpid(self._pid, 0)
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

    def tell_made(self, path):
        """Tell of a file or folder that is about to be made in the repository."""
        self._write(path)

    def tell_imported(self, lines):
        """Tell {path: lines that run when the test's module is imported}."""
        self._write(lines)

    def tell(self, name, outcome, failed):
        """Tell how a test has ended. The child ends if that is all that is asked of it."""
        self._write([name, outcome, failed])
        self._left -= 1
        is_over = self._left <= 0 or (self._ends is not None and time.monotonic() > self._ends)
        is_failure = self.is_waiting and outcome != "passed"
        if self._is_first:
            _limit_processor(self._more)
            self._quick.end()
        self._is_first = False
        if is_over or is_failure:
            os._exit(0)

    def _write(self, told):
        os.write(self._writing, json.dumps(told).encode() + b"\n")
