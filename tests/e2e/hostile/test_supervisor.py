"""Attacks on the supervisor of the own session, and through it on the server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from sandbox.guest.protocol import PROTOCOL
from tests.e2e.client import ToolFailed, pdbox
from tests.e2e.hostile.attacked import ENTRY, MEMORY_KB, Attacked, outcome, run, server_memory_kb, works

pytestmark = [pytest.mark.anyio, pytest.mark.docker, pytest.mark.long]


async def test_garbage_on_the_supervisors_socket_hurts_nobody(repo: Path, attacked: Attacked) -> None:
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
    async with attacked.session(repo) as (session, own):
        output = await run(session, own, program)
        assert output.endswith("14 200 done\n"), output
        await works(session, own)


async def test_requests_of_a_program_reach_its_own_session_alone(repo: Path, attacked: Attacked) -> None:
    program = """\
from client import *
one = Supervisor()
print(one.ask("files.read", path="../../etc/shadow")[0])
print(one.ask("debug.command", lines=["p 'forged'"], timeout_s=5)[0].get("ok", {}).get("state"))
print(one.ask("files.extract", data="end")[0].get("error", {}).get("code"))
one.send({"id": 1, "op": "shutdown", "args": {}})
"""
    async with attacked.session(repo) as (session, own):
        await outcome(session, "bash", command="true", session_id=own)
        text = await outcome(session, "rewrite", path="attack.py", new_code=program, session_id=own)
        assert "attack.py" in text
        await outcome(session, "bash", command="python3 attack.py", session_id=own)
        text = await outcome(session, "bash", command="echo fine", session_id=own)
        assert "start_session" in text or "unknown" in text or "closed" in text or "ended" in text


@pytest.mark.parametrize("signal", ["KILL", "STOP"])
async def test_a_signal_to_all_processes_leaves_the_session_alive(
    repo: Path, attacked: Attacked, signal: str
) -> None:
    command = f"for p in /proc/[0-9]*; do kill -{signal} ${{p#/proc/}} 2>/dev/null; done"
    async with attacked.session(repo) as (session, own):
        await outcome(session, "bash", command=command, timeout_s=2, session_id=own)
        await works(session, own)


async def test_no_stream_of_a_supervisor_or_of_a_relay_can_be_opened(repo: Path, attacked: Attacked) -> None:
    program = """\
import glob, os
ours = [place[:-8] for place in glob.glob("/proc/[0-9]*/cmdline")
        if any(name in open(place, "rb").read() for name in (b"pdbox supervisor", b"relay.py"))]
opened = []
for place in ours:
    for number in range(20):
        try:
            os.close(os.open(f"{place}/fd/{number}", os.O_RDWR | os.O_NONBLOCK))
            opened.append((place, number))
        except OSError:
            pass
print(len(ours), opened)
"""
    async with attacked.session(repo) as (session, own), pdbox("--root", str(repo)) as second:
        # A second server is connected by a process of its own.
        await second.call("bash", command="true", session_id=own)
        assert await run(session, own, program) == "2 []\n"
        await works(second, own)


@pytest.mark.parametrize("size", [0, 150_000])
async def test_a_flood_from_the_supervisors_place_ends_its_session(
    repo: Path, attacked: Attacked, size: int
) -> None:
    program = f"""\
from client import *
hello = {{"event": "hello", "protocol": {PROTOCOL}, "python": "3", "workdir": "/workspace", "meta": {{}}}}
text = json.dumps({{"id": 1 << 40, "ok": {{"list": [0] * {size}}}}}).encode()
flood = (struct.pack(">II", len(text), 0) + text) * max(1, 60_000 // len(text))
os.unlink("/run/pdbox/socket")
listener = socket.socket(socket.AF_UNIX)
listener.bind("/run/pdbox/socket")
listener.listen(50)
print("ready", flush=True)
while True:
    one = Supervisor.__new__(Supervisor)
    one.socket = listener.accept()[0]
    try:
        one.send(hello)
        while True:
            one.raw(flood)
    except OSError:
        pass
"""
    async with attacked.session(repo) as (session, own), pdbox("--root", str(repo)) as second:
        await session.call("rewrite", path="attack.py", new_code=program, session_id=own)
        stop = await session.call(
            "pdb", command="c", entrypoint="python attack.py", timeout_s=2, session_id=own
        )
        while not stop["output"]:
            stop = await session.call("wait", timeout_s=1, session_id=own)
        assert (stop["state"], stop["output"]) == ("running", "ready\n")
        with pytest.raises(ToolFailed, match="floods"):
            await second.call("bash", command="true", timeout_s=60, session_id=own)


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
async def test_a_forged_memory_does_the_next_server_no_harm(
    repo: Path, attacked: Attacked, forged: str
) -> None:
    program = f"from client import *\nprint(Supervisor().ask('meta.set', meta={forged})[0])\n"
    async with attacked.session(repo) as (first, own):
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
                fresh = (await second.call("start_session", repo=str(repo), **ENTRY))["session_id"]
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
