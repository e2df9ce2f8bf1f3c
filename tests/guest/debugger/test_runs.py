"""Programs of all kinds, from their first line to their end."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from sandbox.guest.word import Seen

LOOP = """
    total = 0
    for i in range(6):
        total += i
    print(total)
"""


def test_script_stops_at_its_first_line_and_ends_with_its_code(start: Any) -> None:
    program = start(LOOP)
    assert program.first["reason"] == "entry"
    assert program.first["frame"] == {"path": "app.py", "line": 1, "function": "<module>"}
    end = program.do("c")
    assert (end["event"], end["exit_code"], end["exception"]) == ("end", 0, None)
    assert program.finish() == 0
    assert program.text == "15\n"


def test_condition_is_kept_and_stops_where_it_holds(start: Any) -> None:
    program = start(LOOP, "b app.py:3, i == 4")
    assert program.last["breakpoints"][0]["condition"] == "i == 4"
    stop = program.do("c")
    assert (stop["reason"], stop["breakpoint"], stop["frame"]["line"]) == ("breakpoint", 1, 3)
    assert program.do("p i, total")["text"] == "(4, 6)\n"


def test_changed_locals_are_told(start: Any) -> None:
    program = start(
        "def f():\n    a = 1\n    b = [1]\n    a = 2\n    b.append(3)\n    del a\n    return b\nf()\n",
        "b f",
        "c",
    )
    told = []
    for _ in range(5):
        told.append([(c["name"], c["kind"], c["value"], c["old"]) for c in program.do("n")["changed"]])
    assert told == [
        [("a", "new", "1", None)],
        [("b", "new", "[1]", None)],
        [("a", "changed", "2", "1")],
        [("b", "mutated", "[1, 3]", "[1]")],
        [("a", "gone", None, "2")],
    ]


def test_exit_codes(start: Any) -> None:
    program = start("import sys; sys.exit(3)\n")
    end = program.do("c")
    assert (end["event"], end["exit_code"], end["exception"]["type"]) == ("end", 3, "SystemExit")
    assert program.finish() == 3
    program = start("import sys; sys.exit('no way')\n")
    assert program.do("c")["exit_code"] == 1
    assert program.finish() == 1
    assert program.text == "no way\n"
    program = start("import os; os._exit(4)\n")
    assert program.do("c")["event"] == "eof"
    assert program.finish() == 4


def test_uncaught_exception_stops_where_it_was_raised(start: Any) -> None:
    program = start(
        """
        def divide(a, b):
            return a / b

        try:
            {}["key"]
        except KeyError as error:
            raise ValueError("no") from error
        """
    )
    stop = program.do("c")
    assert (stop["reason"], stop["frame"]["line"]) == ("post_mortem", 7)
    assert stop["exception"] == {
        "type": "ValueError",
        "message": "no",
        "chain": [{"type": "KeyError", "message": "'key'", "relation": "cause"}],
    }
    end = program.do("c")
    assert (end["exit_code"], end["exception"]["type"]) == (1, "ValueError")
    assert program.finish() == 1
    assert (
        program.text.endswith("ValueError: no\n")
        and "launch.py" not in program.text
        and "_pdbox" not in program.text
    )


def test_post_mortem_stops_in_the_repository_not_in_the_library(start: Any) -> None:
    stop = start("import json\ndef load(text):\n    return json.loads(text)\nload('[')\n").do("c")
    assert stop["frame"]["function"] == "load"


def test_syntax_error_ends_as_in_python(start: Any) -> None:
    program = start("x = (\n")
    assert (program.first["event"], program.first["exit_code"]) == ("end", 1)
    assert program.finish() == 1
    assert "SyntaxError" in program.text and "targets.py" not in program.text


def test_program_text_is_no_prompt_and_arrives_whole(start: Any) -> None:
    program = start(
        "import sys\nsys.stdout.write('(Pdb) ' + '€' * 3000 + '\\n(Pdb) ')\nsys.stdout.flush()\nx = 1\n",
        "b 4",
        "c",
    )
    assert program.last["reason"] == "breakpoint"
    assert program.do("c")["event"] == "end"
    program.finish()
    assert program.text == "(Pdb) " + "€" * 3000 + "\n(Pdb) "


def test_reading_stdin_is_told_and_can_be_fed(start: Any) -> None:
    program = start("name = input('name? ')\nprint('hello', name)\nprint(repr(input()))\n")
    program.send("c")
    assert program.next("input", "prompt", "end")["event"] == "input"
    program.write("pdb\n")
    assert program.next("input", "prompt", "end")["event"] == "input"
    program.write("p 1\n")
    assert program.answer()["event"] == "end"
    program.finish()
    assert program.text == "name? hello pdb\n'p 1'\n"


def test_stdin_that_is_closed_raises_end_of_file(start: Any) -> None:
    program = start("import sys\nprint(repr(sys.stdin.read()))\n")
    program.close_stdin()
    program.do("c")
    program.finish()
    assert program.text == "''\n"


@pytest.mark.parametrize(
    "code",
    [
        "while True:\n    pass\n",
        "while True:\n    try:\n        1 / 0\n    except BaseException:\n        pass\n",
        "import time\ntime.sleep(100)\n",
        "import threading\nlock = threading.Lock()\nlock.acquire()\nlock.acquire()\n",
        "import queue\nqueue.Queue().get()\n",
        "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import time; time.sleep(100)'])\n",
        "import asyncio\nasyncio.run(asyncio.sleep(100))\n",
    ],
    ids=["loop", "except", "sleep", "lock", "queue", "subprocess", "asyncio"],
)
def test_running_program_can_be_broken_into(start: Any, code: str) -> None:
    program = start("print('on')\n" + code)
    program.send("c")
    while "on\n" not in program.text:
        pass
    program.interrupt()
    stop = program.answer()
    assert stop["reason"] == "interrupt"
    assert (stop["project_frame"] or stop["frame"])["path"] == "app.py"
    assert program.do("p 1 + 1")["text"] == "2\n"
    program.send("c")
    program.next("resumed")
    program.interrupt()
    assert program.answer()["reason"] == "interrupt"


def test_hung_evaluation_is_interrupted_alone(start: Any) -> None:
    program = start("def f():\n    print('in', flush=True)\n    while True:\n        pass\nx = 1\n", "n")
    program.send("p f()")
    while "in\n" not in program.text:
        pass
    program.interrupt()
    answer = program.answer()
    assert (answer["text"], answer["stopped"]) == ("*** KeyboardInterrupt\n", False)
    assert program.do("n")["frame"]["line"] == 6 or program.do("c")["event"] == "end"


def test_interrupt_at_the_prompt_does_nothing(start: Any) -> None:
    program = start(LOOP)
    program.interrupt()
    assert program.do("p 2")["text"] == "2\n"


def test_quit_ends_at_once(start: Any) -> None:
    program = start("import atexit\natexit.register(print, 'late')\nx = 1\n", "n", "n")
    assert program.do("q")["event"] == "quit"
    assert program.finish() == 0
    assert program.text == ""


def test_run_asks_for_a_restart_with_arguments(start: Any) -> None:
    assert start(LOOP).do("run a 'b c'")["args"] == ["a", "b c"]
    assert start(LOOP).do("restart")["args"] is None


def test_breakpoint_and_set_trace_stop_at_their_own_line(start: Any) -> None:
    program = start("import pdb\nx = 1\nbreakpoint()\npdb.set_trace()\nx = 2\n")
    assert [program.do("c")["frame"]["line"] for _ in range(2)] == [3, 4]
    assert program.do("n")["frame"]["line"] == 5
    assert program.do("c")["event"] == "end"


def test_commands_of_set_trace_run_at_its_stop(start: Any) -> None:
    program = start("import pdb\nx = 1\npdb.set_trace(commands=['p x + 1', 'n'])\nx = 3\nx = 4\n")
    stop = program.do("c")
    assert stop["frame"]["line"] == 4 and "2" in stop["text"].splitlines()
    assert program.do("n")["text"].splitlines()[-1] == "-> x = 4"


def test_r_in_a_frame_further_out_stops_at_its_return(start: Any) -> None:
    program = start(
        """
        def inner():
            return 1

        def middle():
            return inner() + 1

        def outer():
            return middle() + 1

        outer()
        """,
        "b inner",
        "c",
    )
    assert program.do("u")["frame"]["function"] == "middle"
    stop = program.do("r")
    assert (stop["reason"], stop["frame"]["function"], stop["return_value"]) == ("return", "middle", "2")


def test_post_mortem_of_the_program_lands_here(start: Any) -> None:
    program = start(
        "import pdb\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    pdb.post_mortem()\nprint('on')\n"
    )
    assert program.do("c")["reason"] == "post_mortem"
    assert program.do("c")["event"] == "end"


def test_a_pdb_of_the_programs_own_speaks_here(start: Any) -> None:
    program = start("import pdb\np = pdb.Pdb()\ndef f():\n    return 7\np.runcall(f)\nprint('end')\n")
    stop = program.do("c")
    assert (stop["stopped"], stop["frame"]["function"]) == (True, "f")
    assert program.do("c")["event"] == "end"
    assert program.finish() == 0


def test_a_pdb_of_the_programs_own_that_monitors_works_beside_ours(
    start: Any, version: tuple[int, int]
) -> None:
    if version < (3, 14):
        pytest.skip("pdb has one backend")
    text = "import pdb\npdb.Pdb(backend='monitoring').set_trace()\nx = 1\ny = 2\ndef f():\n    z = 3\nf()\n"
    program = start(text, "b 6")
    assert program.do("c")["frame"]["line"] == 2
    assert [program.do(command)["frame"]["line"] for command in ("n", "n", "c")] == [3, 4, 6]
    assert (
        program.do("c")["frame"]["line"] == 6
    )  # `bdb` has one table: theirs stops at breakpoints, and so does ours
    assert program.do("c")["event"] == "end"
    assert (program.finish(), program.text) == (0, "")


def test_forked_children_run_undisturbed(start: Any) -> None:
    program = start(
        """
        import multiprocessing, os

        def work(n):
            breakpoint()
            return n * 2

        if __name__ == "__main__":
            with multiprocessing.get_context("fork").Pool(2) as pool:
                print(pool.map(work, [1, 2]))
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                print(pool.map(len, ["abc"]))
            done = 1
        """,
        "b 5",
        "b 12",
    )
    stop = program.do("c")
    assert stop["frame"]["line"] == 12
    program.do("c")
    assert program.finish() == 0
    assert program.text == "[2, 4]\n[3]\n"


def test_breakpoints_stop_in_every_thread(start: Any) -> None:
    program = start(
        """
        import threading
        def work(n):
            square = n * n
            return square
        threads = [threading.Thread(target=work, args=(n,), name="worker%d" % n) for n in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print("joined")
        """,
        "b 4",
    )
    names = set()
    for _ in range(3):
        stop = program.do("c")
        names.add(stop["thread"]["name"])
        assert not stop["thread"]["main"]
        assert program.do("p square == n * n")["text"] == "True\n"
    assert names == {"worker0", "worker1", "worker2"}
    assert program.do("c")["event"] == "end"
    assert program.finish() == 0


def test_step_is_answered_by_its_own_thread(start: Any) -> None:
    program = start(
        """
        import threading
        def work():
            a = 1
            b = 2
            c = 3
        threads = [threading.Thread(target=work, name="worker%d" % n) for n in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        """,
        "b 3",
    )
    first = program.do("c")
    lines = [program.do("n") for _ in range(2)]
    assert [(stop["thread"]["name"], stop["frame"]["line"]) for stop in lines] == [
        (first["thread"]["name"], 4),
        (first["thread"]["name"], 5),
    ]


def test_crash_dumps_the_python_stack(start: Any) -> None:
    program = start("import ctypes\ndef f():\n    ctypes.string_at(0)\nf()\n")
    assert program.do("c")["event"] == "eof"
    assert program.finish() == -signal.SIGSEGV
    import os

    assert b"in f" in os.read(program.dump_fd, 65536)


def test_module_and_code_run_as_in_python(start: Any, tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text("")
    (tmp_path / "pkg" / "__main__.py").write_text("import sys\nprint(__name__, __package__, sys.argv[1:])\n")
    program = start("", target={"mode": "module", "target": "pkg", "args": ["-x"]})
    assert program.first["frame"] == {"path": "pkg/__main__.py", "line": 1, "function": "<module>"}
    program.do("c")
    program.finish()
    assert program.text == "__main__ pkg ['-x']\n"
    program = start("", target={"mode": "code", "target": "import sys\nprint(sys.argv)", "args": ["a"]})
    assert program.first["source"]["lines"][0] == "import sys"
    program.do("c")
    program.finish()
    assert program.text == "['-c', 'a']\n"


def test_unknown_module_ends_as_in_python(start: Any) -> None:
    program = start("", target={"mode": "module", "target": "nowhere"})
    assert (program.first["event"], program.first["exit_code"]) == ("end", 1)
    assert program.finish() == 1
    assert program.text.endswith(": No module named nowhere\n")


def test_a_quiet_step_leaves_word_and_sends_nothing_but_its_stop(start: Any, tmp_path: Path) -> None:
    word = Seen(str(tmp_path))
    program = start(LOOP, word=word.fd)
    program.events.clear()
    number = program.send("n", quiet=True)
    assert program.answer()["frame"]["line"] == 2
    assert (program.events, word.look()) == ([], (number, True))
    program.send("p 1;;n", quiet=True)  # what is said before it goes on is told
    assert program.answer()["frame"]["line"] == 3
    assert [(event["event"], event["text"]) for event in program.events] == [("resumed", "1\n")]
    assert word.look() == (number, True)
    number = program.send("c", quiet=True)
    assert program.answer()["event"] == "end"
    assert word.look() == (number, False)
    word.close()


def test_a_program_that_cuts_the_word_off_harms_itself_alone(start: Any, tmp_path: Path) -> None:
    word = Seen(str(tmp_path))
    program = start(LOOP, word=word.fd)
    os.ftruncate(word.fd, 0)
    assert word.look() == (0, False)
    program.send("n", quiet=True)
    assert program.answer()["event"] == "eof"
    assert program.finish() == -signal.SIGBUS
    word.close()


def test_an_interrupt_at_any_moment_of_going_on_never_ends_up_in_the_program(start: Any) -> None:
    program = start(
        """
        import os, signal, sys

        def profile(frame, event, arg):
            global moment
            if moment is None and frame.f_code.co_name == "onecmd":
                moment = 0
            elif moment is not None:
                moment += 1
                if moment == wanted:
                    os.kill(os.getpid(), signal.SIGRTMIN + 6)

        moment = wanted = 0
        while moment >= wanted:
            wanted, moment = wanted + 1, None
            sys.setprofile(profile)
            breakpoint()
            sys.setprofile(None)
        print(wanted)
        """
    )
    stop = program.do("c")
    reasons = set()
    while stop["event"] == "prompt":
        reasons.add(stop.get("reason"))
        stop = program.do("c")
    assert (stop["event"], stop["exit_code"], stop["exception"]) == ("end", 0, None)
    program.finish()
    assert int(program.text) > 50
    assert reasons >= {"set_trace", "interrupt"}


def test_the_end_of_the_program_is_not_taken_for_an_end_of_its_tracing(start: Any) -> None:
    program = start("x = 1\n1 / 0\n", "b 1")
    stop = program.do("c")
    assert stop["reason"] == "post_mortem"
    assert "notice" not in {event["event"] for event in program.events}
