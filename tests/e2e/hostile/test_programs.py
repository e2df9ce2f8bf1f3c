"""Attacks by what a program uses up, writes and prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.client import pdbox
from tests.e2e.hostile.attacked import Attacked, outcome, run, works

pytestmark = [pytest.mark.anyio, pytest.mark.docker, pytest.mark.long]


async def test_full_disks_are_said_and_can_be_emptied(repo: Path, attacked: Attacked) -> None:
    fill = "for d in /workspace /tmp /run/pdbox /home/sandbox /dev/shm; do head -c 3G /dev/zero > $d/fill; done; true"
    async with attacked.session(repo) as (session, own):
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


async def test_a_fork_bomb_ends_with_its_command(repo: Path, attacked: Attacked) -> None:
    bomb = (
        "python3 -c 'import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass'"
    )
    async with attacked.session(repo) as (session, own):
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


async def test_a_memory_hog_is_killed_alone(repo: Path, attacked: Attacked) -> None:
    async with attacked.session(repo) as (session, own):
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


async def test_files_of_all_kinds_are_listed_searched_and_shown_or_refused(
    repo: Path, attacked: Attacked
) -> None:
    async with attacked.session(repo) as (session, own):
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


async def test_20_000_files_in_a_folder_give_bounded_answers(repo: Path, attacked: Attacked) -> None:
    program = "import os\nos.mkdir('many')\nfor n in range(20_000):\n    open(f'many/{n}.py', 'w').write('needle\\n')\nprint('done')\n"
    async with attacked.session(repo) as (session, own):
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


async def test_a_file_that_grows_while_it_is_read_ends_somewhere(repo: Path, attacked: Attacked) -> None:
    program = """\
with open("grows.txt", "a") as file:
    while True:
        file.write("needle " * 10_000 + "\\n")
        if file.tell() > 300 << 20:
            file.truncate(0)
"""
    async with attacked.session(repo) as (session, own):
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


async def test_output_of_control_characters_and_halves_of_characters_is_text(
    repo: Path, attacked: Attacked
) -> None:
    program = """\
import sys
out = sys.stdout.buffer
out.write(b"(Pdb) \\x1b[2J\\x00\\x07\\xff\\xfe\\xed\\xa0\\x80\\xc3(" * 20_000)
out.write(bytes(range(256)) * 1000)
out.flush()
raise ValueError("lone \\ud800 \\x00 \\x1b[31m" * 1000)
"""
    async with attacked.session(repo) as (session, own):
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


async def test_a_flood_of_forged_test_results_is_a_bounded_answer(repo: Path, attacked: Attacked) -> None:
    async with attacked.session(repo) as (session, own):
        await session.call("rewrite", path="test_flood.py", new_code=PLUGIN, session_id=own)
        assert "passed" in await outcome(session, "eval", timeout_s=60, session_id=own)
        again = await session.call("eval", entrypoint="python -m pytest test_app.py", session_id=own)
        assert (again["passed"], again["failed"]) == (1, 0)
        await works(session, own)
