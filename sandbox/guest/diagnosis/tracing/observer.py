"""Observes a run for `trace`: its outcome, and the events of the targets."""

from __future__ import annotations

import atexit

from ...debugger.isolation.pristine import os, time
from .. import failure
from ..job import guarded
from ..sources import Sources
from .calls import Calls
from .engines import choose_engine
from .event_files import EventFiles
from .history import History
from .listener import Both, Process
from .targets import Targets
from .value_text import exception_text

_MAX_FAILURES = 5
_WRITTEN_S = 0.5


class TraceObserver:
    """Traces from the start of the process to its end. Without targets it reports the outcome only."""

    records_values = False
    compares_lines = False
    soon: frozenset = frozenset()
    ends_with_exception = False
    hooks: dict = {}

    def __init__(self, job):
        self.job = job
        self._outcomes, self._failures, self._exception = {}, [], None
        self._written = 0.0
        self._engine = None
        self._children, self._is_child = 0, False
        self._sources = Sources()
        asked = job.settings.get("targets") or ()
        self._targets = Targets(job, asked, self._sources)
        files = EventFiles(job.folder, int(job.settings.get("events") or 1000))
        self._process = Process(job, self._claim, self.flush)
        self._calls = Calls(job, self._targets, files, self._sources, self._process)
        self._history = History(job, asked, files, self._sources, self._process)
        if asked:
            self._begin()

    @guarded
    def _begin(self):
        if not self._history.watches:
            self._engine = choose_engine(self._targets.wanted, self._calls)
        else:
            targets, history = self._targets.wanted, self._history.wanted
            # A change is seen after its line: before the next call begins, and before one ends.
            listener = Both(self._history, self._calls)
            self._engine = choose_engine(lambda code: targets(code) | history(code), listener)
        self._engine.start()
        os.register_at_fork(after_in_parent=self._count_child, after_in_child=self._stop)
        atexit.register(self._end)

    def _count_child(self):
        self._children += 1

    @guarded
    def _stop(self):
        """End in a child process, whose events would mix with ours."""
        self._is_child = True
        self._stop_engine()
        self._process.ignore()

    def _claim(self):
        claimed = self.job.claim()
        if not claimed:
            self._stop_engine()
        return claimed

    def _stop_engine(self):
        if self._engine is not None:
            self._engine.stop()

    @guarded
    def start(self):
        """Begin with the run of a test runner: tracing has begun already."""

    @guarded
    def begin_test(self, name):
        if self._engine is not None:
            self._engine.restart()
            self._calls.test(name)

    def set_up_shared(self, begins):
        """Record it like the rest."""

    @guarded
    def end_test(self, name, outcome, exc):
        """Count a test, and note its failure. Returns True if the run should end."""
        if outcome is not None:  # else it ran in another process
            self._outcomes[outcome] = self._outcomes.get(outcome, 0) + 1
        if exc is not None and outcome == "failed" and len(self._failures) < _MAX_FAILURES:
            self._failures.append(dict(self._describe(exc), test=name[:500]))
        if self._engine is not None:
            self._calls.test(name, outcome)
        self._write()
        return self.job.is_over()

    @guarded
    def failed(self, exc):
        """The program has ended with an exception."""
        self._exception = self._describe(exc)
        self._write()

    @guarded
    def finish(self):
        self._write()

    def compared(self, op, left, right):
        """Ignore the operands of a failing comparison."""

    def _describe(self, exc):
        return dict(failure.describe(exc, self.job), text=exception_text(exc))

    @guarded
    def _end(self):
        """Write the last counts, unless another process is the traced one."""
        if self._process.has_begun or self._outcomes:
            self._stop_engine()
            self._write()

    @guarded
    def flush(self):
        """Write the counts at intervals, for a run that is killed."""
        now = time.monotonic()
        if now - self._written > _WRITTEN_S:
            self._write()

    def _write(self):
        if self._is_child:
            return
        self._written = time.monotonic()
        self.job.write(
            {
                "outcomes": self._outcomes,
                "failures": self._failures,
                "exception": self._exception,
                "functions": [
                    [one.name, one.path, one.line, one.calls, one.is_called or bool(one.stories)]
                    for one in self._targets.functions
                ],
                "hits": [[path, line, count] for (path, line), count in self._calls.hits.items()],
                "watched": [[one.text, one.places, one.changes] for one in self._history.watches],
                "threads": self._process.threads,
                "children": self._children,
                "cut": self._process.cut or self._calls.cut,
            }
        )
