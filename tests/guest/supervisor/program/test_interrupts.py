"""Deadlines, interrupts, cancelled calls and kills of a program that runs."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.guest.supervisor.guest import Guest, Refused
from tests.guest.supervisor.program.sample import HANGS, UNTIL_GO, place, start


def test_an_evaluation_after_the_program_went_on_is_interrupted_at_the_deadline(guest: Guest) -> None:
    stop = start(guest, HANGS, "b 10", "c", "p 'first'", "p hang()", "p 'after'", timeout_s=3)
    assert (stop["state"], place(stop)) == ("stopped", ("app.py", 10))
    assert stop["reply"].endswith("-> print(number)\n'first'\n*** KeyboardInterrupt\n'after'\n")
    assert "The command was interrupted at its deadline." in stop["notices"]
    stop = guest.client.pdb("n", "hang()", timeout_s=3)
    assert (stop["state"], stop["reply"].splitlines()[-1]) == ("stopped", "*** KeyboardInterrupt")
    assert guest.client.pdb("p number")["reply"] == "0\n"


def test_a_program_that_goes_on_after_evaluations_is_not_interrupted_at_the_deadline(guest: Guest) -> None:
    source = "import time\nx = 1\ny = 2\nwhile True:\n    time.sleep(60)\n"
    stop = start(guest, source, "n", "p x", "c", timeout_s=3)
    assert (stop["state"], stop["reason"]) == ("running", "deadline")


def test_the_commands_of_a_breakpoint_can_be_interrupted(guest: Guest) -> None:
    stop = start(guest, HANGS, "b 10", "commands 1", "p hang()", "end", "c", timeout_s=3)
    assert stop["state"] == "running"
    stop = guest.client.request("debug.wait", timeout_s=20, interrupt=True, stdin=None, eof=False)
    assert (stop["state"], place(stop)) == ("stopped", ("app.py", 10))
    assert "KeyboardInterrupt" in stop["reply"]


def test_a_deadline_leaves_the_program_running_and_an_interrupt_stops_it(guest: Guest) -> None:
    start(guest, "n = 0\nwhile True:\n    n += 1\n", "n", "n", "n")
    stop = guest.client.pdb("c", timeout_s=0.3)
    assert (stop["state"], stop["reason"], stop["frame"]) == ("running", "deadline", None)
    with pytest.raises(Refused, match="conflict: The program is running"):
        guest.client.pdb("p 1")
    assert guest.client.wait(timeout_s=0.1)["state"] == "running"
    stop = guest.client.wait(interrupt=True)
    assert (stop["state"], stop["reason"]) == ("stopped", "interrupt")
    assert guest.client.pdb("p n > 0")["reply"] == "True\n"


def test_a_sleeping_program_is_interrupted_too(guest: Guest) -> None:
    start(guest, "import time\ntime.sleep(99)\n", "n")
    assert guest.client.pdb("c", timeout_s=0.3)["state"] == "running"
    stop = guest.client.wait(interrupt=True)
    assert (stop["state"], place(stop)) == ("stopped", ("app.py", 2))


def test_what_is_stepped_through_is_interrupted_in_the_program_itself(guest: Guest) -> None:
    source = "n = 0\nwhile True:\n    n += 1\n    n -= 1\n    n += 2\nend = 1\n"
    start(guest, source, "n", "n", "n")
    for _ in range(10):
        assert guest.client.pdb("unt 6", timeout_s=0.1)["state"] == "running"
        stop = guest.client.wait(interrupt=True)
        assert (stop["state"], stop["frame"]["path"]) == ("stopped", "app.py")
        assert guest.client.pdb("p n >= 0")["reply"] == "True\n"


@pytest.mark.parametrize(
    "blocking",
    [
        "lock.acquire()",
        "queue.Queue().get()",
        "threading.Event().wait()",
        "thread.join()",
        "near.recv(1)",
        "subprocess.run(['sleep', '99'])",
        "select.select([], [], [], 99)",
        "asyncio.run(asyncio.sleep(99))",
        "re.match('(a+)+b', 'a' * 50)",
        "3 ** 10 ** 9",
    ],
)
def test_what_waits_for_ever_is_interrupted_at_its_line(guest: Guest, blocking: str) -> None:
    source = "import asyncio, queue, re, select, socket, subprocess, threading, time\nlock = threading.Lock()\nlock.acquire()\n"
    source += "thread = threading.Thread(target=time.sleep, args=(99,), daemon=True)\nthread.start()\n"
    source += "near, far = socket.socketpair()\n"
    stop = start(guest, f"{source}{blocking}\n", "b 7", "c")
    assert guest.client.pdb("c", timeout_s=0.3)["state"] == "running"
    stop = guest.client.wait(interrupt=True)
    assert (stop["state"], stop["reason"]) == ("stopped", "interrupt")
    assert "app.py(7)" in guest.client.pdb("w")["reply"]


def test_a_hung_evaluation_is_interrupted_at_the_deadline(guest: Guest) -> None:
    stop = start(guest, "def hang():\n    while True: pass\nx = 1\ny = 2\n", "n", "n")
    stop = guest.client.pdb("p hang()", timeout_s=0.3)
    assert stop["state"] == "stopped"
    assert "KeyboardInterrupt" in stop["reply"]
    assert "The command was interrupted at its deadline." in stop["notices"]
    assert guest.client.pdb("p x")["reply"] == "1\n"


@pytest.mark.parametrize(
    "deaf",
    [
        "sum(range(10**12))",
        "__import__('hashlib').pbkdf2_hmac('sha1', b'', b'', 10**9)",
    ],
)
def test_c_code_that_does_not_listen_is_told_with_its_line(guest: Guest, deaf: str) -> None:
    assert start(guest, f"x = 1\n{deaf}\n", "c", timeout_s=2)["state"] == "running"
    stop = guest.client.wait(interrupt=True)
    assert stop["state"] == "running"
    assert 'app.py", line 2' in stop["native_stack"] and "debugger" not in stop["native_stack"]
    assert any("could not be stopped" in notice for notice in stop["notices"])
    stop = guest.client.request("debug.kill")
    assert (stop["state"], stop["signal"]) == ("exited", "SIGKILL")


@pytest.mark.parametrize("word", ["q", "quit", "kill"])
def test_q_kills_a_program_that_can_not_be_stopped(guest: Guest, word: str) -> None:
    start(guest, "x = 1\nsum(range(10**12))\n", "b 2", "c")
    assert guest.client.pdb("c", timeout_s=2)["state"] == "running"
    stop = guest.client.wait(interrupt=True)
    assert (stop["state"], "`q` kills it" in stop["notices"][0]) == ("running", True)
    stop = guest.client.pdb(word)
    assert (stop["state"], stop["signal"], stop["run"]) == ("exited", "SIGKILL", 1)
    assert guest.client.pdb("c")["breakpoint"] == 1


def test_q_kills_a_program_that_another_call_waits_for(guest: Guest) -> None:
    start(guest, "while True:\n    pass\n", "p 1")
    number = running(guest)
    assert guest.connect().pdb("q")["state"] == "exited"
    assert guest.client.result(number)["signal"] == "SIGKILL"


def test_an_evaluation_in_c_goes_on_and_its_reply_stays_its_own(guest: Guest) -> None:
    start(guest, "x = 1\n", "p 1")
    stop = guest.client.pdb("p sum(range(10**8)) and 'late'", timeout_s=0.2)
    assert (stop["state"], stop["reply"]) == ("running", "")
    assert 'app.py", line 1' in stop["native_stack"]
    assert guest.client.wait()["state"] == "stopped"
    assert guest.client.pdb("p 7")["reply"] == "7\n"


def running(guest: Guest, *lines: str) -> int:
    """Start a command that has the program run; gives the number of the call once it does."""
    number = guest.client.start("debug.command", lines=list(lines) or ["c"], timeout_s=60)
    while guest.client.request("debug.state")["state"] != "running":
        pass
    return number


def wait_for(made: Path) -> None:
    """Wait until the program has made a file: what `running` sees is true before the first line runs."""
    while not made.exists():
        time.sleep(0.01)


def test_a_wait_beside_a_cancelled_command_does_not_take_its_stop(guest: Guest) -> None:
    start(guest, "while True:\n    print(end='')\n", "n")
    for _ in range(20):
        number = running(guest)
        waiting = guest.client.start("debug.wait", timeout_s=60, interrupt=False)
        guest.client.cancel(number)
        stop = guest.client.result(number)
        assert stop["state"] == "stopped", stop
        assert guest.client.result(waiting)["state"] == "stopped"
        assert guest.client.wait(interrupt=True)["state"] == "stopped"
        assert guest.client.pdb("p 'mine'")["reply"] == "'mine'\n"


def test_what_a_cancelled_call_would_have_told_is_told_by_the_next(guest: Guest) -> None:
    start(guest, "print('out', flush=True)\nopen('printed', 'w').close()\nwhile True:\n    pass\n", "p 1")
    number = running(guest)
    wait_for(guest.workdir / "printed")
    guest.client.cancel(number)
    assert guest.client.result(number)["output"] == ""
    stop = guest.client.wait()
    assert (stop["state"], stop["output"]) == ("stopped", "out\n")
    assert "The call was cancelled." in stop["notices"]


def test_cancelling_a_command_interrupts_the_program(guest: Guest) -> None:
    start(guest, "open('begun', 'w').close()\nwhile True:\n    pass\n", "p 1")
    number = running(guest)
    wait_for(guest.workdir / "begun")
    guest.client.cancel(number)
    stop = guest.client.result(number)
    assert (stop["state"], stop["reason"]) == ("stopped", "interrupt")


def test_wait_says_how_things_are_when_nothing_is_to_be_waited_for(guest: Guest) -> None:
    assert guest.client.wait()["state"] == "not_started"
    stop = start(guest, "x = input()\n", "p 1")
    assert guest.client.wait(interrupt=True)["stop"] == stop["stop"]
    assert guest.client.pdb("c")["state"] == "waiting_for_input"
    stop = guest.client.wait(interrupt=True)
    assert (stop["state"], stop["reason"], stop["frame"]["line"]) == ("stopped", "interrupt", 1)
    stop = guest.client.pdb("c")
    assert stop["state"] == "waiting_for_input"
    assert guest.client.wait(stdin="1\n")["state"] == "exited"
    assert guest.client.wait()["exit_code"] == 0


def test_a_stop_that_came_after_the_deadline_is_told(guest: Guest) -> None:
    start(guest, UNTIL_GO + "x = 1\n", "n", "n")
    assert guest.client.pdb("n", timeout_s=0.2)["state"] == "running"
    guest.write("go", "")
    while guest.client.request("debug.state")["state"] == "running":
        pass
    stop = guest.client.pdb("p 5")
    assert stop["reply"] == "5\n"
    assert stop["notices"] == ["Since the last answer the program had stopped at app.py:6."]


def test_killing_while_a_command_waits_answers_both(guest: Guest) -> None:
    start(guest, "while True:\n    pass\n", "n")
    number = guest.client.start("debug.command", lines=["c"], timeout_s=60)
    while guest.client.request("debug.state")["state"] != "running":
        pass
    killed = guest.client.request("debug.kill")
    stop = guest.client.result(number)
    assert (killed["state"], stop["state"], stop["signal"]) == ("exited", "exited", "SIGKILL")


def test_an_evaluation_in_a_thread_is_interrupted_while_the_main_one_waits_at_a_breakpoint(
    guest: Guest,
) -> None:
    source = """\
import threading
waiting = threading.Event()
def hang():
    waiting.set()
    while True:
        pass
def work(name):
    return name
thread = threading.Thread(target=work, args=("thread",))
thread.start()
waiting.wait()
work("main")
"""
    stop = start(guest, source, "b 8", "c")
    assert not stop["thread"]["main"]
    stop = guest.client.pdb("p hang()", timeout_s=2)
    assert (stop["state"], stop["thread"]["main"]) == ("stopped", False)
    assert stop["notices"] == ["The command was interrupted at its deadline."]
    assert guest.client.pdb("p name")["reply"] == "'thread'\n"
    assert guest.client.pdb("c")["thread"]["main"]
    assert guest.client.pdb("p name")["reply"] == "'main'\n"
