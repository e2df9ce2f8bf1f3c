"""Runs a program under debugpy with one breakpoint, as an editor does it. Is copied into the sandbox and run there.

`python dap.py FILE LINE CONDITION PROGRAM …`: the program's output is what it prints; exit code 3 says why not.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from typing import Any

LOOPBACK = "127.0.0.1"
PATIENCE_S = 60


class Dap:
    """A client of the Debug Adapter Protocol."""

    def __init__(self, port: int) -> None:
        self._socket = _connected(port)
        self._file = self._socket.makefile("rb")
        self._sent = 0

    def send(self, command: str, **arguments: Any) -> None:
        """Send one request."""
        self._sent += 1
        request = {"seq": self._sent, "type": "request", "command": command, "arguments": arguments}
        body = json.dumps(request).encode()
        self._socket.sendall(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def until(self, name: str) -> Any:
        """The next response to, or event of, this name; None if the program ends before."""
        while True:
            message = self._receive()
            if message is None:
                return None
            if message.get("success") is False or message.get("event") == "stopped":
                sys.exit(_fail(f"debugpy answered {message}"))
            if name in (message.get("command"), message.get("event")):
                return message

    def _receive(self) -> Any:
        length = 0
        while True:
            line = self._file.readline()
            if not line:
                return None
            if line == b"\r\n":
                return json.loads(self._file.read(length))
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])


def _connected(port: int) -> socket.socket:
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            return socket.create_connection((LOOPBACK, port))
        except ConnectionRefusedError:
            if time.monotonic() > end:
                sys.exit(_fail("debugpy does not listen"))
            time.sleep(0.02)


def _fail(why: str) -> int:
    sys.stderr.write(why + "\n")
    return 3


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return probe.getsockname()[1]


def main(file: str, line: str, condition: str, *program: str) -> int:
    """Run the program to its end; gives its exit code."""
    port = _free_port()
    listen = [sys.executable, "-m", "debugpy", "--listen", f"{LOOPBACK}:{port}", "--wait-for-client"]
    env = {**os.environ, "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    process = subprocess.Popen([*listen, "--configure-subProcess", "false", *program], env=env)
    try:
        _debug(Dap(port), os.path.abspath(file), int(line), condition)  # noqa: PTH100
        return process.wait()
    finally:
        process.kill()


def _debug(dap: Dap, file: str, line: int, condition: str) -> None:
    dap.send("initialize", adapterID="bench", clientID="bench", pathFormat="path")
    dap.until("initialize")
    dap.send("attach", justMyCode=True)
    dap.until("initialized")
    breakpoint_ = {"line": line, **({"condition": condition} if condition else {})}
    dap.send("setBreakpoints", source={"path": file}, breakpoints=[breakpoint_])
    answer = dap.until("setBreakpoints")
    if answer is None or not answer["body"]["breakpoints"][0]["verified"]:
        sys.exit(_fail(f"debugpy has no breakpoint: {answer}"))
    dap.send("configurationDone")
    dap.until("terminated")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
