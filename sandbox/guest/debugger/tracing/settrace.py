"""Tracer by sys.settrace, and the choice between the two tracers, which have the same interface.

start()                   called before the program runs
rearm()                   the places to stop at have changed
trace_watches(...)        an event of a step, for `session.watching` if it needs the events of trace functions
watch()                   `session.watching` has begun, ended or changed; False if it can't begin
resume(debugger, frame)   end of a stop: continue, or step as set in `debugger`
pause(debugger)           start of a stop outside of a trace event: no events in this thread
traces(code)              True if a call of this code needs a local trace function for its breakpoints
breakpoints_only(frame)   that function
stop()                    end of the main program: its main thread runs untraced
abandon()                 disarm everything, in a forked child
"""

from __future__ import annotations

import bdb
import sys
import threading as program_threading

from ...paths import OURS
from ..isolation.own_frames import is_ours, program_frames
from ..isolation.pristine import threading, time
from ..isolation.stdlib_pdb import pdb
from .generators import SUSPENDABLE
from .monitoring import MonitoringEngine

_PATIENCE = 1000
"""Number of attempts to set a trace function."""


def choose(session):
    """Return the fastest engine that works on this Python."""
    if sys.version_info >= (3, 12):
        engine = MonitoringEngine(session)
        if engine.works():
            return engine
        session.notices.add(
            "sys.monitoring does not work as it should here; sys.settrace is used, which is slower."
        )
    return SettraceEngine(session)


class _Unseen:
    """Wraps a trace function of the program so that it never sees our frames."""

    def __init__(self, function):
        self.function = function

    def __call__(self, frame, event, arg):
        return None if is_ours(frame) else self.function(frame, event, arg)


class SettraceEngine:
    """sys.settrace, tuned: a call of code without breakpoints costs one dictionary look-up."""

    name = "settrace"

    def __init__(self, session):
        self._session = session
        self._quiet = set()  # names of files without breakpoints
        self._closures = {}  # id(code) -> local trace function, for code in the other files
        self._watched_codes = []  # code objects of these functions, so that their ids stay unique
        self._armed = False  # the main thread was resumed with a trace function of ours
        # Threads keep the function that they were given, so its tables are changed in place.
        quiet, closures, local = self._quiet, self._closures, self._local_of_call

        def tracer(frame, event, arg):
            code = frame.f_code
            if code.co_filename in quiet:
                return None
            try:
                return closures[id(code)]
            except KeyError:
                return local(frame)

        self._tracer = tracer

    def start(self):
        threading.settrace(self._in_new_thread)
        self._take_over(sys.settrace, sys.gettrace, threading.settrace)

    def _take_over(self, stock_set, stock_get, stock_set_in_threads):
        """Replace `sys.settrace` and the like, so that a trace function of the program can take our place.

        The program sees functions instead of builtins, and the same effects.
        """
        stock_set = _retry(stock_set)

        def settrace(function):
            """Set the global debug tracing function."""
            caller = sys._getframe(1)
            stock_pdb = caller.f_code.co_filename in (bdb.__file__, pdb.__file__)
            if is_ours(caller) or stock_pdb or not self._session.channel.open:
                stock_set(function)
            elif function is None:
                self._set_all(caller)
                stock_set(self._tracer if self._needed() else None)
            elif self._is_ours(function):
                stock_set(self._current())  # a saved and restored function may date from before a stop
            else:
                self._told(function)
                stock_set(_Unseen(function))

        def gettrace():
            """Return the global debug tracing function set with sys.settrace."""
            tracer = stock_get()
            return tracer.function if type(tracer) is _Unseen else tracer

        def settrace_in_threads(func):
            """Set a trace function for all threads started from the threading module."""
            if func is not None and self._session.table and not is_ours(sys._getframe(1)):
                self._session.notices.tell(
                    f"{_module_of(func)} has set a trace function for threads (threading.settrace):"
                    " breakpoints are not hit in those that start from now on, on this Python."
                )
            stock_set_in_threads(func or (self._in_new_thread if self._session.channel.open else None))

        sys.settrace, sys.gettrace = settrace, gettrace
        program_threading.settrace = settrace_in_threads

    def _current(self):
        """Return the current trace function for this thread."""
        debugger = self._session.debugger()
        return debugger.trace_dispatch if debugger.stepping else self._tracer if self._needed() else None

    def _told(self, function):
        """Report that our trace function was replaced or removed."""
        if not self._has_places() or threading.current_thread() is not threading.main_thread():
            return
        self._session.watching.has_gaps = True
        what = "Tracing has ended (at the recursion limit Python ends it, or coverage has)"
        if function is not None:
            what = f"{_module_of(function)} has set a trace function (sys.settrace)"
        self._session.notices.tell(
            f"{what}: until the next stop, breakpoints and watches are not hit in this thread on this Python."
        )

    def _check(self):
        """Detect a trace function set in C, as coverage does it, which bypasses `settrace`."""
        tracer = sys.gettrace()
        if tracer is None and self._armed or tracer is not None and not self._is_ours(tracer):
            self._told(tracer)

    @staticmethod
    def _is_ours(tracer):
        code = getattr(getattr(tracer, "__func__", tracer), "__code__", None)
        return code is not None and (code.co_filename.startswith(OURS) or code.co_filename == bdb.__file__)

    def _in_new_thread(self, frame, event, arg):
        # A thread that was started without a trace function could not be given one later.
        if self._session.channel.open:
            sys.settrace(self._tracer)
            return self._tracer(frame, event, arg)
        sys.settrace(None)

    def traces(self, code):
        return bool(self._session.table.lines(code)) or self._watches(code)

    def trace_watches(self, frame, event):
        if self._watches(frame.f_code):
            self._session.watching.trace(frame, event)

    def _watches(self, code):
        watching = self._session.watching
        return watching.active and watching.follows(code)

    def _local_of_call(self, frame):
        if self._watches(frame.f_code):
            self._session.watching.trace(frame, "call")
        return self.breakpoints_only(frame)

    def breakpoints_only(self, frame):
        code = frame.f_code
        if self._watches(code):
            return self._watching_closure(code)
        wanted = self._session.table.wanted
        if wanted[code.co_filename] is None:
            self._quiet.add(code.co_filename)
        else:
            # The table keeps a reference to these code objects, so that their ids stay unique.
            lines = self._session.table.lines(code)
            if id(code) not in self._closures:
                self._closures[id(code)] = self._closure(lines) if lines else None
        if self._session.table.wanted is not wanted:  # another thread has changed the breakpoints meanwhile
            self._forget()
            return self.breakpoints_only(frame)
        return self._closures.get(id(code))

    def _watching_closure(self, code):
        lines = self._session.table.lines(code)
        closure = self._session.watching.local_trace(self._closure(lines) if lines else None)
        if not code.co_flags & SUSPENDABLE:  # each resumption of the others is looked at
            self._watched_codes.append(code)
            self._closures[id(code)] = closure
        return closure

    def _forget(self):
        self._quiet.clear()
        self._closures.clear()
        self._watched_codes.clear()

    def _closure(self, lines):
        hit, holds = self._hit, self._session.table.holds
        tests = {line: self._session.table.test(points) for line, points in lines.items()}
        if len(tests) == 1 and None not in tests.values():
            return self._closure_of_condition(*tests.popitem())

        def local(frame, event, arg):
            if event == "line":
                line = frame.f_lineno
                if line in tests and (tests[line] is None or holds(tests[line], frame)):
                    return hit(frame)
            return local

        return local

    def _closure_of_condition(self, wanted, test):
        """The same for one condition, with `Table.holds` in it: in a tight loop it takes two thirds of the time."""
        hit, evaluate = self._hit, eval
        point, condition, text = test

        def local(frame, event, arg):
            if frame.f_lineno == wanted and event == "line":
                if point.enabled and not point.ignore and point.cond is text:
                    try:
                        if not evaluate(condition, frame.f_globals, frame.f_locals):
                            point.hits += 1
                            return local
                    except BaseException:  # code of the user, which `hit` evaluates again and reports
                        pass
                return hit(frame)
            return local

        return local

    def _hit(self, frame):
        debugger = self._session.debugger()
        if not debugger.at_prompt and debugger.break_here(frame):
            debugger.stop_reason = "breakpoint"
            debugger.user_line(frame)
        return frame.f_trace

    def rearm(self):
        self._forget()
        mine = threading.get_ident()
        for ident, frame in sys._current_frames().items():
            if ident != mine:
                for each in program_frames(frame):
                    self._set(each)
        frame = None  # our own frame is among them: a cycle would keep objects of the program alive

    def watch(self):
        self.rearm()
        debugger = self._session.debugger()
        if not debugger.at_prompt and not debugger.stepping:  # otherwise `resume` does it
            self._set_all(sys._getframe(1))
            sys.settrace(self._tracer if self._needed() else None)
        return True

    def _has_places(self):
        """True if there are breakpoints or watches."""
        return bool(self._session.table) or self._session.watching.active

    def _set(self, frame):
        """Trace only breakpoints in a frame that already runs."""
        wanted = self.breakpoints_only(frame) if self._has_places() else None
        if wanted is not None:
            frame.f_trace = wanted
        elif frame.f_trace is not None:
            # Otherwise f_lineno would freeze when tracing is off (until 3.9).
            del frame.f_trace

    def pause(self, debugger):
        self._check()
        sys.settrace(None)

    def resume(self, debugger, frame):
        if threading.current_thread() is threading.main_thread():
            self._armed = debugger.stepping or self._has_places()
        # A frame selected before (`u`, then `n`) is in the stack of the caller. Our frames are skipped.
        stack = program_frames(sys._getframe(1))
        if debugger.stepping:
            step_filter = debugger.step_filter
            for each in stack:
                if step_filter is None or step_filter(each):
                    each.f_trace = debugger.trace_dispatch
                else:
                    self._set(each)
            sys.settrace(debugger.trace_dispatch)
            return
        self._set_all(sys._getframe(1))
        sys.settrace(self._tracer if self._needed() else None)

    def _set_all(self, frame):
        for each in program_frames(frame):
            self._set(each)

    def _needed(self):
        return self._has_places() or threading.current_thread() is not threading.main_thread()

    def stop(self):
        self._check()
        self._armed = False
        sys.settrace(None)

    def abandon(self):
        threading.settrace(None)
        sys.settrace(None)
        for frame in program_frames(sys._getframe(1)):
            if frame.f_trace is not None:
                del frame.f_trace


def _retry(stock_set):
    """Retry to set a trace function.

    Python 3.10 and 3.11 refuse it while another thread is doing the same, which may have to wait for us.
    """

    def settrace(function):
        for _ in range(_PATIENCE):
            try:
                return stock_set(function)
            except RuntimeError:
                time.sleep(0)  # let the other thread run
        return stock_set(function)

    return settrace


def _module_of(function):
    return getattr(function, "__module__", None) or type(function).__module__
