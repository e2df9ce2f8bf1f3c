"""Messages over pipes, as a client sees them that does not behave."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import pytest

HOME = Path(__file__).parents[3]
TIMEOUT_S = 60


class Client:
    """Whole lines to and from `pdbox serve` whose stdin and stdout are `given` and `taken` on its side."""

    def __init__(
        self,
        given: IO[bytes] | int,
        taken: IO[bytes] | int,
        both: Any = None,
        log: IO[bytes] | int = subprocess.DEVNULL,
    ) -> None:
        command = [
            sys.executable,
            "-m",
            "pdbox",
            "serve",
            "--backend",
            "process",
            "--unsafe-no-isolation",
        ]
        self.process = subprocess.Popen(
            command, cwd=HOME, stdin=given, stdout=taken, stderr=log, env=dict(os.environ)
        )
        self.into: Any = both or self.process.stdin
        self.out: Any = both or self.process.stdout

    def write(self, data: bytes) -> None:
        self.into.write(data)
        self.into.flush()

    def ask(self, number: int, method: str, **params: Any) -> None:
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self.write(json.dumps(message).encode() + b"\n")

    def answer(self) -> dict[str, Any]:
        return json.loads(self.out.readline())

    def initialize(self) -> None:
        info = {"name": "t", "version": "1"}
        self.ask(0, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=info)
        assert self.answer()["id"] == 0

    def close(self) -> None:
        self.process.kill()
        self.process.wait(TIMEOUT_S)
        for stream in filter(None, (self.into, self.out)):
            with suppress(BrokenPipeError):
                stream.close()


@pytest.fixture
def client() -> Generator[Client]:
    client = Client(subprocess.PIPE, subprocess.PIPE)
    client.initialize()
    yield client
    client.close()


@pytest.fixture
def killed_after(client: Client) -> Generator[None]:
    """Ends a test that waits for an answer in vain: then its line is empty, which is no JSON."""
    timer = threading.Timer(TIMEOUT_S, client.process.kill)
    timer.start()
    yield
    timer.cancel()


pytestmark = pytest.mark.usefixtures("killed_after")


def test_message_that_comes_in_pieces_is_one_message(client: Client) -> None:
    whole = json.dumps({"jsonrpc": "2.0", "id": "€", "method": "ping"}, ensure_ascii=False).encode() + b"\r\n"
    for byte in whole:
        client.write(bytes([byte]))
    assert client.answer()["id"] == "€"


def test_messages_that_come_at_once_are_all_answered(client: Client) -> None:
    client.write(
        b"".join(b'{"jsonrpc":"2.0","id":%d,"method":"ping"}\n' % number for number in range(1, 101))
    )
    assert {client.answer()["id"] for _ in range(100)} == set(range(1, 101))


def test_line_that_is_no_message_is_refused_and_nothing_is_lost(client: Client) -> None:
    client.write(b'{"jsonrpc": \xff\xfe\n\n')
    client.ask(1, "ping")
    while (answer := client.answer()).get("id") != 1:
        assert "error" in answer
    assert answer["result"] is not None


def test_message_of_many_megabytes_is_read(client: Client) -> None:
    client.ask(1, "tools/call", name="no_such_tool", arguments={"text": "x" * 20_000_000})
    assert client.answer()["result"]["isError"]


def test_client_that_does_not_read_gets_every_answer_whole_once_it_does(client: Client) -> None:
    def ask() -> None:
        for number in range(1, 201):
            client.ask(number, "tools/list")

    asking = threading.Thread(target=ask)
    asking.start()
    # More than pipes and buffers take: from here on the server waits for us, and has to read all the same.
    asking.join(TIMEOUT_S)
    answers = [client.answer() for _ in range(200)]
    assert sorted(answer["id"] for answer in answers) == list(range(1, 201))
    assert len({json.dumps(answer["result"]) for answer in answers}) == 1


def test_server_ends_when_the_last_line_has_no_end(client: Client) -> None:
    client.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
    assert client.process.stdin is not None
    client.process.stdin.close()
    assert client.process.wait(TIMEOUT_S) == 0


def test_server_ends_with_one_line_when_the_client_closes_what_it_reads(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as log:
        client = Client(subprocess.PIPE, subprocess.PIPE, log=log)
    client.initialize()
    assert client.process.stdout is not None
    client.process.stdout.close()
    with suppress(BrokenPipeError):
        for number in range(1, 4):
            client.ask(number, "tools/list")
    assert client.process.wait(TIMEOUT_S) == 1
    client.close()
    (line,) = (tmp_path / "log").read_text().splitlines()
    assert line.endswith("the client closed our stdout")


def test_sockets_for_pipes_do_as_well() -> None:
    theirs, ours = socket.socketpair()
    with theirs, ours:
        over = ours.makefile("rwb")
        client = Client(theirs.fileno(), theirs.fileno(), over)
        theirs.close()
        client.initialize()
        client.ask(1, "ping")
        assert client.answer()["id"] == 1
        ours.shutdown(socket.SHUT_WR)
        assert client.process.wait(TIMEOUT_S) == 0
        client.close()


def test_file_for_stdout_does_as_well(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as taken, (tmp_path / "out").open("rb") as read:
        client = Client(subprocess.PIPE, taken)
        info = {"name": "t", "version": "1"}
        client.ask(1, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=info)
        while not (line := read.readline()):
            assert client.process.poll() is None
        assert json.loads(line)["id"] == 1
        client.close()
