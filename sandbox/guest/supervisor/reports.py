"""What the debugged program has reported: where it is, what it said, how it ended."""

from __future__ import annotations

import os
import threading

from .debuggee import Debuggee
from .entrypoint import Launch
from .stop import Place, bounded

KEPT_NOTICES = 40
_CUT_OFF = (
    "The program ended before its end: by `os._exit(1)`, or at a breakpoint after it had closed the debugger's"
    " connection (`os.closerange`)."
)


class Reports:
    """Takes the events of the current `Debuggee`, in its thread, and keeps what they say under `_changed`.

    What pdb says belongs to the request that it answers: it is kept with its number until that one's caller, or when there is none any
    more, `wait` has told it.
    """

    def __init__(self, state) -> None:
        self._state = state
        self._changed = threading.Condition()
        self._debuggee: Debuggee | None = None
        self._good: Launch | None = None
        """The last launch that came to a prompt: what a command without an entry point starts."""
        self._entry = 0
        self._starting = False
        self._place = Place()
        self._numbers = 0
        self._owed: int | None = None
        """The request that the debugger has and has not answered. Without one it is at its prompt, or gone."""
        self._serving: int | None = None
        """The command whose caller still waits: what is said to it is for nobody else."""
        self._lines: list = []
        self._left: int | None = None
        self._said: list = []
        self._arrivals = 0
        """Counts the times that the debugger came to its prompt: who waits for that compares with what it saw before."""
        self._replies: dict = {}
        self._notices: list = []
        self._table_changed = False
        self._resumed = False
        self._ended: dict | None = None
        self._ending = False
        self._restart: dict | None = None
        self._quit = False
        self._lost = False
        self._seen_reading = False
        self._was_reading = False
        self._gone = True
        self._looked: tuple = ()
        self.state = "not_started"
        self.stop = 0
        self.run = 0

    def status(self) -> dict:
        """State, stop, run and frame, at once."""
        with self._changed:
            frame = self._place.frame if self.state == "stopped" else None
            return {"state": self.state, "stop": self.stop, "run": self.run, "frame": frame}

    def on_event(self, debuggee: Debuggee, header: dict) -> None:
        """A frame of the debugger. What runs there is not trusted: anything unknown is dropped."""
        handler = getattr(self, "_on_" + str(header.get("event")), None)
        with self._changed:
            if handler is not None and debuggee is self._debuggee:
                if isinstance(header.get("breakpoints"), list) and header["event"] != "reply":
                    changed = self._state.breakpoints.replace(header["breakpoints"])
                    self._table_changed = self._table_changed or changed
                self._notice(header.get("notices") or [])
                handler(header)
                if (
                    header["event"] != "resumed"
                ):  # nobody waits for that: waking them would cost each step its time
                    self._changed.notify_all()

    def on_exit(self, debuggee: Debuggee) -> None:
        """It has ended, and all that it reported has come."""
        status = debuggee.child.status or (None, None)
        native = debuggee.native()
        with self._changed:
            if debuggee is self._debuggee:
                self._gone = True
                self.state = "exited"
                # What runs a command line tells a crash in it by an exit code of its own.
                crashed = status[1] or (debuggee.launch.command and self._ended is None)
                self._place.exited(status, native if crashed else None, self._ended)
                self._tell_left()
                self._tell_cut_off()
                self._owed = None
                self._changed.notify_all()

    def _begin_run(self, state: str = "running") -> None:
        """Forget the run before; with `running`, a debugger is to come to its first prompt, which answers `_owed`."""
        self._place = Place()
        self._said, self._replies = [], {}
        self._ended = self._restart = None
        self._ending = self._quit = self._lost = self._seen_reading = False
        self._starting = self._resumed = state == "running"
        self._gone = not self._starting
        self._owed = self._serving = self._next_number() if self._starting else None
        self._lines, self._left = [], None
        self.state = state

    def _next_number(self) -> int:
        self._numbers += 1
        return self._numbers

    def _on_prompt(self, header: dict) -> None:
        if self._owed is None or header.get("id") not in (None, self._owed):
            return  # forged: the debugger answers what it was given, once
        if header.get("stopped"):
            self.stop += 1
        if self._starting:
            self._starting = False
            self._entry = self.stop
            self._good = self._present().launch
        self._place.update(header)
        if header.get("stopped"):
            self._was_reading = self.state == "waiting_for_input"
            self._looked = self._look()
        self._drop_so_far()
        self._say(header)
        self._ending = False
        self._answered()

    def _answered(self) -> None:
        """The debugger is at its prompt."""
        self._owed, self._left = None, None
        self.state = "stopped"
        self._arrivals += 1

    def _say(self, header: dict) -> None:
        self._said.append(dict(header, id=self._owed))

    def _on_resumed(self, header: dict) -> None:
        if self._owed is None or header.get("id") not in (None, self._owed):
            return
        self.state = "running"
        self._resumed = True
        left = header.get("left")
        self._left = left if isinstance(left, int) else None
        if isinstance(header.get("text"), str):
            self._drop_so_far()
            self._say({"text": header["text"], "so_far": True})

    def _drop_so_far(self) -> None:
        # What was said ahead of the reply is in it.
        self._said = [event for event in self._said if event["id"] != self._owed or not event.get("so_far")]

    def _on_input(self, header: dict) -> None:
        if self.state == "running":
            self.state = "waiting_for_input"

    def _on_end(self, header: dict) -> None:
        self._ended = header
        self._ending = True
        self.state = "running"
        self._drop_so_far()
        self._say(header)
        self._left = None

    def _on_restart(self, header: dict) -> None:
        self._restart = header
        self._drop_so_far()
        self._say(header)

    def _on_quit(self, header: dict) -> None:
        self._quit = True
        self._drop_so_far()
        self._say(header)

    def _on_notice(self, header: dict) -> None:
        self._notice([header.get("text", "")])

    def _on_reply(self, header: dict) -> None:
        number = header.get("id")
        if number != self._owed or number is None:
            return  # forged
        if number == self._serving:
            self._replies[number] = header
        self._answered()

    def _on_lost(self, header: dict) -> None:
        if not self._quit and self._ended is None and self._restart is None:
            self._notice(["The program closed the debugger's connection; it runs on without it."])
        self._lost = True
        self.state = "running"

    def _notice(self, texts: list) -> None:
        # The program may send what it likes, and as much: the first ones are enough.
        room = max(0, KEPT_NOTICES - len(self._notices))
        self._notices += [bounded(text) for text in texts[:room]]

    def _tell_left(self) -> None:
        """The program has ended under a command: which of its lines were not run, as far as that is known."""
        if self._owed is None or self._quit or self._ended is not None or self._restart is not None:
            return
        if self._left is not None:
            self._say({"not_run": self._lines[len(self._lines) - self._left :] if self._left > 0 else []})
        elif len(self._lines) > 1:
            self._notice(
                ["The program ended while pdb was at these lines; what it said to those before is lost."]
            )

    def _tell_cut_off(self) -> None:
        # A debugger that comes to a stop and finds its connection closed can only end the program.
        told = self._quit or self._ended is not None or self._restart is not None
        if self._resumed and not self._starting and not told and self._place.exit_code == 1:
            self._notice([_CUT_OFF])

    def _take(self, wanted) -> list:
        """What was said to requests whose number `wanted` takes; it counts as told.

        What is said ahead of a reply is told only when the reply can't come any more.
        """
        taken, kept = [], []
        for event in self._said:
            ahead = event.get("so_far") and not self._gone
            (taken if wanted(event["id"]) and not ahead else kept).append(event)
        self._said = kept
        return taken

    def _present(self) -> Debuggee:
        assert self._debuggee is not None
        return self._debuggee

    def _look(self) -> tuple:
        path = (self._place.frame or {}).get("path") or ""
        return path, self._state.touched, _stamp(os.path.join(self._state.workdir, path))


def _stamp(path: str) -> tuple | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
