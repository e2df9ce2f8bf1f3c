"""Base of what gets the events of an engine: guarded, by thread, and within its time."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ...debugger.isolation.pristine import threading, time
from ..job import guarded


class Thread:
    """State of one thread of the program."""

    def __init__(self, number):
        self.number = number
        self.is_busy = False
        """An event is being handled: code that runs for it is not traced."""
        self.calls = []
        """Traced calls that have begun and not ended."""
        self.place = None
        """(code, line) that the thread is at."""

    @property
    def innermost(self):
        """Number of the innermost call that is told; 0 if there is none."""
        return next((call.number for call in reversed(self.calls) if call.number), 0)


class Process:
    """The traced process: its threads, and the time that was spent."""

    def __init__(self, job, claim, flush):
        """`claim()`, called at the first event, returns True if this process is the traced one; `flush()` is called at each event."""
        self._claim, self._flush, self._is_traced = claim, flush, None
        self._threads = {}
        self._allowed_s, self._spent_s = float(job.settings.get("formatting_s") or 10.0), 0.0
        self.cut = ""

    @property
    def has_begun(self):
        """An event has come, and this process is the traced one."""
        return bool(self._is_traced)

    @property
    def threads(self):
        """Number of threads with events."""
        return len(self._threads)

    def ignore(self):
        """Ignore all events from now on."""
        self._is_traced = False

    @guarded
    def hear(self, handle, frame, value):
        """Have `handle(thread, frame, value)` handle an event."""
        ident = threading.get_ident()
        thread = self._threads.get(ident)
        if thread is None:
            thread = self._threads[ident] = Thread(len(self._threads))
        if thread.is_busy or not self._may_observe():
            return
        thread.is_busy = True
        started = time.perf_counter()
        try:
            handle(thread, frame, value)
        finally:
            thread.is_busy = False
            self._spend(time.perf_counter() - started)
            self._flush()

    def _may_observe(self):
        if self._is_traced is None:
            self._is_traced = self._claim()
        return self._is_traced

    def _spend(self, seconds):
        self._spent_s += seconds
        if self._spent_s > self._allowed_s and not self.cut:
            self.cut = (
                "the time for values was over after %.0f s: later calls are only counted, later changes not seen"
                % self._spent_s
            )


class Listener(ABC):
    """Gets the events of an engine; each has a handler of its own: `handler(thread, frame, value)`."""

    def __init__(self, process):
        self._hear = process.hear

    def call(self, frame):
        self._hear(self._begin, frame, None)

    def resume(self, frame):
        self._hear(self._go_on, frame, None)

    def suspend(self, frame, value):
        self._hear(self._pause, frame, value)

    def leave(self, frame, value):
        self._hear(self._return, frame, value)

    def fail(self, frame, exc):
        self._hear(self._raise, frame, exc)

    def line(self, frame, line):
        self._hear(self._line, frame, line)

    @abstractmethod
    def _begin(self, thread, frame, _): ...

    @abstractmethod
    def _go_on(self, thread, frame, _): ...

    @abstractmethod
    def _pause(self, thread, frame, value): ...

    @abstractmethod
    def _return(self, thread, frame, value): ...

    @abstractmethod
    def _raise(self, thread, frame, exc): ...

    @abstractmethod
    def _line(self, thread, frame, line): ...


class Both:
    """Passes the events of one engine to two listeners."""

    def __init__(self, first, second):
        self._first, self._second = first, second

    def call(self, frame):
        self._first.call(frame)
        self._second.call(frame)

    def resume(self, frame):
        self._first.resume(frame)
        self._second.resume(frame)

    def suspend(self, frame, value):
        self._first.suspend(frame, value)
        self._second.suspend(frame, value)

    def leave(self, frame, value):
        self._first.leave(frame, value)
        self._second.leave(frame, value)

    def fail(self, frame, exc):
        self._first.fail(frame, exc)
        self._second.fail(frame, exc)

    def line(self, frame, line):
        self._first.line(frame, line)
        self._second.line(frame, line)
