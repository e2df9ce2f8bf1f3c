"""Events of chosen code objects: by sys.monitoring, or by sys.settrace before Python 3.12.

Other code runs as before: with monitoring at full speed, with settrace one call of a Python function slower for
each of its calls.
"""

# `sys.monitoring` is there from 3.12 on.
# pyright: reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
from __future__ import annotations

import dis
import sys

from ...debugger.isolation.pristine import threading

CALLS, LINES = 1, 2
_FREE_TOOLS = (4, 3, 5, 2)
_RETURNS = frozenset(dis.opmap[name] for name in ("RETURN_VALUE", "RETURN_CONST") if name in dis.opmap)
_YIELD = dis.opmap["YIELD_VALUE"]
_YIELD_FROM = dis.opmap.get("YIELD_FROM", -1)


def choose_engine(choose, handler):
    """Return the engine of this Python. `choose(code)` returns the wanted events of a code object, 0 for none.

    `handler` gets `call(frame)`, `resume(frame)`, `leave(frame, value)`, `suspend(frame, value)`,
    `fail(frame, exception)` and `line(frame)`. None of these may raise.
    """
    return (Monitoring if hasattr(sys, "monitoring") else Settrace)(choose, handler)


class _Chosen:
    """Code objects by identity: equal ones of two files are equal to Python."""

    def __init__(self, choose):
        self._choose, self._known = choose, {}

    def __call__(self, code):
        known = self._known.get(id(code))
        if known is None:
            known = self._known[id(code)] = (code, self._choose(code) or 0)
        return known[1]


class Monitoring:
    """Events of sys.monitoring, switched off for all other code."""

    def __init__(self, choose, handler):
        self._wanted, self._handler, self._tool = _Chosen(choose), handler, None
        self._armed = {}

    def start(self):
        api = sys.monitoring
        self._tool = next(number for number in _FREE_TOOLS if api.get_tool(number) is None)
        api.use_tool_id(self._tool, "pdbox")
        events = api.events
        callbacks = self._callbacks()
        for name, callback in callbacks.items():
            api.register_callback(self._tool, getattr(events, name), callback)
        self._local = events.PY_RETURN | events.PY_YIELD | events.PY_RESUME
        api.set_events(self._tool, events.PY_START | events.PY_UNWIND | events.PY_THROW)

    def restart(self):
        """Do nothing: a test can't replace it by accident."""

    def stop(self):
        if self._tool is not None:
            sys.monitoring.set_events(self._tool, 0)
            for code in self._armed.values():
                sys.monitoring.set_local_events(self._tool, code, 0)
            self._armed.clear()

    def _arm(self, code, wanted):
        self._armed[id(code)] = code
        lines = sys.monitoring.events.LINE if wanted & LINES else 0
        sys.monitoring.set_local_events(self._tool, code, self._local | lines)

    def _callbacks(self):
        wanted, armed, handler, frame_at = self._wanted, self._armed, self._handler, sys._getframe
        disable, arm = sys.monitoring.DISABLE, self._arm

        def on_start(code, offset):
            chosen = wanted(code)
            if not chosen:
                return disable
            if id(code) not in armed:
                arm(code, chosen)
            handler.call(frame_at(1))

        def on_resume(code, offset):
            handler.resume(frame_at(1))

        def on_throw(code, offset, exc):
            if id(code) in armed:
                handler.resume(frame_at(1))

        def on_return(code, offset, value):
            handler.leave(frame_at(1), value)

        def on_yield(code, offset, value):
            handler.suspend(frame_at(1), value)

        def on_unwind(code, offset, exc):
            if id(code) in armed:
                handler.fail(frame_at(1), exc)

        def on_line(code, line):
            handler.line(frame_at(1), line)

        return {
            "PY_START": on_start,
            "PY_RESUME": on_resume,
            "PY_THROW": on_throw,
            "PY_RETURN": on_return,
            "PY_YIELD": on_yield,
            "PY_UNWIND": on_unwind,
            "LINE": on_line,
        }


class Settrace:
    """Trace functions for frames of chosen code only."""

    def __init__(self, choose, handler):
        self._wanted, self._handler = _Chosen(choose), handler
        self._starts, self._bytes = {}, {}
        self._raised = {}
        """id of a frame -> (instruction, exception) of the last exception that was raised in it."""

    def start(self):
        threading.settrace(self._on_call)
        sys.settrace(self._on_call)

    def restart(self):
        sys.settrace(self._on_call)  # a test may have replaced it

    def stop(self):
        sys.settrace(None)
        threading.settrace(None)

    def _on_call(self, frame, event, arg):
        code = frame.f_code
        chosen = self._wanted(code)
        if not chosen:
            return None
        frame.f_trace_lines = bool(chosen & LINES)
        # The first event of a code object is that of its start; later ones may be those of a generator.
        if self._starts.setdefault(id(code), frame.f_lasti) == frame.f_lasti:
            self._handler.call(frame)
        else:
            self._handler.resume(frame)
        return self._on_event

    def _on_event(self, frame, event, arg):
        if event == "line":
            self._handler.line(frame, frame.f_lineno)
        elif event == "exception":
            self._raised[id(frame)] = (frame.f_lasti, arg[1])
        elif event == "return":
            self._on_return(frame, arg)
        return self._on_event

    def _on_return(self, frame, value):
        at, exc = self._raised.pop(id(frame), (None, None))
        kind = self._end_at(frame.f_code, frame.f_lasti)
        if value is None and exc is not None and (kind is None or at == frame.f_lasti):
            self._handler.fail(frame, exc)
        elif kind == "yield":
            self._handler.suspend(frame, value)
        else:
            self._handler.leave(frame, value)

    def _end_at(self, code, offset):
        """Tell the way that a frame is left at an instruction: "return", "yield", or None by an exception."""
        known = self._bytes.get(id(code))
        if known is None:
            known = self._bytes[id(code)] = code.co_code
        if known[offset] in _RETURNS:
            return "return"
        # Before 3.11 a frame that waits in `yield from` stands one instruction before it.
        if known[offset] == _YIELD or known[offset + 2 : offset + 3] == bytes([_YIELD_FROM & 255]):
            return "yield"
        return None
