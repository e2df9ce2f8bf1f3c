# ruff: noqa: INP001 - loaded by name from here, never as a part of a package
"""A pytest plugin that reports the final outcome of each test. Loaded by `_pdbox_report` once pytest itself has been."""

from _pdbox_report import MAX_ID, Merged, cut, dressed, quiet, reporter

_NAME = "pdbox-report"


def watch(config_module):
    """Have each configuration that pytest makes from now on carry the plugin, as far as it is the outermost."""
    get_config = config_module.get_config
    plugin_class = plugin_of(config_module.hookimpl)

    @quiet
    def register(config):
        if reporter.owner is None:
            config.pluginmanager.register(plugin_class(), _NAME)

    def get_config_and_report(*args, **kwargs):
        config = get_config(*args, **kwargs)
        register(config)
        return config

    dressed(get_config_and_report, get_config)
    config_module.get_config = get_config_and_report


def plugin_of(hookimpl):
    """The plugin's class; its marks are pytest's own."""

    class Plugin(object):
        def __init__(self):
            self._run = Run()

        @hookimpl(tryfirst=True)
        def pytest_cmdline_main(self, config):
            self._run.prepare(config)

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
        self._claimed = False
        self.header = None

    @quiet
    def prepare(self, config):
        """Nobody is there to answer pdb: with `--pdb` the run would end at the first failure, with `--trace` no test would be run."""
        asked = [option for option in ("usepdb", "trace") if getattr(config.option, option, False)]
        for option in asked:
            setattr(config.option, option, False)
        if asked:
            names = " and ".join("--" + option.replace("use", "") for option in asked)
            self.header = "pdbox: %s is off, nobody is here to answer pdb" % names

    @quiet
    def begin(self, config):
        self._claimed = not hasattr(config, "workerinput") and reporter.claim(self)

    @quiet
    def end(self):
        reporter.release(self)
        self._claimed = False

    @quiet
    def collected(self, items):
        if self._claimed:
            reporter.send("pytest", "collected", count=len(items))

    @quiet
    def on_collected(self, report):
        """A file that can't be collected has no tests, so it stands for them itself."""
        if self._claimed and report.outcome != "passed" and report.nodeid:
            merged = Merged()
            merged.duration_s = 0.0
            merged.add("error" if report.outcome == "failed" else "skipped", reason_of(report))
            self._send(report.nodeid, merged)

    @quiet
    def on_internal_error(self, excinfo):
        """pytest itself has failed (exit code 3): what it said before is no verdict."""
        if self._claimed:
            # Not the text of the exception: making that may be what failed.
            reporter.send("pytest", "void", message="INTERNALERROR of pytest: %s" % excinfo.type.__name__)

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
        judge(merged, report)
        merged.duration_s = max(0.0, merged.duration_s) + (getattr(report, "duration", 0.0) or 0.0)
        if report.when not in ("setup", "call", "teardown") or (not known and merged.outcome is not None):
            # A crashed worker of xdist: nothing more comes about this test.
            self._running.pop(report.nodeid, None)
            self._send(report.nodeid, merged)

    @quiet
    def on_finish(self, nodeid):
        merged = self._running.pop(nodeid, None)
        if merged is not None:
            if merged.outcome is None:
                merged.add("error", "pytest reported no outcome.")
            self._send(nodeid, merged)

    def _send(self, nodeid, merged):
        reporter.send("pytest", "result", id=nodeid[:MAX_ID], **merged.fields())


def judge(merged, report):
    """Add what the report of one phase means."""
    outcome, when = report.outcome, report.when
    if "subtest" in type(report).__name__.lower():
        if outcome == "failed":
            merged.add("failed", reason_of(report))
    elif outcome == "failed":
        merged.add("failed" if when == "call" else "error", reason_of(report))
    elif hasattr(report, "wasxfail"):
        if outcome == "skipped" or when == "call":
            merged.add("xfailed" if outcome == "skipped" else "xpassed", without(report.wasxfail, "reason: "))
    elif outcome == "skipped":
        merged.add("skipped", reason_of(report))
    elif when == "call":
        merged.add("passed")


def reason_of(report):
    """Why, in a few lines."""
    longrepr = report.longrepr
    if longrepr is None:
        return ""
    crash = getattr(longrepr, "reprcrash", None)
    if crash is not None:
        return cut(crash.message)
    if isinstance(longrepr, tuple) and len(longrepr) == 3:
        return without(longrepr[2], "Skipped: ")
    lines = str(longrepr).strip().split("\n")
    marked = [line[1:].strip() for line in lines if line.startswith("E ")]
    return cut("\n".join(marked or lines))


def without(text, prefix):
    text = str(text)
    return text[len(prefix) :] if text.startswith(prefix) else text
