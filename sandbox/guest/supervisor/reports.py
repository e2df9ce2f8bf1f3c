"""What the debugged program has reported: where it is, what it said, how it ended."""

from __future__ import annotations

import os
import threading

from .debuggee import Debuggee
from .entrypoint import Launch
from .stop import Place


class Reports:
    """Takes the events of the current `Debuggee`, in its thread, and keeps what they say under `_changed`."""

    def __init__(self, state) -> None:
        self._state = state
        self._changed = threading.Condition()
        self._debuggee: Debuggee | None = None
        self._good: Launch | None = None
        """The last launch that came to a prompt: what a command without an entry point starts."""
        self._entry = 0
        self._starting = False
        self._place = Place()
        self._prompts: list = []
        self._replies: dict = {}
        self._notices: list = []
        self._table_changed = False
        self._resumed = False
        self._ended: dict | None = None
        self._restart: dict | None = None
        self._quit = False
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
                self._notices += [str(notice) for notice in header.get("notices") or []]
                handler(header)
                self._changed.notify_all()

    def on_exit(self, debuggee: Debuggee) -> None:
        """It has ended, and all that it reported has come."""
        status = debuggee.child.status or (None, None)
        native = debuggee.native()
        with self._changed:
            if debuggee is self._debuggee:
                self._gone = True
                self.state = "exited"
                self._place.exited(status, native if status[1] else None, self._ended)
                self._changed.notify_all()

    def _on_prompt(self, header: dict) -> None:
        if header.get("stopped"):
            self.stop += 1
        self.state = "stopped"
        if self._starting:
            self._starting = False
            self._entry = self.stop
            self._good = self._present().launch
        self._place.update(header)
        if header.get("stopped"):
            self._looked = self._look()
        self._prompts.append(header)

    def _on_resumed(self, header: dict) -> None:
        self.state = "running"
        self._resumed = True

    def _on_input(self, header: dict) -> None:
        if self.state == "running":
            self.state = "waiting_for_input"

    def _on_end(self, header: dict) -> None:
        self._ended = header
        self.state = "running"
        self._prompts.append(header)

    def _on_restart(self, header: dict) -> None:
        self._restart = header
        self._prompts.append(header)

    def _on_quit(self, header: dict) -> None:
        self._quit = True
        self._prompts.append(header)

    def _on_notice(self, header: dict) -> None:
        self._notices.append(str(header.get("text", "")))

    def _on_reply(self, header: dict) -> None:
        self._replies[header.get("id")] = header

    def _on_lost(self, header: dict) -> None:
        if not self._quit and self._ended is None and self._restart is None:
            self._notices.append("The program closed the debugger's connection; it runs on without it.")
        self.state = "running"

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
