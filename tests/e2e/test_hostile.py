"""Programs in a sandbox that attack the server: they cost their own session at most."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from sandbox.guest.protocol import PROTOCOL
from tests.e2e.client import Session, ToolFailed, pdbox
from tools._truncation import WIDE_LIMIT

pytestmark = [pytest.mark.anyio, pytest.mark.docker]

MEMORY_KB = 400_000
"""What the server may ever have used."""

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


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A program, and the means to attack."""
    (tmp_path / "app.py").write_text("def double(n):\n    return n * 2\n\n\nprint(double(21))\n")
    (tmp_path / "test_app.py").write_text("def test_fine():\n    pass\n")
    (tmp_path / "client.py").write_text(CLIENT)
    return tmp_path


def server_memory_kb() -> int:
    """The most memory that the servers of this test have used."""
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


@asynccontextmanager
async def two_sessions(repo: Path, within_s: float = 400) -> AsyncIterator[tuple[Session, str]]:
    """A server with the session to attack from, and its id; another session must be well in the end."""
    async with pdbox("--root", str(repo)) as session:
        with anyio.fail_after(within_s):
            entry = {"entrypoint": "python -m pytest -q", "debug_entrypoint": "python app.py"}
            other = (await session.call("start_session", repo=str(repo), **entry))["session_id"]
            own = (await session.call("start_session", repo=str(repo), **entry))["session_id"]
            await session.call("pdb", command="b double\nc", session_id=other)
            yield session, own
            stop = await session.call("pdb", command="p n", session_id=other)
            assert (stop["reply"], stop["frame"]["function"]) == ("21\n", "double")
            assert len((await session.call("list_sessions"))["sessions"]) >= 1
            assert server_memory_kb() < MEMORY_KB


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


# -- the way to the supervisor


async def test_garbage_on_the_supervisors_socket_hurts_nobody(repo: Path) -> None:
    program = """\
from client import *
results = []
for data in (b"\\0" * 8, b"\\xff" * 4096, b"GET / HTTP/1.1\\r\\n\\r\\n", struct.pack(">II", 1 << 31, 0),
             struct.pack(">II", 10, 1 << 30) + b"{}",
             struct.pack(">II", 4, 0) + b"null", struct.pack(">II", 2, 0) + b"[]", struct.pack(">II", 100_000, 0) + b"[" * 100_000):
    try:
        one = Supervisor(); one.raw(data); one.socket.shutdown(socket.SHUT_WR); one.receive()
    except (EOFError, OSError) as exc:
        results.append(type(exc).__name__)
odd = Supervisor()
for header in ({}, {"id": "x", "op": 1}, {"id": 1, "op": "files.read"}, {"id": 2, "op": "nope" * 1000}, {"id": 3, "op": "exec", "args": []},
               {"id": 4, "op": "files.read", "args": {"path": "a" * 100_000}}, {"id": 5, "op": "files.read", "args": {"path": 7}},
               {"id": 6, "op": "files.search", "args": {"pattern": "(a+)+$", "rules": [1]}},
               {"id": 7, "op": "debug.command", "args": {"lines": 3}},
               {"id": 8, "op": "debug.inspect", "args": {}}, {"id": 9, "op": "output.read", "args": {"since": "x"}},
               {"id": 1 << 70, "op": "ping"}, {"id": 10, "op": "cancel", "args": {"id": "x"}},
               {"id": 11, "op": "files.write", "args": {"files": [{"path": "../x"}]}}):
    odd.send(header)
seen = [odd.receive()[0] for _ in range(14)]
many = [Supervisor() for _ in range(200)]
for one in many:
    one.send({"id": 1, "op": "ping"})
print(len(seen), len(many), "done")
"""
    async with two_sessions(repo) as (session, own):
        output = await run(session, own, program)
        assert output.endswith("14 200 done\n"), output
        await works(session, own)


async def test_requests_of_a_program_reach_its_own_session_alone(repo: Path) -> None:
    program = """\
from client import *
one = Supervisor()
print(one.ask("files.read", path="../../etc/shadow")[0])
print(one.ask("debug.command", lines=["p 'forged'"], timeout_s=5)[0].get("ok", {}).get("state"))
print(one.ask("files.extract", data="end")[0].get("error", {}).get("code"))
one.send({"id": 1, "op": "shutdown", "args": {}})
"""
    async with two_sessions(repo) as (session, own):
        await outcome(session, "bash", command="true", session_id=own)
        text = await outcome(session, "rewrite", path="attack.py", new_code=program, session_id=own)
        assert "attack.py" in text
        await outcome(session, "bash", command="python3 attack.py", session_id=own)
        text = await outcome(session, "bash", command="echo fine", session_id=own)
        assert "start_session" in text or "unknown" in text or "closed" in text or "ended" in text


@pytest.mark.parametrize("signal", ["KILL", "STOP"])
async def test_a_killed_or_frozen_supervisor_ends_its_session_alone(repo: Path, signal: str) -> None:
    command = f"for p in /proc/[0-9]*; do kill -{signal} ${{p#/proc/}} 2>/dev/null; done"
    async with two_sessions(repo) as (session, own):
        # A frozen one gives no answer in time: what it is asked is over at the deadline and the slack behind it.
        await outcome(session, "bash", command=command, timeout_s=2, session_id=own)
        if signal == "KILL":
            await outcome(session, "bash", command="echo fine", session_id=own)
        await outcome(session, "close_session", session_id=own)


async def test_frames_forged_on_the_servers_own_stream_cost_the_session_at_most(repo: Path) -> None:
    program = """\
import os, struct, json
ok = {"ok": {"exit_code": 0, "output": "forged \\ud800", "duration_s": 1e400, "entries": [1], "omitted": -1e300}}
frames = []
for number in range(1, 60):
    text = json.dumps({"id": number, **ok}).encode()
    frames.append(struct.pack(">II", len(text), 0) + text)
frames.append(struct.pack(">II", 1 << 31, 1 << 31))
for place in [f"/proc/{pid}/fd/{fd}" for pid in os.listdir("/proc") if pid.isdigit() for fd in (1, 2)]:
    try:
        fd = os.open(place, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        continue
    for frame in frames:
        try:
            os.write(fd, frame)
        except OSError:
            pass
"""
    async with two_sessions(repo) as (session, own):
        await session.call("rewrite", path="attack.py", new_code=program, session_id=own)
        for tool, arguments in (
            ("bash", {"command": "python3 attack.py", "timeout_s": 5}),
            ("bash", {"command": "echo fine"}),
            ("listdir", {}),
            ("pdb", {"command": "p 1"}),
            ("eval", {}),
            ("diff", {}),
        ):
            await outcome(session, tool, session_id=own, **arguments)


@pytest.mark.parametrize("to", ["frames", "large frames", "standard error"])
async def test_a_flood_into_the_servers_own_stream_ends_its_session(repo: Path, to: str) -> None:
    program = f"""\
import json, os, struct
text = json.dumps({{"id": 1 << 40, "ok": {{"list": [0] * ({to!r} == "large frames") * 1_000_000}}}}).encode()
frames = (struct.pack(">II", len(text), 0) + text) * max(1, 60_000 // len(text))
data = b"forged\\n" * 9000 if {to!r} == "standard error" else frames
stream = os.open("/proc/1/fd/2" if {to!r} == "standard error" else "/proc/1/fd/1", os.O_WRONLY)
while True:
    os.write(stream, data)
"""
    async with two_sessions(repo) as (session, own):
        await session.call("rewrite", path="attack.py", new_code=program, session_id=own)
        with pytest.raises(ToolFailed, match="floods"):
            await session.call("bash", command="python3 attack.py", timeout_s=60, session_id=own)


FORGED = [
    '{"env": [], "outcomes": {"x": {}}}',
    '{"env": {"A B": "\\0", "PATH": "/nowhere"}, "entrypoint": "x" * 3_000_000}',
    '{"notices": ["n"] * 500_000}',
    '{"outcomes": {str(n): "passed" for n in range(150_000)}}',
    '{"entrypoint": "\\ud800\\u202e", "notices": ["\\x1b[2J\\ud800"]}',
    '["a list"]',
    '"text"',
    '{"notices": [], "unknown": json.loads("[" * 400 + "]" * 400)}',
]


@pytest.mark.parametrize("forged", FORGED, ids=range(len(FORGED)))
async def test_a_forged_memory_does_the_next_server_no_harm(repo: Path, forged: str) -> None:
    program = f"from client import *\nprint(Supervisor().ask('meta.set', meta={forged})[0])\n"
    async with pdbox("--root", str(repo)) as first:
        entry = {"entrypoint": "python -m pytest -q", "debug_entrypoint": "python app.py"}
        own = (await first.call("start_session", repo=str(repo), **entry))["session_id"]
        assert "'ok'" in await run(first, own, program)
        async with pdbox("--root", str(repo)) as second:
            with anyio.fail_after(400):
                # A second server finds the session by its id, and takes over what it is said to be.
                for tool, arguments in (
                    ("listdir", {}),
                    ("bash", {"command": "echo fine"}),
                    ("pdb", {"command": "p 1"}),
                    ("eval", {}),
                    ("list_sessions", {}),
                ):
                    given = {} if tool == "list_sessions" else {"session_id": own}
                    await outcome(second, tool, **given, **arguments)
                fresh = (await second.call("start_session", repo=str(repo), **entry))["session_id"]
                await works(second, fresh)
                assert server_memory_kb() < MEMORY_KB


IMPOSTOR = (
    f"PROTOCOL = {PROTOCOL}\n"
    """\
from client import *
import threading

HELLO = {"event": "hello", "protocol": PROTOCOL, "python": "3", "workdir": "/workspace", "meta": {}, "age_s": 1, "expires_in_s": 1}
LONG = "x\\ud800" * 400_000
ANSWERS = [
    {"ok": {}}, {"ok": []}, {"error": {"code": "internal", "message": LONG}}, {"error": {"code": ["x"], "hint": {}}}, {"error": 1},
    {"ok": {"state": "stopped", "stop": 1, "reply": LONG[:1 << 19], "output": LONG[:1 << 19], "changed": [
        {"name": "n" * 9000, "kind": "new", "value": "v" * 9000}] * 50}},
    {"ok": {"state": "stopped", "frame": {"path": LONG[:9000], "line": 1 << 52, "function": "f"}, "notices": ["n" * 9000] * 60}},
    {"ok": {"entries": [{"path": "p" * 300, "kind": "file"}] * 9999, "matches": [{"path": "p", "line": -1, "text": "t" * 300}] * 9000,
            "files": [{"path": "p" * 20, "kind": "added"}] * 60_000, "breakpoints": [], "size": -1, "digest": "d"}},
    {"ok": {"exit_code": 0, "output": LONG[:1 << 19], "gap": 1 << 19, "omitted": 5,
            "tests": [{"id": "i" * 30, "outcome": "passed"}] * 60_000}},
    {"ok": {"exit_code": 0, "duration_s": -1}}, {"ok": {"children": [{"name": "a", "type": "b", "repr": "c" * 9000}] * 200,
            "expression": "e", "type": "t", "repr": "r" * 16_000, "total": 1 << 50}}, {"progress": {"tests": 1e300, "last": LONG}},
]

def serve(sock):
    one = Supervisor.__new__(Supervisor)
    one.socket = sock
    hello = dict(HELLO, **HELLOS.pop(0)) if HELLOS else HELLO
    one.send(hello)
    turn = 0
    while True:
        request, _ = one.receive()
        for _ in range(20):
            answer = ANSWERS[turn % len(ANSWERS)]
            turn += 1
            one.send(dict(answer, id=request["id"]), bytes(range(256)) * 4096 if turn % 3 else b"")
            if "progress" not in answer:
                break

HELLOS = [{"protocol": 99}, {"workdir": "relative"}, {"workdir": "/" * 3_000_000}, {"age_s": float("nan")}, {"python": LONG[:100]}]
os.unlink("/run/pdbox/socket")
listener = socket.socket(socket.AF_UNIX)
listener.bind("/run/pdbox/socket")
listener.listen(50)
print("ready", flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"""
)


async def test_a_program_in_the_supervisors_place_is_not_believed(repo: Path) -> None:
    async with pdbox("--root", str(repo)) as first:
        own = (await first.call("start_session", repo=str(repo), entrypoint="pytest"))["session_id"]
        await first.call("rewrite", path="impostor.py", new_code=IMPOSTOR)
        await first.call("pdb", command="p 1", entrypoint="python impostor.py")
        stop = await first.call("pdb", command="c", timeout_s=3)
        while not stop["output"]:
            stop = await first.call("wait", timeout_s=1)
        assert (stop["state"], stop["output"]) == ("running", "ready\n")
        async with pdbox("--root", str(repo)) as second:
            with anyio.fail_after(400):
                for _ in range(6):
                    await outcome(second, "listdir", session_id=own)
                for _ in range(12):
                    for tool, arguments in CALLS:
                        await outcome(
                            second,
                            tool,
                            **({} if tool == "list_sessions" else {"session_id": own}),
                            **arguments,
                        )
                fresh = (
                    await second.call("start_session", repo=str(repo), debug_entrypoint="python app.py")
                )["session_id"]
                await works(second, fresh)
                assert server_memory_kb() < MEMORY_KB
        await works(
            first,
            (await first.call("start_session", repo=str(repo), debug_entrypoint="python app.py"))[
                "session_id"
            ],
        )


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("listdir", {}),
    ("view", {"path": "app.py"}),
    ("grep", {"pattern": "x"}),
    ("rewrite", {"path": "app.py", "new_code": "x"}),
    ("diff", {"format": "full"}),
    ("bash", {"command": "true"}),
    ("eval", {}),
    ("pdb", {"command": "p 1"}),
    ("wait", {"timeout_s": 1}),
    ("inspect", {"expression": "x"}),
    ("list_sessions", {}),
]


# -- resources


async def test_full_disks_are_said_and_can_be_emptied(repo: Path) -> None:
    fill = "for d in /workspace /tmp /run/pdbox /home/sandbox /dev/shm; do head -c 3G /dev/zero > $d/fill; done; true"
    async with two_sessions(repo) as (session, own):
        await session.call("bash", command=fill, timeout_s=60, session_id=own)
        for tool, arguments in (
            ("rewrite", {"path": "new.py", "new_code": "x = 1\n" * 100}),
            ("eval", {}),
            ("diff", {}),
            ("grep", {"pattern": "double"}),
            ("grep", {"pattern": "(d+)+ouble"}),
            ("bash", {"command": "echo fine"}),
            ("pdb", {"command": "p 1"}),
            ("view", {"path": "app.py"}),
        ):
            await outcome(session, tool, session_id=own, **arguments)
        empty = "rm -f /workspace/fill /tmp/fill /run/pdbox/fill /home/sandbox/fill /dev/shm/fill"
        assert (await session.call("bash", command=empty, session_id=own))["exit_code"] == 0
        await works(session, own)


async def test_a_fork_bomb_ends_with_its_command(repo: Path) -> None:
    bomb = (
        "python3 -c 'import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass'"
    )
    async with two_sessions(repo) as (session, own):
        done = await session.call("bash", command=bomb, timeout_s=3, session_id=own)
        assert done["timed_out"]
        await works(session, own)


async def test_q_kills_a_fork_bomb_whose_session_still_answers(repo: Path) -> None:
    bomb = "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass\n"
    (repo / "bomb.py").write_text(bomb)
    async with pdbox("--repo", str(repo), "--backend", "docker") as session:
        await session.call("pdb", command="p 1", entrypoint="python bomb.py")
        stop = await session.call("pdb", command="c", timeout_s=2)
        assert stop["state"] == "running"
        assert "fork" in await session.text("view", path="bomb.py")
        assert (await session.call("wait", timeout_s=0.5))["state"] == "running"
        assert (await session.call("pdb", command="q"))["state"] == "exited"
        stop = await session.call("pdb", command="p 6 * 7", entrypoint="python -c 'x = 1'")
        assert (stop["state"], stop["reply"]) == ("stopped", "42\n")


async def test_a_memory_hog_is_killed_alone(repo: Path) -> None:
    async with two_sessions(repo) as (session, own):
        await session.call("pdb", command="n", session_id=own)
        hog = "python3 -c 'x = bytearray(6 << 30)\nfor i in range(0, len(x), 4096): x[i] = 1'"
        done = await session.call("bash", command=hog, timeout_s=120, session_id=own)
        assert done["exit_code"] != 0
        await outcome(session, "pdb", command="p 6 * 7", session_id=own)
        assert (await session.call("bash", command="echo fine", session_id=own))["output"] == "fine\n"


# -- files


NAMES = """\
import os
os.makedirs("odd")
for name in (b"\\xff\\xfe", b"new\\nline.py", b"tab\\t.py", b"\\x1b[31m.py", b"'\\"`$(id).py", "\\u202egnp.py".encode(),
             b"-rf", b" ", b"x" * 255, b"\\r", "\\ud83d\\ude00".encode("utf-16", "surrogatepass")[:3]):
    try:
        open(b"odd/" + name.replace(b"/", b"").replace(b"\\0", b""), "wb").write(b"needle\\n")
    except OSError as exc:
        print(exc)
place = "odd/deep"
for _ in range(300):
    os.mkdir(place); place += "/" + "d" * 10
    if len(place) > 3900: break
os.symlink("loop", "odd/loop"); os.symlink("..", "odd/up"); os.symlink("b", "odd/a"); os.symlink("a", "odd/b")
os.symlink("x" * 4000, "odd/long")
os.mkfifo("odd/fifo"); os.mkfifo("test_fifo.py")
import socket; s = socket.socket(socket.AF_UNIX); s.bind("odd/socket")
os.symlink("/dev/zero", "odd/zero"); os.symlink("/proc/self/mem", "odd/mem"); os.symlink("/dev/stdin", "odd/stdin")
os.symlink("fifo", "odd/to_fifo")
print("done")
"""


async def test_files_of_all_kinds_are_listed_searched_and_shown_or_refused(repo: Path) -> None:
    async with two_sessions(repo) as (session, own):
        assert (await run(session, own, NAMES)).endswith("done\n")
        listed = await session.call("listdir", path="odd", depth=1, session_id=own)
        paths = [entry["path"] for entry in listed["entries"]]
        assert len(paths) == len(set(paths)) >= 5
        special = [
            f"odd/{name}"
            for name in ("fifo", "socket", "zero", "mem", "stdin", "to_fifo", "loop", "up", "long")
        ]
        for name in (*paths, *special, "odd/deep", "test_fifo.py", "odd/loop/x", "odd/a", "odd/up/../../.."):
            await outcome(session, "view", path=name, session_id=own)
            await outcome(session, "grep", pattern="needle", path=name, session_id=own)
            await outcome(session, "rewrite", path=name, new_code="x = 1\n", session_id=own)
        for tool, arguments in (
            ("listdir", {"path": ".", "depth": 10}),
            ("grep", {"pattern": "needle", "max_results": 1000}),
            ("grep", {"pattern": "(n+)+eedle"}),
            ("diff", {}),
            ("diff", {"format": "full"}),
            ("eval", {"timeout_s": 10}),
        ):
            await outcome(session, tool, session_id=own, **arguments)
        await works(session, own)


async def test_20_000_files_in_a_folder_give_bounded_answers(repo: Path) -> None:
    program = "import os\nos.mkdir('many')\nfor n in range(20_000):\n    open(f'many/{n}.py', 'w').write('needle\\n')\nprint('done')\n"
    async with two_sessions(repo) as (session, own):
        assert await run(session, own, program) == "done\n"
        for tool, arguments in (
            ("listdir", {"path": "many"}),
            ("grep", {"pattern": "needle", "max_results": 1000}),
            ("grep", {"pattern": "absent"}),
            ("diff", {}),
            ("diff", {"format": "summary"}),
        ):
            await outcome(session, tool, session_id=own, **arguments)
        await works(session, own)


async def test_a_file_that_grows_while_it_is_read_ends_somewhere(repo: Path) -> None:
    program = """\
with open("grows.txt", "a") as file:
    while True:
        file.write("needle " * 10_000 + "\\n")
        if file.tell() > 300 << 20:
            file.truncate(0)
"""
    async with two_sessions(repo) as (session, own):
        await session.call("rewrite", path="grow.py", new_code=program, session_id=own)
        await session.call("pdb", command="p 1", entrypoint="python grow.py", session_id=own)
        await session.call("pdb", command="c", timeout_s=0.5, session_id=own)
        for tool, arguments in (
            ("view", {"path": "grows.txt"}),
            ("grep", {"pattern": "needle", "path": "grows.txt"}),
            ("diff", {}),
            ("rewrite", {"path": "grows.txt", "new_code": "x"}),
        ):
            await outcome(session, tool, session_id=own, **arguments)
        assert (await session.call("wait", interrupt=True, session_id=own))["state"] == "stopped"


# -- what programs say


async def test_output_of_control_characters_and_halves_of_characters_is_text(repo: Path) -> None:
    program = """\
import sys
out = sys.stdout.buffer
out.write(b"(Pdb) \\x1b[2J\\x00\\x07\\xff\\xfe\\xed\\xa0\\x80\\xc3(" * 20_000)
out.write(bytes(range(256)) * 1000)
out.flush()
raise ValueError("lone \\ud800 \\x00 \\x1b[31m" * 1000)
"""
    async with two_sessions(repo) as (session, own):
        await session.call("rewrite", path="loud.py", new_code=program, session_id=own)
        await outcome(session, "bash", command="python3 loud.py", session_id=own)
        await outcome(session, "pdb", command="c", entrypoint="python loud.py", session_id=own)
        await outcome(session, "pdb", command="p '\\ud800', chr(0xd800)", session_id=own)
        await outcome(session, "pdb", command="!print(chr(0) + '\\x1b[2J')", session_id=own)
        await outcome(session, "inspect", expression="chr(0xd800) * 10", session_id=own)
        await outcome(
            session, "inspect", expression="{chr(0xdfff): type(chr(0xd8) * 100_000, (), {})}", session_id=own
        )
        await outcome(session, "eval", entrypoint="python loud.py", session_id=own)
        assert (await session.call("bash", command="echo fine", session_id=own))["output"] == "fine\n"


PLUGIN = """\
import glob, json, os, socket, pytest

@pytest.mark.parametrize("x", ["y" * 1_000_000, "\\ud800", "\\x00\\x1b"])
def test_long(x):
    assert x == 0, x

def test_flood():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    s.connect(glob.glob("/tmp/pdbox-*/s")[0])
    for n in range(200_000):
        s.send(json.dumps({"run": "r", "runner": "pytest", "kind": "result", "id": f"forged{n}", "outcome": "passed",
                           "duration_s": 1e308, "message": "m" * 10}).encode())
    for junk in (b"{", b"[]", b"null", b"\\xff", b"[" * 60_000, b'{"run": 1}', b'{"run":"r","kind":"result","id":"i","outcome":"great"}',
                 b'{"run":"r","kind":"result","id":"\\\\ud800","outcome":"failed","message":"\\\\ud800","duration_s":NaN,"line":1e999}',
                 b'{"run":"r","kind":"collected","count":-5}',
                 b'{"run":"r","kind":"result","id":"k","outcome":"failed","line":%s}' % (b"9" * 4000)):
        s.send(junk)
"""


async def test_a_flood_of_forged_test_results_is_a_bounded_answer(repo: Path) -> None:
    async with two_sessions(repo) as (session, own):
        await session.call("rewrite", path="test_flood.py", new_code=PLUGIN, session_id=own)
        assert "passed" in await outcome(session, "eval", timeout_s=60, session_id=own)
        again = await session.call("eval", entrypoint="python -m pytest test_app.py", session_id=own)
        assert (again["passed"], again["failed"]) == (1, 0)
        await works(session, own)
