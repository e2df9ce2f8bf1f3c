"""Connections, requests, and when the guest ends."""

from __future__ import annotations

import resource
import select
import socket
import stat
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from sandbox.guest.protocol import PROTOCOL
from sandbox.guest.protocol.frames import pack
from tests.guest.supervisor.guest import PYTHON, WAIT_S, Guest, Refused, client_of


def test_the_greeting_says_what_is_there(guest: Guest) -> None:
    hello = guest.client.hello
    assert (hello["event"], hello["protocol"], hello["workdir"], hello["meta"]) == (
        "hello",
        PROTOCOL,
        str(guest.workdir),
        None,
    )
    guest.client.request("meta.set", meta={"a": [1]})
    assert guest.connect().hello["meta"] == {"a": [1]}


def test_many_requests_in_flight_each_get_their_own_answer(guest: Guest) -> None:
    guest.write("app.py", "while True:\n    pass\n")
    guest.client.pdb("p 1", entrypoint="python app.py")
    slow = guest.client.start("debug.command", lines=["c"], timeout_s=1.0)
    numbers = [guest.client.start("output.read", since=n, max=10) for n in range(50)]
    assert all(guest.client.result(number)["next"] == 0 for number in numbers)
    assert guest.client.result(slow)["state"] == "running"


def test_what_is_asked_at_once_behind_a_command_is_served_beside_it(guest: Guest) -> None:
    guest.write("app.py", "while True:\n    pass\n")
    guest.client.pdb("n", entrypoint="python app.py")
    command = {"id": 901, "op": "debug.command", "args": {"lines": ["c"], "timeout_s": 60}}
    assert guest.process.stdin is not None
    guest.process.stdin.write(pack(command) + pack({"id": 902, "op": "cancel", "args": {"id": 901}}))
    answers = [guest.client.events.get(timeout=WAIT_S) for _ in range(2)]
    assert sorted(answer["id"] for answer in answers if answer) == [901, 902]


def test_more_requests_than_can_be_served_are_refused_not_queued(guest: Guest) -> None:
    guest.write("app.py", "while True:\n    pass\n")
    guest.client.pdb("n", entrypoint="python app.py")
    guest.client.pdb("c", timeout_s=0.1)
    numbers = [guest.client.start("debug.wait", timeout_s=60) for _ in range(64)]
    with pytest.raises(Refused, match="conflict"):
        guest.client.request("ping")
    for number in numbers:
        guest.client.cancel(number)
    assert {guest.client.result(number)["state"] for number in numbers} == {"running"}
    assert guest.client.request("ping") == {}


def test_an_unknown_operation_and_a_malformed_request_are_answered(guest: Guest) -> None:
    with pytest.raises(Refused, match="not_found: There is no operation `nope`"):
        guest.client.request("nope")
    guest.client.stream.send({"op": 5})
    answer = guest.client.events.get(timeout=WAIT_S)
    assert answer is not None
    assert answer["error"]["code"] == "invalid"
    with pytest.raises(Refused, match="internal: "):
        guest.client.request("debug.command", lines=["p 1"], timeout_s="soon")
    assert guest.client.request("ping") == {}


@pytest.mark.parametrize(
    "data", [struct.pack(">II", 1 << 31, 0), struct.pack(">II", 2, 0) + b"[]", b"\xff" * 64]
)
def test_a_broken_stream_costs_only_its_connection(guest: Guest, data: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(guest.socket)
        sock.sendall(data)
        while sock.recv(65536):
            pass
    assert guest.client.request("ping") == {}


def test_the_socket_is_only_for_the_same_user(guest: Guest) -> None:
    assert stat.S_IMODE(Path(guest.socket).stat().st_mode) == 0o600
    assert stat.S_IMODE(guest.home.stat().st_mode) == 0o700


def test_a_program_goes_on_when_its_connection_closes(guest: Guest) -> None:
    guest.write("app.py", "import os\nx = os.getpid()\nwhile True:\n    pass\n")
    other = guest.connect()
    other.pdb("n", "n", entrypoint="python app.py")
    process = other.pdb("p x")["reply"]
    other.start("debug.command", lines=["c"], timeout_s=60)
    while guest.client.request("debug.state")["state"] != "running":
        pass
    other.stream.close()
    assert guest.client.wait(interrupt=True)["state"] == "stopped"
    assert guest.client.pdb("p x")["reply"] == process


def test_the_relay_carries_a_connection(guest: Guest) -> None:
    relay = guest.home / "pdbox_guest" / "relay.py"
    with subprocess.Popen(
        [PYTHON, "-I", "-u", relay, guest.socket], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    ) as process:
        assert process.stdin is not None
        client = client_of(process)
        assert client.request("ping") == {}
        client.request("meta.set", meta="x" * 3_000_000)
        process.stdin.close()
        assert process.wait(WAIT_S) == 0
    assert len(guest.client.request("debug.state")) == 4


def test_the_relay_says_when_there_is_no_supervisor(tmp_path: Path) -> None:
    relay = Path(__file__).parents[3] / "sandbox" / "guest" / "relay.py"
    done = subprocess.run(
        [sys.executable, "-I", relay, str(tmp_path / "none")],
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert (done.returncode, "no supervisor at" in done.stderr) == (1, True)


def ended(guest: Guest) -> dict[str, Any] | None:
    """The farewell, once the guest has ended."""
    farewell = None
    while (event := guest.client.events.get(timeout=WAIT_S)) is not None:
        farewell = event
    guest.process.wait(WAIT_S)
    return farewell


@pytest.mark.parametrize(
    ("setting", "reason"), [("idle_s", "it was idle too long"), ("max_age_s", "it reached its maximum age")]
)
def test_it_ends_when_its_time_is_over(tmp_path: Path, setting: str, reason: str) -> None:
    settings: dict[str, Any] = {setting: 2}
    with Guest(tmp_path, **settings) as guest:
        assert ended(guest) == {"event": "closing", "code": "expired", "reason": reason}
        assert not Path(guest.socket).exists()


def test_it_is_not_idle_while_a_program_has_its_deadline(tmp_path: Path) -> None:
    with Guest(tmp_path, idle_s=3) as guest:
        guest.write("app.py", "while True:\n    pass\n")
        assert guest.client.pdb("c", entrypoint="python app.py", timeout_s=6)["state"] == "running"
        assert ended(guest) == {"event": "closing", "code": "expired", "reason": "it was idle too long"}


def test_a_ping_is_no_use(tmp_path: Path) -> None:
    with Guest(tmp_path, idle_s=2) as guest:
        try:
            while guest.process.poll() is None:
                guest.client.stream.send({"id": 0, "op": "ping"})
                select.select([], [], [], 0.01)
        except OSError:
            pass
        assert guest.process.wait(WAIT_S) == 0


def test_it_ends_some_time_after_the_last_connection(tmp_path: Path) -> None:
    with Guest(tmp_path, stdio=False, grace_s=5) as guest:
        client = guest.connect_when_listening()
        assert client.request("debug.state")["state"] == "not_started"
        assert guest.process.poll() is None
        client.stream.close()
        assert guest.process.wait(WAIT_S) == 0


def test_without_any_connection_it_ends_too(tmp_path: Path) -> None:
    with Guest(tmp_path, stdio=False, grace_s=0.2) as guest:
        assert guest.process.wait(WAIT_S) == 0


def load_all(guest: Guest) -> None:
    """Wait until it has started, with all that it needs."""
    guest.client.request("load")
    guest.client.request("debug.state")
    guest.client.request("exec", command="sleep 0.2", timeout_s=WAIT_S, max_output=100)


def memory_of(guest: Guest) -> int:
    """Bytes that count for its limit of data."""
    status = Path(f"/proc/{guest.process.pid}/status").read_text(encoding="utf-8")
    return int(status.partition("VmData:")[2].split()[0]) << 10


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="Linux")
@pytest.mark.parametrize(
    ("op", "room"),
    [
        pytest.param("files.diff", 4 << 20, id="many changes"),
        pytest.param("files.read", 4 << 20, id="a large file"),
        pytest.param("files.read", 12 << 20, id="a large answer"),
    ],
)
def test_an_operation_without_memory_is_refused_and_the_next_one_is_served(
    guest: Guest, op: str, room: int
) -> None:
    args: dict[str, Any] = {} if op == "files.diff" else {"path": "large", "max_bytes": 8 << 20}
    load_all(guest)
    guest.client.request("files.snapshot", rules={})
    guest.client.request("files.diff")  # comes when all is stored
    if op == "files.diff":
        for number in range(20_000):
            (guest.workdir / f"file{number}").touch()
    else:
        guest.write("large", "x" * (7 << 20))
    resource.prlimit(
        guest.process.pid, resource.RLIMIT_DATA, (memory_of(guest) + room, resource.RLIM_INFINITY)
    )
    with pytest.raises(
        Refused, match=f"conflict: The sandbox has too little memory for `{op}`: a process may"
    ):
        guest.client.request(op, **args)
    assert guest.client.request("ping") == {}
    resource.prlimit(
        guest.process.pid, resource.RLIMIT_DATA, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    )
    guest.client.request(op, **args)


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="Linux")
def test_its_end_is_an_orderly_one_without_memory_for_one_more_thread(tmp_path: Path) -> None:
    with Guest(tmp_path) as guest:
        load_all(guest)
        limit = (memory_of(guest) + (1 << 20), resource.RLIM_INFINITY)  # less than a stack
        resource.prlimit(guest.process.pid, resource.RLIMIT_DATA, limit)
        guest.process.terminate()
        assert guest.process.wait(WAIT_S) == 0


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="Linux")
def test_without_any_connection_it_ends_when_a_program_left_it_no_descriptors(tmp_path: Path) -> None:
    with Guest(tmp_path, grace_s=0.2) as guest:
        # All is loaded that it needs.
        guest.client.request("load")
        guest.client.request("debug.state")
        guest.client.request("exec", command="true", timeout_s=WAIT_S, max_output=100)
        resource.prlimit(guest.process.pid, resource.RLIMIT_NOFILE, (0, 0))
        assert guest.process.stdin is not None
        guest.process.stdin.close()
        assert guest.process.wait(WAIT_S) == 0


@pytest.mark.parametrize("how", ["shutdown", "SIGTERM"])
def test_its_end_takes_everything_along(tmp_path: Path, how: str) -> None:
    source = (
        "import os, subprocess\nchild = subprocess.Popen(['sleep', '99'])\nprint(child.pid, flush=True)\n"
    )
    source += "if not os.fork():\n    os.setsid()\n    print(os.getpid(), flush=True)\n    while True: pass\n"
    source += "while True: pass\n"
    with Guest(tmp_path) as guest:
        guest.write("app.py", source)
        output = ""
        guest.client.pdb("p 1", entrypoint="python app.py")
        stop = guest.client.pdb("c", timeout_s=0.5)
        while len((output := output + stop["output"]).split()) < 2:
            assert stop["state"] == "running"
            stop = guest.client.wait(timeout_s=0.2)
        if how == "shutdown":
            guest.client.request("shutdown")
        else:
            guest.process.terminate()
        assert guest.process.wait(WAIT_S) == 0
        end = time.monotonic() + WAIT_S
        while left := [pid for pid in output.split() if _alive(int(pid))]:  # what is killed still has to end
            assert time.monotonic() < end, left


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_bytes_of_a_request_may_come_one_by_one(guest: Guest) -> None:
    frame = pack({"id": 7, "op": "ping"})
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(guest.socket)
        for byte in frame:
            sock.sendall(bytes([byte]))
        data = b""
        while b'"ok"' not in data:
            data += sock.recv(4096)
