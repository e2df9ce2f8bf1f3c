# ruff: noqa: INP001 - loaded by its name from here
"""Joins the debugger at the first `breakpoint()` of a child process.

`pdb.set_trace()` and `pytest.set_trace()` count as well. For Pythons that the debugged program starts while
there are no breakpoints. A test that fails in a worker of pytest-xdist joins as well. Before that nothing of
the debugger is loaded, and the process runs as it would without us.
"""

import os
import sys

# These run at each start of a process: everything else is imported when it is needed.
VARIABLE = "PDBOX_JOIN"
JOIN = "join"  # as in `protocol/attach_question.py`
_address = ""
_load = __import__
_session = None
_refused = False
_spawn_watch = None
_WORKER = "PYTEST_XDIST_WORKER"
_worker_before = os.environ.get(_WORKER)


def install(load, leave_path):
    """Replace the entry points, and remove the variables that brought us here from the environment.

    `load(name)` imports a module of this folder.
    """
    global _address, _load, _spawn_watch
    _address, _load = os.environ.pop(VARIABLE), load
    leave_path()
    _spawn_watch = load("_pdbox_spawn").Watch(_address, lambda: VARIABLE, lambda text: None)
    _spawn_watch.install()
    stock = sys.breakpointhook

    def breakpointhook(*args, **kwargs):
        own = os.environ.get("PYTHONBREAKPOINT", "")
        if own or not _enter(sys._getframe(1), kwargs):
            return stock(*args, **kwargs)
        return None

    sys.breakpointhook = breakpointhook
    sys.meta_path.insert(0, _Watch)


class _Watch(object):
    """First finder on sys.meta_path. Calls a function for each of the watched modules after its import."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        action = _watched.pop(name, None)
        if action is None:
            return None
        return _load("_pdbox_finder").Finder({name: action}).find_spec(name, path, target)


def _watch_pdb(module):
    stock = module.set_trace

    def set_trace(*args, **kwargs):
        if not _enter(sys._getframe(1), kwargs):
            stock(*args, **kwargs)

    set_trace.__doc__ = stock.__doc__
    module.set_trace = set_trace


def _watch_pytest(module):
    # pytest replaces both other functions by this one.
    stock = module.pytestPDB.set_trace

    def set_trace(cls, *args, **kwargs):
        if not _enter(sys._getframe(1), kwargs):
            stock(*args, **kwargs)

    module.pytestPDB.set_trace = classmethod(set_trace)


def _watch_runner(module):
    stock = module.check_interactive_exception

    def check_interactive_exception(call, report):
        shown = stock(call, report)
        # Children of a worker belong to its tests, and a broken module fails in each worker.
        is_worker = os.environ.get(_WORKER, _worker_before) != _worker_before
        if shown and is_worker and getattr(report, "when", None) in ("setup", "call", "teardown"):
            _post_mortem(call.excinfo.value, report.nodeid)
        return shown

    module.check_interactive_exception = check_interactive_exception


_watched = {"pdb": _watch_pdb, "_pytest.debugging": _watch_pytest, "_pytest.runner": _watch_runner}


def _enter(frame, options):
    """Stop in `frame`. Returns False if no debugger is available."""
    session = _get_session()
    if session is not None:
        session.stops.set_trace(frame, options.get("commands"), options.get("header"))
    return session is not None


def _post_mortem(exc, test):
    session = _get_session()
    if session is not None:
        sys.modules["_pdbox.debugger.runners.pytest_plugin"].stop_in_worker(session, exc, test)


def _get_session():
    """Return the debugger's session, joined at the first call; None if it is not available."""
    global _session, _refused
    if _session is None and not _refused:
        _refused = True  # until it has joined; modules that it loads may call this function
        _session = _join_supervisor()
        _refused = _session is None
    return _session if _session is not None and _session.channel.open else None


def _join_supervisor():
    from _socket import AF_UNIX, SOCK_STREAM, socket

    channel = socket(AF_UNIX, SOCK_STREAM)
    try:
        attach = _load("_pdbox_attach")
        attach.send_question(channel, _address, JOIN, attach.command_line())
        channel.settimeout(None)
        loaded = set(sys.modules)
        return (
            _load("_pdbox_package").load_package("debugger.main").join(channel.detach(), loaded, _spawn_watch)
        )
    except Exception:  # without us the program stops as it would have
        channel.close()
        return None
