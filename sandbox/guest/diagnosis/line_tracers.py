"""Executed lines of the repository's functions: by sys.monitoring, or by sys.settrace before Python 3.12.

Lines of modules and class bodies run when something is imported: they say nothing about the test that was first.
"""

# `sys.monitoring` is there from 3.12 on.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import sys

from ..debugger.isolation.pristine import threading

_CO_OPTIMIZED = 1  # of functions; `inspect` would have to be imported for it


def choose(project):
    """Return the cheaper tracer that this Python has."""
    return Monitoring(project) if hasattr(sys, "monitoring") else Settrace(project)


class Monitoring:
    """Each line of a function reports once a test."""

    def __init__(self, project):
        self._has, self._lines, self._known, self._tool = project.has, set(), {}, None

    def start(self):
        monitoring = sys.monitoring
        self._tool = next(number for number in (4, 3, 5, 2) if monitoring.get_tool(number) is None)
        monitoring.use_tool_id(self._tool, "pdbox")
        events = monitoring.events
        monitoring.register_callback(self._tool, events.PY_START, self._on_start)
        monitoring.register_callback(self._tool, events.LINE, self._on_line)
        monitoring.set_events(self._tool, events.PY_START)

    def restart(self):
        self._lines = set()
        sys.monitoring.restart_events()

    def take(self):
        return self._lines

    def stop(self):
        if self._tool is not None:
            sys.monitoring.set_events(self._tool, 0)

    def _on_start(self, code, offset):
        name = code.co_filename
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = self._has(name)
        if known and code.co_flags & _CO_OPTIMIZED:
            sys.monitoring.set_local_events(self._tool, code, sys.monitoring.events.LINE)
        return sys.monitoring.DISABLE

    def _on_line(self, code, line):
        self._lines.add((code.co_filename, line))
        return sys.monitoring.DISABLE


class Settrace:
    """Each line reports whenever it runs."""

    def __init__(self, project):
        self._has, self._lines, self._known = project.has, set(), {}

    def start(self):
        threading.settrace(self._on_call)
        sys.settrace(self._on_call)

    def restart(self):
        self._lines = set()
        sys.settrace(self._on_call)  # a test may have replaced it

    def take(self):
        return self._lines

    def stop(self):
        sys.settrace(None)
        threading.settrace(None)

    def _on_call(self, frame, event, arg):
        name = frame.f_code.co_filename
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = self._has(name)
        return self._on_line if known and frame.f_code.co_flags & _CO_OPTIMIZED else None

    def _on_line(self, frame, event, arg):
        if event == "line":
            self._lines.add((frame.f_code.co_filename, frame.f_lineno))
        return self._on_line
