"""A job of the supervisor: what to observe, within which limits, and the place of the result."""

from __future__ import annotations

import json
import re

from ..debugger.isolation.pristine import os, threading, time
from ..hooks._pdbox_diagnose import VARIABLE

_MAX_PROBLEMS = 5
_START = 500
"""Bytes of a file in which it says that it is generated."""
_GENERATED = re.compile(rb"^#.*(?:@generated|[Gg]enerated (?:from|by) |DO NOT EDIT)", re.MULTILINE)
problems: list = []
"""Errors of our own, which the program must not notice: the result names them."""


class Job:
    """Settings of one run, and its result."""

    def __init__(self, folder, settings, project):
        self.folder = folder
        self.root = os.path.realpath(settings["root"]) + os.sep
        self.project = project
        self.test = settings.get("test")
        """Id of the failing test; None for a program without tests."""
        self.settings = settings
        self._deadline = time.monotonic() + float(settings.get("seconds") or 60.0)
        self._pid = os.getpid()
        self._claimed, self._claiming = False, threading.Lock()
        self._relative, self._tests = {}, {}

    def claim(self):
        """Claim the job for this process. False if another one has it, or this is a child of its own."""
        with self._claiming:  # two threads may have their first events at once
            if self._claimed:
                return self._pid == os.getpid()
            try:
                os.close(os.open(os.path.join(self.folder, "claimed"), os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            except OSError:
                return False
            self._claimed, self._pid = True, os.getpid()
        # Processes started by the tests are not observed.
        os.environ.pop(VARIABLE, None)
        return True

    def is_over(self):
        """True when the time of the job is over."""
        return time.monotonic() > self._deadline

    def read(self, name):
        """Read a result of an earlier run; an empty dict if there is none."""
        try:
            with open(os.path.join(self.folder, name), encoding="utf-8") as file:
                found = json.load(file)
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def write(self, result):
        """Write the result, at once or not at all."""
        result["problems"] = problems
        path = os.path.join(self.folder, "result.json")
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.write(json.dumps(result))
        os.replace(path + ".new", path)

    def relative(self, filename):
        """Path of a file as the answer names it."""
        found = self._relative.get(filename)
        if found is None:
            real = os.path.realpath(filename)
            found = self._relative[filename] = real[len(self.root) :] if real.startswith(self.root) else real
        return found

    def is_test_code(self, filename):
        """True for tests, their fixtures, and code that a program has generated, which are not suspected."""
        found = self._tests.get(filename)
        if found is None:
            found = self._is_test(self.relative(filename)) or _is_generated(filename)
            self._tests[filename] = found
        return found

    @staticmethod
    def _is_test(path):
        parts = path.split(os.sep)
        name = parts[-1]
        return (
            name.startswith("test_")
            or name in ("test.py", "tests.py", "conftest.py")
            or name.endswith("_test.py")
            or any(part in ("test", "tests", "testing") for part in parts[:-1])
        )


def _is_generated(filename):
    """True for a file that says so in a comment at its start, as parsers of ANTLR and classes of protocol buffers do."""
    try:
        with open(filename, "rb") as file:
            return _GENERATED.search(file.read(_START)) is not None
    except (OSError, ValueError):
        return False


def guarded(function):
    """Wrap `function` so that it returns None instead of raising: the program must not fail because of us."""

    def called(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except Exception as exc:
            if len(problems) < _MAX_PROBLEMS:
                step = exc.__traceback__
                while step is not None and step.tb_next is not None:
                    step = step.tb_next
                where = (
                    ""
                    if step is None
                    else " at %s:%d" % (os.path.basename(step.tb_frame.f_code.co_filename), step.tb_lineno)
                )
                problems.append("%s in %s%s" % (type(exc).__name__, function.__name__, where))
            return None

    called.__name__ = function.__name__
    return called
