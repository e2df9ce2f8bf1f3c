"""The process's life over stdio. The SDK's own `run()` fails each of these."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

HOME = Path(__file__).parents[3]
PATIENCE_S = 120


class Server:
    """`pdbox serve` on the process backend, spoken to by hand."""

    def __init__(self, repo: Path, runtime: str) -> None:
        flags = ["--backend", "process", "--unsafe-no-isolation", "--entrypoint", "python app.py"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "pdbox", "serve", "--repo", str(repo), "--answers", "both", *flags],
            cwd=HOME,
            env={**os.environ, "XDG_RUNTIME_DIR": runtime, "TMPDIR": runtime},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.call(
            "initialize",
            protocolVersion="2025-11-25",
            capabilities={},
            clientInfo={"name": "t", "version": "1"},
        )

    def send(self, method: str, **params: Any) -> None:
        assert self.process.stdin is not None
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        assert self.process.stdout is not None
        self.send(method, **params)
        return json.loads(self.process.stdout.readline())

    def end(self, how: str) -> int:
        assert self.process.stdin is not None
        if how == "EOF":
            self.process.stdin.close()
        else:
            self.process.send_signal(getattr(signal, how))
        # How long exactly is no test's to tell on a busy machine; test_lifecycle.py shows that nothing can hold it.
        return self.process.wait(timeout=PATIENCE_S)


@pytest.fixture
def server(tmp_path: Path) -> Generator[Server]:
    repo = tmp_path / "repo"
    repo.mkdir()
    (repo / "app.py").write_text("while True:\n    pass\n")
    with tempfile.TemporaryDirectory(prefix="pdbox-test-", ignore_cleanup_errors=True) as runtime:
        server = Server(repo, runtime)
        yield server
        server.process.kill()
        server.process.wait()
        for stream in (server.process.stdin, server.process.stdout, server.process.stderr):
            assert stream is not None
            with suppress(BrokenPipeError):
                stream.close()


CODES = {"EOF": 0, "SIGTERM": 143, "SIGINT": 130, "SIGHUP": 129}


@pytest.mark.parametrize("how", CODES)
def test_idle_server_ends_at_once(server: Server, how: str) -> None:
    assert server.end(how) == CODES[how]


@pytest.mark.parametrize("how", CODES)
def test_server_with_a_running_program_ends_and_leaves_nothing(server: Server, how: str) -> None:
    # A start that used up the deadline gives `c` back as not run.
    while go_on(server) != "running":
        pass
    (place,) = places(server)
    assert alive(place)
    assert server.end(how) == CODES[how]
    assert not alive(place)


@pytest.mark.parametrize("how", CODES)
def test_server_ends_in_the_middle_of_a_call(server: Server, how: str) -> None:
    server.call("tools/call", name="listdir", arguments={})
    (place,) = places(server)
    server.send("tools/call", name="bash", arguments={"command": "sleep 600", "timeout_s": 600})
    assert server.end(how) == CODES[how]
    assert not alive(place)


def test_nothing_but_protocol_is_on_stdout(server: Server) -> None:
    server.call("tools/call", name="bash", arguments={"command": "echo loud; echo louder >&2"})
    server.end("EOF")
    assert server.process.stdout is not None
    for line in server.process.stdout.read().splitlines():
        assert json.loads(line)["jsonrpc"] == "2.0"


def go_on(server: Server) -> str:
    answer = server.call("tools/call", name="pdb", arguments={"command": "c", "timeout_s": 0.3})
    return answer["result"]["structuredContent"]["state"]


def places(server: Server) -> list[int]:
    answer = server.call("tools/call", name="list_sessions", arguments={})
    return [int(session["place"]) for session in answer["result"]["structuredContent"]["sessions"]]


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # Killed and not yet reaped by its adoptive parent: dead enough.
    stat = Path(f"/proc/{pid}/stat")
    return not (stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z")
