"""Post mortems: chains and groups, `exceptions` and `$_exception` on every Python, folded frames, tests that end in odd ways."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

CHAINED = """
def load():
    raise KeyError("port")

def configure():
    try:
        load()
    except KeyError as error:
        raise ValueError("no port") from error

configure()
"""


def test_exceptions_lists_the_chain_and_goes_to_its_members(start: Any) -> None:
    program = start(CHAINED, "c")
    assert program.last["reason"] == "post_mortem"
    (cause,) = program.last["exception"]["chain"]
    assert (cause["type"], cause["message"], cause["relation"]) == ("KeyError", "'port'", "cause")
    assert (cause["raised_at"]["function"], cause["raised_at"]["line"]) == ("load", 2)
    listed = program.do("exceptions")["text"].splitlines()
    assert listed == ["    0 KeyError('port')", ">   1 ValueError('no port')"]
    moved = program.do("exceptions 0")
    assert (moved["frame"]["function"], moved["frame"]["line"]) == ("load", 2)
    assert program.do("exceptions")["text"].splitlines()[0] == ">   0 KeyError('port')"
    assert program.do("p $_exception")["text"] == "KeyError('port')\n"
    assert "No exception with that number" in program.do("exceptions 7")["text"]
    assert "must be an integer" in program.do("exceptions x")["text"]
    assert "exceptions [number]" in program.do("help exceptions")["text"]


def test_the_place_of_a_cause_is_told_without_code_of_its_class(start: Any) -> None:
    text = CHAINED.replace('KeyError("port")', "Odd()").replace("except KeyError", "except Odd")
    odd = "class Odd(Exception):\n    __traceback__ = property(lambda self: 'x')\n"
    (cause,) = start(odd + text, "c").last["exception"]["chain"]
    assert cause["raised_at"]["function"] == "load"


def test_exceptions_outside_of_a_post_mortem_says_so(start: Any) -> None:
    program = start("x = 1\ny = 2\n", "exceptions")
    assert program.last["text"].startswith("Did not find chained exceptions.")


def test_convenience_variables_are_there_on_every_python(start: Any) -> None:
    text = """
        def f(n):
            return n * 2

        try:
            x = f(2)
            1 / 0
        except ZeroDivisionError:
            pass
        y = sorted(name for name in globals() if "pdb" in name)
        z = 1
        """
    program = start(text, "b f", "c")
    assert program.do("p $_frame.f_code.co_name")["text"] == "'f'\n"
    program.do("u")
    assert program.do("p $_frame.f_code.co_name")["text"] == "'<module>'\n"
    program.do("d")
    program.do("r")
    assert program.do("p $_retval + 1")["text"] == "5\n"
    program.do("!$mine = 4")
    assert program.do("p $mine")["text"] == "4\n"
    program.do("cl 1")
    program.do("n")
    raised = program.do("n")
    if raised["reason"] != "exception":
        raised = program.do("n")
    assert raised["reason"] == "exception"
    assert program.do("p type($_exception).__name__")["text"] == "'ZeroDivisionError'\n"
    program.do("unt 9")
    program.do("unt 10")
    assert program.do("p y")["text"] == "[]\n"


GROUP = """
def one():
    raise ValueError("a")

def two():
    raise TypeError("b")

def both():
    found = []
    for each in (one, two):
        try:
            each()
        except Exception as error:
            found.append(error)
    raise ExceptionGroup("both", found)

both()
"""


def test_a_group_stops_at_its_first_member_and_lists_all(start: Any, version: tuple[int, int]) -> None:
    if version < (3, 11):
        pytest.skip("exception groups came with 3.11")
    program = start(GROUP, "c")
    assert (program.last["reason"], program.last["frame"]["function"]) == ("post_mortem", "one")
    assert any("group of 2 (ValueError: a; TypeError: b)" in notice for notice in program.last["notices"])
    listed = program.do("exceptions")["text"].splitlines()
    assert [line[:5] for line in listed] == [">   0", "    1", "    2"]
    assert program.do("exceptions 1")["frame"]["function"] == "two"
    assert program.do("exceptions 2")["frame"]["function"] == "both"


def has(python: str, module: str) -> bool:
    return subprocess.run([python, "-c", f"import {module}"], capture_output=True).returncode == 0


def run_pytest(start: Any, python: str, tmp_path: Path, text: str, *options: str) -> Any:
    if not has(python, "pytest"):
        pytest.skip("pytest is not installed for this Python")
    (tmp_path / "test_it.py").write_text(text)
    target = {
        "mode": "module",
        "target": "pytest",
        "args": ["-q", "-p", "no:cacheprovider", *options, "test_it.py"],
    }
    program = start("", "c", target=target)
    program.first = program.last
    return program


FIXTURES = """\
import pytest, sys

@pytest.fixture
def broken():
    value = 1
    raise RuntimeError("set up")

@pytest.fixture
def breaks_later():
    yield 1
    raise RuntimeError("tear down")

def test_first(broken):
    pass

def test_second(breaks_later):
    pass

def test_third():
    sys.exit(3)
"""


def test_failures_of_fixtures_and_exits_in_tests_stop_where_they_happen(
    start: Any, python: str, tmp_path: Path
) -> None:
    program = run_pytest(start, python, tmp_path, FIXTURES)
    seen = []
    stop = program.first
    while stop["event"] == "prompt":
        seen.append((stop["test"].partition("::")[2], stop["frame"]["line"], stop["exception"]["type"]))
        stop = program.do("c")
    assert seen == [
        ("test_first", 6, "RuntimeError"),
        ("test_second", 11, "RuntimeError"),
        ("test_third", 20, "SystemExit"),
    ]
    assert stop["exit_code"] == 1


def test_frames_of_the_runner_are_folded_and_shown_on_request(
    start: Any, python: str, tmp_path: Path
) -> None:
    program = run_pytest(
        start, python, tmp_path, "def check(n):\n    assert n\n\ndef test_it():\n    check(0)\n"
    )
    folded = program.do("w")["text"].splitlines()
    assert "frames of the test runner hidden; `w all` shows all]" in folded[0]
    assert len(folded) == 5 and "test_it()" in folded[1]
    assert "Oldest frame" in program.do("u", "u")["text"]
    program.do("d")
    hidden = int(folded[0].split()[0].lstrip("["))
    shown = program.do("w all")["text"].splitlines()
    assert "hidden" not in shown[0] and sum(line[:2] in ("  ", "> ") for line in shown) == hidden + 2
    assert any("_pytest" in line for line in shown)
    assert program.do("p n")["text"] == "0\n"
    assert "python.py" in program.do("u", "u")["frame"]["path"]


def test_an_exit_of_a_script_tells_where(start: Any) -> None:
    program = start("import sys\n\ndef leave(code):\n    sys.exit(code)\n\nleave(3)\n", "c")
    assert (program.last["event"], program.last["exit_code"]) == ("end", 3)
    assert program.last["notices"] == ["SystemExit was raised at app.py:4 in leave."]


def test_a_program_that_traces_itself_is_said_to_hide_breakpoints(
    start: Any, version: tuple[int, int]
) -> None:
    text = """
        import sys

        def f():
            return 1

        sys.settrace(lambda *args: None)
        f()
        breakpoint()
        f()
        """
    program = start(text, "b f", "c")
    told = program.notices
    if version >= (3, 12):
        assert (program.last["reason"], told) == ("breakpoint", [])
    else:
        assert program.last["reason"] == "set_trace"
        assert len(told) == 1 and "__main__ has set a trace function (sys.settrace)" in told[0]
        assert program.do("c")["reason"] == "breakpoint"


def test_a_program_that_puts_the_trace_function_back_hides_no_breakpoints(start: Any) -> None:
    text = """
        import sys

        def f():
            return 1

        def g():
            return 2

        kept = sys.gettrace()
        breakpoint()
        sys.settrace(kept)
        f()
        g()
        """
    program = start(text, "b f", "c", "b g")
    assert [program.do("c")["frame"]["function"] for _ in range(2)] == ["f", "g"]
    assert program.notices == []


def test_an_exception_that_nothing_catches_in_a_thread_is_stopped_at(start: Any) -> None:
    text = """
        import threading

        def work(n):
            if n == 2:
                raise SystemExit(3)
            return 10 // n

        for n in (1, 0, 2):
            thread = threading.Thread(target=work, args=(n,), name="worker")
            thread.start()
            thread.join()
        """
    program = start(text, "c")
    stop = program.last
    assert (stop["reason"], stop["frame"]["line"], stop["thread"]["name"]) == ("post_mortem", 6, "worker")
    assert program.do("p n")["text"] == "0\n"
    assert program.do("c")["exit_code"] == 0
    program.finish()
    assert program.text.count("ZeroDivisionError") == 1


def test_notes_are_part_of_what_an_exception_says(start: Any) -> None:
    text = """
        class Failed(Exception):
            pass

        error = Failed("no port")
        error.__notes__ = ["in app.toml", 3]
        raise error
        """
    assert start(text, "c").last["exception"]["message"] == "no port\nin app.toml"


def test_of_a_long_message_with_a_traceback_the_end_is_told(start: Any) -> None:
    """There it tells what has failed in another process, or for a test runner of another kind."""
    text = """
        lines = ["It failed there.", "Traceback (most recent call last):"]
        lines += [f"  File {n}" for n in range(500)]
        raise RuntimeError("\\n".join([*lines, "KeyError: 'port'"]))
    """
    message = start(text, "c").last["exception"]["message"]
    assert message.startswith("It failed there.\nTraceback") and message.endswith(
        "File 499\nKeyError: 'port'"
    )
    assert "\n…\n" in message and 1000 < len(message) <= 1200
    in_one_line = start("raise RuntimeError(repr('Traceback (most recent call last):\\n' * 99) + '!')", "c")
    message = in_one_line.last["exception"]["message"]
    assert message.startswith("'Traceback") and message.endswith("'!") and len(message) == 1200
    plain = start(text.replace("Traceback", "Trace"), "c").last["exception"]["message"]
    assert len(plain) == 1200 and "KeyError" not in plain


def test_coverage_is_said_to_hide_breakpoints(start: Any, python: str, version: tuple[int, int]) -> None:
    if not has(python, "coverage"):
        pytest.skip("coverage is not installed for this Python")
    text = """
        import coverage

        def f():
            return 1

        measured = coverage.Coverage(data_file=None)
        measured.start()
        f()
        measured.stop()
        """
    program = start(text, "b f", "c")
    told = program.notices
    if version >= (3, 12):
        assert (program.last["reason"], told) == ("breakpoint", [])
    else:
        assert program.last["event"] == "end"
        assert [text for text in told if "Tracing has ended" in text and "coverage" in text]


TRACING = """
import sys, threading

def f():
    return 1

seen = []
def trace(frame, event, arg):
    seen.append((frame.f_code.co_name, event))
    return trace

sys.settrace(trace)
f()
print(sys.gettrace() is trace)
sys.settrace(None)
print(seen)
f()
threading.settrace(trace)
threading.settrace(None)
thread = threading.Thread(target=f)
thread.start()
thread.join()
"""


def test_a_program_that_traces_itself_sees_nothing_of_ours_and_stops_again_when_it_is_done(
    start: Any, version: tuple[int, int]
) -> None:
    program = start(TRACING, "b f", "c")
    threads = []
    while program.last["event"] == "prompt":
        assert program.last["reason"] == "breakpoint"
        threads.append(program.last["thread"]["main"])
        program.last = program.do("c")
    assert threads == [True] * (2 if version >= (3, 12) else 1) + [False]
    assert program.finish() == 0
    events = [("f", event) for event in ("call", "line", "return")]
    assert program.text == f"True\n{events}\n"


def test_groups_within_groups_are_looked_at_no_longer_than_they_can_be_told(start: Any, version: Any) -> None:
    if version < (3, 11):
        pytest.skip("no exception groups")
    program = start(
        """
        import pdb
        group = ExceptionGroup("0", [ValueError(1)])
        for _ in range(5):
            group = ExceptionGroup("many", [group] * 300)
        for _ in range(2000):
            group = ExceptionGroup("one", [group])
        try:
            raise group
        except ExceptionGroup:
            pdb.post_mortem()  # Python's own way to print it takes for ever on some versions
        """,
    )
    stop = program.do("c")
    assert (stop["reason"], stop["frame"]["line"]) == ("post_mortem", 8)
    assert stop["notices"][0].startswith("An exception group of 999 (ValueError: 1; ValueError: 1;")
