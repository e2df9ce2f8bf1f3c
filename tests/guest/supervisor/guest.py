"""A guest started as a backend starts it, and the host's side of its stream."""

from __future__ import annotations

import itertools
import json
import os
import queue
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Self

from sandbox.guest.protocol.frames import FramePipe, FrameSocket, FrameStream
from sandbox.session.debugger import StopReply
from sandbox.transport import guest_bundle

SOURCES = Path(__file__).parents[3] / "sandbox" / "guest"
PYTHON = os.environ.get("PDBOX_TEST_PYTHON", sys.executable)
"""The interpreter that the guest and the debugged programs run on."""
WAIT_S = 300.0
"""Bounds what hangs; on a busy machine all takes its time."""


class Refused(Exception):
    """The guest answered with an error."""

    def __init__(self, error: dict[str, str]) -> None:
        super().__init__(f"{error['code']}: {error['message']} {error['hint']}")
        self.code, self.message, self.hint = error["code"], error["message"], error["hint"]


class Client:
    """Requests over one stream; replies are given to whoever asked."""

    def __init__(self, stream: FrameStream, read_fd: int | None = None) -> None:
        """`read_fd`: what the stream reads, if it is to be closed once nobody reads it any more."""
        self.stream = stream
        self._read_fd = read_fd
        self.events: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._numbers = itertools.count(1)
        self._replies: dict[int, queue.Queue[tuple[dict[str, Any], bytes]]] = {}
        self.answered: dict[int, float] = {}
        """When the reply to a request came, on the monotonic clock."""
        threading.Thread(target=self._read, daemon=True).start()
        hello = self.events.get(timeout=WAIT_S)
        assert hello is not None
        self.hello = hello

    def start(self, op: str, payload: bytes = b"", **args: Any) -> int:
        """Send a request; gives its number for `result`."""
        number = next(self._numbers)
        self._replies[number] = queue.Queue()
        self.stream.send({"id": number, "op": op, "args": args}, payload)
        return number

    def result(self, number: int, timeout: float = WAIT_S) -> dict[str, Any]:
        """The `ok` of a reply. Raises Refused."""
        while True:
            header, _ = self._replies[number].get(timeout=timeout)
            if "progress" not in header:
                break
        if "error" in header:
            raise Refused(header["error"])
        return header["ok"]

    def request(self, op: str, payload: bytes = b"", **args: Any) -> dict[str, Any]:
        return self.result(self.start(op, payload, **args))

    def cancel(self, number: int) -> None:
        self.stream.send({"id": 0, "op": "cancel", "args": {"id": number}})

    def pdb(self, *lines: str, timeout_s: float = 240.0, **args: Any) -> dict[str, Any]:
        """debug.command; checks that the answer has all keys of a Stop."""
        stop = self.request("debug.command", lines=list(lines), timeout_s=timeout_s, **args)
        assert set(stop) == set(StopReply.model_fields)
        return stop

    def wait(self, timeout_s: float = 240.0, **args: Any) -> dict[str, Any]:
        return self.request("debug.wait", timeout_s=timeout_s, **args)

    def breakpoints(self, path: str) -> list[dict[str, Any]]:
        """Those in a file, as they are after edits of it."""
        return self.request("files.read", path=path, max_bytes=10, marks=True)["breakpoints"]

    def _read(self) -> None:
        try:
            while (frame := self.stream.receive()) is not None:
                number = frame[0].get("id")
                if number in self._replies:
                    self.answered[number] = time.monotonic()
                    self._replies[number].put(frame)
                else:
                    self.events.put(frame[0])
        except OSError:
            pass  # closed under us
        if self._read_fd is not None:
            os.close(self._read_fd)
        self.events.put(None)


def client_of(process: subprocess.Popen[bytes]) -> Client:
    """A client over the standard streams of a guest."""
    assert process.stdin is not None and process.stdout is not None
    # A descriptor of its own: of one that is closed under the thread that reads it, the next guest may get the number.
    read_fd = os.dup(process.stdout.fileno())
    return Client(FramePipe(read_fd, process.stdin.fileno()), read_fd)


class Guest:
    """A running guest; `with` ends it."""

    def __init__(self, folder: Path, stdio: bool = True, python: str = PYTHON, **config: Any) -> None:
        self.workdir = folder / "work"
        self.workdir.mkdir(exist_ok=True)
        self.home = folder / "home"
        self.socket = str(self.home / "socket")
        self._sockets: list[socket.socket] = []
        settings = {
            "homes": [str(self.home)],
            "workdir": str(self.workdir),
            "stdio": stdio,
        }
        settings.update({"idle_s": 600.0, "max_age_s": 600.0, "grace_s": 600.0, "reap_all": False}, **config)
        boot = (SOURCES / "boot.py").read_text(encoding="utf-8")
        bin_folder = Path(python).parent
        env = dict(os.environ, PATH=f"{bin_folder}{os.pathsep}{os.environ['PATH']}")
        self.process = subprocess.Popen(
            [python, "-I", "-S", "-u", "-c", boot, json.dumps(settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            env=env,
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(guest_bundle.package())
        if stdio:
            self.client = client_of(self.process)

    def write(self, name: str, text: str) -> None:
        path = self.workdir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def connect(self) -> Client:
        """One more connection, over the socket."""
        sock = socket.socket(socket.AF_UNIX)
        self._sockets.append(sock)
        sock.connect(self.socket)
        return Client(FrameSocket(sock))

    def connect_when_listening(self) -> Client:
        """The same, waiting for a guest that has just been started: its socket is a file before it takes connections."""
        while True:
            try:
                return self.connect()
            except (FileNotFoundError, ConnectionRefusedError):
                assert self.process.poll() is None
                time.sleep(0.01)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.process.terminate()
        self.process.wait(WAIT_S)
        for sock in self._sockets:
            sock.close()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()
