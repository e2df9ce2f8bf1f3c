"""Run commands to their end: no process of theirs outlives the answer."""

from __future__ import annotations

import json
import os
import select
import shutil
import threading
import time

from ..errors import GuestError
from ..files.workspace import workspace_of
from .output import HeadTail, join
from .pipe_status import PipeStatus

MAX_OUTPUT = 1 << 20
_MAX_TEXT_JSON = 2 << 20
"""Bytes that the output may take in the header of the answer; a control character takes six."""
_CHUNK = 1 << 16
_DRAIN_S = 0.5
_PROGRESS_S = 0.5
_TAIL = 400


def execute(args: dict, payload: bytes, call) -> tuple[dict, bytes]:
    """{command | argv, cwd, env, timeout_s, max_output, to_file, with_pipe} -> {"exit_code", "signal", "timed_out", "output",
    "omitted", "gap", "kept", "kept_in", "killed", "pipe", "duration_s"}.

    `command` is run by bash (by sh if there is none). `output` is stdout and stderr in the order of arrival.
    Of more than `max_output` bytes the middle is left out: `omitted` bytes, before the character `gap`.
    `kept` is its number for `output.read`; `kept_in` a file with it, if `to_file` asks for one. `pipe` has the exit
    codes of the parts of the last pipe of `command`, if `with_pipe` asks for them. When the command has ended, or at
    the deadline, or when the call is cancelled, everything it has started is killed: `killed` processes. Progress:
    {"output": the last 400 characters}. Raises GuestError (invalid, not_found, path, cancelled).
    """
    command = args.get("command") if args.get("with_pipe") else None
    pipe = PipeStatus(command, args.get("env"), call.state.home)
    try:
        answer = run(args, call, pipe.environment, None).answer()
        answer["pipe"] = pipe.read()
    finally:
        pipe.close()
    if args.get("to_file") and answer["kept"] is not None:
        answer["kept_in"] = call.state.saved_outputs.write(answer["kept"])
    return answer, b""


def run(args: dict, call, extra_env: dict, on_progress, on_timeout=None) -> Run:
    """Run the command of `args` to its end.

    `on_progress(run)` is called at intervals; None reports the output. `on_timeout(child)` is called at the
    deadline, before the command is killed.
    """
    workspace = workspace_of(call.state)
    cwd = workspace.locate(args.get("cwd") or ".")
    argv = _argv(args)
    env = environment(args.get("env"), cwd)
    env.update(extra_env)
    limit = max(1000, min(int(args.get("max_output") or MAX_OUTPUT), MAX_OUTPUT))
    running = Run(call, float(args.get("timeout_s") or 60.0), limit, on_progress, on_timeout)
    running.run(argv, cwd, env)
    return running


def environment(own, cwd: str) -> dict:
    """Environment of a command: the sandbox's, overridden by `own`."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PDBOX_")}
    env["PWD"] = cwd
    for name, value in (own or {}).items():
        if (
            not isinstance(name, str)
            or not isinstance(value, str)
            or not name
            or "=" in name
            or "\0" in name + value
        ):
            raise GuestError("invalid", f"{name!r}={value!r} is no environment variable.")
        env[name] = value
    return env


def _argv(args: dict) -> list:
    argv, command = args.get("argv"), args.get("command")
    if argv is not None:
        if not argv or not all(isinstance(word, str) and "\0" not in word for word in argv):
            raise GuestError("invalid", "`argv` is not a list of words.")
        return list(argv)
    if not isinstance(command, str) or not command.strip() or "\0" in command:
        raise GuestError("invalid", "The command is empty.")
    return [shutil.which("bash") or "/bin/sh", "-c", command]


class Run:
    """Run of one command, from its start to the end of all its processes."""

    def __init__(self, call, timeout_s: float, limit: int, on_progress, on_timeout=None) -> None:
        self._timeout_s = timeout_s
        self._on_progress = on_progress or _report_output
        self._on_timeout = on_timeout
        self._output = HeadTail(limit // 2, limit - limit // 2)
        self._child = None
        self._told = 0.0
        self.told_size = 0
        self.call = call
        self.timed_out = False
        self.killed = 0
        self.duration_s = 0.0
        self.status: tuple = (None, None)

    def run(self, argv: list, cwd: str, env: dict) -> None:
        """Start it and wait. Raises GuestError: as `spawn` does, and cancelled."""
        started = self._told = time.monotonic()
        read_fd, write_fd = os.pipe()
        wake = _Wake()
        os.set_blocking(read_fd, False)
        try:
            try:
                self._child = self.call.state.children.spawn(
                    argv, cwd, env, None, write_fd, write_fd, on_exit=lambda child: wake.set()
                )
            finally:
                os.close(write_fd)
            self.call.on_cancel(wake.set)
            self._wait(read_fd, wake, started + self._timeout_s)
            if self.timed_out and self._on_timeout is not None:
                self._on_timeout(self._child)
            # Before its leftovers are killed: the command's own output is read to the last byte.
            self._read(read_fd)
            self.killed = self._child.kill_tree()
            self._drain(read_fd)
            self.status = self._child.wait(_DRAIN_S) or (None, "SIGKILL")
        finally:
            os.close(read_fd)
            wake.close()
        self.duration_s = time.monotonic() - started
        if self.call.cancelled.is_set():
            raise GuestError(
                "cancelled",
                f"The command was cancelled after {self.duration_s:.1f} s, and its processes were ended.",
            )

    def answer(self) -> dict:
        """Build the answer of the operation."""
        text, omitted, gap = self.output()
        code, signal = self.status
        return {
            "exit_code": None if self.timed_out else code,
            "signal": signal,
            "timed_out": self.timed_out,
            "output": text,
            "omitted": omitted,
            "gap": gap,
            "kept": self.call.state.saved_outputs.keep(_mark_gap(text, gap, omitted)),
            "killed": self.killed,
            "duration_s": round(self.duration_s, 3),
        }

    def output(self) -> tuple:
        """(text, bytes left out, character before which they are missing or None)."""
        head, tail, omitted = self._output.get()
        while True:
            text, missing = join(head, tail, omitted)
            if len(json.dumps(text)) <= _MAX_TEXT_JSON:
                break
            # Control characters and the like: the frame would be too large.
            if not omitted:
                data = head + tail
                head, tail = data[: len(data) // 2], data[len(data) // 2 :]
            cut_head, cut_tail = len(head) // 4, len(tail) // 4
            omitted += cut_head + cut_tail
            head, tail = head[: len(head) - cut_head], tail[cut_tail:]
        gap = len(join(head, b"", 1)[0]) if missing else None
        return text, missing, gap

    def tail(self) -> str:
        """End of the output so far."""
        head, tail, _ = self._output.get()
        return (tail or head)[-4 * _TAIL :].decode("utf-8", "backslashreplace")[-_TAIL:]

    @property
    def size(self) -> int:
        """Bytes of output so far."""
        return self._output.total

    def _wait(self, fd: int, wake: _Wake, deadline: float) -> None:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        poll.register(wake.fd, select.POLLIN)
        while not wake.is_set():
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                self.timed_out = True
                return
            if self.told_size != self.size:  # there is progress to report, even if no more output arrives
                remaining = min(remaining, max(0.0, self._told + _PROGRESS_S - time.monotonic()))
            ready = [found for found, _ in poll.poll(remaining * 1000 + 1)]
            if fd in ready and not self._read(fd):
                poll.unregister(fd)
            self._tell()

    def _read(self, fd: int) -> bool:
        """Read the available data; False at the end."""
        for _ in range(64):  # the deadline must be checked at intervals, however much is written
            try:
                data = os.read(fd, _CHUNK)
            except BlockingIOError:
                return True
            if not data:
                return False
            self._output.feed(data)
        return True

    def _drain(self, fd: int) -> None:
        """Read to the end, which is reached when the last process that has the pipe is gone."""
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        deadline = time.monotonic() + _DRAIN_S
        while self._read(fd):
            remaining = deadline - time.monotonic()
            if remaining <= 0 or not poll.poll(remaining * 1000):
                return

    def _tell(self) -> None:
        now = time.monotonic()
        if self.told_size != self.size and now - self._told >= _PROGRESS_S:
            self._told, self.told_size = now, self.size
            self._on_progress(self)


def _mark_gap(text: str, gap, omitted: int) -> str:
    """Insert a line into `text` at the gap of missing bytes, where answers have it, too."""
    if gap is None:
        return text
    head, tail = text[:gap].rstrip("\n"), text[gap:].lstrip("\n")
    return f"{head}\n[... {omitted} bytes were not kept ...]\n{tail}"


class _Wake:
    """Flag that can be polled."""

    def __init__(self) -> None:
        self.fd, self._write_fd = os.pipe()
        self._lock = threading.Lock()
        self._is_set = False
        self._closed = False

    def set(self) -> None:
        with self._lock:
            if not self._is_set and not self._closed:
                self._is_set = True
                os.write(self._write_fd, b"x")

    def is_set(self) -> bool:
        return self._is_set

    def close(self) -> None:
        with self._lock:
            self._closed = True
            os.close(self.fd)
            os.close(self._write_fd)


def _report_output(running: Run) -> None:
    running.call.progress({"output": running.tail()})


OPS = {"exec": execute}
