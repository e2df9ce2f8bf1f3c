"""Reports to an observer: tests of pytest and unittest, and a program's uncaught exception."""

from __future__ import annotations

import functools
import os
import sys

from ..debugger.isolation.import_hooks import AfterImport
from ..hooks._pdbox_init_tests import collect_named
from .job import guarded

_NAME = "pdbox-diagnosis"


def install(observer):
    """Install the hooks when the program imports a test runner."""
    tests = Tests(observer)
    hooks = {
        "_pytest.config": guarded(lambda module: _watch_pytest(tests, module)),
        "unittest.case": guarded(lambda module: _watch_cases(tests, module)),
        "unittest.result": guarded(lambda module: _watch_results(tests, module)),
        "unittest.main": guarded(lambda module: _watch_main(tests, module)),
    }
    for name, hook in observer.hooks.items():
        hooks[name] = guarded(hook)
    sys.meta_path.insert(0, AfterImport(hooks))
    stock = sys.excepthook

    def excepthook(kind, exc, trace):
        tests.program_failed(exc)
        stock(kind, exc, trace)

    sys.excepthook = excepthook


class Tests:
    """The one run of this process that is observed, and its running test."""

    def __init__(self, observer):
        self._observer = observer
        self._state = "waiting"
        self.root = ""
        self.running = None
        self._outcome = None
        self._exc = None

    @guarded
    def begin(self, root=""):
        """Begin the run of a test runner. The first one of all processes is observed."""
        if self._state == "waiting":
            self._state = "running" if self._observer.job.claim() else "ignored"
            self.root = root
            if self._state == "running":
                self._observer.start()

    @property
    def observed(self):
        return self._state == "running"

    @guarded
    def begin_test(self, name):
        """Begin a test. False for a test inside of a test."""
        if self._state != "running" or self.running is not None:
            return False
        self.running, self._outcome, self._exc = name, None, None
        self._observer.begin_test(self._from_workspace(name))
        return True

    @guarded
    def set_up_shared(self, begins):
        """Hear of the set-up of what several tests share: its begin, and its end."""
        if self.running is not None:
            self._observer.set_up_shared(begins)

    def put_first(self, items):
        """Run the failing test first, then those that its observer wants soon: the time may not do for all.

        Where lines of tests are compared, it runs once more after another one of its file: what it does the first time
        alone, as filling a table for all tests, tells little.
        """
        if self._observer.job.settings.get("in_order"):
            return
        target = self._observer.job.test
        first = next((item for item in items if self._from_workspace(item.nodeid) == target), None)
        if first is None:
            return
        rest = [item for item in items if item is not first]
        rest.sort(key=lambda item: self._from_workspace(item.nodeid) not in self._observer.soon)
        file = first.nodeid.partition("::")[0]
        other = next((item for item in rest if item.nodeid.partition("::")[0] == file), None)
        if self._observer.compares_lines and other is not None:
            items[:] = [first, other, first, *(item for item in rest if item is not other)]
        else:
            items[:] = [first, *rest]

    def raised(self, exc):
        """Hear of an exception in the running test, before it is reported."""
        if self.running is not None and self._observer.ends_with_exception:
            self._observer.raised(exc)

    @guarded
    def failed(self, exc):
        self.raised(exc)
        if self.running is not None and self._exc is None:
            self._outcome, self._exc = "failed", exc
            if self._observer.records_values:
                self._observer.test_failed(self._from_workspace(self.running), exc)

    def passed(self):
        self._outcome = self._outcome or "passed"

    def skipped(self):
        self._outcome = self._outcome or "skipped"

    @guarded
    def end_test(self):
        """End the running test. True if no other one should begin."""
        name, self.running = self.running, None
        exc, self._exc = self._exc, None
        return self._observer.end_test(self._from_workspace(name), self._outcome, exc)

    @guarded
    def end(self):
        if self._state == "running":
            self._state = "over"
            self._observer.finish()

    @guarded
    def program_failed(self, exc):
        if self._state == "waiting" and self._observer.job.claim():
            self._observer.failed(exc)

    def compared(self, op, left, right):
        if self._state == "running":
            self._observer.compared(op, left, right)

    def _from_workspace(self, name):
        """Make an id of pytest relative to the workspace's root, as the supervisor has it."""
        if not self.root:
            return name
        path, colons, rest = name.partition("::")
        return self._observer.job.relative(os.path.join(self.root, path)) + colons + rest


def _watch_pytest(tests, module):
    get_config = module.get_config

    @functools.wraps(get_config)
    def get_config_and_observe(*args, **kwargs):
        config = get_config(*args, **kwargs)
        guarded(lambda: _register(tests, config, module.hookimpl))()
        return config

    module.get_config = get_config_and_observe


def _register(tests, config, hookimpl):
    if not tests.observed:
        config.pluginmanager.register(_plugin(tests, hookimpl), _NAME)


def _plugin(tests, hookimpl):
    class Plugin:
        @hookimpl(tryfirst=True)
        def pytest_configure(self, config):
            if not hasattr(config, "workerinput"):
                _turn_off(config.option)
                guarded(lambda: collect_named(config, hookimpl, whole=True))()

        @hookimpl(tryfirst=True)
        def pytest_sessionstart(self, session):
            config = session.config
            if not hasattr(config, "workerinput"):
                tests.begin(str(getattr(config, "rootpath", None) or config.rootdir))

        @hookimpl(hookwrapper=True, tryfirst=True)
        def pytest_runtest_protocol(self, item, nextitem):
            began = tests.begin_test(item.nodeid)
            yield
            if began and tests.end_test():
                item.session.shouldstop = "the time for this run is over"

        @hookimpl(hookwrapper=True, tryfirst=True)
        def pytest_fixture_setup(self, fixturedef, request):
            shared = fixturedef.scope != "function"
            if shared:
                tests.set_up_shared(True)
            yield
            if shared:
                tests.set_up_shared(False)

        @hookimpl(trylast=True)
        def pytest_collection_modifyitems(self, items):
            guarded(lambda: tests.put_first(items))()

        @hookimpl(hookwrapper=True, tryfirst=True)
        def pytest_runtest_makereport(self, item, call):
            is_running = tests.running == item.nodeid
            # Cases of unittest keep theirs at the item until the report is made.
            info = call.excinfo or (getattr(item, "_excinfo", None) or [None])[0]
            if is_running and info is not None:
                tests.raised(info.value)
            outcome = yield
            if is_running:
                guarded(lambda: _judge(tests, outcome.get_result(), call))()

        def pytest_assertrepr_compare(self, config, op, left, right):
            tests.compared(op, left, right)

        @hookimpl(trylast=True)
        def pytest_sessionfinish(self, session):
            if not hasattr(session.config, "workerinput"):
                tests.end()

    return Plugin()


def _turn_off(option):
    """Turn off what would run the tests elsewhere or wait for a user."""
    for name, value in (
        ("usepdb", False),
        ("trace", False),
        ("dist", "no"),
        ("tx", []),
        ("numprocesses", None),
    ):
        if hasattr(option, name):
            setattr(option, name, value)


def _judge(tests, report, call):
    if report.outcome == "failed" and call.excinfo is not None:
        tests.failed(call.excinfo.value)
    elif report.outcome == "skipped":
        tests.skipped()
    elif report.when == "call" and report.outcome == "passed":
        tests.passed()


def _watch_cases(tests, module):
    run = module.TestCase.run

    @functools.wraps(run)
    def run_test(self, result=None):
        # pytest runs a case with its own item as the result.
        began = not hasattr(result, "nodeid") and _begin_case(tests, self)
        try:
            return run(self, result)
        finally:
            if began:
                tests.passed()
                if tests.end_test() and result is not None:
                    result.shouldStop = True

    module.TestCase.run = run_test


@guarded
def _begin_case(tests, case):
    tests.begin()
    return tests.begin_test(_dotted(case.id()))


def _dotted(name):
    return name.split("\n")[0].split(" ")[0]


def _watch_results(tests, module):
    kind = module.TestResult
    for name in ("addFailure", "addError", "addSubTest", "addSkip", "addExpectedFailure"):
        setattr(kind, name, _wrap(tests, name, getattr(kind, name)))


def _wrap(tests, name, method):
    @functools.wraps(method)
    def called(self, test, *args, **kwargs):
        guarded(lambda: _hear(tests, name, args))()
        return method(self, test, *args, **kwargs)

    return called


def _hear(tests, name, args):
    error = args[-1] if args else None
    if name in ("addSkip", "addExpectedFailure"):
        tests.skipped()
    elif type(error) is tuple and len(error) == 3 and error[1] is not None:
        tests.failed(error[1])


def _watch_main(tests, module):
    import atexit

    atexit.register(tests.end)
