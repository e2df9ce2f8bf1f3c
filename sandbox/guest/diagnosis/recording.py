"""Records the failing test, and follows its values back from the failure."""

from __future__ import annotations

from . import failure
from .analysis import analyse
from .job import guarded
from .recorder import Recorder


class RecordingObserver:
    """Records from the start of the process until the test fails."""

    records_values = True
    compares_lines = False
    soon: frozenset = frozenset()
    ends_with_exception = False

    def __init__(self, job):
        self.job = job
        spectrum = job.read("spectrum.json")
        used = {entry[0] for entry in spectrum.get("lines") or ()}
        runs_alone = bool(spectrum.get("all_lines")) and not job.settings.get("in_order")
        self._recorder = Recorder(job, used, runs_alone)
        self._recorder.install()
        self._sides = None
        self._done = False

    hooks = property(lambda self: {"_pytest.assertion.rewrite": self._recorder.watch_assertions})

    def start(self):
        """Begin with the first test: recording has begun already."""

    def begin_test(self, name):
        self._sides = None

    def set_up_shared(self, begins):
        """Record it like the rest."""

    def end_test(self, name, outcome, exc):
        """True when there is nothing more to record."""
        return self._done

    def compared(self, op, left, right):
        """Keep the operands of a comparison that fails."""
        self._sides = (op, left, right)

    @guarded
    def test_failed(self, name, exc):
        if name == self.job.test and not self._done:
            self.failed(exc)

    @guarded
    def failed(self, exc):
        """Analyse the recording at the failure, while all objects are alive."""
        self._done = True
        self._recorder.stop()
        failed = failure.describe(exc, self.job)
        plain = self.job.read("spectrum.json").get("plain")
        result = {"failed": failed, "cut": self._recorder.cut, "differs": _difference(plain, failed)}
        if not result["differs"]:
            log, dropped = self._recorder.events()
            result["events"] = len(log) // 3
            if dropped and not result["cut"]:
                result["cut"] = "only its last %d events were kept" % self._recorder.limit
            self.job.write(result)  # so that there is something if the analysis takes too long
            found = guarded(analyse)(log, self._recorder.rewriter, exc, self._sides, self.job)
            result.update(found or {})
            if result["cut"]:
                result.pop("lines", None)  # some of those that have run are missing
        self.job.write(result)

    def finish(self):
        """A run without the failure leaves no result."""


def _difference(plain, failed):
    """Describe the failure of the recorded run if it is not the plain run's; "" if both fail alike.

    Messages may differ between two runs that fail alike: by a temporary path, an address or the time.
    """
    keys = ("type", "path", "line")
    if not isinstance(plain, dict) or all(plain.get(key) == failed[key] for key in keys):
        return ""
    return "%s: %s at %s:%d" % (failed["type"], failed["message"][:200], failed["path"], failed["line"])
