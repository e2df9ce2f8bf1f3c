"""Programs of all kinds, from their first line to their end."""

from __future__ import annotations

import os
import re
import signal
from typing import Any

import pytest

from sandbox.guest.protocol.signals import INTERRUPT, UPDATE

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
    for leaves in ("sys.exit()", "sys.exit(0)", "sys.exit(False)"):
        end = start(f"import sys; {leaves}\n").do("c")
        assert (end["event"], end["exit_code"], end["exception"]) == ("end", 0, None)
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
    assert (stop["exception"]["type"], stop["exception"]["message"]) == ("ValueError", "no")
    (cause,) = stop["exception"]["chain"]
    assert (cause["type"], cause["message"], cause["raised_at"]["line"]) == ("KeyError", "'key'", 5)
    end = program.do("c")
    assert (end["exit_code"], end["exception"]["type"]) == (1, "ValueError")
    assert program.finish() == 1
    assert "Traceback" not in program.text and "_pdbox" not in program.text  # the stop has told it


def test_post_mortem_stops_in_the_repository_not_in_the_library(start: Any) -> None:
    stop = start("import json\ndef load(text):\n    return json.loads(text)\nload('[')\n").do("c")
    assert stop["frame"]["function"] == "load"


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
        "import signal, time\nsignal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())\ntime.sleep(100)\n",
        "import signal, time\nfor n in signal.valid_signals() - {9, 19}:\n    signal.signal(signalnum=n, handler=print)\ntime.sleep(100)\n",
        "import signal\nsignal.sigwait(signal.valid_signals())\n",
    ],
    ids=["loop", "except", "sleep", "lock", "queue", "subprocess", "asyncio", "masked", "handled", "sigwait"],
)
def test_running_program_can_be_broken_into(start: Any, code: str) -> None:
    program = start("print('on')\n" + code)
    program.send("c")
    program.next("resumed")
    program.wait_for("on\n")
    stop = program.break_in()
    assert stop["reason"] == "interrupt"
    assert (stop["project_frame"] or stop["frame"])["path"] == "app.py"
    assert program.do("p 1 + 1")["text"] == "2\n"
    program.send("c")
    program.next("resumed")
    assert program.break_in()["reason"] == "interrupt"


def test_hung_evaluation_is_interrupted_alone(start: Any) -> None:
    program = start("def f():\n    print('in', flush=True)\n    while True:\n        pass\nx = 1\n", "n")
    program.send("p f()")
    program.wait_for("in\n")
    program.interrupt()
    answer = program.answer()
    assert (answer["text"], answer["stopped"]) == ("*** KeyboardInterrupt\n", False)
    assert program.do("n")["frame"]["line"] == 6 or program.do("c")["event"] == "end"


def test_interrupt_at_the_prompt_does_nothing(start: Any) -> None:
    program = start(LOOP)
    program.interrupt()
    assert program.do("p 2")["text"] == "2\n"


def test_an_interrupt_that_is_sent_again_while_it_has_an_effect_stops_the_program_once(start: Any) -> None:
    program = start(
        """
        import os, sys

        def profile(frame, event, arg):
            if frame.f_code.co_name == "outside":  # of the debugger, which is about to stop
                sys.setprofile(None)
                os.kill(os.getpid(), NUMBER)

        print("on", flush=True)
        sys.setprofile(profile)
        while True:
            n = 1
        """.replace("NUMBER", str(int(INTERRUPT)))
    )
    program.send("c")
    program.next("resumed")
    program.wait_for("on\n")
    assert program.break_in()["reason"] == "interrupt"
    program.settle()
    assert [program.do("n")["reason"] for _ in range(3)] == ["step"] * 3
    program.send("c")
    program.next("resumed")
    assert program.break_in()["reason"] == "interrupt"


def test_quit_ends_at_once(start: Any) -> None:
    program = start("import atexit\natexit.register(print, 'late')\nx = 1\n", "n", "n")
    assert program.do("q")["event"] == "quit"
    assert program.finish() == 0
    assert program.text == ""


def test_run_asks_for_a_restart_with_arguments(start: Any) -> None:
    assert start(LOOP).do("run a 'b c'")["args"] == ["a", "b c"]
    assert start(LOOP).do("restart")["args"] is None


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


def test_crash_dumps_the_python_stack(start: Any) -> None:
    program = start("import ctypes\ndef f():\n    ctypes.string_at(0)\nf()\n")
    assert program.do("c")["event"] == "eof"
    assert program.finish() == -signal.SIGSEGV
    assert b"in f" in os.read(program.dump_fd, 65536)


@pytest.mark.parametrize(
    ("number", "expected"), [(INTERRUPT, {"set_trace", "interrupt"}), (UPDATE, {"set_trace"})]
)
def test_a_signal_at_any_moment_of_going_on_never_ends_up_in_the_program(
    start: Any, number: int, expected: set[str]
) -> None:
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
                    os.kill(os.getpid(), NUMBER)

        moment = wanted = 0
        while moment >= wanted:
            wanted, moment = wanted + 1, None
            sys.setprofile(profile)
            breakpoint()
            sys.setprofile(None)
        print(wanted)
        """.replace("NUMBER", str(number))
    )
    stop = program.do("c")
    reasons = set()
    while stop["event"] == "prompt":
        reasons.add(stop.get("reason"))
        stop = program.do("c")
    assert (stop["event"], stop["exit_code"], stop["exception"]) == ("end", 0, None)
    program.finish()
    assert int(program.text) > 50
    assert reasons - {None} == expected


def test_the_end_of_the_program_is_not_taken_for_an_end_of_its_tracing(start: Any) -> None:
    program = start("x = 1\n1 / 0\n", "b 1")
    stop = program.do("c")
    assert stop["reason"] == "post_mortem"
    assert program.notices == []


def test_what_the_program_replaces_in_the_standard_library_is_not_called_by_us(start: Any) -> None:
    text = """
        import builtins, json, os, select, threading, time
        called = []

        def replaced(*args, **kwargs):
            called.append(args)
            raise OSError("not this time")

        def work(n):
            m = n + 1
            return m

        for module, names in {
            builtins: "print open input",
            json: "dumps loads",
            os: "stat lstat fstat getcwd read write getpid",
            os.path: "realpath abspath normcase isfile exists isabs join",
            select: "select",
            threading: "current_thread main_thread Lock Condition",
            time: "time monotonic perf_counter sleep",
        }.items():
            for name in names.split():
                setattr(module, name, replaced)
        work(1)
        end = 1
        """
    program = start(text, "b work", "c")
    assert (program.last["reason"], program.last["frame"]["function"]) == ("breakpoint", "work")
    stop = program.do("n")
    assert [(change["name"], change["value"]) for change in stop["changed"]] == [("m", "2")]
    assert "-> return m\n" in stop["text"]
    assert "work(1)\n" in program.do("w")["text"]
    assert "No breakpoint 9" not in program.do("b app.py:10")["text"]
    assert program.do("p n, nothing")["text"].startswith("*** NameError")
    assert "return m" in program.do("l .")["text"]
    assert program.do("p called")["text"] == "[]\n"
    assert program.do("n", "n")["frame"]["function"] == "<module>"
    program.do("q")


def test_a_failure_of_the_debugger_is_told_and_does_not_reach_the_program(start: Any) -> None:
    text = """
        import pdb, sys

        def work(n):
            return n

        kept = pdb.Pdb.interaction
        pdb.Pdb.interaction = None
        work(1)
        pdb.Pdb.interaction = kept
        end = work(2)
        """
    program = start(text, "b work", "c")
    assert program.do("p n")["text"] == "2\n"
    told = program.notices
    assert len(told) == 1 and told[0].startswith("The debugger failed at a stop: TypeError")


def test_debug_stays_out_of_the_debugger_whatever_the_locals_are(start: Any) -> None:
    text = """
        import datetime

        def work(n, day=datetime.date(2024, 1, 2)):
            double = lambda x: x * 2
            return double(n)

        work(3)
        """
    program = start(text, "b 5", "c")
    said = [program.do(line)["text"] for line in ("debug work(4)", "s", "s", "n")]
    assert [re.findall(r"^> .*?([<\w.]+>?\(\d+\).*)", text, re.M) for text in said] == [
        ["<string>(1)<module>()"],
        ["app.py(3)work()"],
        ["app.py(4)work()"],
        ["app.py(5)work()"],
    ]
    assert program.do("p n")["text"] == "4\n"
    assert program.do("cl")["prompt"] == "Clear all breaks? "
    assert program.do("n")["prompt"] == "((Pdb)) "
    assert program.notices == []
    back = program.do("c")
    assert (back["prompt"], program.do("p n")["text"]) == ("(Pdb) ", "3\n")


def test_a_block_of_several_lines_needs_no_empty_line_at_its_end(start: Any) -> None:
    program = start("x = 1\ny = 2\n", "interact")
    answer = program.do("def double(n):", "    return n * 2")
    assert (answer["text"], answer["prompt"]) == ("", ">>> ")
    assert program.do("double(4)")["text"] == "8\n"
    assert program.do("for n in range(2):")["prompt"] == "... "
    assert program.do("    print(n)")["prompt"] == "... "
    assert program.do("")["text"] == "0\n1\n"
    assert program.do("double(", "2")["prompt"] == "... "
    assert program.do(")")["text"] == "4\n"


def test_statements_of_several_lines_work_where_they_are_given_at_once(start: Any) -> None:
    program = start(
        """
        def work(n):
            return n

        work(5)
        """,
        "b 2",
        "c",
    )
    lines = [
        "class Box:",
        "    size = 3",
        "",
        "    def grow(self):",
        "        return self.size",
        "",
        "Box().grow()",
    ]
    assert program.do(*lines)["text"] == "3\n"
    assert program.do("text = '''a", "", "  b'''", "text")["text"] == "'a\\n\\n  b'\n"
    lines = ["for x in (1, 2):", "    print(n)", "    print(x)"]
    assert program.do(*lines)["text"] == "5\n1\n5\n2\n"
    assert program.do("if n > 3:", "    n = 8", "else:", "    n = 9")["prompt"] == "(Pdb) "
    assert program.do("value = (n,", "         'a')", "p value")["text"] == "(8, 'a')\n"
    assert program.do("for x in 1", "p n")["text"].endswith("8\n")
    assert program.do("p n")["text"] == "8\n"


@pytest.mark.parametrize("line", [None, 3, 4])
def test_finalizers_at_the_exit_run_as_without_a_debugger(start: Any, line: int | None) -> None:
    text = "class A:\n    def __del__(self):\n        print('gone')\na = A()\nprint('end')\n"
    points = [] if line is None else [f"b app.py:{line}"]
    program = start(text, *points, "n", "p a", "c")
    while program.last["event"] == "prompt":
        program.last = program.do("c")
    assert (program.finish(), program.text) == (0, "end\ngone\n")


def test_a_task_that_failed_under_a_stop_is_complained_about_as_without_a_debugger(start: Any) -> None:
    text = """
        import asyncio
        async def bad():
            raise ValueError("lost")
        async def main():
            task = asyncio.create_task(bad())
            await asyncio.sleep(0.01)
        asyncio.run(main())
        """
    program = start(text, "b bad", "c", "c")
    assert (program.last["event"], program.finish()) == ("end", 0)
    assert "Task exception was never retrieved" in program.text


def test_a_breakpoint_stops_in_a_function_for_the_exit(start: Any) -> None:
    text = "import atexit\ndef bye():\n    print('bye')\natexit.register(bye)\n"
    program = start(text, "b app.py:3", "c")
    assert program.last["event"] == "end"
    stop = program.next("prompt")
    assert (stop["reason"], stop["frame"]["function"]) == ("breakpoint", "bye")
    program.send("c")
    assert (program.finish(), program.text) == (0, "bye\n")


def test_what_a_frame_held_when_it_was_shown_goes_with_the_frame(start: Any) -> None:
    text = (
        "import weakref\nclass A: pass\ndef f():\n    a = A()\n    refs.append(weakref.ref(a))\n    raise ValueError\n"
        "refs = []\ntry:\n    f()\nexcept ValueError:\n    pass\nprint(refs[0]())\n"
    )
    program = start(text, "b app.py:6", "c", "p a", "c")
    assert (program.finish(), program.text) == (0, "None\n")


def test_the_numbers_of_monitoring_tools_that_have_a_meaning_are_the_programs(
    start: Any, version: tuple[int, int]
) -> None:
    if version < (3, 12):
        pytest.skip("sys.monitoring came with 3.12")
    text = (
        "from sys import monitoring as m\n"
        "for tool in (m.DEBUGGER_ID, m.COVERAGE_ID, m.PROFILER_ID, m.OPTIMIZER_ID):\n"
        "    m.use_tool_id(tool, 'own')\nx = 1\n"
    )
    program = start(text, "b app.py:4", "c")
    assert (program.last["reason"], program.last["frame"]["line"]) == ("breakpoint", 4)


AT_THE_LIMIT = """
import sys

def down(n):
    if n == 0:
        return 0
    return down(n - 1)

frame, depth, limit = sys._getframe(), 0, sys.getrecursionlimit()
while frame:
    frame, depth = frame.f_back, depth + 1
for room in (150, 40, 20):
    down(limit - depth - room)
print(sys.getrecursionlimit())
"""


def test_a_stop_has_room_near_the_recursion_limit(start: Any, version: tuple[int, int]) -> None:
    program = start(AT_THE_LIMIT, "b 5", "c")
    for _ in range(3):
        assert program.last["frame"]["line"] == 5
        assert program.do("p n, sum(len(str(frame)) for frame in [1])")["text"] == "(0, 1)\n"
        program.last = program.do("c")
    assert program.last["event"] == "end"
    assert program.finish() == 0
    # Python 3.8 refuses to take it back within 50 frames of the limit.
    assert program.text in (["1000\n", "1300\n"] if version < (3, 9) else ["1000\n"])
