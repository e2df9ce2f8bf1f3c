# ruff: noqa: INP001 - loaded by name from here, never as a part of a package
"""A pytest plugin that reports the final outcome of each test. `_pdbox_report` loads it after pytest."""

import os
import sys

from _pdbox_failure import causes_of, fold_frames, frames_of, frames_of_error, output_of
from _pdbox_init_tests import collect_named
from _pdbox_report import MAX_ID, Merged, copy_metadata, cut, quiet, reporter

_NAME = "pdbox-report"
_MAX_IDS = 20000
"""Characters of the ids that are reported when they are collected."""


def watch(config_module):
    """Register the plugin in each outermost configuration that pytest makes from now on."""
    get_config = config_module.get_config
    plugin_class = make_plugin_class(config_module.hookimpl)

    @quiet
    def register(config):
        if reporter.owner is None:
            config.pluginmanager.register(plugin_class(), _NAME)

    def get_config_and_report(*args, **kwargs):
        config = get_config(*args, **kwargs)
        register(config)
        return config

    copy_metadata(get_config_and_report, get_config)
    config_module.get_config = get_config_and_report


def make_plugin_class(hookimpl):
    """Return the plugin's class, which needs pytest's own marks."""

    class Plugin(object):
        def __init__(self):
            self._run = Run()

        @hookimpl(tryfirst=True)
        def pytest_cmdline_main(self, config):
            self._run.prepare(config)
            if reporter.owner is None:
                quiet(collect_named)(config, hookimpl)

        def pytest_report_header(self, config):
            return self._run.header

        @hookimpl(tryfirst=True)
        def pytest_sessionstart(self, session):
            # First, so that the workers that xdist starts here don't report.
            self._run.begin(session.config)

        @hookimpl(trylast=True)
        def pytest_unconfigure(self, config):
            self._run.end()

        @hookimpl(trylast=True)
        def pytest_collection_finish(self, session):
            self._run.collected(session.items)

        @hookimpl(optionalhook=True)
        def pytest_xdist_node_collection_finished(self, node, ids):
            self._run.collected(ids)

        def pytest_collectreport(self, report):
            self._run.on_collected(report)

        @hookimpl(tryfirst=True)
        def pytest_exception_interact(self, call, report):
            self._run.on_collection_failed(call.excinfo, report)

        @hookimpl(hookwrapper=True)
        def pytest_runtest_makereport(self, item, call):
            yield
            # After the others: only they know the exception of a TestCase.
            self._run.on_called(item.nodeid, call.when, call.excinfo)

        @hookimpl(tryfirst=True)
        def pytest_internalerror(self, excinfo):
            self._run.on_internal_error(excinfo)

        @hookimpl(tryfirst=True)
        def pytest_runtest_logstart(self, nodeid, location):
            self._run.on_start(nodeid, location)

        @hookimpl(tryfirst=True)
        def pytest_runtest_logreport(self, report):
            self._run.on_report(report)

        @hookimpl(tryfirst=True)
        def pytest_runtest_logfinish(self, nodeid, location):
            self._run.on_finish(nodeid)

    return Plugin


class Run(object):
    """One test session."""

    def __init__(self):
        self._running = {}
        self._messages = {}
        self._frames = {}
        self._claimed = False
        self.header = None

    @quiet
    def prepare(self, config):
        """Turn off `--pdb` and `--trace`, since no user can answer pdb, and go on past files that can't be collected, if asked to.

        With `--pdb` the run would end at the first failure, with `--trace` no test would run.
        """
        if reporter.goes_past_errors():
            config.option.continue_on_collection_errors = True
        asked = [option for option in ("usepdb", "trace") if getattr(config.option, option, False)]
        for option in asked:
            setattr(config.option, option, False)
        if asked:
            names = " and ".join("--" + option.replace("use", "") for option in asked)
            self.header = f"pdbox: {names} is off, nobody is here to answer pdb"

    @quiet
    def begin(self, config):
        self._claimed = not hasattr(config, "workerinput") and reporter.claim(self)
        if self._claimed:
            root = getattr(config, "rootpath", None) or config.rootdir
            captured = getattr(config.option, "capture", "no") != "no"
            reporter.send("pytest", "root", path=root, captured=int(captured))

    @quiet
    def end(self):
        reporter.release(self)
        self._claimed = False

    @quiet
    def collected(self, items):
        if self._claimed:
            reporter.send("pytest", "collected", count=len(items), ids=first_ids(items))

    @quiet
    def on_collected(self, report):
        """Report a file that can't be collected in place of its tests."""
        if self._claimed and report.outcome != "passed" and report.nodeid:
            merged = Merged()
            merged.duration_s = 0.0
            message = self._messages.pop(report.nodeid, "") or reason_of(report)
            frames = self._frames.pop(report.nodeid, None) or frames_of_report(report)
            merged.add("error" if report.outcome == "failed" else "skipped", message, frames=frames)
            self._send(report.nodeid, merged)

    @quiet
    def on_collection_failed(self, excinfo, report):
        """Keep type, message and place of the exception: pytest's report has them only inside of a text."""
        if self._claimed and type(report).__name__ == "CollectReport":
            self._messages[report.nodeid] = collect_text(excinfo.value)
            self._frames[report.nodeid] = frames_of_error(excinfo.value.__cause__ or excinfo.value)

    @quiet
    def on_called(self, nodeid, when, excinfo):
        """Keep the frames of a failure, and the failures of a doctest, for the same reason."""
        if not self._claimed or excinfo is None:
            return
        self._frames[nodeid] = when, frames_of(excinfo.tb) + causes_of(excinfo.value)
        failures = doctest_failures(excinfo.value)
        if failures:
            self._messages[nodeid] = "\n".join(doctest_text(failure) for failure in failures)

    @quiet
    def on_internal_error(self, excinfo):
        """Report that pytest itself has failed (exit code 3), which voids the results before."""
        if self._claimed:
            # Not the text of the exception: its `__str__` may be what failed.
            message = f"INTERNALERROR of pytest: {excinfo.type.__name__}"
            reporter.send("pytest", "void", message=message, frames=frames_of(excinfo.tb))

    @quiet
    def on_start(self, nodeid, location):
        if self._claimed:
            path, line = location[0], location[1]
            self._running[nodeid] = Merged((path, None if line is None else line + 1))
            reporter.send("pytest", "start", id=nodeid[:MAX_ID])

    @quiet
    def on_report(self, report):
        if not self._claimed:
            return
        merged = self._running.get(report.nodeid)
        if report.outcome == "rerun":  # pytest-rerunfailures: only the last attempt counts
            if merged is not None:
                self._running[report.nodeid] = Merged(merged.place)
            return
        known = merged is not None
        if not known:
            merged = Merged()
        when, frames = self._frames.pop(report.nodeid, ("", []))
        judge(merged, report, self._messages.pop(report.nodeid, ""), frames if when == report.when else [])
        merged.duration_s = max(0.0, merged.duration_s) + (getattr(report, "duration", 0.0) or 0.0)
        if report.when not in ("setup", "call", "teardown") or (not known and merged.outcome is not None):
            # A crashed worker of xdist: there are no more reports of this test.
            self._running.pop(report.nodeid, None)
            self._send(report.nodeid, merged)

    @quiet
    def on_finish(self, nodeid):
        merged = self._running.pop(nodeid, None)
        if merged is not None and merged.outcome is None:
            reporter.send("pytest", "end", id=nodeid[:MAX_ID])
        elif merged is not None:
            self._send(nodeid, merged)

    def _send(self, nodeid, merged):
        reporter.send("pytest", "result", id=nodeid[:MAX_ID], **merged.fields())


def first_ids(items):
    """Return the ids of the first items, which are items or ids."""
    ids, left = [], _MAX_IDS
    for item in items:
        name = getattr(item, "nodeid", item)
        left -= len(name) + 4
        if left < 0:
            break
        ids.append(name)
    return ids


def judge(merged, report, message="", frames=()):
    """Add the outcome of one phase. `message` is a better reason for its failure, if known, `frames` its traceback."""
    outcome, when = report.outcome, report.when
    if "subtest" in type(report).__name__.lower():
        if outcome == "failed":
            merged.add("failed", reason_of(report), **details_of(report, frames))
    elif outcome == "failed":
        bad = "failed" if when == "call" else "error"
        merged.add(bad, message or reason_of(report), **details_of(report, frames))
    elif hasattr(report, "wasxfail"):
        if outcome == "skipped" or when == "call":
            merged.add(
                "xfailed" if outcome == "skipped" else "xpassed", strip_prefix(report.wasxfail, "reason: ")
            )
    elif outcome == "skipped":
        merged.add("skipped", reason_of(report))
    elif when == "call":
        merged.add("passed")


def details_of(report, frames):
    """Return the frames and the captured output of a failed phase."""
    frames = list(frames) or frames_of_report(report)
    return {"frames": frames, "output": captured_output(report)}


def captured_output(report):
    """Return the output that pytest has captured, with stderr and log marked as such."""
    parts = []
    for title, text in getattr(report, "sections", ()):
        words = title.split()
        if words[:1] == ["Captured"] and len(words) == 3:
            parts.append(("" if words[1] == "stdout" else words[1], text))
    return output_of(parts)


def frames_of_report(report):
    """Return the frames of a report out of another process (xdist), which has no traceback."""
    entries = getattr(getattr(report.longrepr, "reprtraceback", None), "reprentries", ())
    places = [getattr(entry, "reprfileloc", None) for entry in entries]
    return fold_frames([(place.path, place.lineno, "") for place in places if place is not None])


def reason_of(report):
    """Return the reason of a failed or skipped phase in a few lines."""
    longrepr = report.longrepr
    if longrepr is None:
        return ""
    crash = getattr(longrepr, "reprcrash", None)
    if crash is not None:
        return cut(crash.message)
    if isinstance(longrepr, tuple) and len(longrepr) == 3:
        return strip_prefix(longrepr[2], "Skipped: ")
    lines = str(longrepr).strip().split("\n")
    marked = [line[1:].strip() for line in lines if line.startswith("E ")]
    return cut("\n".join(marked or lines))


def collect_text(exc):
    """Return type, message and place of the exception that prevents a collection."""
    exc = exc.__cause__ or exc
    message, path, line = str(exc), None, None
    if isinstance(exc, SyntaxError) and exc.filename:
        message, path, line = exc.msg, exc.filename, exc.lineno
    else:
        step = exc.__traceback__
        while step is not None:
            name = step.tb_frame.f_code.co_filename
            if name.startswith(os.getcwd() + os.sep) and "site-packages" not in name:
                path, line = name, step.tb_lineno
            step = step.tb_next
    first = message.split("\n")[0]
    text = f"{type(exc).__name__}: {first}"
    return cut(text) if path is None else cut(f"{text} ({os.path.relpath(path)}:{line})")


def doctest_failures(exc):
    """Return the failed examples of a doctest; an empty list for another exception."""
    module = sys.modules.get("doctest")
    kinds = module is not None and (module.DocTestFailure, module.UnexpectedException)
    found = getattr(exc, "failures", None)
    found = found if isinstance(found, list) else [exc]
    return [failure for failure in found if kinds and isinstance(failure, kinds)]


def doctest_text(failure):
    """Describe the actual and the expected result of a doctest example."""
    example, test = failure.example, failure.test
    line = (test.lineno or 0) + example.lineno + 1
    place = f"({os.path.basename(test.filename or test.name)}:{line})"
    if hasattr(failure, "exc_info"):
        kind, error = failure.exc_info[:2]
        said = f"raised {kind.__name__}: {error}"
    else:
        said = f"gave {shorten(failure.got)} where {shorten(example.want)} was expected"
    return f"`{shorten(example.source)}` {said} {place}"


def shorten(text):
    text = " ".join(text.split())
    return (text if len(text) <= 80 else text[:79] + "\u2026") or "nothing"


def strip_prefix(text, prefix):
    text = str(text)
    return text[len(prefix) :] if text.startswith(prefix) else text
