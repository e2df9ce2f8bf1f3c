"""Runs the failing test again and again, each time in a child process with another change of the code.

The process stops before the failing test. Each child is a copy of it in which one function has changed code, goes on
with the test, and if that passes, with the tests after it.
"""

from __future__ import annotations

import json
import signal
import sys

from ...debugger.isolation.pristine import os, select, threading, time
from .. import failure
from ..job import guarded
from ..sources import Sources
from . import state_uses
from .definitions import Definitions
from .functions import Loaded, import_modules
from .guard import Guard, open_files
from .plan import Plan, lines_in
from .quick_failures import QuickFailures
from .tested_module import TestedModule

_MAX_PASSING = 40
"""Changes with which the test passes; from so many on they say little."""
_ENOUGH = 3
"""Such changes after which no more time is taken where no other test can tell which of them do harm."""
_MANY, _LATER = 500, 2
"""Changes that are tried, if in that many times the time for them they can be, before one is believed to be the best."""
_MAX_TOLD = 20
_MAX_OTHERS = 60
_OTHERS_S, _MORE_S = 2.0, 1.0
"""Time for the other tests: of the unchanged program, and of a changed one at least."""
_BASE_S = 3.0
"""Processor time of the unchanged test: of one that takes longer hardly a change could be tried."""
_LEAST_S, _SLOWER = 0.1, 4
"""Processor time that a changed program may take: at least, and in times of the unchanged one's."""
_WAITING = 4
"""Time that it may take in all, in times of its processor time: it may have to wait for a processor."""
_LAST_S = 2.0
"""Time for those that run when the time is over."""
_MAX_WORKERS = 4
_MAX_FILE, _MAX_MEMORY = 64 << 20, 256 << 20
"""Bytes that a child may write into a file, and allocate beyond what it begins with."""
_MAX_REPORT = 1 << 20


class MutationObserver:
    """Tries changes when the failing test is about to begin."""

    records_values = False
    compares_lines = False
    hooks: dict = {}

    def __init__(self, job):
        self.job = job
        self._spectrum = job.read("spectrum.json")
        self._sources = Sources()
        self._has_begun = False
        self._child = None
        """In a child process: its report."""
        self._kept: tuple = ()
        """All that changes are made of. A child would take longer to free it than for most tests, as it shares its memory."""
        self._folder = os.path.realpath(os.path.join(job.folder, "files"))
        os.mkdir(self._folder)
        os.environ["TMPDIR"] = self._folder

    def start(self):
        """Begin with the first test."""

    def begin_test(self, name):
        """Try all changes before the failing test. Returns in each child, and once in this process."""
        if name == self.job.test and not self._has_begun:
            self._has_begun = True
            self._try_changes()

    @property
    def ends_with_exception(self):
        """True in a child with changed code that runs the failing test: it has not passed then."""
        return self._child is not None and self._child.is_waiting

    def raised(self):
        """End such a child, before a report of its failure is made."""
        os._exit(0)

    def set_up_shared(self, begins):
        """Run it like the rest."""

    def end_test(self, name, outcome, exc):
        """True when this process has nothing more to run."""
        if self._child is None:
            return self._has_begun
        self._child.tell(name, outcome, failure.describe(exc, self.job) if exc is not None else None)
        return False

    def failed(self, exc):
        """A program without tests is not run again."""

    def compared(self, op, left, right):
        """Ignore the operands of a failing comparison."""

    def finish(self):
        """End a child that has run all tests."""
        if self._child is not None:
            os._exit(0)

    @guarded
    def _try_changes(self):
        problem, lines = self._problem(), []
        if not problem:
            lines = list(self._lines())
            import_modules({path for path, _, _ in lines}, self.job.root, self.job.relative)
            problem = self._problem()  # modules may start threads
        if problem:
            self.job.write({"problem": problem})
            return
        trial = _Trial(self.job, self._folder)
        base = trial.start(None, _OTHERS_S)
        if base is None:
            self._child = trial.report
            return
        trial.wait()
        problem = self._difference(base)
        if problem:
            self.job.write({"problem": problem})
            return
        result: dict = {"tried": 0, "others": 0, "failing": 0}
        self.job.write(result)
        module = TestedModule.of(self.job.test)

        def tell():
            self._tell_imported(module, trial)

        anew = trial.start(None, _OTHERS_S, tell) if module else base
        if anew is None:
            self._child = trial.report
            return
        trial.wait()
        imported = {} if self._difference(anew) else anew.imported
        trial.expect(base, anew)
        loaded = Loaded(self.job.relative, {path for path, _, _ in lines} | imported.keys())
        definitions = self._read_definitions(loaded)
        result.update(others=len(trial.others), failing=len(trial.failing))
        tried, only_here = [], self._only_here()
        plan = Plan(self.job, self._spectrum, loaded, definitions, lines, imported)
        changes = plan.changes()
        self._kept = trial, plan, changes, tried, lines
        for function, mutant in changes:
            if trial.is_over():
                result["cut"] = "the time for it was over"
                break
            with mutant:
                changed = guarded(loaded.compile)(function)
            if not changed:
                continue
            early = lines_in(function, imported.get(self.job.relative(function.filename)))
            child = trial.start(changed, None, module.execute if module and early else None)
            if child is None:
                self._child = trial.report
                return
            child.is_only_here = self._is_among(only_here, function, mutant)
            tried.append((child, function, mutant))
        trial.wait(_LAST_S)
        result.update(tried=len(tried), **self._told(tried, trial, definitions))
        self.job.write(result)

    def _problem(self):
        """Why changed code can't be tried; "" if it can."""
        if not self._spectrum.get("plain") or not self._spectrum.get("lines"):
            return "no lines of the failing test are known"
        if threading.active_count() > 1:
            return "other threads run when the test begins"
        if not sys.platform.startswith("linux"):
            return "it needs Linux"
        if any(reads for _, reads in open_files(self.job.root)):
            return "a file of the repository is open for reading and writing when the test begins"
        return ""

    def _difference(self, base):
        """Why the test is not the same where changes are tried; "" if it is."""
        plain = self._spectrum["plain"]
        first = base.outcomes[0] if base.outcomes else None
        if first is None:
            return "the test did not end"
        _, outcome, failed = first
        if outcome == "passed" or failed is None:
            return "the test passes there"
        if any(plain.get(key) != failed.get(key) for key in ("type", "path", "line")):
            return "the test fails otherwise there (%s: %s)" % (failed["type"], failed["message"][:100])
        return ""

    def _lines(self):
        """(path, line, score) of the lines outside of tests that the failing test runs."""
        for path, line, score, _ in self._spectrum["lines"]:
            if path.endswith(".py") and not self.job.is_test_code(os.path.join(self.job.root, path)):
                yield path, line, score

    def _tell_imported(self, module, trial):
        """In a child: execute the module of the test anew, and tell the lines outside of tests that run meanwhile."""
        imported = {}
        for filename, line in module.trace(self.job.project):
            if not self.job.is_test_code(filename):
                imported.setdefault(self.job.relative(filename), []).append(line)
        trial.report.tell_imported(imported)

    def _read_definitions(self, loaded):
        trees = {filename: self._sources.tree(filename) for filename in loaded.filenames.values()}
        return Definitions({filename: tree for filename, tree in trees.items() if tree is not None})

    def _told(self, tried, trial, definitions):
        """The changes with which the test passes, those first with which the others do, too, also such as fail without it."""
        passing = [
            (*child.of_others(), child.mended(), function, mutant, child.is_only_here)
            for child, function, mutant in tried
            if child.has_passed
        ]
        passing.sort(key=lambda one: (one[0], -one[2], one[4].is_blunt, -one[1]))
        told = []
        for broken, ran, mended, function, mutant, is_only_here in passing[:_MAX_TOLD]:
            lines = self._sources.lines(function.filename)
            told.append(
                {
                    **self._place(function.filename, mutant.line),
                    "function": function.name,
                    "change": mutant.describe(lines),
                    "broken": broken,
                    "ran": ran,
                    "mended": mended,
                    "only_here": is_only_here,
                }
            )
        return {"passing": len(passing), "changes": told, "state": self._state(told, passing, definitions)}

    def _only_here(self):
        """(path, line) of the lines that no passing test runs, and nothing before the tests."""
        if self._spectrum["cut"]:
            return set()  # not all tests have run
        found = {(path, line) for path, line, _, runs in self._spectrum["lines"] if not runs}
        return found.difference(map(tuple, self._spectrum["outside"]))

    def _is_among(self, only_here, function, mutant):
        """True for a change at one of these lines; of one at a line that begins nothing that runs, the next that does counts."""
        path = self.job.relative(function.filename)
        lines = (line for each, line, _, _ in self._spectrum["lines"] if each == path)
        return (path, min((one for one in lines if one >= mutant.line), default=mutant.line)) in only_here

    def _state(self, told, passing, definitions):
        """The state that the changes are about, with its uses; None if there is none."""
        if not told:
            return None
        mutants = [one[4] for one in passing[:_MAX_TOLD]]
        name, filename, uses = state_uses.find(mutants, passing[0][3].filename, definitions)
        places = [dict(self._place(filename, line), is_written=is_written) for line, is_written in uses]
        return {"name": name, "uses": places} if name else None

    def _place(self, filename, line):
        return {
            "path": self.job.relative(filename),
            "line": line,
            "function": self._sources.function_at(filename, line)[0],
            "text": self._sources.line(filename, line),
        }


class _Trial:
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
            child = _Child(pid, reading, _WAITING * limit, _WAITING * self._more, others)
            self._running.append(child)
            return child
        try:
            os.close(reading)
            self.report = _Report(writing, changed is not None, self._count, seconds, self._more)
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


class _Child:
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


class _Report:
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
