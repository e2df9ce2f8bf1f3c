# ruff: noqa: INP001 - loaded by name from here, never as a part of a package
"""Has pytest and unittest report their tests to PDBOX_REPORT, a unix datagram socket: one JSON object a datagram.

    {"kind": "collected", "count"}   {"kind": "start", "id"}   {"kind": "void", "message"}: the runner itself has failed
    {"kind": "result", "id", "outcome", "duration_s", "message", "file"?, "line"?}          each with "runner" and "run"

Only the outermost test run of a process tree reports: what tests themselves run, worker processes and forked children don't. Nothing is
imported here that the program's own modules could stand in for (a repository may have a `json.py` or a `socket.py`). Every function that a
runner calls swallows its errors: a test run must not fail by being watched.
"""

import os
import sys
from time import perf_counter  # built in, like all that is imported below at need

from _pdbox_finder import Finder

MAX_MESSAGE = 500
MAX_ID = 4000
_VARIABLE = "PDBOX_REPORT"
_TIMEOUT_S = 20.0
_BAD = ("error", "failed")


class Reporter(object):
    """The one run of this process that reports."""

    def __init__(self):
        self._socket = None
        self._pid = None
        self._address = ""
        self._runs = 0
        self.owner = None

    def claim(self, owner):
        """Whether `owner` may report from now on. Until it gives the claim up, nothing else in this process or below it reports."""
        if self.owner is owner:
            return self._pid == os.getpid()
        address = os.environ.get(_VARIABLE)
        if self.owner is not None or not address:
            return False
        from _socket import AF_UNIX, SOCK_DGRAM, socket

        opened = socket(AF_UNIX, SOCK_DGRAM)
        try:
            opened.settimeout(_TIMEOUT_S)
            opened.connect(address)
        except OSError:
            opened.close()
            return False
        self._socket, self._pid, self._address, self.owner = opened, os.getpid(), address, owner
        self._runs += 1
        # What the tests start is not part of this run.
        del os.environ[_VARIABLE]
        return True

    def release(self, owner):
        """The run is over; the next one in this process may report."""
        if self.owner is owner and self._pid == os.getpid():
            if self._socket is not None:
                self._socket.close()
            self._socket = self.owner = None
            os.environ[_VARIABLE] = self._address

    def send(self, runner, kind, **fields):
        """Send one report, or nothing where this process does not report."""
        if self._socket is None or self._pid != os.getpid():
            return
        fields.update(runner=runner, kind=kind, run="%d.%d" % (self._pid, self._runs))
        try:
            self._socket.send(encoded(fields))
        except OSError:
            # Nobody reads any more: never hold the tests up again.
            self._socket.close()
            self._socket = None


reporter = Reporter()


def encoded(fields):
    """A flat dict as JSON."""
    return ("{%s}" % ", ".join('"%s": %s' % (name, _value(value)) for name, value in fields.items())).encode(
        "ascii"
    )


def _value(value):
    if value is None:
        return "null"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return repr(value) if value == value and abs(value) < 1e300 else "null"
    return '"%s"' % "".join(_sign(sign) for sign in str(value))


def _sign(sign):
    code = ord(sign)
    if 32 <= code < 127 and sign not in '"\\':
        return sign
    if code > 0xFFFF:
        code -= 0x10000
        return "\\u%04x\\u%04x" % (0xD800 + (code >> 10), 0xDC00 + (code & 0x3FF))
    return "\\u%04x" % code


def quiet(function):
    """`function`, giving None instead of raising."""

    def called(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except Exception:
            return None  # see the top of this module

    called.__name__ = function.__name__
    return called


class Merged(object):
    """The outcome of one test out of those of its parts. The first bad one decides, else the last."""

    def __init__(self, place=None):
        self.started = perf_counter()
        self.outcome = None
        self.message = ""
        self.duration_s = -1.0  # not told
        self.place = place

    def add(self, outcome, message="", weak=False):
        if self.outcome in _BAD or (weak and self.outcome is not None):
            return
        self.outcome, self.message = outcome, message

    def fields(self):
        duration = perf_counter() - self.started if self.duration_s < 0 else self.duration_s
        found = {"outcome": self.outcome, "duration_s": round(duration, 6), "message": cut(self.message)}
        if self.place is not None:
            found["file"], found["line"] = self.place
        return found


def cut(text):
    """The first lines of a message."""
    text = str(text).strip()
    return text if len(text) <= MAX_MESSAGE else text[: MAX_MESSAGE - 1] + "\u2026"


# Which modules are watched for, and what is done once they have been loaded.


def install():
    """Watch for the test runners."""
    sys.meta_path.insert(
        0,
        Finder(
            {
                "_pytest.config": quiet(watch_pytest),
                "unittest.result": quiet(watch_unittest),
                "unittest.runner": quiet(watch_unittest_runner),
            }
        ),
    )


def watch_pytest(module):
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path.insert(0, here)
    try:
        import _pdbox_report_pytest
    finally:
        sys.path.remove(here)
    _pdbox_report_pytest.watch(module)


# unittest


class UnittestRun(object):
    """The tests of one TestResult, the outermost of this process."""

    def __init__(self, result):
        self.result = result
        self.running = {}

    def start(self, test):
        self.flush()
        name = unittest_id(test)
        self.running[name] = Merged()
        reporter.send("unittest", "start", id=name)

    def add(self, test, outcome, error=None, message=""):
        part_of = getattr(test, "test_case", None)
        name = unittest_id(test if part_of is None else part_of)
        if error is not None:
            message = error_text(error)
        if part_of is not None and message:
            message = "%s: %s" % (test._subDescription(), message)
        merged = self.running.get(name)
        if merged is None:  # setUpClass and its like, which are no tests
            merged = Merged()
            merged.duration_s = 0.0
            merged.add(outcome, message)
            reporter.send("unittest", "result", id=name, **merged.fields())
        else:
            # A skipped subtest doesn't make the test a skipped one.
            merged.add(outcome, message, weak=part_of is not None and outcome == "skipped")

    def stop(self, test):
        name = unittest_id(test)
        merged = self.running.pop(name, None)
        if merged is not None:
            if merged.outcome is None:
                merged.add("error", "The test was interrupted.")
            reporter.send("unittest", "result", id=name, **merged.fields())

    def flush(self):
        """Results whose class does not tell us when a test stops."""
        for name in list(self.running):
            merged = self.running.pop(name)
            if merged.outcome is not None:
                reporter.send("unittest", "result", id=name, **merged.fields())


def unittest_id(test):
    """The text that unittest prints for a test: `test_x (module.Class)`."""
    return str(test)[:MAX_ID]


def error_text(error):
    kind, value = error[0], error[1]
    try:
        text = str(value)
    except Exception:
        text = "<its text can't be made>"
    name = getattr(kind, "__name__", str(kind))
    return "%s: %s" % (name, text) if text else name


class UnittestReport(object):
    """Hears of every TestResult and reports the outermost one."""

    def __init__(self):
        self.run = None

    def of(self, result):
        """The run of `result`, if it is the one that reports."""
        run = self.run
        if run is not None and run.result is result:
            return run if reporter.claim(self) else None
        if run is not None and run.running:
            return None  # a test that runs tests
        if not reporter.claim(self):
            return None
        if run is not None:
            run.flush()
        self.run = UnittestRun(result)
        return self.run

    @quiet
    def on_start(self, result, test):
        run = self.of(result)
        if run is not None:
            run.start(test)

    @quiet
    def on_outcome(self, result, test, outcome, error=None, message=""):
        run = self.of(result)
        if run is not None:
            run.add(test, outcome, error, message)

    @quiet
    def on_stop(self, result, test):
        run = self.run
        if run is not None and run.result is result:
            run.stop(test)

    @quiet
    def on_duration(self, result, test, elapsed):
        run = self.run
        merged = run.running.get(unittest_id(test)) if run is not None and run.result is result else None
        if merged is not None:
            merged.duration_s = elapsed

    @quiet
    def on_run(self, test):
        if (self.run is None or not self.run.running) and reporter.claim(self):
            self.run = None
            reporter.send("unittest", "collected", count=test.countTestCases())

    @quiet
    def on_run_end(self):
        run = self.run
        if run is None or not run.running:
            reporter.release(self)


unittest_report = UnittestReport()


def watch_unittest(module):
    kind, report = module.TestResult, unittest_report
    _before(kind, "startTest", report.on_start)
    _before(kind, "stopTest", report.on_stop)
    _before(kind, "addSuccess", lambda result, test: report.on_outcome(result, test, "passed"))
    _before(kind, "addFailure", lambda result, test, err: report.on_outcome(result, test, "failed", err))
    _before(kind, "addError", lambda result, test, err: report.on_outcome(result, test, "error", err))
    _before(
        kind, "addSkip", lambda result, test, reason: report.on_outcome(result, test, "skipped", None, reason)
    )
    _before(
        kind, "addExpectedFailure", lambda result, test, err: report.on_outcome(result, test, "xfailed", err)
    )
    _before(kind, "addUnexpectedSuccess", lambda result, test: report.on_outcome(result, test, "xpassed"))
    _before(kind, "addSubTest", _on_subtest)
    if hasattr(kind, "addDuration"):
        _before(kind, "addDuration", report.on_duration)


def _on_subtest(result, test, subtest, err):
    if err is not None:
        failed = issubclass(err[0], test.failureException)
        unittest_report.on_outcome(result, subtest, "failed" if failed else "error", err)


def _before(kind, name, action):
    """Have `action` called with the arguments of a method of `kind`, before it."""
    method = getattr(kind, name)
    action = quiet(action)

    def called(*args, **kwargs):
        action(*args, **kwargs)
        return method(*args, **kwargs)

    dressed(called, method)
    setattr(kind, name, called)


def watch_unittest_runner(module):
    runner = module.TextTestRunner
    method = runner.run

    def run(self, test, *args, **kwargs):
        unittest_report.on_run(test)
        try:
            return method(self, test, *args, **kwargs)
        finally:
            unittest_report.on_run_end()

    dressed(run, method)
    runner.run = run


def dressed(function, like):
    """`function`, looking `like` the one that it stands for."""
    for name in ("__name__", "__qualname__", "__module__", "__doc__"):
        setattr(function, name, getattr(like, name))
    function.__dict__.update(like.__dict__)
    function.__dict__["__wrapped__"] = like
