"""Aimed runs of a failing test: in which lines it differs from passing tests, and where its values came from.

Each run is a command of its own.
"""

from __future__ import annotations

import math
import os
import time

from ..entrypoints.test_ids import dotted_name
from ..files.executed_lines import ExecutedLines
from .observed_run import RESULT, as_object, command_of, end_of, name_of, observe, select_test, without_pdb

_FEW = 5
"""Fewer passing tests in the file say little: those of its folder are run too."""
_WIDER_S = 15.0
"""Time for these: they help a little, and many of them can take long."""
_SHORT_S = 5.0
"""Duration of the tests of the folder up to which changes of the code are tried with them, too."""
_ENOUGH_S = 8.0
"""Time for passing tests once the failing one has run: in more of it changes of the code find more."""
_MAX_EVENTS = 1_000_000
_MAX_COMPARED = 100_000
_MAX_MEMORY = 512 << 20
_NEAREST = "auto"
_MAX_FINDINGS = 2
"""Findings of a kind whose functions are changed first."""
_MUTATION_S, _MUTATION_IN_VAIN_S = 6.0, (12.0, 24.0)
"""Time in which changes of the code are tried, and as long as none has mended the test without harm: least and most."""
_WHOLE_S = 45.0
"""Time in which a diagnosis is to have tried its changes, but for the least they get: many clients wait a minute."""


def diagnose(args: dict, payload: bytes, call) -> tuple[dict, bytes]:
    """{command, test, env, timeout_s, in_order, against, mutate} -> {"spectrum": {...}|null, "recording": {...}|null,
    "mutation": {...}|null, "comparison": {...}|null, "notes": [text]}.

    `test` is the failing test as its runner names it; null for a program without tests, which has no spectrum.
    With `in_order`, the test fails only after the tests before it, so all of `command` is run in its order.
    `against` is a passing test, "auto" for the nearest one, or, for a program, a command that does not fail.
    `mutate`: the test may run with changed code. `spectrum`, `recording`, `mutation` and `comparison` are the results
    of the guest's `diagnosis`. A note says why one is missing or incomplete. Raises GuestError as `exec` does.
    """
    return _Runs(args, call).diagnose(), b""


def command_of_test(args: dict, payload: bytes, call) -> tuple[dict, bytes]:
    """{command, test} -> {"command": the command that runs `test` alone, as `command` runs tests; null if it does
    not allow to choose}.
    """
    command, test = command_of(args, call), name_of(args)
    selected = select_test(command, test, call.state.workdir)
    return {"command": None if selected == command else selected}, b""


class _Runs:
    """The runs of one diagnosis, within one time limit."""

    def __init__(self, args: dict, call) -> None:
        self._call, self._env = call, args.get("env")
        self._command = without_pdb(command_of(args, call))
        self._test = name_of(args)
        self._in_order = bool(args.get("in_order"))
        self._may_mutate = bool(args.get("mutate"))
        self._against = self._other_run(args, call)
        self._started = time.monotonic()
        self._end = self._started + float(args.get("timeout_s") or 60.0)
        self._notes: list = []
        self._scope = self._file_of_test()
        """File or module, or folder, whose other tests tell which changes of the code do harm."""
        self._spares_tests = False
        """True if code of tests must not be recorded."""

    def diagnose(self) -> dict:
        spectrum = self._spectrum()
        command = self._command if self._in_order else self._selected(self._test)
        recording = self._record(command, spectrum)
        self._keep_lines(recording, spectrum)
        mutation = self._mutate(spectrum, recording)
        comparison = self._compare(command, spectrum or {}) if self._against else None
        if spectrum is not None:
            for name in ("lines", "outside", "all_lines", "files", "soon"):  # for the other runs alone
                spectrum.pop(name, None)
        return {
            "spectrum": spectrum,
            "recording": recording,
            "mutation": mutation,
            "comparison": comparison,
            "notes": self._notes,
        }

    def _record(self, command: str, spectrum):
        """Record the failing run; if that fails otherwise, once more without the code of tests."""
        share, files = 0.4 if self._against else 0.7, (("spectrum.json", spectrum),)
        recording = self._run("recording", command, share, files)
        if recording is None or not recording.get("differs"):
            return recording
        self._spares_tests = True
        again = self._try("recording", command, share, files)
        self._spares_tests = again is not None and not again.get("differs")
        return again if self._spares_tests else recording

    def _mutate(self, spectrum, recording):
        """Find changes of the code with which the test passes; None if none can be tried."""
        ranking, lent = ((recording or {}).pop(name, None) or [] for name in ("ranking", "lent"))
        if not self._may_mutate or not self._test or not (spectrum or {}).get("failed"):
            return None
        command = self._command if self._in_order else self._selected(self._scope)
        recorded = {"ranking": ranking, "lent": lent, "named": _named_lines(recording or {})}
        files = (("spectrum.json", spectrum), ("recording.json", recorded))
        least, most = _MUTATION_IN_VAIN_S
        in_vain = min(most, max(least, self._started + _WHOLE_S - time.monotonic()))
        budgets = {"budget_s": _MUTATION_S, "budget_in_vain_s": in_vain}
        found = self._try("mutation", command, 0.5, files, **budgets)
        if self._scope != self._file_of_test() and (found is None or found.get("problem")):
            # Other files of the folder may start threads, leave files open, or have the test fail otherwise.
            self._scope = self._file_of_test()
            command = self._selected(self._scope)
            found = self._try("mutation", command, 0.5, files, **budgets)
        return found

    def _keep_lines(self, recording, spectrum) -> None:
        """Keep the lines that have run, to tell later which of a file have not."""
        lines = (recording or {}).pop("lines", None)
        if lines is None and "::" in self._test:  # of pytest alone set-ups before the first test are observed
            lines = _executed_lines(spectrum or {})
        self._call.state.executed_lines = ExecutedLines(lines, self._call.state.workdir)

    def _compare(self, command: str, spectrum: dict):
        """Compare the failing run with the passing one; None, with a note, if that is not possible."""
        against = self._passing(spectrum)
        if not against:
            self._notes.append("no comparison: no passing test ran with the failing one")
            return None
        if against == self._test and not self._in_order:
            self._notes.append("no comparison: `against` is the failing test itself")
            return None
        # Functions that neither run calls need no records.
        near = against.partition("::")[0] == self._test.partition("::")[0]
        files = spectrum.get("files") if near and not self._in_order else None
        other = self._selected(against) if self._test else against
        passing = self._run(
            "comparison", other, 0.45, test=against if self._test else None, in_order=False, only=files
        )
        if passing is None:
            return None
        outcome = passing.get("outcome")
        if outcome not in ("passed", "failed") or not isinstance(passing.get("stream"), str):
            self._notes.append(f"no comparison: {against} was {str(outcome or 'not recorded')[:20]}")
            return None
        found = self._run("comparison", command, 0.9, (("against.json", passing),), only=files)
        if found is not None:
            found.update(against=against, against_outcome=outcome, against_failed=passing.get("failed"))
            found["cut"] = found.get("cut") or str(passing.get("cut") or "")[:200]
        return found

    @staticmethod
    def _other_run(args: dict, call) -> str:
        """The test or command of `against`; empty if there is none."""
        against = args.get("against") or ""
        if not against or against == _NEAREST or args.get("test"):
            return dotted_name(against) or against
        return without_pdb(command_of({"command": against}, call))

    def _passing(self, spectrum: dict) -> str:
        if self._against != _NEAREST:
            return self._against
        if self._in_order:
            return self._test  # alone it passes
        nearest = spectrum.get("nearest")
        return nearest if isinstance(nearest, str) else ""

    def _spectrum(self):
        if not self._test or self._in_order:
            return self._run("spectrum", self._command, 0.4)
        spectrum = self._run("spectrum", self._selected(self._scope), 0.4)
        folder = os.path.dirname(self._scope) if self._scope.endswith(".py") else ""
        if folder and spectrum is not None and _count(spectrum) < _FEW:
            began = time.monotonic()
            wider = self._try("spectrum", self._selected(folder), 0.4, most_s=_WIDER_S)
            if wider is not None and wider.get("failed") and _count(wider) > _count(spectrum):
                if time.monotonic() - began <= _SHORT_S:
                    self._scope = folder
                return wider
        return spectrum

    def _file_of_test(self) -> str:
        """The file of the test, relative to the workspace, or its module."""
        path, colons, _ = self._test.partition("::")
        if colons:
            return path
        parts = self._test.split(".")
        for end in range(len(parts) - 1, 0, -1):
            if os.path.isfile(os.path.join(self._call.state.workdir, *parts[:end]) + ".py"):
                return ".".join(parts[:end])
        return ".".join(parts[:-2]) if len(parts) > 2 else ""

    def _selected(self, test: str) -> str:
        return select_test(self._command, test, self._call.state.workdir)

    def _try(self, *args, **more):
        """Run as `_run` does, without a note: there is something else to tell."""
        noted = len(self._notes)
        found = self._run(*args, **more)
        del self._notes[noted:]
        return found

    def _run(self, mode: str, command: str, share: float, files=(), *, most_s=math.inf, **more):
        """Run `command` observed, for a share of the time that is left. Returns the result; None, with a note, if there is none."""
        seconds = min(most_s, max(1.0, (self._end - time.monotonic()) * share))
        job = {
            "mode": mode,
            "test": self._test or None,
            "in_order": self._in_order,
            "events": _MAX_COMPARED if mode == "comparison" else _MAX_EVENTS,
            "memory": _MAX_MEMORY,
            "compared": bool(self._against),
            "enough_s": _ENOUGH_S,
            "spare_tests": self._spares_tests,
            **more,
        }
        self._call.progress({"output": mode})
        run, left = observe(command, self._env, self._call, seconds, job, files)
        result = as_object(left[RESULT])
        if result is None:
            self._notes.append(f"no {mode}: {_why_none(mode, run, seconds)}")
        return result


def _why_none(mode: str, run, seconds: float) -> str:
    if run.timed_out:
        return f"it took over {seconds:.0f} s"
    if mode == "recording" and run.status == (0, None):
        return "its run ended well: recorded, the test passes, as that keeps all objects alive (weakref? __del__?)"
    return f"its run left no result ({end_of(run)})"


def _executed_lines(spectrum: dict):
    """{path: lines} of a failing test, its shared set-up and imports, by its spectrum; None if some may be missing."""
    if spectrum.get("all_lines") is not True:
        return None
    found: dict = {}
    try:
        for path, line in [*(one[:2] for one in spectrum["lines"]), *spectrum["outside"]]:
            if not isinstance(path, str):
                return None
            found.setdefault(path, []).append(line)
    except (KeyError, TypeError, ValueError):  # the program could write it, too
        return None
    return found


def _count(spectrum: dict) -> int:
    passed = spectrum.get("passed")
    return passed if isinstance(passed, int) else 0


def _named_lines(recording):
    """[[path, line]] of the findings of a recording: signals, shared objects, state that is kept; the surest first.

    Empty if the recording is not as ours are: the program could write it, too.
    """
    try:
        places = [place for one in recording["signals"] for place in one["places"]]
        for one in recording["aliases"][:_MAX_FINDINGS]:
            places += [one["changed"], one["stored"]]
        for one in recording["kept"][:_MAX_FINDINGS]:
            places += [*one["writers"], one["written"], one["read"], *one["passed_by"], *one["others"]]
        return [[place["path"], place["line"]] for place in places]
    except (KeyError, TypeError):
        return []


OPS = {"diagnose": diagnose, "diagnose.command": command_of_test}
