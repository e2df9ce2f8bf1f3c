# ruff: noqa: INP001 - `site` loads it by its name
# First on PYTHONPATH during a test run, and while a command line is followed to the program to debug. Every
# interpreter that these start loads this module, of any version: so it has plain syntax, and imports only
# modules that Python has loaded anyway. It must never make a program fail, so all errors are swallowed.
import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))


def _hook():
    if sys.version_info < (3, 6):
        return
    if os.environ.get("PDBOX_DEBUG"):
        _load("_pdbox_attach").ask(_load, _leave_path)
    if os.environ.get("PDBOX_JOIN"):
        _load("_pdbox_breakpoint").install(_load, _leave_path)
    if os.environ.get("PDBOX_REPORT"):
        _load("_pdbox_report").install(_load)
    if os.environ.get("PDBOX_DIAGNOSE"):
        _load("_pdbox_diagnose").install(_load)


def _load(name):
    sys.path.insert(0, _here)
    try:
        return __import__(name)
    finally:
        sys.path.remove(_here)


def _leave_path():
    """Remove this folder from PYTHONPATH, so that later children don't load this module."""
    before = os.environ.get("PYTHONPATH")
    if before is None:
        return
    entries = [entry for entry in before.split(os.pathsep) if not entry or os.path.abspath(entry) != _here]
    if entries:
        os.environ["PYTHONPATH"] = os.pathsep.join(entries)
    else:
        os.environ.pop("PYTHONPATH", None)


def _import_next_sitecustomize():
    """Import the sitecustomize that this one hides, as Python would without us."""
    ours = sys.modules.pop("sitecustomize")
    try:
        __import__("sitecustomize")
    except ImportError as exc:
        if getattr(exc, "name", "sitecustomize") != "sitecustomize":
            raise  # an import in theirs fails: `site` reports that
    finally:
        sys.modules.setdefault("sitecustomize", ours)


sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _here]
try:
    _hook()
except Exception:
    pass  # a run without us is better than a broken one
_import_next_sitecustomize()
