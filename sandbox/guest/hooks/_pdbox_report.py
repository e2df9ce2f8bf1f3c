# ruff: noqa: INP001 - loaded by name from here, never as a part of a package
"""Reports tests of pytest and unittest to PDBOX_REPORT, a unix datagram socket: one JSON object per datagram.

    {"kind": "collected", "count", "ids"?: the first of them}   {"kind": "start", "id"}
    {"kind": "void", "message", "frames"}: the runner itself has failed   {"kind": "end", "id"}: of a test without an outcome
    {"kind": "result", "id", "outcome", "duration_s", "message", "file"?, "line"?, "frames"?, "output"?}: the last two as
    `_pdbox_failure` makes them   {"kind": "root", "path", "captured"}: ids and files are relative to this folder, and
    the output of tests is captured if 1   {"kind": "bye"}: the interpreter exits normally

each with "runner" and "run".

Only the outermost test run of a process tree reports, not the runs inside of tests, worker processes or
forked children. Imports nothing that a module of the program could replace (a repository may have a `json.py`
or a `socket.py`). Every function that a runner calls swallows its errors: a test run must not fail because of
us.
"""

import os
import sys
from time import perf_counter  # built in, like all modules that are imported below on demand

from _pdbox_finder import Finder

MAX_MESSAGE = 2000
MAX_ID = 4000
_VARIABLE = "PDBOX_REPORT"
_TIMEOUT_S = 20.0
PAST_ERRORS = "+"
STACKS = "t"
"""Added to the path of the socket: the file for the stack of a running test."""
DUMP = 7
"""The signal that asks for it, counted from SIGRTMIN."""
_BAD = ("error", "failed")


def quiet(function):
    """Wrap `function` so that it returns None instead of raising."""

    def called(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except Exception:
            return None  # see the top of this module

    called.__name__ = function.__name__
    return called


class Reporter(object):
    """Reports the one run of this process that holds the claim."""

    def __init__(self):
        self._socket = None
        self._pid = None
        self._address = ""
        self._runs = 0
        self._stacks = None
        self.owner = None

    def goes_past_errors(self):
        """True if the run that may be claimed here is to go on past files that can't be collected."""
        return self.owner is None and os.environ.get(_VARIABLE, "").endswith(PAST_ERRORS)

    def claim(self, owner):
        """Claim the report for `owner`. Returns True if it may report.

        Until it releases the claim, nothing else in this process or in its children reports.
        """
        if self.owner is owner:
            return self._pid == os.getpid()
        address = os.environ.get(_VARIABLE)
        if self.owner is not None or not address:
            return False
        import atexit
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
        self._stacks = open_stacks(address)
        atexit.unregister(self._say_bye)
        atexit.register(self._say_bye)
        # Processes started by the tests are not part of this run.
        del os.environ[_VARIABLE]
        return True

    def release(self, owner):
        """End the run of `owner`. The next one in this process may report."""
        if self.owner is owner and self._pid == os.getpid():
            self._say_bye()
            if self._socket is not None:
                self._socket.close()
            close_stacks(self._stacks)
            self._socket = self.owner = self._stacks = None
            os.environ[_VARIABLE] = self._address

    @property
    def run(self):
        """The number of the current run in this process."""
        return self._runs

    def _say_bye(self):
        self.send("", "bye")

    def send(self, runner, kind, **fields):
        """Send one report, or nothing where this process does not report."""
        if self._socket is None or self._pid != os.getpid():
            return
        fields.update(runner=runner, kind=kind, run=f"{self._pid}.{self._runs}")
        try:
            self._socket.send(encode(fields))
        except OSError:
            # The reader is gone: never delay the tests again.
            self._socket.close()
            self._socket = None


reporter = Reporter()


@quiet
def open_stacks(address):
    """Have faulthandler write the stack of this process to a file beside the socket when it is asked to by a signal."""
    import faulthandler
    from _signal import SIGRTMIN  # type: ignore[reportMissingImports] - built in; not on macOS

    file = os.open(address + STACKS, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    faulthandler.register(SIGRTMIN + DUMP, file, all_threads=False)
    return file


@quiet
def close_stacks(file):
    """Undo `open_stacks`."""
    if file is not None:
        import faulthandler
        from _signal import SIGRTMIN  # type: ignore[reportMissingImports] - as above

        faulthandler.unregister(SIGRTMIN + DUMP)
        os.close(file)


def encode(fields):
    """Encode a dict of texts, numbers and lists of them as JSON."""
    pairs = ", ".join(f'"{name}": {_value(value)}' for name, value in fields.items())
    return f"{{{pairs}}}".encode("ascii")


def _value(value):
    if value is None:
        return "null"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return repr(value) if value == value and abs(value) < 1e300 else "null"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    text = str(value)
    # Exactly a str: others may be subclasses of the program's.
    if type(text) is str and text.isprintable() and '"' not in text and "\\" not in text:
        try:
            text.encode("ascii")
            return f'"{text}"'
        except UnicodeEncodeError:
            pass
    escaped = "".join(_escape(char) for char in text)
    return f'"{escaped}"'


def _escape(char):
    code = ord(char)
    if 32 <= code < 127 and char not in '"\\':
        return char
    if code > 0xFFFF:
        code -= 0x10000
        return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
    return f"\\u{code:04x}"


class Merged(object):
    """Outcome of one test, merged from its parts. The first bad one decides, else the last."""

    def __init__(self, place=None):
        self.started = perf_counter()
        self.name = ""
        self.outcome = None
        self.message = ""
        self.duration_s = -1.0  # not known
        self.place = place
        self.frames = []
        self.output = ""

    def add(self, outcome, message="", weak=False, frames=(), output=""):
        if self.outcome in _BAD or (weak and self.outcome is not None):
            return
        self.outcome, self.message = outcome, message
        self.frames, self.output = frames, output

    def fields(self):
        duration = perf_counter() - self.started if self.duration_s < 0 else self.duration_s
        found = {"outcome": self.outcome, "duration_s": round(duration, 6), "message": cut(self.message)}
        if self.place is not None:
            found["file"], found["line"] = self.place
        if self.outcome in _BAD:
            found["frames"], found["output"] = self.frames, self.output
        return found


def cut(text):
    """Cut a long message."""
    text = str(text).strip()
    return text if len(text) <= MAX_MESSAGE else text[: MAX_MESSAGE - 1] + "\u2026"


# The watched modules, and the functions called after their import.


def install(load):
    """Watch for imports of test runners. `load(name)` imports a module of this folder."""

    def watch_pytest(module):
        load("_pdbox_report_pytest").watch(module)

    def watch_unittest(name):
        return quiet(lambda module: getattr(load("_pdbox_report_unittest"), name)(module))

    sys.meta_path.insert(
        0,
        Finder(
            {
                "_pytest.config": quiet(watch_pytest),
                "unittest.result": watch_unittest("watch_results"),
                "unittest.case": watch_unittest("watch_cases"),
                "unittest.suite": watch_unittest("watch_suites"),
                "unittest.runner": watch_unittest("watch_runner"),
            }
        ),
    )


def copy_metadata(function, like):
    """Give `function` the names, docstring and attributes of `like`, which it replaces."""
    for name in ("__name__", "__qualname__", "__module__", "__doc__"):
        setattr(function, name, getattr(like, name))
    function.__dict__.update(like.__dict__)
    function.__dict__["__wrapped__"] = like
