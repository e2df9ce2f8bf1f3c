"""One run of the debugged program: its process, the channel to the debugger inside it, its output and its stdin."""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import threading

from ..frames import BrokenFrame, FrameSocket
from .errors import GuestError

ANSWER_BYTES = 256 << 10
KEPT_BYTES = 4 << 20
STDIN_BYTES = 1 << 20
_NATIVE_BYTES = 64 << 10
_PIPE_BYTES = 1 << 20
_LAUNCHER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "debugger", "launch.py")
_REAL_TIME = hasattr(signal, "SIGRTMIN")
INTERRUPT = int(signal.SIGRTMIN) + 6 if _REAL_TIME else int(signal.SIGUSR2)
DUMP = int(signal.SIGRTMIN) + 7 if _REAL_TIME else None
_READ_CALLS = {"x86_64": "0", "aarch64": "63"}


class Debuggee:
    """A started program. Events of its debugger go to `listener.on_event(self, header)`, its end to `listener.on_exit(self)`.

    Both are called in a thread of this object. Raises GuestError when the interpreter can't be started.
    """

    def __init__(self, state, launch, cwd: str, env: dict, message: dict, listener) -> None:
        self.launch = launch
        self._listener = listener
        self._ours, theirs = socket.socketpair()
        self._channel = FrameSocket(self._ours)
        self.output, output_fd = state.output.open(ANSWER_BYTES // 2, ANSWER_BYTES // 2, KEPT_BYTES)
        self._native, native_fd = os.pipe()
        os.set_blocking(self._native, False)
        self._native_lock = threading.Lock()
        _widen(native_fd)  # a crashing process must not hang in writing where it crashed
        stdin_fd, stdin_write = os.pipe()
        self._stdin = _Stdin(stdin_write)
        self._stdin_name = _target(stdin_fd)
        theirs_fd = theirs.fileno()
        argv = launch.interpreter + [_LAUNCHER, str(theirs_fd), str(native_fd)]
        try:
            self.child = state.children.spawn(
                argv,
                cwd,
                env,
                stdin_fd,
                output_fd,
                output_fd,
                pass_fds=(theirs_fd, native_fd),
                on_exit=self._reaped,
            )
        except GuestError:
            self._close()
            raise
        finally:
            theirs.close()
            for fd in (output_fd, native_fd, stdin_fd):
                os.close(fd)
        self.send(message)
        threading.Thread(target=self._receive, name="debugger", daemon=True).start()

    def send(self, header: dict) -> None:
        """Send the debugger a frame. A program that is gone gets nothing; its end is told as usual."""
        try:
            self._channel.send(header)
        except OSError:
            pass

    def interrupt(self) -> bool:
        """Ask the debugger to break in; False when it isn't ready for that (yet)."""
        # The signal's default action is to end the process.
        return _catches(self.child.pid, INTERRUPT) and self.child.send_signal(INTERRUPT)

    def stacks(self, timeout: float = 0.5) -> str | None:
        """The Python stacks of all threads, told by the interpreter itself even inside C code; None when it can't."""
        if DUMP is None or not _catches(self.child.pid, DUMP) or not self.child.send_signal(DUMP):
            return None
        return self.native(timeout)

    def native(self, timeout: float = 0.0) -> str | None:
        """What faulthandler wrote since the last time; waits at most `timeout` seconds for it to begin."""
        text = b""
        with self._native_lock:
            while (
                self._native != -1
                and len(text) < _NATIVE_BYTES
                and select.select([self._native], [], [], timeout)[0]
            ):
                data = os.read(self._native, _NATIVE_BYTES)
                if not data:
                    break
                text += data
                timeout = 0.05  # it is written in small pieces, without a mark at its end
        return text.decode("utf-8", "backslashreplace").strip() or None

    def write_stdin(self, data: bytes, eof: bool) -> None:
        """Feed the program's stdin; never waits for it to read.

        Raises GuestError (conflict) when it is closed, or too much is unread.
        """
        self._stdin.write(data, eof)

    def reads_stdin(self) -> bool:
        """Whether some process of the program is blocked reading the stdin that we feed, as far as the system tells."""
        number = _READ_CALLS.get(os.uname().machine)
        if number is None or self.child.status is not None:
            return False
        return any(self._blocked_in_read(pid, number) for pid in self.child.descendants())

    def kill(self) -> None:
        """Kill it and all that it started."""
        self.child.kill_tree()

    def _blocked_in_read(self, pid: int, number: str) -> bool:
        for task in _listing("/proc/%d/task" % pid):
            call = _first_line("/proc/%d/task/%s/syscall" % (pid, task)).split()
            if call[:2] == [number, "0x0"] and _link("/proc/%d/fd/0" % pid) == self._stdin_name:
                return True
        return False

    def _receive(self) -> None:
        try:
            while True:
                frame = self._channel.receive()
                if frame is None:
                    break
                self._listener.on_event(self, frame[0])
        except OSError:
            pass  # killed, or closed by the program
        except (BrokenFrame, TypeError, ValueError, KeyError, AttributeError) as exc:
            # The program may forge what it likes; then it runs without its debugger.
            print("the debugger sent what it must not send: %r" % exc, file=sys.stderr)
        if self.child.wait(1.0) is None:
            self._listener.on_event(self, {"event": "lost"})
        self.child.ended.wait()
        self.output.drain()
        self._listener.on_exit(self)
        self._close()

    def _reaped(self, child) -> None:
        # Children that it left may hold the channel open. What has arrived can still be read.
        try:
            self._ours.shutdown(socket.SHUT_RD)
        except OSError:
            pass

    def _close(self) -> None:
        self._channel.close()
        self._stdin.close()
        with self._native_lock:
            os.close(self._native)
            self._native = -1


class _Stdin:
    """The writing end of the program's stdin."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        os.set_blocking(fd, False)
        self._lock = threading.Lock()
        self._rest = bytearray()
        self._eof = False
        self._writing = False

    def write(self, data: bytes, eof: bool) -> None:
        with self._lock:
            if self._eof:
                raise GuestError(
                    "conflict", "The program's stdin was closed before.", "A restart opens it again."
                )
            if len(self._rest) + len(data) > STDIN_BYTES:
                raise GuestError(
                    "conflict", "The program has not read %d bytes of its stdin yet." % len(self._rest)
                )
            self._rest += data
            self._eof = eof
            self._flush()
            if self._rest and not self._writing:
                self._writing = True
                threading.Thread(target=self._write_rest, name="stdin", daemon=True).start()

    def close(self) -> None:
        with self._lock:
            self._rest.clear()
            self._eof = True
            self._flush()

    def _write_rest(self) -> None:
        while True:
            select.select([], [self._fd], [])  # until it reads, or is gone
            with self._lock:
                self._flush()
                if not self._rest:
                    self._writing = False
                    self._close_at_end()
                    return

    def _flush(self) -> None:
        try:
            while self._rest:
                del self._rest[: os.write(self._fd, self._rest[:65536])]
        except BlockingIOError:
            return
        except OSError:
            self._rest.clear()  # nobody will read it
        if not self._rest and not self._writing:
            self._close_at_end()

    def _close_at_end(self) -> None:
        if self._eof and self._fd != -1:
            os.close(self._fd)
            self._fd = -1


def _catches(pid: int, number: int) -> bool:
    """Whether the process has a handler for the signal; where there is no /proc, that is not known and taken for yes."""
    text = _first_line("/proc/%d/status" % pid, whole=True)
    if not text:
        return not os.path.isdir("/proc/self")
    mask = next((line.split()[1] for line in text.splitlines() if line.startswith("SigCgt:")), "0")
    return bool(int(mask, 16) >> (number - 1) & 1)


def _first_line(path: str, whole: bool = False) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read() if whole else file.readline()
    except OSError:
        return ""


def _listing(path: str) -> list:
    try:
        return os.listdir(path)
    except OSError:
        return []


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _target(fd: int) -> str:
    return "pipe:[%d]" % os.fstat(fd).st_ino


def _widen(fd: int) -> None:
    import fcntl

    try:
        fcntl.fcntl(fd, getattr(fcntl, "F_SETPIPE_SZ", 1031), _PIPE_BYTES)
    except OSError:
        pass  # not Linux, or over the user's limit
