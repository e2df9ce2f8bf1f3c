"""The prompt: pdb's stdin and stdout, and the requests of the supervisor that they stand for."""

# Answers are JSON data; `stops` is set later.
# pyright: reportArgumentType=false, reportCallIssue=false, reportOptionalMemberAccess=false
from __future__ import annotations

import enum
import sys

from ..control.channel import Closed
from ..control.interrupt import evaluator
from ..inspection import safe_repr, variables
from ..isolation.pristine import os, threading

_LIMIT = 128 << 10  # characters kept at each end of a reply


class Turn(enum.Enum):
    """Holders of the turn."""

    PROGRAM = "the program runs, or a stop is described"
    SUPERVISOR = "a prompt waits for the next request"
    COMMAND = "a thread runs a command, and with it any code of the program"


_NEXT = {
    Turn.PROGRAM: frozenset((Turn.PROGRAM, Turn.SUPERVISOR, Turn.COMMAND)),
    Turn.SUPERVISOR: frozenset((Turn.PROGRAM, Turn.COMMAND)),
    Turn.COMMAND: frozenset(Turn),
}
"""Turns that may follow. One prompt at a time waits for the supervisor."""


class Activity:
    """The turn, and the thread that runs a command. Signal handlers and other threads read both at any time."""

    def __init__(self):
        self._now = Turn.PROGRAM, None
        self.awaiting = None  # the evaluation that awaits something

    @property
    def waiting(self):
        """True while a prompt waits for the supervisor."""
        return self._now[0] is Turn.SUPERVISOR

    @property
    def evaluating(self):
        """Id of the thread that runs a command, or None."""
        return self._now[1]

    def wait(self):
        """Give the turn to the supervisor."""
        self._pass_to(Turn.SUPERVISOR)

    def evaluate(self):
        """Give the turn to a command, in this thread."""
        self._pass_to(Turn.COMMAND, threading.get_ident())

    def run(self):
        """Give the turn to the program."""
        self._pass_to(Turn.PROGRAM)

    def _pass_to(self, turn, thread=None):
        if turn not in _NEXT[self._now[0]]:
            raise RuntimeError(f"the turn can't go from {self._now[0].name} to {turn.name}")
        self._now = turn, thread


class Prompt:
    """Gets lines for pdb from the supervisor, and reports what they printed and where the program stands."""

    def __init__(self, channel, gate, activity, notices, table, report, debuggers, hooks, watches):
        self.reply = ReplyBuffer()
        self.input = CommandInput(self)
        self._channel = channel
        self._gate = gate
        self._activity = activity
        self._notices = notices
        self._table = table
        self._report = report
        self._debuggers = debuggers
        self._hooks = hooks
        self._watches = watches
        self._watched = []  # expressions, as last reported
        self._stops = None
        self._aliases = {}
        self._of_child = False
        self._in_fork = False  # in a child forked by an evaluation, until that returns here
        self._lines = []
        self._left = 0  # lines left, as last reported to the supervisor; None if any number is news
        self._several = False  # this request has more than one line
        self._not_run = []
        self._request = None
        self._let_go = False

    def begin(self, stops, aliases, of_child):
        """Take the other parts that are made after this one, and the aliases that the supervisor knows."""
        self._stops, self._aliases, self._of_child = stops, aliases, of_child

    def next_line(self):
        """Return a line for pdb, from the supervisor if the request has none left."""
        if self._in_fork and self._debuggers.is_back_in_fork():
            self._return_in_fork()
        caller = sys._getframe(2).f_locals.get("self")
        debugger = caller if hasattr(caller, "curframe") else self._debuggers.current()
        if hasattr(debugger, "session"):
            return self._next_line(debugger)
        # A pdb that the program itself has made: its stops have no lock yet, since `Stops` doesn't know them.
        self._stops.lock.acquire()
        try:
            return self._next_line(debugger)
        finally:
            self._stops.lock.release(False)

    def _next_line(self, debugger):
        self._activity.run()
        if not self._lines and self._several and self.reply.asks_for_more():
            self._lines, self._several = [""], False  # as an empty line ends a block that is typed
        if self._lines:
            self.reply.drop_prompt()
            self._tell_line()
        else:
            self._ask(debugger)
        self._activity.evaluate()
        return self._lines.pop(0)

    def rest(self):
        """Return the lines of the request that were not run yet. The caller removes those that it takes."""
        return self._lines

    def drop_lines(self, before=()):
        """Drop the rest of the request and the lines `before` it, and report them.

        Returns True if there were any.
        """
        dropped = list(before) + self._lines
        self._not_run += dropped
        self._lines = []
        return bool(dropped)

    # -- events

    def _tell_line(self):
        """Report that the next line of a request is run: it may take too long, or end the program."""
        self._table.refresh()
        event = {"event": "line", "id": self._request, "left": len(self._lines) - 1}
        event["text"] = self.reply.fresh()
        self._add_aliases(event)
        self._left = None
        self._channel.send(event)

    def tell_resumed(self, steps, prompted):
        """Report that the program resumes after a prompt, or without one if lines were dropped.

        The supervisor must know this now and not at the next prompt: the program may die before that.
        """
        if not prompted and self._left == len(self._lines):
            return
        self._left = len(self._lines)
        text = self.reply.fresh()
        event = {"event": "resumed", "id": self._request, "left": self._left, "steps": steps, "text": text}
        self._add_breakpoints(event)
        self._channel.send(event)

    def tell_end(self, event, with_notices=False):
        """Report the end of the program, or a command that ends it."""
        flush()
        self.drop_lines()
        event.update(reply_text=self.reply.take(prompt=False)[0], id=self._request)
        event["not_run"], self._not_run = self._not_run, []
        if with_notices:
            event["notices"] = self._notices.take()
        self._add_breakpoints(event)
        self._channel.send(event)

    def _add_breakpoints(self, event):
        table = self._table.changes()
        if table is not None:
            event["breakpoints"] = table

    def _add_aliases(self, event):
        """Report changed aliases, which the next run keeps."""
        if self._debuggers.main.aliases != self._aliases:
            event["aliases"] = self._aliases = dict(self._debuggers.main.aliases)

    def _add_watches(self, event):
        """Report changed watches, which end with the run."""
        watched = self._watches.expressions()
        if watched != self._watched:
            event["watches"] = self._watched = watched

    def _tell_prompt(self, debugger):
        if getattr(debugger, "prompted", False) is False:
            debugger.prompted = True
            self._hooks.enter(debugger)
        flush()
        text, omitted, prompt = self.reply.take()
        event = {"event": "prompt", "id": self._request, "text": text, "omitted": omitted, "prompt": prompt}
        event["not_run"], self._not_run = self._not_run, []
        try:
            event.update(self._report.describe_prompt(debugger))
        except BaseException as exc:  # objects of the program that are hard to look at must not end it
            event.setdefault("stopped", True)
            self._notices.add(f"This stop could not be described: {type(exc).__name__}")
        self._add_breakpoints(event)
        self._add_aliases(event)
        self._add_watches(event)
        if self._table.failed:
            self._notices.hold(self._table.failed)
            self._table.failed = None
        event["notices"] = self._notices.take()
        self._request = None
        self._activity.wait()
        self._channel.send(event)

    # -- requests

    def _ask(self, debugger):
        """Report the prompt and serve requests, until there is a line to run."""
        try:
            self._tell_prompt(debugger)
            while not self._lines:
                self._serve_next(debugger)
                if self._in_fork and self._debuggers.is_back_in_fork():
                    self._activity.run()
                    self._return_in_fork()
                    self._tell_prompt(debugger)
        finally:
            self._activity.run()

    def _serve_next(self, debugger):
        try:
            message = self._channel.receive()
        except Closed:
            self._go_on_alone()
            return
        kind = message.get("op")
        if message.get("id") is None:
            self._update(message)
        elif kind == "command":
            self._request = message.get("id")
            self._lines = [str(line) for line in message.get("lines") or [""]]
            self._several = len(self._lines) > 1
        else:
            self._answer(kind, message, debugger)

    def _go_on_alone(self):
        """End the program, which has no supervisor any more, or have it continue.

        Without a supervisor there is no prompt. A child continues, since its parent waits for it, and so does
        a program that has closed the connection itself.
        """
        if self._let_go or not self._of_child and not self._channel.cut:
            os._exit(1)
        self._let_go, self._channel.open = True, False
        self._lines = ["c"]

    def _return_in_fork(self):
        self._in_fork = False
        self._stops.return_in_fork()
        if not self._channel.ready():
            self._lines = ["c"]

    def _answer(self, kind, message, debugger):
        self._activity.evaluate()
        try:
            answer = self._data(kind, message, debugger)
        except BaseException as exc:  # evaluated code of the user may raise anything
            answer = {"error": f"{type(exc).__name__}: {safe_repr.text_of(exc)}"}
        finally:
            self._activity.wait()
        answer.update({"event": "reply", "id": message.get("id")})
        if not self._in_fork:  # otherwise the parent answers
            self._channel.send(answer)

    @evaluator
    def _data(self, kind, message, debugger):
        if kind == "inspect":
            return variables.inspect(debugger, message)
        if kind == "set_breakpoints":
            self._set_breakpoints(message)
            return {"breakpoints": self._table.export()}
        if kind == "state":
            return self._report.state(debugger)
        return {"error": f"unknown request {kind!r}"}

    def update_waiting(self):
        """Process messages that arrived while the program runs. Returns True if there were any."""
        with self._gate:
            messages = list(self._channel.waiting_messages())
            for message in messages:
                self._update(message)
        return bool(messages)

    def _update(self, message):
        if message.get("op") == "drop_lines":
            self._lines, self._left = [], 0
        elif message.get("op") == "set_breakpoints":
            with self._stops.pausing():
                self._set_breakpoints(message)

    def _set_breakpoints(self, message):
        self._table.restore(message.get("breakpoints") or [])
        self._table.reserve(message.get("next_breakpoint") or 0)
        self._table.changes()

    def hand_over(self):
        """Return the request that is carried out and the breakpoints, for a process that goes on at a checkpoint."""
        flush()
        self._table.refresh()
        return {
            "id": self._request,
            "lines": self._lines,
            "breakpoints": self._table.export(),
            "next_breakpoint": self._table.next_number(),
            "aliases": dict(self._debuggers.main.aliases),
            "received": self._channel.received().hex(),
        }

    def take_over(self, message):
        """Go on with what another process has handed over."""
        self.reply.clear()
        self._request, self._lines = message["id"], message["lines"]
        self._several, self._left, self._not_run = bool(self._lines), None, []
        self._watched = None  # those of the checkpoint, whatever was reported last
        aliases = self._debuggers.main.aliases
        aliases.clear()
        aliases.update(message["aliases"])
        self._set_breakpoints(message)

    def forked(self, evaluating):
        """Forget the parent's request, in a forked child. If `evaluating`, a command has forked it."""
        self._of_child, self._in_fork = True, evaluating
        self.reply.clear()
        self._lines, self._left, self._not_run, self._request = [], 0, [], None


def flush():
    """Flush the program's output, so that it comes before the report."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:  # a stream of the program, which may be closed or of its own class
            pass


class ReplyBuffer:
    """Text file for pdb's output. Keeps the text until it is taken, and cuts the middle if it grows large."""

    encoding = "utf-8"
    errors = "strict"
    closed = False

    def __init__(self):
        self.clear()

    def clear(self):
        """Forget everything written so far."""
        self._head = []
        self._head_size = 0
        self._told = 0  # pieces of the head that `fresh` has returned
        self._tail = ""
        self._omitted = 0
        self._last = ""

    def write(self, text):
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if text:
            self._keep(self._last)
            self._last = text
        return len(text)

    def writelines(self, lines):
        for line in lines:
            self.write(line)

    def flush(self):
        pass

    def isatty(self):
        return False

    def writable(self):
        return True

    def readable(self):
        return False

    def _keep(self, text):
        room = _LIMIT - self._head_size
        if room > 0:
            self._head.append(text[:room])
            self._head_size += len(text[:room])
            text = text[room:]
        if text:
            self._tail += text
            if len(self._tail) > 2 * _LIMIT:
                self._cut()

    def _cut(self):
        extra = max(0, len(self._tail) - _LIMIT)
        self._omitted += extra
        self._tail = self._tail[extra:]

    def fresh(self):
        """Return the text written since the last call, as far as it belongs to the kept start."""
        self._keep(self._last)
        self._last = ""
        text = "".join(self._head[self._told :])
        self._told = len(self._head)
        return text

    def drop_prompt(self):
        """Forget the last prompt: its input is already there."""
        if not self._last.endswith("\n"):
            self._last = ""

    def asks_for_more(self):
        """True if the last prompt asks for the rest of a statement."""
        return self._last.strip() == "..."

    def take(self, prompt=True):
        """Return (text, characters left out, prompt) and clear the buffer.

        The prompt is the last piece written, if it does not end its line.
        """
        asked = ""
        if prompt and self._last and not self._last.endswith("\n"):
            asked = self._last
        else:
            self._keep(self._last)
        self._cut()
        head = "".join(self._head)
        omitted = self._omitted
        text = head + (f"\n[... {omitted} characters left out ...]\n" if omitted else "") + self._tail
        self.clear()
        return text, omitted, asked


class CommandInput:
    """Text file for pdb's input.

    Returns the lines of a request, and answers the request after the last one.
    """

    encoding = "utf-8"
    errors = "strict"
    closed = False

    def __init__(self, prompt):
        self._prompt = prompt

    def readline(self, size=-1):
        line = self._prompt.next_line()
        return "" if line is None else line + "\n"

    def read(self, size=-1):
        return self.readline()

    def __iter__(self):
        return self

    def __next__(self):
        line = self.readline()
        if not line:
            raise StopIteration
        return line

    def flush(self):
        pass

    def isatty(self):
        return False

    def readable(self):
        return True

    def writable(self):
        return False
