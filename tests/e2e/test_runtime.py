"""A whole session below gVisor, where the engine has it as the runtime `runsc`."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from sandbox.docker.backend import DockerBackend
from sandbox.docker.doctor import examine
from tests.docker_client import docker
from tests.e2e.client import pdbox
from tests.e2e.served import Way, serving

pytestmark = [pytest.mark.anyio, pytest.mark.docker]
RUNTIME = "runsc"
WAY = Way("http", "auto")


@pytest.fixture
def runsc() -> str:
    """The flag of the server."""
    if (
        RUNTIME
        not in docker("info", "--format", "{{range $name, $_ := .Runtimes}}{{$name}}\n{{end}}").split()
    ):
        pytest.skip(f"the engine lists no runtime {RUNTIME}")
    return f"--runtime={RUNTIME}"


PROGRAM = """\
import time

def total(items):
    result = 0
    for item in items:
        result = item
    return result

def forever():
    while True:
        time.sleep(0.01)

if __name__ == "__main__":
    print(total([1, 2, 3]))
    forever()
"""
TEST = "from app import total\n\ndef test_total():\n    assert total([1, 2, 3]) == 6\n"


async def test_a_bug_is_found_and_mended_below_gvisor(tmp_path: Path, runsc: str) -> None:
    (tmp_path / "app.py").write_text(PROGRAM)
    (tmp_path / "test_app.py").write_text(TEST)
    with serving("--root", str(tmp_path), runsc) as server:
        async with server.connected(WAY) as session:
            opened = await session.call(
                "start_session", repo=str(tmp_path), entrypoint="pytest -q", debug_entrypoint="python app.py"
            )
            handle = opened["session_id"]
            assert f"no network, runtime {RUNTIME}, " in opened["isolation"]
            said = await session.text("bash", command="cat /proc/version", session_id=handle)
            assert "Linux version 4.4.0" in said, "another kernel than gVisor's answers"
            assert "1 failed" in await session.text("eval", session_id=handle)
            stopped = await session.call("pdb", command="b total\nc", session_id=handle)
            assert stopped["frame"]["function"] == "total"
            stepped = await session.call("pdb", command="n\nn\nn\np (result, item)", session_id=handle)
            assert "(1, 1)" in stepped["reply"]
            running = await session.call("pdb", command="cl 1\nc", timeout_s=1, session_id=handle)
            assert running["state"] == "running"
            caught = await session.call("wait", interrupt=True, session_id=handle)
            assert caught["state"] == "stopped"
            await server.end(signal.SIGKILL)
    with serving("--root", str(tmp_path), runsc) as server:
        async with server.connected(WAY) as session:
            again = await session.call("pdb", command="w", session_id=handle)
            assert "forever()" in again["reply"]
            edit = {"path": "app.py", "old_code": "result = item", "new_code": "result += item"}
            await session.text("rewrite", **edit, session_id=handle)
            assert "+        result += item" in await session.text("diff", session_id=handle)
            assert "1 passed" in await session.text("eval", session_id=handle)
            (own,) = [
                one
                for one in (await session.call("list_sessions"))["sessions"]
                if one["session_id"] == handle
            ]
            used = docker("inspect", "--format", "{{.HostConfig.Runtime}}", own["place"])
            await session.call("close_session", session_id=handle)
            assert docker("ps", "-aq", "--filter", f"id={own['place']}") == ""
    assert used == RUNTIME


async def test_below_gvisor_a_set_up_runs_and_files_that_are_read_only_are_put_back(
    tmp_path: Path, runsc: str
) -> None:
    (tmp_path / "app.py").write_text("x = 1\n")
    (tmp_path / ".debugreadonly").write_text("app.py\n")
    async with pdbox("--root", str(tmp_path), runsc, "--setup", "echo made > ~/made") as session:
        opened = await session.call("start_session", repo=str(tmp_path))
        assert "put back before each `eval`" in str(opened)
        handle = opened["session_id"]
        for attack in ("echo y = 2 > x; mv -f x app.py", "rm -f app.py"):
            await session.call("bash", command=attack, session_id=handle)
            await session.call(
                "eval", entrypoint="python -c 'import app; assert app.x == 1'", session_id=handle
            )
            said = await session.call("bash", command="cat ~/made app.py", session_id=handle)
            assert said["output"] == "made\nx = 1\n"


async def test_a_child_that_stops_below_gvisor_is_known_by_its_own_process_id(
    tmp_path: Path, runsc: str
) -> None:
    """gVisor names the supervisor as the other end of each connection, and interrupts must not go there."""
    (tmp_path / "app.py").write_text(
        "import os, subprocess, sys\n"
        "if len(sys.argv) > 1:\n"
        "    print('child')\n"
        "else:\n"
        "    subprocess.run([sys.executable, 'app.py', 'child'])\n"
    )
    async with pdbox("--repo", str(tmp_path), runsc) as session:
        stop = await session.call("pdb", command="b 3\nc", entrypoint="python app.py")
        assert stop["process"]["number"] > 1
        asked = await session.call("pdb", command="p os.getpid()")
        assert asked["reply"] == f"{stop['process']['pid']}\n"


async def test_doctor_tells_what_is_true_below_gvisor(runsc: str) -> None:
    *_, sandbox, isolation, limits = await examine(DockerBackend(os.environ, runtime=RUNTIME))
    assert sandbox.text.endswith("; runtime runsc")
    assert all(check.ok for check in (sandbox, isolation, limits))
    assert "a kernel of the runtime runsc (4.4.0), no network" in isolation.text
    assert "memory, pids, cpu: by the engine, around a kernel of the runtime runsc" in limits.text
