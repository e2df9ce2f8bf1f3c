"""Child processes that run a test with changed code, some at a time."""

from __future__ import annotations

import sys

from ...debugger.isolation.pristine import os, select, time
from .child import Child, Report, limit_processor
from .fork_server import ForkServers, Stops, fork
from .guard import Guard, open_files
from .quick_failures import QuickFailures

_MAX_PASSING = 40
"""Changes with which the test passes; from so many on they say little."""
_ENOUGH = 3
"""Such changes after which no more time is taken where no other test can tell which of them do harm."""
_MANY, _LATER = 1500, 3
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
_FORK_S = 0.02
"""Processor time of a fork, at most."""
_MAX_FILE, _MAX_MEMORY = 64 << 20, 256 << 20
"""Bytes that a child may write into a file, and allocate beyond what it begins with."""
_TOGETHER_S, _FURTHER_S = 4.0, 2.0
"""Time for changes that are tried together, and for the other tests of those with which the test comes further."""
_LAST_S = 2.0
"""Time for those that run when the time is over."""


class Forked(BaseException):
    """Raised in each child process: it goes on with the test."""


class Trial:
    """Child processes that run the test, some at a time."""

    def __init__(self, job, folder):
        self._job, self._folder = job, folder
        self._running = []
        self._servers = None
        self._last = float("inf")
        """When the last child has to end."""
        self._silent = os.open(os.devnull, os.O_RDWR)
        self._keeps_random = False
        """True if children go on with the same random numbers. Not if names of the files that they make may be made of them."""
        self._open_files = [number for number, _ in open_files(job.root)]
        self._ends = self._ends_later = self._ends_in_vain = 0.0
        self._workers = min(_MAX_WORKERS, len(os.sched_getaffinity(0)))
        self._limit, self._more = _BASE_S, _BASE_S
        """Processor time for the first test, and for the others."""
        self._like = {}
        """Unchanged program that executes modules anew -> processor time for the first test with these, names of other tests."""
        self._tried = self._passing = self._harmless = self._mending = 0
        """Numbers of changes; with which the test passes; and no other test fails that could; and one passes that fails, if any does."""
        self._way, self._has_further = [], False
        """Frames in tests that the unchanged failure has passed; True if the test has come further with a change."""
        self.others, self.failing = set(), set()
        """Names of the other tests that pass, and that fail."""
        self._count = _MAX_OTHERS
        self.report = None
        """In a child process: what it reports to."""

    def expect(self, base, *anew):
        """Take the unchanged program as the measure, also such as execute modules anew.

        The time for changes begins now.
        """
        now, settings = time.monotonic(), self._job.settings
        self._way = base.way
        self._ends, self._ends_in_vain = now + settings["budget_s"], now + settings["budget_in_vain_s"]
        self._ends_later = min(now + _LATER * settings["budget_s"], self._ends_in_vain)
        self.others, self.failing = others = _others_of(base)
        self._count = len(base.outcomes)
        if any(one.made for one in (base, *anew)):
            self._workers = 1  # two would meet at the same files
        self._keeps_random = not base.has_changed
        self._limit = max(_LEAST_S, _SLOWER * base.first_s)
        for one in anew:
            tests = tuple(map(set.intersection, others, _others_of(one)))
            self._like[one] = max(_LEAST_S, _SLOWER * one.first_s), tests
        self._more = max(_MORE_S, _SLOWER * (base.all_s - base.first_s))

    def is_over(self):
        """True if the time is over: the first one if the test is mended and many changes are tried, else a multiple, or the longest.

        Of that, time is left for changes together where the test comes further with one.
        """
        ends = self._ends if self._mending and self._tried >= _MANY else self._ends_later
        if not self._harmless:
            ends = self._ends_in_vain - (_TOGETHER_S + _FURTHER_S if self._has_further else 0)
        return time.monotonic() > ends or self._job.is_over() or self._passing >= _MAX_PASSING

    def begin_together(self):
        """Begin the time for changes that are tried together; returns a function that is true when it is over."""
        ends = time.monotonic() + _TOGETHER_S
        self._last = ends
        return lambda: time.monotonic() > ends or self._job.is_over()

    def begin_further(self):
        """Begin that for the other tests of changes with which the test comes further."""
        self._last = time.monotonic() + _FURTHER_S

    def came_to(self, child):
        """Place, as a text, at which the test failed in a child in which it came further before; "" for another one."""
        for (path, function, line), (other, called, came) in zip(self._way, child.way):
            if (path, function, line) != (other, called, came):
                return f"{other}:{came}" if (path, function) == (other, called) and came > line else ""
        return ""

    def start(self, changed, seconds=None, prepare=None, like=None, goes_on=False):
        """Run the test in a child process, which calls `prepare` before; returns that. Raises Forked in it, with `report` set.

        `like`: the unchanged program that does so, too. `goes_on`: run the other tests also if the first one fails.
        """
        while len(self._running) >= self._workers:
            self._listen()
        self._tried += changed is not None
        limit, others = self._like.get(like, (self._limit, (self.others, self.failing)))
        child = Child(changed, others, seconds, prepare)
        child.limit, child.goes_on = limit, goes_on
        if not self._ask_server(child):
            self._fork(child)
        return child

    def _fork(self, child):
        """Run the test from its start."""
        is_changed = child.changed is not None and not child.goes_on
        is_early, limit = child.prepare is not None, child.limit
        reading, writing = os.pipe()

        def become():
            os.close(reading)
            self.report = Report(writing, is_changed, self._count, child.seconds, self._more)
            self._confine(limit, writing)
            for function, code in child.changed or ():
                function.__code__ = code
            if is_early:
                child.prepare()

        pid = self._fork_process(become)
        os.close(writing)
        child.is_served = False
        child.begin(reading, _WAITING * limit, _WAITING * self._more, pid)
        self._add(child)

    def _fork_process(self, become):
        """Fork a process; returns its number. There, calls `become` and raises Forked."""
        pid = fork(self._keeps_random)
        if pid:
            return pid
        try:
            become()
        except BaseException:
            os._exit(1)
        raise Forked

    def serve(self, groups, fails):
        """Start fork servers for changes of functions, each group of which is changed together. `fails`: how the test does."""
        servers = ForkServers(groups)
        limit = self._limit + _FORK_S * len(servers.groups)

        def become():
            servers.forget()
            guard = self._confine(limit, servers.ending)
            QuickFailures().begin()
            self.report = Stops(servers, guard, self._begin_served, fails, self._keeps_random)

        if servers.wait(self._fork_process(become), _WAITING * limit):
            self._servers = servers
        else:
            servers.end()

    def _ask_server(self, child):
        """Have the test run from the first call of a changed function. False if it has to run from its start."""
        if self._servers is None or not child.changed or child.prepare is not None or child.goes_on:
            return False
        reading, writing = os.pipe()
        is_asked = self._servers.ask(child.changed, writing)
        os.close(writing)
        if not is_asked:
            os.close(reading)
            return False
        child.is_served = True
        child.begin(reading, _WAITING * self._limit, 0)
        self._add(child)
        return True

    def _add(self, child):
        child.latest = self._last
        child.ends = min(child.ends, self._last)
        self._running.append(child)

    def _begin_served(self, writing):
        """In a child of a server: report from now on."""
        limit_processor(self._limit)
        self.report = Report(writing, True, 1, None, self._more)
        self.report.tell_begun()

    def _confine(self, limit, kept):
        """Confine a child. Little else is done in each: all that it writes to has to be copied first. Returns its guard."""
        import resource

        memory = _size() + _MAX_MEMORY
        if self._servers is not None:
            self._servers.forget()
        for number in (1, 2, *self._open_files):
            if number != kept:  # the file may have been closed since
                os.dup2(self._silent, number)
        sys.dont_write_bytecode = True
        limits = (resource.RLIMIT_FSIZE, _MAX_FILE), (resource.RLIMIT_CORE, 0), (resource.RLIMIT_AS, memory)
        for kind, most in limits:
            resource.setrlimit(kind, (most, most))
        guard = Guard(self._folder, self._job.root, self._tell_made, self._tell_changed)
        guard.stand()
        limit_processor(limit)
        return guard

    def _tell_made(self, path):
        if self.report is not None:
            self.report.tell_made(path)

    def _tell_changed(self):
        if isinstance(self.report, Report):
            self.report.tell_changed()

    def wait(self, seconds=_WAITING * _BASE_S):
        """Wait for all children, so long, and not longer than they may take."""
        self._last = min(self._last, time.monotonic() + seconds)
        for one in self._running:
            one.latest = self._last
            one.ends = min(one.ends, self._last)
        while self._running:
            self._listen()
        self._last = float("inf")

    def wait_for_last(self):
        """Wait a little for the last children, and end all others."""
        self.wait(_LAST_S)

    def end(self):
        """End all children and the fork servers, after a little while."""
        self.wait_for_last()
        if self._servers is not None:
            self._servers.end()

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
                self._judge(one)

    def _judge(self, child):
        """Count a child that has ended; what a fork server did not come to, or found to pass, runs once more from its start."""
        if child.is_served and (child.has_passed or not child.has_begun):
            self._fork(child)
            return
        self._passing += child.has_passed
        self._has_further = self._has_further or bool(self.came_to(child))
        if child.has_passed and (self.others or self._passing >= _ENOUGH):
            is_doubtful = child.is_of_tests or child.is_hollow or (self.others and child.is_only_here)
            is_harmless = not child.of_others()[0] and not is_doubtful
            self._harmless += is_harmless
            self._mending += is_harmless and (not self.failing or child.mended() > 0)


def _others_of(child):
    """(names of the tests after the first one that have passed, of those of its file that have failed).

    In other files some may fail for another reason, or because they may not write where changes are tried.
    """
    first = child.outcomes[0][0] if child.outcomes else ""
    passed = {name for name, outcome, _ in child.outcomes[1:] if outcome == "passed"}
    failed = {name for name, outcome, _ in child.outcomes[1:] if outcome == "failed"}
    return passed, {name for name in failed if _is_of_same_file(name, first)}


def _is_of_same_file(name, other):
    """True for tests of one file, and for those that pytest does not name: no others run with them."""
    return "::" not in name or name.partition("::")[0] == other.partition("::")[0]


def _size():
    """Bytes of addresses of this process."""
    import resource

    reading = os.open("/proc/self/statm", os.O_RDONLY)
    try:
        return int(os.read(reading, 100).split()[0]) * resource.getpagesize()
    finally:
        os.close(reading)
