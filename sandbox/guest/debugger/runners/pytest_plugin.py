"""A pytest plug-in that stops at a failing test and turns off options of pytest that disturb the debugger."""

# pytest passes the configuration before it calls anything else.
# pyright: reportOptionalMemberAccess=false
from __future__ import annotations

import importlib.util
import pdb
import sys

from ...hooks._pdbox_init_tests import collect_named
from ..control import interrupt
from ..inspection import safe_repr
from ..isolation.pristine import os
from . import pytest_capture, pytest_terminal

__tracebackhide__ = True
_MAX_DOCTESTS = 5
_OF_XDIST = ("-n", "--numprocesses", "--dist", "--tx")


def hook(session, module):
    """Add our plug-in to pytest's next (outermost) run."""
    prepare = module._prepareconfig
    runs = []

    def with_plugin(args=None, plugins=None, **kwargs):
        if runs:  # a run inside the run: pytest's own tests, whose failures are expected
            return prepare(args, plugins, **kwargs)
        runs.append(True)
        args = _arguments(session, list(sys.argv[1:]) if args is None else args)
        try:
            return prepare(args, list(plugins or ()) + [make_plugin(session, _marks())], **kwargs)
        except getattr(module, "ConftestImportFailure", ()) as exc:
            session.at_tests()
            session.post_mortem.stop(exc.__cause__ or exc)
            raise

    module._prepareconfig = with_plugin


def _failures(exc):
    """Return the failures of an exception. Several with --doctest-continue-on-failure, else itself."""
    failures = getattr(exc, "failures", None)
    return failures if failures and isinstance(failures, list) else [exc]


def _doctests(session, failures):
    """Describe failed doctests without an exception of the repository, whose frames are all pytest's."""
    known = getattr(sys.modules.get("doctest"), "DocTestFailure", ())
    return [_doctest(session, each) for each in failures[:_MAX_DOCTESTS] if isinstance(each, known)]


def _doctest(session, failure):
    example, test = failure.example, failure.test
    line = (test.lineno or 0) + example.lineno + 1
    return (
        f"The doctest at {session.relative(test.filename or test.name)}:{line},"
        f" `{example.source.strip()[:200]}`, gave {failure.got!r:.200} where {example.want!r:.200} was expected."
    )


def _root_of(config):
    return os.path.realpath(str(getattr(config, "rootpath", None) or config.rootdir))


def _from_workspace(session, root, nodeid):
    """Convert an id relative to pytest's `root` to one relative to the workspace, as entry points have it."""
    path, colons, rest = nodeid.partition("::")
    seen = os.path.relpath(os.path.join(root, path), session.workdir)
    return nodeid if seen.startswith(os.pardir) else seen + colons + rest


def stop_in_worker(session, exc, nodeid):
    """Stop at a failing test in a worker of pytest-xdist without our plug-in, which has joined just now."""
    session.at_tests()
    session.post_mortem.enabled = True
    # pytest keeps its configuration here.
    owner = getattr(sys.modules.get("_pytest.debugging"), "pytestPDB", None)
    try:
        session.test = _from_workspace(session, _root_of(owner._config), nodeid)
    except Exception:  # `-p no:debugging`
        session.test = nodeid
    session.post_mortem.stop(exc)
    session.test = None


def _marks():
    import pytest

    return pytest.hookimpl


def _arguments(session, args):
    if isinstance(args, (str, os.PathLike)) or session.engine.name == "monitoring":
        return args  # sys.monitoring and coverage's trace function don't disturb each other
    plain = not os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD") and "no:cov" not in " ".join(map(str, args))
    measures = "--cov" in " ".join(map(str, args)) + os.environ.get("PYTEST_ADDOPTS", "") + _ini_text()
    if plain and measures and importlib.util.find_spec("pytest_cov") is not None:
        session.notices.add(
            "pytest-cov is off (--no-cov): on this Python its tracing would hide the breakpoints."
        )
        return list(args) + ["--no-cov"]
    return args


def _has_workers(option):
    return getattr(option, "dist", "no") != "no" or getattr(option, "tx", None)


def _wants_workers(session, config):
    """True if xdist keeps its workers.

    Without breakpoints it does: tests run as without us, and a worker joins us when one fails. With
    breakpoints only if the command line asks for workers.
    """
    words = [str(word) for word in config.invocation_params.args]
    return not session.table or any(word.startswith(_OF_XDIST) for word in words)


def _ini_text():
    found = []
    for name in ("pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg"):
        try:
            with open(name, encoding="utf-8", errors="replace") as file:
                found.append(file.read(1 << 18))
        except OSError:
            pass
    return "".join(found)


def _take_set_trace(session):
    """Replace the pdb of `pytest.set_trace()`, which would keep tracing after its stop."""
    module = sys.modules.get("_pytest.debugging")
    owner = getattr(module, "pytestPDB", None)
    stock = getattr(owner, "_init_pdb", None)
    if stock is None or stock.__module__ == __name__:
        return

    class Ours:
        def __init__(self, header):
            self._header = header

        def set_trace(self, frame):
            session.stops.set_trace(frame, header=self._header)

    def init(*args, **kwargs):
        if args[:1] != ("set_trace",):
            return stock(*args, **kwargs)
        return Ours(kwargs.get("header"))

    owner._init_pdb = staticmethod(init)


def make_plugin(session, hookimpl):
    """Return the plug-in. Its class is made for each run, because pytest's marks need pytest."""

    class PdboxPlugin:
        """Plug-in that is registered under its own name, so that `-p no:` can't turn it off."""

        _config = None
        _root = ""
        _tees = ()
        _terminal = None

        @hookimpl(tryfirst=True)
        def pytest_cmdline_main(self, config):
            session.at_tests()
            option = config.option
            if getattr(option, "usepdb", False):
                option.usepdb = False
                session.notices.add("pytest's --pdb is off: failing tests stop here anyway.")
            if getattr(option, "forked", False):
                option.forked = False
                session.notices.add("pytest-forked is off (no --forked): one process is easier to follow.")
            if _has_workers(option) and not _wants_workers(session, config):
                option.dist, option.tx, option.numprocesses = "no", [], 0
                if hasattr(option, "looponfail"):
                    option.looponfail = False
                session.notices.add("pytest-xdist is off (-n 0): one process is easier to follow.")
            collect_named(config, hookimpl)

        @hookimpl(trylast=True)
        def pytest_configure(self, config):
            self._config, self._root = config, _root_of(config)
            if hasattr(config, "workerinput"):
                # Only here can a failing test of this worker still be inspected.
                session.post_mortem.enabled = True
            # pytest has installed its own one by now.
            pdb.set_trace = session.set_trace_function
            _take_set_trace(session)
            session.dump_again()
            session.hooks.add(self._enter, self._leave)
            self._terminal = pytest_terminal.Terminal(config)
            self._tees = pytest_capture.tees(config)
            if self._tees:
                interrupt.on_show(session, self._show)

        @hookimpl(tryfirst=True)
        def pytest_unconfigure(self, config):
            session.hooks.clear()

        def _show(self):
            for tee in self._tees:
                tee.show()

        def _enter(self, debugger):
            self._show()
            self._config.hook.pytest_enter_pdb(config=self._config, pdb=debugger)

        def _leave(self, debugger):
            self._config.hook.pytest_leave_pdb(config=self._config, pdb=debugger)

        @hookimpl(hookwrapper=True, tryfirst=True)
        def pytest_runtest_logstart(self, nodeid, location):
            session.test = _from_workspace(session, self._root, nodeid)
            with self._terminal.muted():
                yield

        @hookimpl(hookwrapper=True, tryfirst=True)
        def pytest_runtest_logfinish(self, nodeid, location):
            with self._terminal.muted():
                yield
            session.test = None

        @hookimpl(hookwrapper=True, tryfirst=True)
        def pytest_sessionstart(self, session):
            with self._terminal.muted():
                yield

        @hookimpl(hookwrapper=True, tryfirst=True)
        def pytest_collection(self, session):
            with self._terminal.muted():
                yield

        @hookimpl(hookwrapper=True, tryfirst=True)
        def pytest_runtest_logreport(self, report):
            with self._terminal.muted():
                yield

        # Innermost: in older pluggies a wrapper that raises keeps those around it from going on.
        @hookimpl(hookwrapper=True, trylast=True)
        def pytest_runtest_makereport(self, item, call):
            outcome = yield
            if outcome.excinfo is not None and call.excinfo is not None:
                # pytest fails while it describes the failure, which ends the whole run.
                kind, failed = outcome.excinfo[:2]
                session.notices.add(
                    f"pytest itself fails in reporting this: {kind.__name__}: {safe_repr.text_of(failed)}"
                )
                self._stop_at(item, call)
                session.post_mortem.pass_over(failed)

        @hookimpl(tryfirst=True)
        def pytest_exception_interact(self, node, call, report):
            self._stop_at(node, call, self._logs(report))
            if session.post_mortem.has_shown(getattr(call.excinfo, "value", None)):
                self._terminal.leave_out(report)

        @hookimpl(hookwrapper=True)
        def pytest_internalerror(self, excinfo):
            session.post_mortem.stop(excinfo.value)  # before pytest ends capturing
            yield

        def _logs(self, report):
            return "".join(
                ["%s\n" % text for name, text in getattr(report, "sections", ()) if "Captured log" in name]
            )

        def _stop_at(self, node, call, logs=""):
            exc = getattr(call.excinfo, "value", None)
            failures = _failures(exc)
            session.notices.hold(*_doctests(session, failures))
            # A doctest wraps the exception of its example.
            inner = getattr(failures[0], "exc_info", None)
            if isinstance(inner, tuple) and len(inner) == 3 and isinstance(inner[1], BaseException):
                exc = inner[1]
            if exc is not None and exc.__traceback__ is not None:
                for tee in self._tees:
                    tee.show_taken()
                self._terminal.write(logs)
                before = session.test
                if before is None and getattr(node, "nodeid", None):
                    session.test = _from_workspace(session, self._root, node.nodeid)
                session.post_mortem.stop(exc)
                session.test = before

    return PdboxPlugin()
