"""One run of the debugged program: its process, the channel to the debugger inside it, its output and its stdin.

The process is the program itself, or a command line (`make test`) somewhere below which it comes to life and asks to be debugged.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import threading

from ..frames import BrokenFrame, FrameSocket
from .errors import GuestError
from .following import UNSEEN, Following

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
        self._breakpoints = state.breakpoints
        self._message = message
        self._listener = listener
        self._attaching = threading.Lock()
        self._channel: FrameSocket | None = None
        self._process: _Process | None = None
        self._following: Following | None = None
        self.output, output_fd = state.output.open(ANSWER_BYTES // 2, ANSWER_BYTES // 2, KEPT_BYTES)
        self._native, self._native_fd = os.pipe()
        os.set_blocking(self._native, False)
        self._native_lock = threading.Lock()
        _widen(self._native_fd)  # a crashing process must not hang in writing where it crashed
        stdin_fd, stdin_write = os.pipe()
        self._stdin = _Stdin(stdin_write)
        self._stdin_name = _target(stdin_fd)
        start = self._start_command if launch.command else self._start_program
        try:
            start(state, cwd, env, (stdin_fd, output_fd, output_fd))
        except GuestError:
            self._close()
            raise
        finally:
            for fd in (output_fd, stdin_fd):
                os.close(fd)

    def _start_program(self, state, cwd: str, env: dict, streams: tuple) -> None:
        ours, theirs = socket.socketpair()
        theirs_fd = theirs.fileno()
        self._channel = FrameSocket(ours)
        argv = self.launch.interpreter + [_LAUNCHER, str(theirs_fd), str(self._native_fd)]
        try:
            self.child = state.children.spawn(
                argv,
                cwd,
                env,
                *streams,
                pass_fds=(theirs_fd, self._native_fd),
                on_exit=self._reaped,
            )
        finally:
            theirs.close()
            self._close_native()
        self.send(self._message)
        threading.Thread(target=self._receive, name="debugger", daemon=True).start()

    def _start_command(self, state, cwd: str, env: dict, streams: tuple) -> None:
        following = Following(self.launch.text, state, self._native_fd, self._attach)
        self._following = following
        try:
            argv = following.command(self.launch.command)
            self.child = state.children.spawn(
                argv, cwd, following.environment(env), *streams, on_exit=self._reaped
            )
        except GuestError:
            following.stop()
            following.serve()
            raise
        threading.Thread(target=self._follow, args=(following,), name="following", daemon=True).start()

    def _follow(self, following: Following) -> None:
        following.serve()
        self._close_native()
        if not self.attached:
            self._ended()

    def _attach(self, channel: socket.socket, pid: int, chosen) -> None:
        """The program of the command has been found: it talks over `channel` from now on."""
        self.launch.target = chosen.target
        with self._attaching:
            self._process = _Process(pid)
            self._channel = FrameSocket(channel)
        self._tell(*chosen.notices)
        options = dict(self._message["options"], held=True)
        self.send(dict(self._message, target=self.launch.told(), options=options))
        if self.child.status is not None:
            self._reaped(self.child)
        threading.Thread(target=self._receive, name="debugger", daemon=True).start()

    @property
    def attached(self) -> bool:
        """Whether there is a program with a debugger in it (or was): in a command line, none may come."""
        return self._channel is not None

    @property
    def remainder(self) -> str:
        """What may still be there when the program has come to its end."""
        if self._following is not None:
            return "the rest of its command goes on"
        return "threads or child processes keep it alive"

    def send(self, header: dict) -> None:
        """Send the debugger a frame. A program that is gone gets nothing; its end is told as usual."""
        channel = self._channel
        try:
            if channel is not None:
                channel.send(header)
        except OSError:
            pass

    def interrupt(self) -> bool:
        """Ask the debugger to break in; False when it isn't ready for that (yet)."""
        # The signal's default action is to end the process.
        return self._signal(INTERRUPT)

    def stacks(self, timeout: float = 0.5) -> str | None:
        """The Python stacks of all threads, told by the interpreter itself even inside C code; None when it can't."""
        if DUMP is None or not self._signal(DUMP):
            return None
        return self.native(timeout)

    def _signal(self, number: int) -> bool:
        if self._following is None:
            return _catches(self.child.pid, number) and self.child.send_signal(number)
        process = self._process
        return process is not None and _catches(process.pid, number) and process.send_signal(number)

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
        channel = self._channel
        assert channel is not None
        finished = False
        try:
            while True:
                frame = channel.receive()
                if frame is None:
                    break
                self._listener.on_event(self, frame[0])
                finished = finished or frame[0].get("event") == "end"
                if self._following is not None and frame[0].get("event") in ("quit", "restart"):
                    self.kill()  # the command would go on without its program
        except OSError:
            pass  # killed, or closed by the program
        except (BrokenFrame, TypeError, ValueError, KeyError, AttributeError) as exc:
            # The program may forge what it likes; then it runs without its debugger.
            print("the debugger sent what it must not send: %r" % exc, file=sys.stderr)
        if self.child.wait(1.0) is None:
            self._lost(finished)
        self._ended()

    def _lost(self, finished: bool) -> None:
        process = self._process
        if process is None or process.lives():
            self._listener.on_event(self, {"event": "lost"})
        elif not finished:
            self._tell("The debugged program (%s) has ended; the rest of the command goes on." % self._name())

    def _ended(self) -> None:
        self.child.ended.wait()
        self._tell(*self._remarks())
        self.output.drain()
        self._listener.on_exit(self)
        self._close()

    def _remarks(self) -> list:
        """What there is to say about a command line, now that it has ended."""
        following = self._following
        if following is None:
            return []
        if following.chosen is None:
            remarks = [
                "The command has ended without starting a Python program that could be debugged. " + UNSEEN
            ]
            if following.helpers:
                seen = "; ".join("`%s`" % text for text in following.helpers[:5])
                remarks.append("These Pythons were taken for helpers: %s." % seen)
            return remarks
        if following.later and self._breakpoints.table():
            later = "; ".join("`%s`" % text for text in following.later[:5])
            return [
                "Only the first Python program of a command is debugged (%s), not %s." % (self._name(), later)
            ]
        return []

    def _name(self) -> str:
        return "`%s`" % (self._following.chosen if self._following else self.launch.text)

    def _tell(self, *texts: str) -> None:
        for text in texts:
            self._listener.on_event(self, {"event": "notice", "text": text})

    def _reaped(self, child) -> None:
        # Children that it left may hold the channel open. What has arrived can still be read.
        with self._attaching:
            channel = self._channel
        if channel is not None:
            try:
                channel.sock.shutdown(socket.SHUT_RD)
            except OSError:
                pass
        if self._following is not None:
            self._following.stop()

    def _close(self) -> None:
        if self._channel is not None:
            self._channel.close()
        if self._process is not None:
            self._process.close()
        self._stdin.close()
        self._close_native()
        with self._native_lock:
            os.close(self._native)
            self._native = -1

    def _close_native(self) -> None:
        with self._native_lock:
            if self._native_fd != -1:
                os.close(self._native_fd)
                self._native_fd = -1


class _Process:
    """A process that is not our child: its number may become another's once it has ended, so it is held where the system can."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._lock = threading.Lock()
        self._held = -1
        if hasattr(os, "pidfd_open") and hasattr(signal, "pidfd_send_signal"):
            try:
                self._held = os.pidfd_open(pid)
            except OSError:
                pass  # ended, or a kernel that doesn't know it

    def send_signal(self, number: int) -> bool:
        """False when it has ended."""
        with self._lock:
            try:
                if self._held != -1:
                    signal.pidfd_send_signal(self._held, number)
                else:
                    os.kill(self.pid, number)
            except OSError:
                return False
        return True

    def lives(self) -> bool:
        if self._held != -1:
            return not select.select([self._held], [], [], 0)[0]
        return self.send_signal(0)

    def close(self) -> None:
        with self._lock:
            if self._held != -1:
                os.close(self._held)
                self._held = -1
                self.pid = -1


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
