"""The watches of a run: each stops the program when the value of an expression has changed."""

# The engine is chosen later.
# pyright: reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
from __future__ import annotations

import sys

from ..inspection.time_limit import Allowance, Overtime, call_limited
from ..inspection.watch_paths import Ended, split
from ..inspection.watched import Watched
from ..isolation.pristine import threading
from ..tracing.watching import END, LATER
from .watch_texts import ChangeTexts

MAX_WATCHES = 16
_SLOW = "its evaluation takes too long at each line"


class Refused(Exception):
    """The watch can't be set. The text is the reason."""


class _Watch:
    """A watched expression with its number and the count of stops."""

    def __init__(self, number, watched):
        self.number, self.watched, self.hits = number, watched, 0

    def line(self):
        """Return the line of a listing."""
        watched = self.watched
        words = [
            f" if {watched.condition}" if watched.condition else "",
            f", hit {self.hits}×" if self.hits else "",
        ]
        return f"{watched.text} = {watched.shown}{''.join(words)}"


class Watches:
    """Keeps the watches, and compares their values at the events of `watching`. All threads share it."""

    def __init__(self, watching, notices, debuggers, gate, channel, relative):
        self.engine = None  # chosen later
        self.evaluating = None  # the thread that evaluates an expression by code of the program
        self._watching = watching
        self._notices = notices
        self._debuggers = debuggers
        self._gate = gate
        self._channel = channel
        self._texts = ChangeTexts(watching, relative)
        self._lock = threading.Lock()
        self._allowance = None
        self._all = {}
        self._following = 1
        watching.changed, watching.left = self._changed, self._left

    # -- commands

    def add(self, arg, frame, running):
        """Add a watch in the context of `frame`. Returns the line to print. Raises Refused, SyntaxError.

        `running`: the frame whose line runs next, or runs on. None at a post mortem, where all have ended.
        """
        location = arg.split(None, 1)[:1] in (["-l"], ["-location"])
        text, condition = split(arg.split(None, 1)[1] if location and " " in arg.strip() else arg)
        if len(self._all) >= MAX_WATCHES:
            raise Refused(f"There are {MAX_WATCHES} watches; `unwatch N` removes one")
        try:
            watched = Watched(text, condition, frame, self._limited, location)
        except Overtime:
            raise Refused(f"Unable to watch {text}: {_SLOW}") from None
        if watched.frame is not None and running is None:
            raise Refused(
                f"Unable to watch {text}: its frame has ended. Watch an attribute of an object (`name.attribute`),"
                " or `run` and watch before it ends"
            )
        watch = _Watch(self._following, watched)
        self._begin(watch, frame, running)
        return f"Watch {watch.number}: {watch.line()}{_scope_of(watched)}"

    def _begin(self, watch, frame, running):
        if not self._watching.active:
            self._watching.begin(running)
        self._watching.follow(frame)
        self._all[watch.number] = watch
        if not self._update():
            del self._all[watch.number]
            self._update()
            raise Refused("Unable to watch: the program uses all tool ids of sys.monitoring")
        self._following += 1

    def remove(self, wanted):
        """Remove the watch with a number or an expression, all for "". Returns False if there is none."""
        found = [
            watch for watch in self._all.values() if wanted in ("", str(watch.number), watch.watched.text)
        ]
        for watch in found:
            del self._all[watch.number]
        if found:
            self._update()
        return bool(found)

    def lines(self):
        """Return a line for each watch."""
        return [f"{watch.number} {watch.line()}" for watch in self._all.values()]

    def expressions(self):
        """Return the texts of all watches."""
        return [watch.watched.text for watch in self._all.values()]

    # -- stops

    def report(self, debugger, frame):
        """Return lines about the changes that are not reported yet, at a stop in `frame`."""
        if self._all:
            self._collect(debugger, frame)
        found, debugger.watch_texts = debugger.watch_texts, []
        return found

    def resume(self):
        """Take the values as they are at the end of a stop: commands may have changed them."""
        self._settle()
        for watch in list(self._all.values()):
            try:
                watch.watched.rebase()
            except Ended as exc:
                self._end(watch, str(exc))
            except Overtime:
                self._end(watch, _SLOW)
        if self._all:
            self._watching.differs = self._comparison()

    def _settle(self):
        """Note that this thread reports the change that it has found."""
        if threading.get_ident() in self._watching.owed:
            self._watching.owed.remove(threading.get_ident())

    def finish(self):
        """Report the watches that are left at the end of the program."""
        for watch in self._all.values():
            seen = "was not seen to change" if self._watching.has_gaps else "did not change"
            again = " again" if watch.hits else ""
            label = f"watch {watch.number} ({watch.watched.text})"
            self._notices.hold(f"{label} {seen}{again} until the end.")
        self.clear()

    def clear(self):
        """Remove all watches without a notice."""
        self._all.clear()
        self._watching.owed.clear()
        self.evaluating = None
        self._lock = threading.Lock()  # a fork may have copied a held one
        if self._watching.active:
            self._update()

    # -- events

    def _update(self):
        """Have the engine report events as the present watches need them."""
        watching = self._watching
        watching.frames = {
            id(watch.watched.frame): watch.watched.frame
            for watch in self._all.values()
            if watch.watched.frame is not None
        }
        watching.differs = self._comparison()
        if not self._all:
            watching.end()
        return self.engine.watch()

    def _comparison(self):
        """Return the function that is called at each event, as fast as it can be."""
        watched = [watch.watched for watch in self._all.values()]
        self._watching.only_code = watched[0].only_code if len(watched) == 1 else None
        if len(watched) == 1 and watched[0].is_safe and not watched[0].condition:
            return watched[0].differs
        functions = [each.differs for each in watched]

        def differs():
            if self.evaluating is not None:
                return self._tick()
            try:
                for function in functions:
                    if function():
                        return True
            except (Exception, Overtime):  # `change` finds the reason
                return True
            return False

        return differs

    def _changed(self, frame, kind):
        try:
            debugger = self._debuggers.current()
            if debugger.at_prompt or debugger.nested or not self._channel.open:
                return
            self._collect(debugger, frame)
        except RecursionError:  # the program is at its limit
            return
        self._settle()
        if not debugger.watch_texts:
            return
        # Where a step is traced, the trace function gets this event next.
        if kind != LATER and not (debugger.stepping and debugger.traces(frame)):
            debugger.stop_for_watch(frame, kind == END)
        else:
            self._watching.owed.append(threading.get_ident())

    def _collect(self, debugger, frame):
        if not self._lock.acquire(False):
            return  # another thread is looking
        try:
            for watch in list(self._all.values()):
                self._look_at(watch, debugger, frame)
            self._watching.differs = self._comparison()
        finally:
            self._lock.release()

    def _look_at(self, watch, debugger, frame):
        try:
            change = watch.watched.change()
        except Ended as exc:
            self._end(watch, str(exc))
            return
        except Overtime:
            self._end(watch, _SLOW)
            return
        if change is None:
            return
        holds, error = watch.watched.holds()
        if not holds:
            return
        watch.hits += 1
        label = f"watch {watch.number}: {watch.watched.text}"
        text = self._texts.describe(label, change, watch.watched, frame)
        debugger.watch_texts.append(text + (f" (the condition raised {error})" if error else ""))

    def _left(self, frame):
        for watch in list(self._all.values()):
            if watch.watched.frame is frame:
                self._end(watch, "its frame has returned")

    def _end(self, watch, reason):
        if self._all.pop(watch.number, None) is not None:
            self._notices.hold(
                f"watch {watch.number} ended: {reason} ({watch.watched.text} = {watch.watched.shown})."
            )
            self._update()

    # -- evaluations by code of the program

    def _limited(self, call, seconds):
        """Return `call()`. Raises Overtime if it takes too long in code of the program, and its errors."""
        debugger = self._debuggers.current()
        place = self._watching.save()
        with self._gate:
            outer, debugger.at_prompt = debugger.at_prompt, True  # nothing stops in it
            evaluating, self.evaluating = self.evaluating, threading.get_ident()
            try:
                if outer or self.engine.name == "settrace":
                    return call_limited(call, seconds)
                # There, a trace function is dear to set: the events of the watches themselves limit the time.
                self._allowance = Allowance(seconds)
                return sys.call_tracing(call, ())
            finally:
                self.evaluating = evaluating
                debugger.at_prompt = outer
                self._watching.restore(place)

    def cancel_evaluation(self):
        """End the evaluation of this thread, from a signal handler. Raises Overtime."""
        raise Overtime()

    def _tick(self):
        """Limit the time of an evaluation. Returns False: nothing is compared meanwhile."""
        if (
            self.evaluating == threading.get_ident()
            and self._allowance is not None
            and self._allowance.is_over()
        ):
            raise Overtime()
        return False


def _scope_of(watched):
    if watched.frame is not None:
        return f" (until {watched.frame.f_code.co_name} returns)"
    if watched.object_name is not None:
        return f" (of this {watched.object_name}, wherever it is changed)"
    return " (wherever it is changed)"
