"""Records one test, or a whole program, from its beginning: each event with the text of its value."""

from __future__ import annotations

from ..events import is_atom
from ..recorder import Recorder, catch_nothing
from .snapshots import snapshot

_CHECKED = 1 << 12


class ComparisonRecorder(Recorder):
    """A log of site, frame, value and text. When it is full, nothing more is recorded."""

    _asides = False  # the texts of their values would be made each time

    def __init__(self, job, used):
        super().__init__(job, used)
        self._log = []
        self._next_check = _CHECKED

    def install(self):
        """Rewrite all modules of the repository that are imported from now on; record nothing yet."""
        self.stop()
        self._watch_imports()

    def _compile(self, loader, name):
        code = super()._compile(loader, name)
        # Of a program without tests, the first process with code of the repository is compared.
        if code is not None and self._job.test is None and not self._job.claim():
            self.stop()
        return code

    def begin(self):
        """Record from now on."""
        self._set(*self._recording_functions())

    @property
    def has_events(self):
        return bool(self._log)

    def take(self):
        """(log of site, frame and value, their texts; None for values that can't change)."""
        log = self._log[: len(self._log) // 4 * 4]
        texts = log[3::4]
        del log[3::4]
        self._log.clear()
        return log, texts

    def _recording_functions(self):
        log, new_frame = self._log, self.rewriter.new_frame
        extend = log.extend

        def record(site, frame, value):
            extend((site, frame, value, None if is_atom(value) else snapshot(value)))
            if len(log) > self._next_check:
                self._look()
            return value

        def enter(site, *parameters):
            frame = new_frame()
            extend((site, frame, None, None))
            for value in parameters:
                site += 1
                extend((site, frame, value, None if is_atom(value) else snapshot(value)))
            return frame

        return record, enter, catch_nothing

    def _look(self):
        """Stop when the log is full, or as the other recorder does."""
        self._next_check = len(self._log) + _CHECKED
        if len(self._log) > 4 * self.limit:
            self.cut = "only the first %d events of a run were compared" % self.limit
            self.stop()
        else:
            self._check()
