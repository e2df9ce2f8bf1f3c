"""Server of the supervisor: connections, dispatch of operations, and deadlines (idle, age, no connection)."""

from __future__ import annotations

import importlib
import os
import socket
import sys
import threading
import time
import traceback

from ..protocol import PROTOCOL, codes
from ..protocol.frames import FramePipe, FrameSocket
from ..protocol.operations import Operation
from .connection import Call, Connection, Workers
from .errors import GuestError, out_of_memory
from .files.full_folders import describe_full

_LAST_CALL_S = 60.0
"""Time that a request under way is given when the maximum age is reached."""
_IDLE = (codes.EXPIRED, "it was idle too long")
_AGE = (codes.EXPIRED, "it reached its maximum age")
_ALONE = (codes.EXPIRED, "no server was connected for too long")
_UNUSED = (codes.SERVER_GONE, "its server is gone")
_OP_MODULES = (
    "program.operations",
    "files.read_write",
    "files.extract",
    "files.search",
    "files.changes",
    "processes.run_command",
    "processes.test_run",
    "processes.diagnosis",
    "processes.trace",
    "files.certificates",
    "files.nearest_line",
    "files.lock",
)


class Server:
    """Accepts connections and keeps three deadlines: idle time, age, and time without a connection.

    A sandbox that waits for its session has no deadline yet: it lasts while the server that started it is
    connected.
    """

    def __init__(self, state, config: dict) -> None:
        self.state = state
        self.workers = Workers()
        self._config = dict(config)
        self._waiting = bool(config.get("pooled"))
        self._ops = {
            "ping": _ping,
            "meta.set": _set_meta,
            "shutdown": _ping,
            "lifetime": self._set_lifetime,
            "end_if_idle": self._end_if_idle,
            "load": self._load,
        }
        self._modules = list(_OP_MODULES)
        self._changed = threading.Condition()
        self._connections: set[Connection] = set()
        self._busy = 0
        self._closing: tuple | None = None
        """(code, reason) of the session's end."""
        self._started = self._used = self._left = time.monotonic()

    def listen(self, path: str) -> None:
        """Accept connections on the unix socket `path` from now on."""
        if os.path.lexists(path):
            os.unlink(path)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        mask = os.umask(0o177)
        try:
            listener.bind(path)
        finally:
            os.umask(mask)
        listener.listen(16)
        threading.Thread(target=self._accept, args=(listener,), name="accept", daemon=True).start()

    def connect(self, stream: FramePipe | FrameSocket, greeting: bool = False) -> None:
        """Serve one more connection in another thread. With `greeting` it has been greeted when this returns.

        Without a free thread it is closed: a client that wants to be served tries again.
        """
        connection = Connection(self, stream)
        with self._changed:
            self._connections.add(connection)
        if greeting:
            connection.greet()
        try:
            self.workers.submit(connection.read if greeting else connection.greet_and_read)
        except RuntimeError as exc:
            print(f"a connection was closed: {exc}", file=sys.stderr)
            self.remove_connection(connection)
            stream.close()

    def hello(self) -> dict:
        """Build the greeting of a new connection."""
        return {
            "event": "hello",
            "protocol": PROTOCOL,
            "python": sys.version.split()[0],
            "workdir": self.state.workdir,
            "meta": self.state.meta,
        }

    def begin(self, operation: Operation) -> bool:
        """Note that a request has arrived. False: too late, it must not be served."""
        with self._changed:
            if self._closing is not None:
                return False
            if operation.counts_as_use:
                self._busy += 1
                self.state.touched += operation.edits_files
        if operation.counts_as_use:
            self.state.sole_use.enter()
        return True

    def finish(self, operation: Operation) -> None:
        """Note that a request has been served: the idle time starts now."""
        if operation.counts_as_use:
            self.state.sole_use.leave()
            with self._changed:
                self._busy -= 1
                self._used = time.monotonic()
                if self._used > self._end():
                    self._changed.notify_all()

    def answer(self, call: Call, args: dict, payload: bytes) -> tuple[dict, bytes]:
        """The reply to a request, without its id."""
        try:
            handler = self._find(call.operation.name)
            self._settle(call)
            ok, data = handler(args, payload, call)
            if call.cancelled.is_set() and not call.operation.answers_when_cancelled:
                raise GuestError("cancelled", f"`{call.operation.name}` was cancelled.")
            if _is_failure(ok):
                ok = self._with_full_folders(ok, "full")
            return {"ok": ok}, data
        except GuestError as exc:
            error = exc
        except MemoryError:
            error = None  # what the operation holds is only released after this clause
        except Exception as exc:  # only here does a bug of ours become an answer
            traceback.print_exc()
            error = GuestError("internal", repr(exc)[:1000])
        error = error or out_of_memory(call.operation.name)
        return {"error": self._with_full_folders(error.as_dict(), "hint")}, b""

    def _with_full_folders(self, data: dict, key: str) -> dict:
        """Append a sentence about each full folder to the text of `data` under `key`."""
        text = describe_full(self._config.get("size_settings") or {})
        return dict(data, **{key: (data.get(key, "") + " " + text).strip()}) if text else data

    def _settle(self, call: Call) -> None:
        """Wait until the files are those of the session, and the baseline is taken before they may change.

        They nearly always are, and it nearly always is.
        """
        if call.operation.counts_as_use:
            self.state.sole_use.wait(call.cancelled.is_set)
        workspace = self.state.workspace
        if workspace is None or workspace.baseline is None or workspace.baseline.is_taken:
            return
        if call.operation.may_change_files:
            workspace.baseline.settle(call.cancelled.is_set)

    def stop(self, code: str, reason: str) -> None:
        """Have `wait` return."""
        with self._changed:
            self._closing = self._closing or (code, reason)
            self._changed.notify_all()

    def wait(self) -> tuple:
        """Wait until it is time to end; gives the code and the reason."""
        with self._changed:
            while self._closing is None:
                deadline, closing = self._next_deadline()
                remaining = deadline - time.monotonic()
                if remaining <= 0:
                    self._closing = closing
                else:
                    self._changed.wait(remaining)
            return self._closing

    def say_goodbye(self, code: str, reason: str, timeout: float) -> None:
        """Send all connections the reason; a host that doesn't read delays us by at most `timeout` seconds."""
        with self._changed:
            connections = list(self._connections)
        event = {"event": "closing", "code": code, "reason": reason}
        threads = [
            threading.Thread(target=connection.send, args=(event,), daemon=True) for connection in connections
        ]
        end = time.monotonic() + timeout
        try:
            for thread in threads:
                thread.start()
        except RuntimeError:
            return  # no room for threads; the end of the streams has to tell it
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))

    def _accept(self, listener: socket.socket) -> None:
        while True:
            sock, _ = listener.accept()
            self.connect(FrameSocket(sock))

    def remove_connection(self, connection: Connection) -> None:
        """Forget a connection that has ended."""
        with self._changed:
            self._connections.discard(connection)
            self._left = time.monotonic()
            self._changed.notify_all()

    def _find(self, op: str):
        # Loaded when first asked for: most of the supervisor's start would be imports that a session may
        # never use.
        found = self._ops.get(op)
        if found is not None:
            return found
        with self._changed:
            while op not in self._ops and self._modules:
                self._load_next(1)
            if op not in self._ops:
                raise GuestError("not_found", f"There is no operation `{op[:100]}`.")
            return self._ops[op]

    def _set_lifetime(self, args: dict, payload: bytes, call: Call) -> tuple[dict, bytes]:
        """Set the time limits that the present server wants.

        `start`: the session begins, and its age with it.
        """
        with self._changed:
            for name in ("idle_s", "max_age_s", "grace_s"):
                if args.get(name) is not None:
                    self._config[name] = float(args[name])
            if args.get("start"):
                self._waiting = False
                self._started = time.monotonic()
            self._changed.notify_all()
        return {}, b""

    def _end_if_idle(self, args: dict, payload: bytes, call: Call) -> tuple[dict, bytes]:
        """End an idle session. Checks and ends in one step, as another server may have used it in between."""
        with self._changed:
            idle_s = self._config["idle_s"]
            left = idle_s if self._busy else self._used + idle_s - time.monotonic()
            if left <= 0:
                self._closing = self._closing or _IDLE
                self._changed.notify_all()
            return {"left_s": max(0.0, left)}, b""

    def _load(self, args: dict, payload: bytes, call: Call) -> tuple[dict, bytes]:
        """Load the modules now that the first requests would have to load."""
        with self._changed:
            self._load_next(len(self._modules))
        return {}, b""

    def load(self, name: str) -> None:
        """Load the operations of one module ahead."""
        with self.state.loading:
            if name in self._modules:
                self._ops.update(importlib.import_module("." + name, __package__).OPS)
                self._modules.remove(name)

    def _load_next(self, count: int) -> None:
        with self.state.loading:
            for name in self._modules[:count]:
                self.load(name)

    def _end(self) -> float:
        return self._started + self._config["max_age_s"]

    def _next_deadline(self) -> tuple[float, tuple | None]:
        # Requests only put the deadline off, so they need not wake the waiting thread, which would cost each
        # of them a switch of threads.
        now = time.monotonic()
        if self._waiting:
            return (now + 3600.0, None) if self._connections else (now, _UNUSED)
        deadlines: list = []
        if self._busy:
            deadlines.append((self._end() + _LAST_CALL_S, _AGE))
            deadlines.append((now + self._config["idle_s"], None))  # by then it may be idle
        else:
            deadlines.append((self._end(), _AGE))
            deadlines.append((self._used + self._config["idle_s"], _IDLE))
        if not self._connections:
            deadlines.append((self._left + self._config["grace_s"], _ALONE))
        return min(deadlines, key=lambda deadline: deadline[0])


def _is_failure(answer: dict) -> bool:
    """True if a program has failed, by the answer of the operation that ran it."""
    return any(answer.get(key) for key in ("exit_code", "signal", "timed_out", "exception"))


def _ping(args: dict, payload: bytes, call: Call) -> tuple[dict, bytes]:
    return {}, b""


def _set_meta(args: dict, payload: bytes, call: Call) -> tuple[dict, bytes]:
    call.state.meta = args.get("meta")
    return {}, b""
