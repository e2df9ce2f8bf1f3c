"""Ends of a program: its exit, a crash, a signal from outside, and processes that outlive it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from tests.guest.supervisor.guest import WAIT_S, Guest, Refused
from tests.guest.supervisor.program.sample import HANGS, UNTIL_GO, place, start, until_told


def test_a_program_that_takes_its_time_to_end_is_waited_for(guest: Guest) -> None:
    stop = start(guest, "import atexit, time\natexit.register(time.sleep, 2.5)\n", "c", timeout_s=60)
    assert (stop["state"], stop["exit_code"], stop["notices"]) == ("exited", 0, [])


def test_a_program_that_does_not_end_is_told_at_the_deadline(guest: Guest) -> None:
    source = "import atexit, time\n@atexit.register\ndef end():\n    while True:\n        time.sleep(0.1)\n"
    stop = until_told(guest, start(guest, source, "c", timeout_s=1))
    assert stop["state"] == "running"
    assert stop["notices"] == [
        "The program's main part has finished (exit code 0), but its process has not ended yet."
    ]
    assert place(guest.client.wait(interrupt=True)) == ("app.py", 5)


@pytest.mark.parametrize(
    ("crash", "code", "name"),
    [("os._exit(3)", 3, None), ("os.kill(os.getpid(), 11)", None, "SIGSEGV")],
)
def test_what_pdb_said_before_an_evaluation_that_ends_the_program_is_told(
    guest: Guest, crash: str, code: int | None, name: str | None
) -> None:
    stop = start(guest, HANGS, "b 10", "c", "p 'first'", "p 'second'", crash, "p 'never'")
    assert (stop["state"], stop["exit_code"], stop["signal"]) == ("exited", code, name)
    assert stop["reply"].startswith("Breakpoint 1 at ")
    assert stop["reply"].endswith("-> print(number)\n'first'\n'second'\n")
    assert stop["not_run"] == ["p 'never'"]
    guest.client.pdb("run", "n")
    stop = guest.client.pdb(crash, "p 'never'")
    assert (stop["state"], stop["not_run"]) == ("exited", ["p 'never'"])


def test_lines_before_a_crash_keep_their_text_and_those_after_are_named(guest: Guest) -> None:
    source = "import os\nx = 1\nos.kill(os.getpid(), 9)\nx = 2\n"
    stop = start(guest, source, "p 'one'", "n", "p 'two'", "n", "p 'three'", "n", "p 'four'", "n")
    assert (stop["state"], stop["signal"]) == ("exited", "SIGKILL")
    said = [line for line in stop["reply"].splitlines() if line.startswith("'")]
    assert said == ["'one'", "'two'", "'three'"]
    assert stop["not_run"] == ["p 'four'", "n"]


@pytest.mark.parametrize(
    ("source", "code", "signal_name"),
    [
        ("raise SystemExit(3)", 3, None),
        ("import os; os._exit(4)", 4, None),
        ("import os; os.kill(os.getpid(), 9)", None, "SIGKILL"),
        ("import os; os.abort()", None, "SIGABRT"),
        ("import ctypes; ctypes.string_at(0)", None, "SIGSEGV"),
    ],
)
def test_each_end_is_told_and_the_session_goes_on(
    guest: Guest, source: str, code: int | None, signal_name: str | None
) -> None:
    stop = start(guest, f"def f():\n    {source}\nx = 1\nf()\n", "b 4", "c")
    stop = guest.client.pdb("c")
    assert (stop["state"], stop["exit_code"], stop["signal"]) == ("exited", code, signal_name)
    if signal_name in ("SIGSEGV", "SIGABRT"):
        assert 'app.py", line 2 in f' in stop["native_stack"]
    with pytest.raises(Refused, match=r"conflict: The program has exited .* `run` starts it again"):
        guest.client.pdb("p 1")
    stop = guest.client.pdb("c")
    assert (stop["state"], stop["breakpoint"], stop["run"]) == ("stopped", 1, 2)
    assert "it was started again" in stop["notices"][0]


def test_an_uncaught_exception_stops_post_mortem(guest: Guest) -> None:
    stop = start(guest, "def f(a):\n    return 1 / a\nf(0)\n", "c")
    assert (stop["state"], stop["reason"], place(stop)) == ("stopped", "post_mortem", ("app.py", 2))
    assert stop["exception"]["type"] == "ZeroDivisionError"
    assert guest.client.pdb("p a")["reply"] == "0\n"
    stop = guest.client.pdb("c")
    assert (stop["state"], stop["exit_code"]) == ("exited", 1)


def test_threads_that_outlive_the_main_part_are_said(guest: Guest) -> None:
    source = "import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()\n"
    stop = until_told(guest, start(guest, source, "c", timeout_s=1))
    assert stop["state"] == "running"
    assert any("has finished" in notice for notice in stop["notices"])


def test_restarts_leave_no_process_behind(guest: Guest) -> None:
    daemon = "import os\nif not os.fork():\n    os.setsid()\n    if not os.fork():\n"
    daemon += "        os.execvp('sleep', ['sleep', '99'])\n    os._exit(0)\nos.wait()\nx = 1\n"
    start(guest, daemon, "b 8", "c")
    for _ in range(5):
        assert guest.client.pdb("run", "c")["breakpoint"] == 1
    guest.client.request("debug.kill")
    deadline = time.monotonic() + WAIT_S
    while children_of(guest.process.pid):  # killed, and on a busy machine dead a little later
        assert time.monotonic() < deadline


def children_of(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        name = entry.name
        if name.isdigit():
            try:
                fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == pid and fields[0] != "Z":
                found.append(int(name))
    return found


def test_a_program_killed_from_outside_is_told_by_wait(guest: Guest) -> None:
    start(guest, "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(99)\n", "b 3", "c")
    stop = guest.client.pdb("c", timeout_s=0.2)
    pid = children_of(guest.process.pid)[0]
    os.kill(pid, signal.SIGKILL)
    stop = guest.client.wait()
    assert (stop["state"], stop["signal"]) == ("exited", "SIGKILL")


@pytest.mark.parametrize("line", ["p x", "c"])
def test_a_program_that_ended_while_it_was_stopped_is_told_with_what_it_printed(
    guest: Guest, line: str
) -> None:
    source = "import faulthandler\nfaulthandler.dump_traceback_later(3, exit=True)\nx = 1\ny = 2\n"
    start(guest, source, "n", "n")
    while guest.client.request("debug.state")["state"] == "stopped":
        pass
    stop = guest.client.pdb(line)
    assert (stop["state"], stop["exit_code"], stop["not_run"]) == ("exited", 1, [line])
    assert "Timeout" in stop["output"]
    assert [notice[:32] for notice in stop["notices"]] == ["It ended while it was stopped: a"]
    with pytest.raises(Refused, match="has exited"):
        guest.client.pdb("p x")
    assert guest.client.pdb("c")["state"] == "exited"


def test_a_program_that_ended_after_the_deadline_is_told_before_it_is_started_again(guest: Guest) -> None:
    start(guest, UNTIL_GO + "print('done')\n", "n", "n")
    assert guest.client.pdb("c", timeout_s=0.2)["state"] == "running"
    guest.write("go", "")
    while guest.client.request("debug.state")["state"] == "running":
        pass
    stop = guest.client.pdb("c")
    assert (stop["state"], stop["output"], stop["not_run"], stop["run"]) == ("exited", "done\n", ["c"], 1)
    assert guest.client.pdb("c")["run"] == 2


def test_processes_that_a_program_leaves_running_are_told(guest: Guest) -> None:
    source = "import subprocess\nsubprocess.Popen(['sleep', '60'], start_new_session=True)\n"
    stop = start(guest, source, "c")
    assert stop["state"] == "exited"
    assert [notice.rpartition(":")[0] for notice in stop["notices"]] == [
        "It has left processes running that no debugger leads, breakpoints are not hit in them"
    ]
    assert guest.client.wait()["notices"] == []
    guest.write("app.py", "import os\nos.fork()\n")
    assert not any("left processes" in notice for notice in guest.client.pdb("c")["notices"])


def test_a_daemon_that_a_program_left_running_ends_with_q(guest: Guest) -> None:
    daemon = """\
import os, sys, time
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
open("pid.new", "w").write(str(os.getpid()))
os.rename("pid.new", "pid")
for descriptor in range(3):
    os.close(descriptor)
time.sleep(1000)
"""
    assert start(guest, daemon, "c")["state"] == "exited"
    while not (guest.workdir / "pid").exists():
        pass
    pid = int((guest.workdir / "pid").read_text())
    os.kill(pid, 0)
    stop = guest.client.pdb("q")
    assert stop["state"] == "exited" and "were killed now: 1" in stop["notices"][0]
    with pytest.raises(ProcessLookupError):
        while True:
            os.kill(pid, 0)
    with pytest.raises(Refused, match="has exited"):
        guest.client.pdb("q")


def test_a_program_that_ends_under_an_inspection_has_exited(guest: Guest) -> None:
    start(guest, "import os, time\nx = 1\n", "n")
    with pytest.raises(Refused, match=r"has exited \(exit code 3\)"):
        guest.client.request("debug.inspect", expression="os._exit(3)", frame=0, start=0, count=5, depth=1)
    assert guest.client.request("debug.state")["state"] == "exited"
