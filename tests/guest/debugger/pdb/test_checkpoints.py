"""`checkpoint` and `restart N`: the program goes back to a stop, with the values that it had there."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

COUNT = """
    import random
    random.seed(7)
    log = open("log.txt", "w+")
    found = []
    for i in range(5):
        found.append(random.random())
        log.write("line %d\\n" % i)
        log.flush()
        print("round", i, flush=True)
    print("sum", sum(found))
    raise SystemExit(3)
"""


def place(answer: dict[str, Any]) -> tuple[str, int]:
    return answer["frame"]["function"], answer["frame"]["line"]


def test_the_program_goes_back_with_the_values_of_then(start: Any, tmp_path: Path) -> None:
    program = start(COUNT, "b 8", "c", "c")
    assert program.do("checkpoint")["text"] == "Checkpoint 1: app.py:8 in <module>\n"
    values = program.do("p i, found")["text"]
    program.do("c")
    assert program.do("p len(found)")["text"] == "3\n"
    back = program.do("restart 1")
    assert (back["event"], back["reason"], place(back), back["stopped"]) == (
        "prompt",
        "checkpoint",
        ("<module>", 8),
        True,
    )
    assert back["text"] == (
        "Back at checkpoint 1. What is outside of the process (files, sockets) is not restored.\n"
    )
    assert program.do("p i, found")["text"] == values
    program.do("c")
    third = program.do("p found[2]")["text"]
    program.do("restart 1")
    program.do("c")
    assert program.do("p found[2]")["text"] == third  # the same random number each time
    program.do("cl 1")
    assert program.do("c")["event"] == "end"
    assert program.finish() == 3
    # The offset of an open file goes back with the program.
    assert (tmp_path / "log.txt").read_text() == "".join(f"line {i}\n" for i in range(5))


def test_breakpoints_and_aliases_are_those_of_now(start: Any) -> None:
    program = start(COUNT, "b 7", "c", "checkpoint", "cl 1", "b 10", "alias pi p i")
    back = program.do("restart 1", "pi", "c")
    assert place(back) == ("<module>", 10)
    assert program.do("pi")["text"] == "4\n"
    assert program.do("b 11")["text"].startswith("Breakpoint 3 at")


def test_going_back_forgets_later_checkpoints_and_lists_the_others(start: Any) -> None:
    program = start(COUNT, "b 7", "c", "checkpoint", "c", "checkpoint", "c", "checkpoint")
    assert program.do("info checkpoints")["text"] == (
        "1: app.py:7 in <module>\n2: app.py:7 in <module>\n3: app.py:7 in <module>\n"
    )
    program.do("delete checkpoint 1")
    assert program.do("delete checkpoint 1")["text"] == "*** No checkpoint 1\n"
    program.do("restart 2")
    assert program.do("p i")["text"] == "1\n"
    assert program.do("info checkpoints")["text"] == "2: app.py:7 in <module>\n"
    assert program.do("checkpoint")["text"] == "Checkpoint 4: app.py:7 in <module>\n"
    # As pdb has it: from the beginning, with an argument.
    assert program.do("restart 1")["event"] == "restart"


def test_only_so_many_can_be_made(start: Any) -> None:
    program = start(COUNT, "b 7", "c", *["checkpoint"] * 8)
    assert program.do("checkpoint")["text"] == (
        "*** Unable to make a checkpoint: a run has 8 at most; go back to one before\n"
    )
    program.do("restart 8")
    assert program.do("p i")["text"] == "0\n"


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        (
            "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()",
            "the process has 2 threads, and a fork one",
        ),
        (
            "import subprocess\nchild = subprocess.Popen(['sleep', '60'])",
            "the program has child processes, which a fork loses",
        ),
    ],
)
def test_it_is_refused_with_the_reason(start: Any, before: str, reason: str) -> None:
    program = start(f"{before}\nprint('here')\n", "b 3", "c")
    assert program.do("checkpoint")["text"] == f"*** Unable to make a checkpoint: {reason}\n"


def test_an_interrupt_reaches_the_process_that_goes_on(start: Any) -> None:
    program = start("n = 0\nwhile True:\n    n += 1\n", "n", "checkpoint")
    program.send("c")
    program.next("resumed")
    program.interrupt()
    stop = program.answer()
    assert (stop["reason"], stop["frame"]["function"]) == ("interrupt", "<module>")
    program.do("restart 1")
    assert program.do("p n")["text"] == "0\n"


def test_it_ends_as_the_process_that_goes_on(start: Any) -> None:
    program = start("import os\nprint(1)\nos.kill(os.getpid(), 11)\n", "n", "checkpoint")
    program.send("c")
    assert program.finish() == -signal.SIGSEGV


def test_forks_of_the_program_and_the_status_of_children_are_as_before(start: Any) -> None:
    text = """
        import os, signal
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        print("here")
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        pid = os.fork()
        if not pid:
            os._exit(7)
        print(os.WEXITSTATUS(os.waitpid(pid, 0)[1]))
    """
    program = start(text, "b 3", "c", "checkpoint")
    assert program.do("p signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN")["text"] == "True\n"
    program.do("restart 1")
    assert program.do("p signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN")["text"] == "True\n"
    assert program.do("cl 1", "c")["event"] == "end"
    program.finish()
    assert program.text.endswith("here\n7\n")


def test_a_variable_of_that_name_is_no_command(start: Any) -> None:
    program = start("checkpoint = 3\nprint(checkpoint)\n", "n")
    assert program.do("checkpoint += 1", "p checkpoint")["text"] == "4\n"


def test_the_processes_that_wait_end_with_the_program(start: Any) -> None:
    program = start(COUNT, "b 7", "c", "checkpoint", "checkpoint")
    pid = int(program.do("p __import__('os').getpid()")["text"])
    parent = int(program.do("p __import__('os').getppid()")["text"])
    assert parent != program.process.pid == os.getsid(parent)
    program.do("cl 1")
    assert program.do("c")["event"] == "end"
    assert program.finish() == 3
    for each in (pid, parent):
        with pytest.raises(ProcessLookupError):
            os.kill(each, 0)
