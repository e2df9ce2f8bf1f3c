"""A server that is attacked, and how it has to be afterwards."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from tests.e2e.client import Session, ToolFailed
from tools._truncation import WIDE_LIMIT

MEMORY_KB = 400_000
"""What the server may ever have used."""
ENTRY = {"entrypoint": "python -m pytest -q", "debug_entrypoint": "python app.py"}

# Speaks to the supervisor as the server does: programs of the session run as the same user.
CLIENT = r"""
import json, os, socket, struct, sys, time

class Supervisor:
    def __init__(self, path="/run/pdbox/socket"):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(20)
        self.socket.connect(path)
        self.hello, _ = self.receive()

    def raw(self, data):
        self.socket.sendall(data)

    def send(self, header, payload=b""):
        text = json.dumps(header).encode()
        self.raw(struct.pack(">II", len(text), len(payload)) + text + payload)

    def exactly(self, size):
        data = b""
        while len(data) < size:
            piece = self.socket.recv(size - len(data))
            if not piece:
                raise EOFError
            data += piece
        return data

    def receive(self):
        sizes = struct.unpack(">II", self.exactly(8))
        return json.loads(self.exactly(sizes[0])), self.exactly(sizes[1])

    def ask(self, op, payload=b"", **args):
        self.send({"id": 1, "op": op, "args": args}, payload)
        while True:
            header, payload = self.receive()
            if "progress" not in header:
                return header, payload
"""


def write_repo(folder: Path) -> Path:
    """Write a program, and the means to attack."""
    (folder / "app.py").write_text("def double(n):\n    return n * 2\n\n\nprint(double(21))\n")
    (folder / "test_app.py").write_text("def test_fine():\n    pass\n")
    (folder / "client.py").write_text(CLIENT)
    return folder


@dataclass
class Attacked:
    """A running server with a session of somebody else, which must be well after each attack."""

    server: Session
    other: str

    @asynccontextmanager
    async def session(self, repo: Path, within_s: float = 400) -> AsyncIterator[tuple[Session, str]]:
        """The server, and the id of a new session to attack from."""
        with anyio.fail_after(within_s):
            own = (await self.server.call("start_session", repo=str(repo), **ENTRY))["session_id"]
            yield self.server, own
            await self.is_well()
            await outcome(self.server, "close_session", session_id=own)

    async def is_well(self) -> None:
        """The other session is where it was, and the server is no larger than it may be."""
        stop = await self.server.call("pdb", command="p n", session_id=self.other)
        assert (stop["reply"], stop["frame"]["function"]) == ("21\n", "double")
        assert len((await self.server.call("list_sessions"))["sessions"]) >= 1
        assert server_memory_kb() < MEMORY_KB


def server_memory_kb() -> int:
    """The most memory that the servers of this process have used."""
    most = 0
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if int((place / "stat").read_text().rpartition(")")[2].split()[1]) != os.getpid():
                continue
            status = (place / "status").read_text()
        except OSError:
            continue  # gone meanwhile
        most = max(
            most, *(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")), 0
        )
    return most


async def run(session: Session, own: str, program: str, timeout_s: float = 120) -> str:
    """Run a program in the sandbox; what it prints."""
    await session.call("rewrite", path="attack.py", new_code=program, session_id=own)
    done = await session.call("bash", command="python3 attack.py", timeout_s=timeout_s, session_id=own)
    return done["output"]


async def outcome(session: Session, tool: str, **arguments: Any) -> str:
    """The text of an answer or a refusal, whichever it is; an incident is neither."""
    try:
        text = await session.text(tool, **arguments)
    except ToolFailed as exc:
        text = str(exc)
    assert "incident" not in text
    assert len(text) <= WIDE_LIMIT
    text.encode()
    return text


async def works(session: Session, own: str) -> None:
    """The attacked session goes on as if nothing had been."""
    stop = await session.call("pdb", command="p 6 * 7", session_id=own)
    assert stop["reply"] == "42\n"
    assert (await session.call("bash", command="echo fine", session_id=own))["output"] == "fine\n"
