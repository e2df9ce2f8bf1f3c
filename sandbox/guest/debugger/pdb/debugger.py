"""The subclass of pdb that talks over the channel. Its text is that of this Python's pdb."""

# pdb's own members are not part of its declared interface, and this class overrides them.
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportIncompatibleMethodOverride=false
# pyright: reportOptionalMemberAccess=false, reportGeneralTypeIssues=false, reportOptionalIterable=false
from __future__ import annotations

import bdb
import contextlib
import shlex
import sys

from ..control.interrupt import evaluator
from ..isolation.own_frames import is_ours
from ..isolation.stdlib_pdb import COMMAND_TABLES, no_terminal, pdb
from ..isolation.thread_stream import ThreadStream
from ..tracing import source_lines
from ..tracing.generators import is_suspendable
from .backports import KEEPS_LOCALS, complete_statement
from .checkpoint_commands import CheckpointPdb

_LOCALS_ARE_COPIES = sys.version_info < (3, 13)


def _copy_doc(name):
    """Copy pdb's name and docstring to an override: `help` shows the docstring."""

    def copy(function):
        function.__doc__ = getattr(pdb.Pdb, name).__doc__
        function.__name__ = name
        return function

    return copy


class Debugger(CheckpointPdb):
    """The pdb of one thread. All threads share breakpoints, command lists and aliases."""

    def __init__(self, session, shared=None):
        if shared is None:
            with no_terminal():
                pdb.Pdb.__init__(
                    self, None, session.prompt.input, session.prompt.reply, nosigint=True, readrc=False
                )
            self._made = _copy_values(vars(self))
        else:
            # `Pdb.__init__` must not run again: other threads of the program may now import the modules that
            # `no_terminal` hides.
            vars(self).update(_copy_values(shared._made), _made=shared._made)
        self.session = session
        self.quitting = False
        self.botframe = None
        self.curframe = None
        self.stack = []
        self.lineno = None
        self._set_stopinfo(None, None, -1)
        self.stops = 0
        self.hit = None  # number of the breakpoint of this stop
        self.stop_reason = None
        self.watch_texts = []
        self.entering = False
        self.before_first_line = False  # the packages of the program's module may run already
        self.at_prompt = False  # code that runs now may not stop
        self.stepping = False
        self.step_filter = None  # just my code, if the step began in the repository
        self.nested = False  # in `debug`: pdb's own tracing is active
        self.cmdframe = self.cmdlineno = None
        # (frame, instruction) of a stop by the trace function, which monitoring reports next.
        self.stopped_at_instruction = None
        if shared is not None:
            for name in ("breaks", "aliases", "displaying") + COMMAND_TABLES:
                setattr(self, name, getattr(shared, name))

    def leave(self):
        """Release all frames after the program's main part, so that its objects end as without us."""
        self.botframe = _NOWHERE.gi_frame
        self.set_continue()
        self.stepping, self.step_filter = False, None
        self.drop_frame_refs()

    def prepare_to_resume(self, frame):
        """Prepare to continue or to step from `frame`, as commanded."""
        self.stepping = not self.is_continuing
        self.step_filter = self.session.my_code.step_filter(self, frame) if self.stepping else None
        self.step_anywhere = False
        self.step_begins(frame)
        if not self.stepping:
            self.drop_frame_refs()

    # -- where to stop

    @property
    def is_continuing(self):
        """True if only breakpoints stop this thread."""
        return self.stoplineno == -1 and self.stopframe is self.botframe

    def trace_dispatch(self, frame, event, arg):
        self.stopped_at_instruction = None
        if is_ours(frame):
            return None
        stops = self.stops
        self.session.engine.trace_watches(frame, event)
        result = pdb.Pdb.trace_dispatch(self, frame, event, arg)
        # After a stop the engine has already chosen the traced frames.
        return result if event == "call" and stops == self.stops else frame.f_trace

    def stop_here(self, frame):
        if self.step_filter is not None and not self.step_filter(frame):
            return False
        return pdb.Pdb.stop_here(self, frame) and self.in_its_task()

    def break_anywhere(self, frame):
        return self.session.engine.traces(frame.f_code)

    def break_here(self, frame):
        points = self.session.table.lines(frame.f_code).get(frame.f_lineno)
        if not points:
            return False
        point, deletable = self.session.table.effective(points, frame)
        if point is None:
            return False
        self.currentbp = self.hit = point.number
        self.revocable = not (deletable and point.temporary)
        if not self.revocable:
            self.do_clear(str(point.number))
            self.session.table.refresh()  # before a listing marks them
        return True

    revocable = False  # the breakpoint of this stop is not a temporary one, which the stop deletes

    def is_still_hit(self, frame):
        """True if the breakpoint still exists, or another one of the line applies.

        It may have been deleted or disabled while this thread waited for the prompt.
        """
        if not self.revocable:
            return True
        points = self.session.table.lines(frame.f_code).get(frame.f_lineno, ())
        if any(point.number == self.hit and point.enabled for point in points):
            return True
        self.currentbp = self.hit = None
        return self.break_here(frame)

    def dispatch_line(self, frame):
        points = self.session.table.lines(frame.f_code).get(frame.f_lineno)
        self.raising = None
        if self.stop_here(frame) or self.awaits_what_ended(frame):
            reason = "step"
        elif self.watch_texts:
            reason = "watch"
        elif points and self.break_here(frame):
            reason = "breakpoint"
        else:
            return self.trace_dispatch
        if self.cmdframe is frame and self.cmdlineno == frame.f_lineno and reason != "watch":
            self.hit = None  # from 3.14 on a step does not stop at the line on which it was commanded
            return self.trace_dispatch
        self.stop_reason = reason
        # Monitoring reports this line again if it was armed before this stop.
        if points:
            self.stopped_at_instruction = id(frame), frame.f_lasti
        self.user_line(frame)
        return self.trace_dispatch

    def dispatch_call(self, frame, arg):
        stop = self.stop_here(frame)
        if not stop and not self.break_anywhere(frame):
            return None
        if self.stopframe and is_suspendable(frame) or self.is_skipped_resume(frame):
            return self.trace_dispatch
        if not stop:
            # In a function with breakpoints but without steps, only the lines with breakpoints matter.
            return self.session.engine.breakpoints_only(frame)
        self.user_call(frame, arg)
        return self.trace_dispatch

    # -- the stops

    def user_call(self, frame, argument_list):
        if self.entering:
            return
        self.stop_reason = "step"
        self.session.stops.handle(self, frame, lambda: pdb.Pdb.user_call(self, frame, argument_list))

    def user_line(self, frame):
        if self.entering:
            self.entering = False
            self.stop_reason = "entry"
        self.session.stops.handle(self, frame, lambda: pdb.Pdb.user_line(self, frame))

    user_opcode = user_line

    def user_return(self, frame, return_value):
        if self.entering:
            return
        self.stop_reason = "return"
        self.returned = (return_value,)
        self.session.stops.handle(self, frame, lambda: pdb.Pdb.user_return(self, frame, return_value))

    def user_exception(self, frame, exc_info):
        # Without a traceback nothing was raised: an awaitable or subgenerator of this frame returned its
        # value.
        internal = exc_info[0] is StopIteration and exc_info[2] is None
        self.stop_reason = "step" if internal else "exception"
        self.raised = None if internal else exc_info[1]
        self.session.stops.handle(self, frame, lambda: pdb.Pdb.user_exception(self, frame, exc_info))

    hidden = 0  # number of frames of a test runner that the stack leaves out
    unfolded = False  # the user has asked for them
    stopped_index = 0  # index of the frame of the stop; `u` and `d` select others

    def get_stack(self, f, t):
        """Return pdb's stack without our frames and, if folded, without those of the test runner."""
        stack, index = pdb.Pdb.get_stack(self, f, t)
        frames = [entry[0] for entry in stack]
        current = frames[index] if frames else None
        program = [entry for entry in stack if not is_ours(entry[0])]
        kept = program if self.unfolded else self.session.my_code.fold(program)
        self.hidden = len(program) - len(kept)
        kept_frames = [entry[0] for entry in kept]
        if current in kept_frames:
            return kept, len(kept) - 1 - kept_frames[::-1].index(current)
        return kept or stack, max(0, len(kept or stack) - 1)

    def setup(self, f, tb):
        pdb.Pdb.setup(self, f, tb)
        self._shown = (f, tb)
        self._set_variables()
        if tb is not None and self.stop_reason == "post_mortem":
            exc = self.raised
            if self._chained_exceptions:
                exc = self._chained_exceptions[self._chained_exception_index]
            self._select_quietly(self.session.my_code.innermost([entry[0] for entry in self.stack], exc))
        self.stopped_index = self.curindex

    def forget(self):
        self._shown = None  # objects of the frame must die when the program releases them
        CheckpointPdb.forget(self)

    def drop_frame_refs(self):
        """Drop references into frames before the program continues.

        Not before a step: pdb's text needs them.
        """
        self._current_task = None  # an attribute of pdb (3.14)
        if KEEPS_LOCALS:
            self.curframe_locals = None

    def _select_quietly(self, index):
        if index is None or index == self.curindex:
            return
        self.curindex = index
        self.curframe = self.stack[index][0]
        if KEEPS_LOCALS:
            self.curframe_locals = self.curframe.f_locals

    @_copy_doc("do_where")
    def do_where(self, arg):
        word, _, wanted = arg.strip().partition(" ")
        if word == "tasks":
            return self.tasks(wanted.strip())
        if word == "all":
            arg = self._unfold()
        if self.hidden:
            count = "1 frame" if self.hidden == 1 else f"{self.hidden} frames"
            self.message(f"  [{count} of the test runner hidden; `w all` shows all]")
        return pdb.Pdb.do_where(self, arg)

    do_w = do_bt = do_where

    def _unfold(self):
        """Show the whole stack until the program continues."""
        if self.hidden:
            added, self.unfolded = self.hidden, True
            self.stack, _ = self.get_stack(*self._shown)
            self.curindex += added
            self.stopped_index += added
        return ""

    # -- how to go on

    step_anywhere = False  # the next step may leave the repository

    @_copy_doc("do_step")
    def do_step(self, arg):
        if arg.strip() == "all":
            self.step_anywhere, arg = True, ""
        return pdb.Pdb.do_step(self, arg)

    do_s = do_step

    def set_continue(self):
        self._set_stopinfo(self.botframe, None, -1)

    if sys.version_info >= (3, 14):

        def set_step(self):
            # `bdb` takes the frame from the trace event, but not every stop of ours comes from one.
            frame = self.stack[-1][0]
            self._set_stopinfo(None, None, cmdframe=frame, cmdlineno=frame.f_lineno)

    def set_trace(self, frame=None, **options):
        self.session.stops.set_trace(frame or sys._getframe().f_back, options.get("commands"))

    def set_quit(self):
        self.session.ends.quit()

    @_copy_doc("do_run")
    def do_run(self, arg):
        self._run_again(arg)

    @_copy_doc("do_restart")
    def do_restart(self, arg):
        if not self.go_back(arg):
            self._run_again(arg)

    def _run_again(self, arg):
        args = None
        if arg:
            try:
                args = shlex.split(arg)
            except ValueError as exc:
                self.error(f"Cannot run {arg}: {exc}")
                return
        self.session.ends.restart(args)

    # -- the commands

    def onecmd(self, line):
        if self.session.activity.evaluating is None:  # a command of a breakpoint
            self.session.activity.evaluate()
        try:
            return self._evaluate(line)
        except KeyboardInterrupt:  # the interrupt was meant for this evaluation
            self.message("--KeyboardInterrupt--")
            return False
        except (
            Exception
        ) as exc:  # a bug of this Python's pdb (3.13.0 has some) must not end up in the program
            self.error(f"{type(exc).__name__}: {exc}")
            return False

    @evaluator
    def _evaluate(self, line):
        refusals = self._refusals
        done = CheckpointPdb.onecmd(self, line)
        if self._refusals != refusals and self.parseline(line)[0] in _PLACING:
            self._end_list(line)
        return done

    _refusals = 0

    def _end_list(self, line):
        """Drop the commands after a refused line, which could run the program past the intended place."""
        queue, queued, self.cmdqueue = self.cmdqueue, [], []
        for each in queue:
            (self.cmdqueue if each.startswith("_pdbcmd") else queued).append(each)
        if self.session.prompt.drop_lines(queued):
            self.session.notices.hold(f"`{line.strip()}` was refused: what stands behind it was not run.")

    def default(self, line):
        line = complete_statement(line, self.session.prompt.rest())
        if not self.awaits(line):
            saved = self.stdin, self.stdout
            # pdb replaces the program's streams by its own, and other threads of the program keep running.
            self.stdin, self.stdout = (
                ThreadStream(self.stdin, sys.stdin),
                ThreadStream(self.stdout, sys.stdout),
            )
            try:
                pdb.Pdb.default(self, line)
            finally:
                self.stdin, self.stdout = saved
        self._write_back()

    def _write_back(self):
        """Write assignments back into the frame.

        Before 3.13 `f_locals` is a copy, and the next access refreshes it: assignments would be lost.
        """
        frame = self.curframe
        if (
            _LOCALS_ARE_COPIES and frame is not None and frame.f_code.co_flags & 0x2
        ):  # CO_NEWLOCALS: a function
            import ctypes

            ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))

    @_copy_doc("do_interact")
    def do_interact(self, arg):
        try:
            return pdb.Pdb.do_interact(self, arg)
        except SystemExit:  # `exit()` in the console ends the console, before 3.13 too
            return None

    def _enable_rlcompleter(self, ns):
        return contextlib.nullcontext()  # pdb would import readline

    def _enable_multiline_input(self):
        return contextlib.nullcontext()

    @_copy_doc("do_debug")
    def do_debug(self, arg):
        self.nested = True
        try:
            result = pdb.Pdb.do_debug(self, arg)
        finally:
            self.nested = False
            sys.settrace(None)  # pdb leaves it on; the engine arms when the program continues
        self._write_back()
        return result

    def define_commands(self, number, lines):
        """Give a breakpoint its command list, as if typed after `commands`."""
        for name, empty in zip(COMMAND_TABLES, ([], True, False)):
            getattr(self, name)[number] = empty
        self.commands_bnum = number
        for line in lines:
            if self.handle_command_def(line):
                break

    # -- breakpoints: more forms than pdb accepts, and refused on lines that never run

    @_copy_doc("do_break")
    def do_break(self, arg, temporary=0):
        known = len(bdb.Breakpoint.bpbynumber)
        done = pdb.Pdb.do_break(self, self._resolved(arg), temporary)
        for point in bdb.Breakpoint.bpbynumber[known:]:
            self.session.places.tell_if_too_late(point)
        return done

    do_b = do_break

    def _resolved(self, arg):
        """Turn `file:function[, condition]` into a name that `lineinfo` accepts."""
        place, comma, condition = arg.partition(",")
        path, colon, name = place.rpartition(":")
        if (
            not colon
            or not name.strip().replace(".", "").replace("_", "a").isalnum()
            or name.strip()[:1].isdigit()
        ):
            return arg
        self._named = (path.strip(), name.strip())
        return _BY_NAME + comma + condition

    _named = None

    def lineinfo(self, identifier):
        places = self.session.places
        if identifier == _BY_NAME and self._named:
            path, name = self._named
            return places.function_in(self.lookupmodule(path), name) or _NO_PLACE
        name = identifier.strip().strip("'")
        if "." not in name:
            answer = self._undotted(identifier)
            if answer[0]:
                return answer
        here = self.canonic(self.defaultFile())
        return places.function_in(here, name) or places.function(name) or _NO_PLACE

    def _undotted(self, identifier):
        # If pdb doesn't know the first part of a dotted name, it searches the current file for the second
        # part alone.
        try:
            with source_lines.ignore_warnings():
                return pdb.Pdb.lineinfo(self, identifier)
        except Exception:  # 3.13.0 fails on functions with default values
            return _NO_PLACE

    def lookupmodule(self, filename):
        found = self.session.places.file(filename) or pdb.Pdb.lookupmodule(self, filename)
        if found is None:
            self.session.places.offer_files(filename)
        return found

    def checkline(self, filename, lineno, *module_globals):
        line = pdb.Pdb.checkline(self, filename, lineno, *module_globals)
        if not line:
            self._refusals += 1  # "End of file" is no error to pdb
            self.session.places.suggest_lines(self.canonic(filename), lineno)
        return line

    def set_break(self, filename, lineno, temporary=False, cond=None, funcname=None, **options):
        refusal = None if funcname else self.session.places.refuse_line(self.canonic(filename), lineno)
        return refusal or pdb.Pdb.set_break(self, filename, lineno, temporary, cond, funcname, **options)

    def get_file_breaks(self, filename):
        self.session.table.refresh()
        found = self.session.table.wanted[filename] if filename else None
        return list(found) if found else []

    def error(self, msg):
        if _BY_NAME in str(msg):
            path, name = self._named
            msg = f"No function {name!r} in {path}"
        self._refusals += 1
        self.message(f"*** {msg}")

    def message(self, msg, end="\n"):
        self.stdout.write(f"{msg}{end}")  # pdb uses `print`, which the program may have replaced


def _copy_values(values):
    """Copy a dict of attributes, with its lists and dictionaries."""
    return {name: each.copy() if type(each) in (list, dict) else each for name, each in values.items()}


_BY_NAME = "__pdbox_named__"
_NO_PLACE = (None, None, None)  # as `lineinfo` of pdb
_PLACING = frozenset(
    "b break tbreak condition ignore enable disable commands cl clear unt until j jump watch".split()
)
"""Commands that choose the place to stop at, or to continue at."""
_NOWHERE = (nothing for nothing in ())
"""A generator whose frame is in no stack."""
