"""Records the passing run for the failing one, and compares them in the failing one."""

from __future__ import annotations

import atexit

from .. import failure
from ..events import Events
from ..job import guarded
from ..sources import Sources
from .findings import compare
from .recorder import ComparisonRecorder
from .stream import stream_of, unpack

AGAINST = "against.json"


class ComparisonObserver:
    """Records from the beginning of the test to its end; a program without tests as a whole."""

    records_values = True
    compares_lines = False
    soon: frozenset = frozenset()
    ends_with_exception = False

    def __init__(self, job):
        self.job = job
        self._other = job.read(AGAINST)
        self._recorder = ComparisonRecorder(job, job.settings.get("only") or ())
        self._recorder.install()
        self._done = False
        if job.test is None:
            self._recorder.begin()
            atexit.register(self._end_program)

    hooks = property(lambda self: {"_pytest.assertion.rewrite": self._recorder.watch_assertions})

    def start(self):
        """Begin with the first test."""

    @guarded
    def begin_test(self, name):
        if name == self.job.test and not self._done:
            self._recorder.begin()

    def set_up_shared(self, begins):
        """Record it like the rest."""

    @guarded
    def end_test(self, name, outcome, exc):
        """True when the test has been seen."""
        if name == self.job.test and not self._done:
            self._end(outcome or "", None)
        return self._done

    def compared(self, op, left, right):
        """Ignore the operands of a failing comparison."""

    @guarded
    def test_failed(self, name, exc):
        if name == self.job.test and not self._done:
            self._end("failed", exc)

    @guarded
    def failed(self, exc):
        """The program has failed."""
        self._end("failed", exc)

    @guarded
    def finish(self):
        if not self._done:
            self.job.write({"outcome": "not run"})

    @guarded
    def _end_program(self):
        if not self._done and self._recorder.has_events and self.job.claim():
            self._end("passed", None)

    def _end(self, outcome, exc):
        self._done = True
        self._recorder.stop()
        failed = None if exc is None else failure.describe(exc, self.job)
        log, texts = self._recorder.take()
        result = {"outcome": outcome, "failed": failed, "cut": self._recorder.cut, "events": len(texts)}
        self.job.write(result)  # so that there is something if the rest takes too long
        result.update(self._result(log, texts) or {})
        self.job.write(result)

    @guarded
    def _result(self, log, texts):
        here = stream_of(log, texts, self._recorder.rewriter, self.job)
        if not self._other:
            return {"stream": here.pack()}
        there = unpack(self._other["stream"])
        return compare(Events(log, self._recorder.rewriter), here, there, self.job, Sources())
