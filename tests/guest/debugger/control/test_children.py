"""Breakpoints in children of the program: forked, spawned, started as another Python. On each interpreter that is to be tested."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from tests.guest.debugger.control.children import MANY, finish, place, printed, start, value
from tests.guest.supervisor.guest import Guest, Refused

APP = """\
import concurrent.futures, multiprocessing, os, subprocess, sys, threading

def work(n):
    twice = n * 2
    return twice

def fork(n=7):
    pid = os.fork()
    if not pid:
        work(n)
        os._exit(n)
    return os.waitpid(pid, 0)[1] >> 8

def in_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()

if __name__ == "__main__":
    how = sys.argv[1]
    python = sys.executable
    if how == "os.fork":
        print(fork())
    elif how == "fork in a thread":
        in_thread(lambda: print(fork()))
    elif how == "thread in a child":
        process = multiprocessing.get_context("fork").Process(target=in_thread, args=(lambda: work(1),))
        process.start()
        process.join()
    elif how == "executor":
        with concurrent.futures.ProcessPoolExecutor(1) as executor:
            print(list(executor.map(work, [1])))
    elif how == "subprocess":
        subprocess.run([python, "-c", "import app; app.work(1)"], check=True)
    elif how == "python -m":
        subprocess.run([python, "-m", "app", "os.fork"], check=True, env=dict(os.environ, X="1"))
    elif how == "shell":
        subprocess.run("cd . && '%s' app.py os.fork | cat" % python, shell=True, check=True)
    elif how == "os.system":
        os.system("'%s' app.py os.fork" % python)
    elif how == "posix_spawn":
        os.waitpid(os.posix_spawn(python, [python, "app.py", "os.fork"], {}), 0)
    elif how == "exec":
        os.execv(python, [python, "app.py", "os.fork"])
    elif how == "empty environment":
        subprocess.run([python, "app.py", "os.fork"], env={}, check=True)
    else:
        with multiprocessing.get_context(None if how == "default" else how).Pool(1) as pool:
            print(pool.map(work, [1]))
    print("done", [name for name in os.environ if name.startswith("PDBOX_D")], os.environ.get("PYTHONPATH"))
"""


WAYS = [
    "os.fork", "fork in a thread", "thread in a child", "executor", "subprocess", "python -m", "shell", "os.system", "posix_spawn",
    "exec", "empty environment", "fork", "spawn", "forkserver", "default",
]  # fmt: skip


@pytest.mark.parametrize("how", WAYS)
def test_a_breakpoint_stops_in_a_child(guest: Guest, python: str, how: str) -> None:
    pdb = guest.client.pdb
    stop = start(guest, python, APP, "b app.py:4", "c", arguments=f"'{how}'")
    assert (stop["state"], stop["reason"], stop["breakpoint"]) == ("stopped", "breakpoint", 1)
    assert stop["reply"].endswith("app.py(4)work()\n-> twice = n * 2\n")
    assert stop["process"]["number"] > 1
    assert value(guest.client, "os.getpid()") == str(stop["process"]["pid"])
    number = value(guest.client, "n")
    assert pdb("n")["frame"]["line"] == 5
    assert value(guest.client, "twice") == str(2 * int(number))
    assert "work()" in pdb("w")["reply"]
    with pytest.raises(Refused, match="ZeroDivisionError"):
        guest.client.request("debug.inspect", expression="1 / 0")
    stop = finish(guest.client)
    assert (stop["state"], stop["exit_code"]) == ("exited", 0)
    assert stop["output"].endswith("done [] None\n")
    (point,) = guest.client.breakpoints("app.py")
    assert point["hits"] == 1


def test_what_was_said_before_the_stop_of_a_child_is_in_its_reply_and_told_once(
    guest: Guest, python: str
) -> None:
    stop = start(guest, python, APP, "p 6 * 7", "b app.py:4", "b in_thread", "c", arguments="os.fork")
    assert place(stop) == ("stopped", 4, 2)
    assert stop["reply"].startswith("42\nBreakpoint 1 at") and "app.py(4)work()" in stop["reply"]
    stop = finish(guest.client)
    assert "Breakpoint" not in stop["reply"] + "".join(stop["notices"])


def test_stops_of_several_processes_are_given_one_after_another(guest: Guest, python: str) -> None:
    stop = start(guest, python, MANY, "b app.py:4", "c")
    seen = []
    while stop["state"] == "stopped":
        seen.append((value(guest.client, "n"), stop["process"]["number"]))
        stop = guest.client.pdb("c")
    assert sorted(number for number, _ in seen) == ["1", "2", "3", "4", "5"]
    assert len({process for _, process in seen}) == 5
    assert (stop["state"], printed(guest.client)) == ("exited", "[1, 2, 3]\n[4, 5]\n")


def test_a_step_is_answered_by_its_own_process_while_others_are_stopped(guest: Guest, python: str) -> None:
    stop = start(guest, python, MANY, "b app.py:4", "c")
    number, process = value(guest.client, "n"), stop["process"]["number"]
    stop = guest.client.pdb("n")
    assert place(stop) == ("stopped", 5, process)
    assert value(guest.client, "n") == number
    assert guest.client.pdb("q")["state"] == "exited"


def test_a_condition_an_ignore_count_and_a_temporary_breakpoint_hold_in_children(
    guest: Guest, python: str
) -> None:
    stop = start(guest, python, MANY, "b app.py:4, n == 2", "tbreak app.py:5, n == 5", "c")
    assert value(guest.client, "n") == "2"
    stop = guest.client.pdb("c")
    assert (stop["frame"]["line"], value(guest.client, "twice")) == (5, "10")
    table = guest.client.breakpoints("app.py")
    assert [(point["id"], point["condition"]) for point in table] == [(1, "n == 2")]
    assert finish(guest.client)["state"] == "exited"
    assert printed(guest.client) == "[1, 2, 3]\n[4, 5]\n"


def test_commands_of_a_breakpoint_run_in_a_child(guest: Guest, python: str) -> None:
    stop = start(guest, python, MANY, "b work, n == 3", "commands 1", "p n * 100", "end", "c")
    assert "300" in stop["reply"] and stop["frame"]["function"] == "work"


SLOW = """\
import os, sys, time

def child():
    started = 1
    while not os.path.exists("go"):
        time.sleep(0.01)
    later()
    os._exit(0)

def later():
    return 5

pid = os.fork()
if not pid:
    child()
open("forked", "w").close()
while not os.path.exists("main"):
    time.sleep(0.01)
later()
os.waitpid(pid, 0)
"""


def test_a_breakpoint_set_in_one_process_stops_in_another_that_runs(guest: Guest, python: str) -> None:
    stop = start(guest, python, SLOW, "b app.py:4", "c")
    assert place(stop) == ("stopped", 4, 2)
    guest.client.pdb("b app.py:11")
    guest.write("main", "")
    stop = guest.client.pdb("c")
    assert place(stop) == ("stopped", 11, 1)
    guest.write("go", "")
    stop = guest.client.pdb("c")
    assert place(stop) == ("stopped", 11, 2)
    assert finish(guest.client)["exit_code"] == 0


def test_processes_are_listed_and_turned_to(guest: Guest, python: str) -> None:
    stop = start(guest, python, SLOW, "b app.py:4", "c")
    listing = guest.client.pdb("processes")["reply"].splitlines()
    assert [line[:3] for line in listing] == ["  1", "* 2"]
    assert "runs" in listing[0] and "stopped at app.py:4 in child" in listing[1]
    while not (guest.workdir / "forked").exists():
        time.sleep(0.01)  # the child may be further than its parent
    stop = guest.client.pdb("process 1")
    assert (stop["state"], stop["reason"], stop["process"]["number"]) == ("stopped", "interrupt", 1)
    assert value(guest.client, "pid") == str(guest.client.pdb("process 2")["process"]["pid"])
    assert value(guest.client, "pid") == "0"
    assert place(guest.client.pdb("process 2", "n")) == ("stopped", 5, 2)
    with pytest.raises(Refused, match="There is no process 9"):
        guest.client.pdb("process 9")
    guest.write("go", "")
    guest.write("main", "")
    stop = guest.client.pdb("c")
    assert stop["process"]["number"] == 1, "the one that was turned away from comes next"
    assert finish(guest.client)["exit_code"] == 0


def test_a_child_that_runs_is_interrupted_where_it_is(guest: Guest, python: str) -> None:
    start(guest, python, SLOW, "b app.py:4", "c")
    guest.client.pdb("cl 1")
    guest.client.pdb("c", timeout_s=0.5)
    stop = guest.client.pdb("process 2")
    assert (stop["reason"], stop["process"]["number"]) == ("interrupt", 2)
    assert value(guest.client, "os.getpid()") == str(stop["process"]["pid"])
    guest.client.pdb("c", timeout_s=0.5)
    assert guest.client.wait(interrupt=True)["process"]["number"] == 2


def test_a_child_that_is_killed_while_it_is_stopped_is_gone(guest: Guest, python: str) -> None:
    stop = start(guest, python, MANY, "b app.py:4, n == 2", "c")
    os.kill(stop["process"]["pid"], signal.SIGKILL)
    stop = guest.client.wait()
    while stop["state"] == "stopped":
        stop = guest.client.wait()  # its end has not been seen yet
    assert any("has ended while it was stopped" in notice for notice in stop["notices"])
    assert stop["state"] == "exited" or guest.client.wait()["state"] == "exited"
    assert guest.client.pdb("run")["state"] == "stopped"


def test_a_child_outlives_the_program_at_its_stop_and_goes_on(guest: Guest, python: str) -> None:
    stop = start(guest, python, MANY.replace("done = 1", "os._exit(4)"), "b app.py:4, n == 2", "c")
    child = stop["process"]["pid"]
    os.kill(stop["process"]["parent"], signal.SIGKILL)
    stop = guest.client.pdb("n")
    assert (stop["state"], stop["frame"]["line"]) == ("stopped", 5)
    assert value(guest.client, "os.getpid()") == str(child)
    stop = finish(guest.client)
    assert (stop["state"], stop["signal"]) == ("exited", "SIGKILL")


ENDS = """\
import os

pid = os.fork()
if not pid:
    last = 1
    os._exit(3)
print(os.waitpid(pid, 0)[1] >> 8)
"""


def test_the_program_that_was_turned_away_from_comes_back_when_a_child_ends_in_a_step(
    guest: Guest, python: str
) -> None:
    stop = start(guest, python, ENDS, "b app.py:5", "c")
    assert place(stop) == ("stopped", 5, 2)
    assert place(guest.client.pdb("process 1")) == ("stopped", 7, 1)
    assert place(guest.client.pdb("process 2", "n")) == ("stopped", 6, 2)
    stop = guest.client.pdb("n")
    assert place(stop) == ("stopped", 7, 1)
    stop = finish(guest.client)
    assert (stop["state"], stop["output"]) == ("exited", "3\n")


def test_a_stopped_child_comes_next_when_the_program_is_killed_at_its_own_stop(
    guest: Guest, python: str
) -> None:
    start(guest, python, ENDS, "b app.py:5", "c")
    stop = guest.client.pdb("process 1")
    assert place(stop) == ("stopped", 7, 1)
    os.kill(stop["process"]["pid"], signal.SIGKILL)
    stop = guest.client.wait()
    while stop["process"]["number"] == 1:
        stop = guest.client.wait()  # its end has not been seen yet
    assert place(stop) == ("stopped", 5, 2)
    stop = finish(guest.client)
    assert (stop["state"], stop["signal"]) == ("exited", "SIGKILL")


def test_q_in_a_child_ends_the_program_with_all_of_its_processes(guest: Guest, python: str) -> None:
    stop = start(guest, python, SLOW, "b app.py:4", "c")
    pids = [stop["process"]["pid"], stop["process"]["parent"]]
    assert guest.client.pdb("q")["state"] == "exited"
    assert all(_await_end(pid) for pid in pids)


def test_q_ends_what_the_program_has_started(guest: Guest, python: str) -> None:
    text = "import subprocess\nchild = subprocess.Popen(['sleep', '600'])\nx = 1\n"
    start(guest, python, text, "b 3", "c")
    pid = int(value(guest.client, "child.pid"))
    stop = guest.client.pdb("q")
    assert (stop["state"], stop["exit_code"]) == ("exited", 0)
    assert _await_end(pid)
    assert any("killed with it: 1" in notice for notice in stop["notices"])


def _await_end(pid: int) -> bool:
    """True if a process ends soon, or has ended."""
    path = Path(f"/proc/{pid}/stat")
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        try:
            if path.read_text().rpartition(")")[2].split()[0] in "ZX":
                return True
        except OSError:
            return True
    return False


def test_a_second_thread_that_holds_our_locks_at_the_fork_blocks_no_child(guest: Guest, python: str) -> None:
    text = """\
import os, threading

def busy():
    while not done:
        hot = 1

def work(n):
    twice = n * 2
    return twice

done = False
threads = [threading.Thread(target=busy) for _ in range(3)]
for thread in threads:
    thread.start()
codes = []
for n in range(40):
    pid = os.fork()
    if not pid:
        work(n)
        os._exit(0)
    codes.append(os.waitpid(pid, 0)[1])
done = True
print(codes == [0] * 40)
"""
    start(guest, python, text, "b app.py:5, threading.current_thread() is None", "b app.py:8, n == 39", "c")
    assert value(guest.client, "n") == "39"
    assert finish(guest.client)["output"] == "True\n"


def test_a_deadline_leaves_a_stopped_child_stopped_and_its_parent_waiting(guest: Guest, python: str) -> None:
    start(guest, python, MANY, "b app.py:4, n == 2", "c")
    guest.client.pdb("process 1")
    assert "waitpid" in guest.client.pdb("l")["reply"]
    stop = guest.client.pdb("c")
    assert (stop["state"], value(guest.client, "n")) == ("stopped", "2")
    assert finish(guest.client)["state"] == "exited"
    assert printed(guest.client) == "[1, 2, 3]\n[4, 5]\n"


CLOSING = """\
import os, posix, subprocess, sys, time

def work(n):
    closerange = posix.closerange
    closerange(3, 4096)
    twice = n * 2
    while not os.path.exists("go"):
        time.sleep(0.01)
    return twice

if __name__ == "__main__":
    if sys.argv[1:] == ["fork"]:
        pid = os.fork()
        if not pid:
            os._exit(work(2))
        print(os.waitpid(pid, 0)[1] >> 8)
    else:
        print(subprocess.run([sys.executable, "-c", "import app, sys; sys.exit(app.work(2))"]).returncode)
"""


@pytest.mark.parametrize("command", ["c", "n"])
@pytest.mark.parametrize("how", ["fork", "subprocess"])
def test_a_child_that_closes_the_debuggers_connection_in_c_runs_on_without_it(
    guest: Guest, python: str, how: str, command: str
) -> None:
    stop = start(guest, python, CLOSING, "b app.py:4", "b app.py:7", "c", arguments=how)
    assert place(stop) == ("stopped", 4, 2)
    told = (
        f"Process 2 (pid {stop['process']['pid']}) closed the debugger's connection; it runs on without it."
    )
    guest.client.pdb("cl 1")
    stop = guest.client.pdb("tbreak app.py:5", "c")
    assert place(stop) == ("stopped", 5, 2)
    notices: list[str] = guest.client.pdb(command, timeout_s=0.1)["notices"]
    while told not in notices:
        stop = guest.client.wait(timeout_s=0.1)
        assert stop["state"] == "running"
        notices += stop["notices"]
    assert [row[:3] for row in guest.client.pdb("processes")["reply"].splitlines()] == ["* 1"]
    guest.write("go", "")
    stop = guest.client.wait()
    assert (stop["state"], stop["output"]) == ("exited", "4\n")


def test_a_child_that_becomes_another_program_has_not_closed_the_connection(
    guest: Guest, python: str
) -> None:
    text = (
        "import os, sys\npid = os.fork()\nif not pid:\n    x = 1\n    os.execv(sys.executable, [sys.executable, 'child.py'])\n"
        "os.waitpid(pid, 0)\n"
    )
    guest.write("child.py", "import time\ntime.sleep(1)\nx = 1\n")
    stop = start(guest, python, text, "b 4", "b child.py:3", "c")
    assert (stop["frame"]["path"], place(stop)) == ("app.py", ("stopped", 4, 2))
    stop = guest.client.pdb("c")
    assert (stop["frame"]["path"], place(stop)) == ("child.py", ("stopped", 3, 3))
    assert not any("connection" in notice for notice in stop["notices"])
    assert finish(guest.client)["exit_code"] == 0
