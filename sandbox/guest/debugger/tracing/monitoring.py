"""Tracer by sys.monitoring (3.12+): code without breakpoints runs at full speed. Steps use sys.settrace."""

# sys.monitoring came with 3.12.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import sys

from ..isolation.own_frames import program_frames
from ..isolation.pristine import threading
from . import source_lines
from .watching import MonitoredLines

# 0, 1, 2 and 5 have a meaning: a program (from 3.14 on its own pdb) may insist on them.
_TOOLS = (3, 4, 5, 0)
_EVENTS = ("PY_START", "PY_RESUME", "PY_THROW", "LINE", "JUMP")
_EACH_START = sys.version_info >= (3, 13)


class MonitoringEngine:
    """Line events only in code objects with breakpoints; a trace function only while a thread steps."""

    name = "monitoring"

    def __init__(self, session):
        self._session = session
        self._api = sys.monitoring
        self._tool = next((tool for tool in _TOOLS if self._api.get_tool(tool) is None), None)
        self._armed = {}  # id(code) -> (code, lines)
        self._loops = {}  # id(code) -> {instruction that jumps back to its own line: line}
        self._careful = set()  # threads whose trace function may have counted a line already; see `_hit`
        self._foreign = {}  # thread -> trace function of the program (coverage), while we step
        self._started = False
        self._watched_lines = MonitoredLines(session.watching, _TOOLS)

    def works(self):
        """True if a tool id is free, and line events arrive for functions (also one-line) and generators."""
        if self._tool is None:
            return False
        return _self_test(self._api, self._tool)

    def start(self):
        api, tool = self._api, self._tool
        api.use_tool_id(tool, "debugger")
        events = api.events
        self._started = True
        api.register_callback(tool, events.PY_THROW, self._on_throw)
        self.rearm()

    def rearm(self):
        if not self._started:
            return
        api, tool, events = self._api, self._tool, self._api.events
        for code, _ in self._armed.values():
            api.set_local_events(tool, code, 0)
        self._armed, self._loops = {}, {}
        self._make()
        if not self._session.table:
            api.set_events(tool, 0)
            return
        api.register_callback(tool, events.LINE, self._on_line)
        api.register_callback(tool, events.JUMP, self._on_jump)
        for event in (events.PY_START, events.PY_RESUME):
            api.register_callback(tool, event, self._on_start)
        api.set_events(tool, events.PY_START | events.PY_RESUME | events.PY_THROW)
        for frame in sys._current_frames().values():
            for each in program_frames(frame):
                self._arm(each.f_code)
        frame = each = None  # our own frame is among them: a cycle would keep objects of the program alive
        api.restart_events()

    def _make(self):
        """Make the callbacks, as closures for speed.

        One runs at each hit of a condition that does not hold, another once for each code object of the
        program.
        """
        armed, disable, hit = self._armed, self._api.DISABLE, self._hit
        holds, getframe, evaluate = self._session.table.holds, sys._getframe, eval
        careful = self._careful

        def on_line(code, line):
            entry = armed.get(id(code))
            if entry is None or line not in entry[1]:
                return disable
            test = entry[1][line]
            if test is not None and not careful:  # as `holds` does, without the call
                point, condition, text = test
                if point.enabled and not point.ignore and point.cond is text:
                    frame = getframe(1)
                    try:
                        if not evaluate(condition, frame.f_globals, frame.f_locals):
                            point.hits += 1
                            return None
                    except BaseException:  # code of the user, which `hit` evaluates again and reports
                        pass
            hit(getframe(1))
            return None

        loops = self._loops

        def on_jump(code, offset, destination):
            # The next iteration of a loop on one line is a new line to a trace function, but not to
            # monitoring.
            line = loops.get(id(code), {}).get(offset)
            if line is None:
                return disable
            test = armed[id(code)][1][line]
            if test is None or careful or holds(test, getframe(1)):
                hit(getframe(1))

        wanted, arm = self._session.table.wanted, self._arm

        def on_start(code, offset):
            if wanted[code.co_filename] is None:
                return disable
            lines = arm(code)
            if lines and _EACH_START and code.co_firstlineno in lines:
                # From 3.13 on a one-line function has no line event once this one is off (CPython issue
                # 155992).
                return None
            return disable

        self._on_line, self._on_jump, self._on_start = on_line, on_jump, on_start

    def _hit(self, frame):
        debugger = self._session.debugger()
        if debugger.at_prompt or debugger.nested:
            return
        handled, debugger.stopped_at_instruction = debugger.stopped_at_instruction, None
        if not debugger.stepping:
            self._careful.discard(threading.get_ident())
            if self._careful:  # some may have ended in the middle of a step
                self._careful.intersection_update(sys._current_frames())
        if handled == (id(frame), frame.f_lasti):
            return  # the trace function has already stopped at this instruction
        if debugger.stepping and frame.f_trace is not None:
            return  # the trace function gets this line too
        if debugger.break_here(frame):
            debugger.stop_reason = "breakpoint"
            debugger.user_line(frame)

    def _arm(self, code):
        lines = self._session.table.lines(code)
        if not lines:
            return None
        if id(code) not in self._armed:
            table = self._session.table
            self._armed[id(code)] = (code, {line: table.test(points) for line, points in lines.items()})
            events = self._api.events
            loops = self._loops[id(code)] = source_lines.loops_on_a_line(code, lines)
            self._api.set_local_events(self._tool, code, events.LINE | events.JUMP if loops else events.LINE)
        return lines

    def _on_throw(self, code, offset, exc):
        self._arm(code)

    def trace_watches(self, frame, event):
        pass  # monitoring reports it, too

    def watch(self):
        return self._watched_lines.update()

    # -- steps

    def traces(self, code):
        return False

    def breakpoints_only(self, frame):
        return None

    def pause(self, debugger):
        self._remember()
        sys.settrace(None)

    def _remember(self):
        tracer = sys.gettrace()
        if tracer is not None and not self._is_ours(tracer):
            self._foreign[threading.get_ident()] = tracer

    def resume(self, debugger, frame):
        if debugger.stepping or debugger.stopped_at_instruction:
            self._careful.add(threading.get_ident())
        else:
            self._careful.discard(threading.get_ident())
        if debugger.stepping:
            self._remember()
            step_filter = debugger.step_filter
            for each in program_frames(sys._getframe(1)):
                if step_filter is None or step_filter(each):
                    each.f_trace = debugger.trace_dispatch
            sys.settrace(debugger.trace_dispatch)
            return
        tracer = sys.gettrace()
        foreign = self._foreign.pop(threading.get_ident(), None)
        if foreign is None and (tracer is None or not self._is_ours(tracer)):
            return
        for each in program_frames(sys._getframe(1)):
            if each.f_trace is not None:
                del each.f_trace
        sys.settrace(foreign)

    def stop(self):
        if sys.gettrace() is not None and self._is_ours(sys.gettrace()):
            sys.settrace(self._foreign.pop(threading.get_ident(), None))

    def abandon(self):
        self._session.main_debugger.stepping = False
        self._watched_lines.stop()
        if self._started:
            self._api.set_events(self._tool, 0)
            for event in _EVENTS:
                self._api.register_callback(self._tool, getattr(self._api.events, event), None)
            self._api.free_tool_id(self._tool)
            self._started = False
        if sys.gettrace() is not None and self._is_ours(sys.gettrace()):
            sys.settrace(None)

    def _is_ours(self, tracer):
        return isinstance(getattr(tracer, "__self__", None), type(self._session.main_debugger))


def _self_test(api, tool):
    code = compile("def one(): return 1\ndef two():\n    yield 1\n    yield 2\n", "<test>", "exec")
    scope, seen = {}, []
    exec(code, scope)
    one, two = scope["one"].__code__, scope["two"].__code__
    api.use_tool_id(tool, "debugger")
    try:
        api.register_callback(tool, api.events.LINE, lambda code, line: seen.append(line))
        for each in (one, two):
            api.set_local_events(tool, each, api.events.LINE)
        scope["one"]()
        list(scope["two"]())
    finally:
        for each in (one, two):
            api.set_local_events(tool, each, 0)
        api.register_callback(tool, api.events.LINE, None)
        api.free_tool_id(tool)
    return [line for line in seen if line > 2] == [3, 4]
