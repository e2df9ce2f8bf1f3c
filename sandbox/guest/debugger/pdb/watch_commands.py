"""The commands `watch` and `unwatch`, which pdb lacks."""

# pdb's own members are not part of its declared interface.
# pyright: reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# pyright: reportIncompatibleMethodOverride=false
from __future__ import annotations

import types

from .async_pdb import AsyncPdb
from .watches import Refused

_COMMANDS = ("watch", "unwatch")


class WatchingPdb(AsyncPdb):
    """pdb with watches (gdb's word)."""

    watch_texts = ()  # changes that this thread has found, for its next stop

    def do_watch(self, arg):
        """watch [-l] [expression [, condition]]

        Stop when the value of the expression has changed: a variable,
        attribute or item, also in place (an item added to a list, an
        attribute of an object). The stop tells the old and the new value,
        the line that changed it and its caller. If a condition is present,
        it must be true after the change.

        A watch on an attribute or item (`self.total`, `rows[0]`) is one on
        that object, whoever changes it. A watch on a local variable ends
        with its function. -l watches the object that is there now if the
        expression has variable keys or a longer path. Watches end with the
        run; the program is slower while there are some.

        Without argument, list all watches.
        """
        watches = self.session.watches
        if not arg.strip():
            for line in watches.lines() or ["No expression is being watched"]:
                self.message(line)
            return
        try:
            self.message(watches.add(arg, self.curframe, self._running_frame()))
        except SyntaxError as exc:
            self.error(f"Unable to watch {arg}: SyntaxError: {exc.msg}")
        except Refused as exc:
            self.error(str(exc))

    def _running_frame(self):
        """Return the frame whose line runs next, or runs on; None at a post mortem."""
        if self.stop_reason == "post_mortem":
            return None
        frame = self.stack[self.stopped_index][0]
        at_end = self.stop_reason == "return" or self._watched_end
        return frame.f_back if at_end and frame.f_back is not None else frame

    _watched_end = False  # stopped for a watch at the end of a frame

    def do_unwatch(self, arg):
        """unwatch [number or expression ...]

        Remove the watches with these numbers, or the watch of the
        expression.

        Without argument, remove all watches.
        """
        arg = arg.strip()
        numbers = arg.split()
        for wanted in numbers if all(each.isdigit() for each in numbers) and numbers else [arg]:
            if not self.session.watches.remove(wanted):
                self.error(f"No watch {wanted}" if wanted else "No expression is being watched")

    def parseline(self, line):
        command, arg, line = AsyncPdb.parseline(self, line)
        if command in _COMMANDS and self._is_variable(command, arg or ""):
            return None, None, line
        return command, arg, line

    def _is_variable(self, name, rest):
        """True if a line that begins with the name of a command is a statement about a variable of that name."""
        if rest[:1] == "=" and rest[:2] != "==":
            return True
        frame = self.curframe
        is_known = frame is not None and (name in frame.f_locals or name in frame.f_globals)
        return is_known and rest[:1] in tuple(".([,=")

    def get_names(self):
        # `help` lists the commands of this Python's pdb.
        return [name for name in AsyncPdb.get_names(self) if name[3:] not in _COMMANDS]

    # -- stops

    def traces(self, frame):
        """True if our trace function gets the events of this frame while this thread steps."""
        function = frame.f_trace
        return type(function) is types.MethodType and function.__self__ is self

    def stop_for_watch(self, frame, at_end):
        """Stop because of a watch, before a line of `frame` or at its end."""
        self.stop_reason, self._watched_end = "watch", at_end
        try:
            self.user_line(frame)
        finally:
            self._watched_end = False
        # As pdb does at a return: a step goes on in the caller.
        if self.stopframe is frame and self.stoplineno != -1 and at_end:
            self._set_stopinfo(None, None)

    def dispatch_return(self, frame, arg):
        stops = self.stops
        result = AsyncPdb.dispatch_return(self, frame, arg)
        if self.watch_texts and stops == self.stops:
            self.stop_for_watch(frame, True)
        return result
