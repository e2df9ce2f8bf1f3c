"""Connection of a host, its requests, and the threads that serve them concurrently."""

from __future__ import annotations

import sys
import threading

from ..protocol import codes
from ..protocol.frames import BrokenFrame, FramePipe, FrameSocket
from ..protocol.operations import OPERATIONS, Operation
from .errors import GuestError, out_of_memory
from .pdb_syntax import ends_program

MAX_IN_FLIGHT = 64
_THREAD_IDLE_S = 10.0
_SPARE = 3
"""Number of idle threads that are always kept.

A program that forks without end leaves no room for a new one. With these, a command, a `wait` next to it, and
an interrupt of both are still served.
"""
_NO_THREAD = (
    "The sandbox has no room for one more thread: programs in it use up all processes.",
    "Try again when less runs in it.",
)


class Flag:
    """A `threading.Event` without waiting, which would cost three locks for each request."""

    def __init__(self) -> None:
        self._set = False

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        self._set = True


class Call:
    """One request, as its operation sees it."""

    def __init__(self, state, connection: Connection, number, operation: Operation) -> None:
        self.state = state
        self.operation = operation
        self.cancelled = Flag()
        self._connection = connection
        self.number = number
        self._lock = threading.Lock()
        self._callbacks: list = []

    @property
    def pipe(self) -> int | None:
        """Descriptor of the pipe that requests arrive in; None if it is a socket."""
        return self._connection.pipe

    def progress(self, data: dict, payload: bytes = b"") -> None:
        """Send the host progress or a part of the answer. A lost connection is not an error."""
        self._connection.send({"id": self.number, "progress": data}, payload)

    def on_cancel(self, callback) -> None:
        """Call `callback()` in another thread on cancellation of the request; at once if it has happened."""
        with self._lock:
            if not self.cancelled.is_set():
                self._callbacks.append(callback)
                return
        self._connection.server.workers.submit(callback)

    def cancel(self) -> None:
        """Cancel the request; a second time does nothing."""
        with self._lock:
            callbacks, self._callbacks = self._callbacks, []
            self.cancelled.set()
        for callback in callbacks:
            try:
                self._connection.server.workers.submit(callback)
            except RuntimeError:
                callback()  # a program that forks without end leaves no thread, and must be cancelled all the more


class Workers:
    """Pool of threads, so that a request need not start one. Idle threads end after a while, a few never."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._jobs: list = []
        self._idle = 0

    def submit(self, job) -> None:
        """Run `job()` soon in some thread."""
        with self._changed:
            if self._idle > len(self._jobs):
                self._jobs.append(job)
                self._changed.notify()
                return
        self._start(job)

    def keep_spare(self) -> None:
        """Start the threads that never end."""
        for _ in range(_SPARE):
            self._start(_nothing)

    def _start(self, job) -> None:
        threading.Thread(target=self._run, args=(job,), name="worker", daemon=True).start()

    def _run(self, job) -> None:
        while job is not None:
            job()
            job = self._next()

    def _next(self):
        with self._changed:
            self._idle += 1
            while not self._jobs:
                if not self._changed.wait(_THREAD_IDLE_S) and not self._jobs and self._idle > _SPARE:
                    break
            self._idle -= 1
            return self._jobs.pop(0) if self._jobs else None


class Connection:
    """One stream to a host, and its requests under way."""

    def __init__(self, server, stream: FramePipe | FrameSocket) -> None:
        self.server = server
        self._stream = stream
        self._lock = threading.Lock()
        self._calls: dict = {}

    @property
    def pipe(self) -> int | None:
        """Descriptor of the pipe that requests arrive in; None if it is a socket."""
        return self._stream.read_fd if isinstance(self._stream, FramePipe) else None

    def greet(self) -> None:
        """Say hello."""
        self.send(self.server.hello())

    def greet_and_read(self) -> None:
        """Say hello, then serve to the end of the stream."""
        self.greet()
        self.read()

    def read(self) -> None:
        """Read up to a request and serve it in this thread, while another one reads on: a single request needs no switch of threads."""
        request = self._next_request()
        if request is not None:
            self._run(*request)

    def _next_request(self) -> tuple[Call, dict, bytes] | None:
        """Read up to a request with which another thread has begun to read on; None at the end of the stream."""
        request = None
        try:
            frame = self._stream.receive()
            while frame is not None:
                request = self._take(*frame)
                if request is not None:
                    return request
                frame = self._stream.receive()
        except BrokenFrame as exc:
            print(f"connection closed: {exc}", file=sys.stderr)
        except OSError:
            pass
        finally:
            if request is None:
                try:
                    self._abandon()
                finally:  # it may lack a descriptor
                    self.server.remove_connection(self)
        return None

    def send(self, header: dict, payload: bytes = b"") -> None:
        """Send a frame; drop it if the host is gone.

        Raises ValueError, TypeError when it is no valid frame.
        """
        try:
            self._stream.send(header, payload)
        except OSError:
            pass  # `read` sees the end of the stream by itself

    def _take(self, header: dict, payload: bytes) -> tuple[Call, dict, bytes] | None:
        """Return a request that is to be served here, as another thread reads on; None if it has been dealt with."""
        number, op, args = header.get("id"), header.get("op"), header.get("args", {})
        if not isinstance(op, str) or not isinstance(args, dict) or not isinstance(number, int):
            error = GuestError(
                "invalid", "A request has an integer `id`, a string `op` and an object `args`."
            )
            self.send({"id": number if isinstance(number, int) else None, "error": error.as_dict()})
        elif op == "cancel":
            self._cancel(args.get("id"))
            self.send({"id": number, "ok": {}})
        else:
            call = self._begin(number, OPERATIONS.get(op) or Operation(op))
            if call is not None:
                return self._read_elsewhere(call, args, payload)
        return None

    def _begin(self, number: int, operation: Operation) -> Call | None:
        """Register a request; None if it is refused, which has been answered then."""
        call = Call(self.server.state, self, number, operation)
        with self._lock:
            busy = number in self._calls or len(self._calls) >= MAX_IN_FLIGHT
            if not busy:
                self._calls[number] = call
        if busy:
            error = GuestError("conflict", "Request %d is under way, or %d are." % (number, MAX_IN_FLIGHT))
            self.send({"id": number, "error": error.as_dict()})
            return None
        if not self.server.begin(operation):
            with self._lock:
                del self._calls[number]
            error = GuestError("expired", "The session is over.", "start_session opens a new one.")
            self.send({"id": number, "error": error.as_dict()})
            return None
        return call

    def _read_elsewhere(self, call: Call, args: dict, payload: bytes) -> tuple[Call, dict, bytes] | None:
        """Have another thread read on. Without one the request is refused, but for one that makes room."""
        try:
            self.server.workers.submit(self.read)
        except RuntimeError:
            if _kills(call.operation, args):
                self._run(call, args, payload)
            else:
                self._refuse_for_threads(call)
            return None
        return call, args, payload

    def _refuse_for_threads(self, call: Call) -> None:
        self._forget(call)
        if call.operation.name == "ping":
            self.send({"id": call.number, "ok": {}})  # it is alive, which is all that is asked
            return
        self.send({"id": call.number, "error": GuestError("conflict", *_NO_THREAD).as_dict()})

    def _run(self, call: Call, args: dict, payload: bytes) -> None:
        header, data = self.server.answer(call, args, payload)
        header["id"] = call.number
        self._forget(call)  # before the answer: its receiver may rely on it
        try:
            self.send(header, data)
        except (ValueError, TypeError) as exc:
            # Too large, or not JSON: a bug of ours, and no reason to leave the host waiting.
            self.send({"id": call.number, "error": GuestError("internal", repr(exc)[:1000]).as_dict()})
        except MemoryError:  # while the frame was made: nothing of it is sent
            del header, data
            self.send({"id": call.number, "error": out_of_memory(call.operation.name).as_dict()})
        if call.operation.name == "shutdown":
            self.server.stop(codes.SHUTDOWN, "shutdown")

    def _forget(self, call: Call) -> None:
        with self._lock:
            del self._calls[call.number]
        self.server.finish(call.operation)

    def _cancel(self, number) -> None:
        with self._lock:
            call = self._calls.get(number) if isinstance(number, int) else None
        if call is not None:
            call.cancel()

    def _abandon(self) -> None:
        with self._lock:
            calls = list(self._calls.values())
        for call in calls:
            # The debugged program goes on by itself; requests that only served this host must not.
            if call.operation.ends_with_connection:
                call.cancel()
        self._stream.close()


def _nothing() -> None:
    pass


def _kills(operation: Operation, args: dict) -> bool:
    """True if a request only kills the program, if that runs."""
    if not operation.gives_lines:
        return operation.kills_program
    lines = args.get("lines")
    return isinstance(lines, list) and all(isinstance(line, str) for line in lines) and ends_program(lines)
