"""Command lines that start their Python themselves, and Pythons that the program starts."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from tests.guest.supervisor.guest import Guest, Refused
from tests.guest.supervisor.program.sample import until_told

APP = """\
import os, sys
value = len(sys.argv)
print(sys.argv, os.environ.get("PYTHONPATH"), [name for name in os.environ if name.startswith(("PDBOX_D", "TOX"))])
sys.exit(value)
"""
MAKEFILE = """\
test:
	@python -c 'print("helper")'
	@FOO=1 python app.py a b
	@echo never
"""
NONE = "The command has ended without starting a Python program that could be debugged."


def write(guest: Guest, **files: str) -> None:
    for name, text in files.items():
        guest.write(
            name if name == "Makefile" else name.replace("_sh", ".sh") if "_sh" in name else f"{name}.py",
            text,
        )


def place(stop: dict[str, Any]) -> tuple[str, int]:
    return stop["frame"]["path"], stop["frame"]["line"]


@pytest.mark.skipif(shutil.which("make") is None, reason="no make here")
def test_make_is_followed_to_the_program_and_nothing_of_us_is_left_in_it(guest: Guest) -> None:
    write(guest, app=APP, Makefile=MAKEFILE)
    stop = guest.client.pdb("b 4", "c", entrypoint="make test")
    assert (place(stop), stop["reason"], stop["output"]) == (
        ("app.py", 4),
        "breakpoint",
        "helper\n['app.py', 'a', 'b'] None []\n",
    )
    assert guest.client.pdb("p os.environ['FOO'], value")["reply"] == "('1', 3)\n"
    stop = guest.client.pdb("c")
    assert (stop["state"], stop["exit_code"], stop["signal"]) == ("exited", 2, None)
    assert "never" not in stop["output"] and "Error 3" in stop["output"]
    assert guest.client.pdb("run x", "c")["output"].startswith("helper\n['app.py', 'x'] None []\n")


def test_what_a_shell_does_around_the_program_is_done(guest: Guest) -> None:
    write(guest, app=APP)
    stop = guest.client.pdb(
        "b 4", "c", entrypoint="cd . && PYTHONPATH=src python app.py > log || echo failed: $?"
    )
    assert (place(stop), stop["output"]) == (("app.py", 4), "")
    stop = guest.client.pdb("c")
    assert (stop["state"], stop["exit_code"], stop["output"]) == ("exited", 0, "failed: 1\n")
    assert (guest.workdir / "log").read_text() == "['app.py'] src []\n"


def test_later_programs_of_a_command_stop_at_breakpoints_too(guest: Guest) -> None:
    write(guest, app="x = 1\nprint('one')\n", run_sh="python app.py 1\npython app.py 2\n")
    stop = guest.client.pdb("b 2", "c", entrypoint="sh run.sh")
    assert (place(stop), stop["process"]) == (("app.py", 2), None)
    stop = guest.client.pdb("c")
    assert (place(stop), stop["process"]["program"]) == (("app.py", 2), "python app.py 2")
    stop = guest.client.pdb("c")
    assert (stop["state"], stop["exit_code"], stop["output"]) == ("exited", 0, "one\n")


def test_a_command_without_a_python_ends_with_its_own_code_and_output(guest: Guest) -> None:
    write(guest, app=APP)
    guest.client.pdb("q", entrypoint="python app.py")
    stop = guest.client.pdb(
        "b 4", "c", entrypoint="python -c 'import sys' ; python -m pip -V > log; echo $((1+1)); exit 7"
    )
    assert (stop["state"], stop["exit_code"], stop["output"]) == ("exited", 7, "2\n")
    assert stop["not_run"] == ["b 4", "c"]
    stop = guest.client.pdb("b 4", "c", entrypoint="env -i echo x")
    assert stop["notices"][0].startswith(NONE)
    stop = guest.client.pdb("c")
    assert (stop["state"], stop["exit_code"]) == ("exited", 1)  # the one that has worked before


def test_a_python_that_can_not_be_seen_is_told(guest: Guest) -> None:
    write(guest, app="print('unseen')\n")
    stop = guest.client.pdb("c", entrypoint="true && python -I app.py")
    assert (stop["state"], stop["exit_code"], stop["output"]) == ("exited", 0, "unseen\n")
    assert len(stop["notices"]) == 1
    assert stop["notices"][0].startswith(NONE) and "started with -I, -E or -S" in stop["notices"][0]


def test_a_program_that_fails_before_its_first_line_is_refused(guest: Guest) -> None:
    write(guest, app="def\n")
    with pytest.raises(Refused, match="SyntaxError"):
        guest.client.pdb("c", entrypoint="true && python app.py")


def test_q_ends_the_whole_command(guest: Guest) -> None:
    write(guest, app="x = 1\n", run_sh="python app.py\ntouch after\n")
    stop = guest.client.pdb("q", entrypoint="bash run.sh")
    assert stop["state"] == "exited"
    assert not (guest.workdir / "after").exists()


def test_run_starts_the_whole_command_again(guest: Guest) -> None:
    write(guest, app="import sys\nprint(sys.argv[1:])\n", run_sh="echo begin\npython app.py 1\ntouch after\n")
    guest.client.pdb("n", entrypoint="bash run.sh")
    stop = guest.client.pdb("run")
    assert (stop["state"], stop["run"]) == ("stopped", 2)
    assert not (guest.workdir / "after").exists()
    stop = guest.client.pdb("run 2 3", "c")
    assert (stop["run"], stop["exit_code"]) == (3, 0)
    assert stop["output"] == "begin\n['2', '3']\n"
    assert (guest.workdir / "after").exists()


def test_an_interrupt_goes_to_the_program_and_not_to_the_shell(guest: Guest) -> None:
    write(guest, app="n = 0\nwhile True:\n    n += 1\n")
    guest.client.pdb("p 0", entrypoint="python app.py; echo $?")
    stop = guest.client.pdb("c", timeout_s=0.3)
    assert stop["state"] == "running"
    stop = guest.client.wait(interrupt=True)
    assert (stop["state"], stop["reason"], stop["frame"]["path"]) == ("stopped", "interrupt", "app.py")
    stop = guest.client.request("debug.kill")
    assert (stop["state"], stop["output"]) == ("exited", "")


def test_a_program_behind_a_pipe_waits_for_input_and_gets_it(guest: Guest) -> None:
    write(guest, app="print('hello', input())\n")
    stop = guest.client.pdb("c", entrypoint="python app.py | cat")
    assert stop["state"] == "waiting_for_input"
    stop = guest.client.wait(stdin="Ada\n")
    assert (stop["state"], stop["exit_code"], stop["output"]) == ("exited", 0, "hello Ada\n")


def test_a_crash_inside_of_a_command_is_told_with_its_stack(guest: Guest) -> None:
    write(guest, app="import ctypes\nctypes.string_at(0)\n")
    stop = guest.client.pdb("c", entrypoint="bash -c 'python app.py; exit $?'")
    assert (stop["state"], stop["exit_code"]) == ("exited", 139)
    assert 'app.py", line 2' in stop["native_stack"]


def test_a_command_that_goes_on_after_its_program_is_told(guest: Guest) -> None:
    write(guest, app="x = 1\n")
    guest.client.pdb("p 0", entrypoint="python app.py; read line; echo $line")
    stop = guest.client.pdb("c", timeout_s=1)
    stop = until_told(guest, stop)
    assert stop["state"] in ("running", "waiting_for_input")
    assert stop["notices"] == [
        "The program's main part has finished (exit code 0), but the rest of its command goes on."
    ]
    stop = guest.client.wait(stdin="end\n")
    assert (stop["state"], stop["exit_code"], stop["output"]) == ("exited", 0, "end\n")


def test_a_command_that_goes_on_after_its_program_is_running(guest: Guest) -> None:
    write(guest, app="import os\nos._exit(3)\n")
    guest.client.pdb("p 0", entrypoint="python app.py; read line; echo $line")
    stop = guest.client.pdb("c", timeout_s=5)
    assert stop["state"] in ("running", "waiting_for_input")
    stop = guest.client.wait(stdin="end\n")
    assert (stop["state"], stop["exit_code"], stop["output"]) == ("exited", 0, "end\n")


def test_the_sitecustomize_of_the_program_has_its_turn_once(guest: Guest) -> None:
    write(
        guest,
        app="import marked\nprint(marked.count)\n",
        marked="count = 0\n",
        sitecustomize="import marked\nmarked.count += 1\n",
    )
    stop = guest.client.pdb("b 2", "c", "c", entrypoint="PYTHONPATH=. python app.py | cat")
    assert (stop["exit_code"], stop["output"]) == (0, "1\n")


CHILDREN = {
    "fork": "import multiprocessing as m\nprint(m.get_context('fork').Pool(2).map(work.f, range(4)))\n",
    "spawn": """\
import multiprocessing
if __name__ == "__main__":
    print(multiprocessing.get_context("spawn").Pool(2).map(work.f, range(4)))
""",
    "subprocess": """\
import subprocess, sys
print(subprocess.check_output([sys.executable, "-c", "import work; print([work.f(n) for n in range(4)])"], text=True), end="")
""",
    "shell": """\
import subprocess
print(subprocess.check_output('python -c "import work; print([work.f(n) for n in range(4)])"', shell=True, text=True), end="")
""",
    "os.fork": """\
import os
pid = os.fork()
if not pid:
    print([work.f(n) for n in range(4)], flush=True)
    os._exit(0)
os.waitpid(pid, 0)
""",
}


@pytest.mark.parametrize("entrypoint", ["python app.py", "python app.py | cat"])
@pytest.mark.parametrize("how", CHILDREN)
def test_children_stop_at_breakpoints_and_their_results_are_as_without(
    guest: Guest, how: str, entrypoint: str
) -> None:
    write(guest, work="def f(n):\n    m = n + 1\n    return m\n", app="import work\n" + CHILDREN[how])
    stop = guest.client.pdb("b work.py:2", "n", "n", "c", entrypoint=entrypoint)
    hits = []
    while stop["state"] == "stopped":
        assert (place(stop), stop["process"]["number"] > 1) == (("work.py", 2), True)
        hits.append(guest.client.pdb("p n")["reply"].strip())
        stop = guest.client.pdb("c")
    assert sorted(hits) == ["0", "1", "2", "3"]
    assert (stop["state"], stop["exit_code"], stop["output"]) == ("exited", 0, "[1, 2, 3, 4]\n")
    stop = guest.client.pdb("cl 1", "c")
    assert (stop["exit_code"], stop["output"]) == (0, "[1, 2, 3, 4]\n")


def test_children_that_are_no_python_are_nothing_to_tell(guest: Guest) -> None:
    write(guest, app="import subprocess\nsubprocess.run(['echo', 'x'])\ny = 1\n")
    stop = guest.client.pdb("b 3", "c", "c", entrypoint="python app.py")
    assert (stop["output"], stop["notices"]) == ("x\n", [])


def test_forks_of_a_program_with_busy_threads_never_hang(guest: Guest) -> None:
    source = """\
import os, threading, warnings, work
warnings.simplefilter("ignore")
stop = []
def spin():
    while not stop:
        work.g()
threads = [threading.Thread(target=spin) for _ in range(3)]
for thread in threads:
    thread.start()
for n in range(20):
    pid = os.fork()
    if not pid:
        os._exit(work.f(n))
    assert os.waitpid(pid, 0)[1] >> 8 == n + 1
stop.append(1)
"""
    write(guest, work="def f(n):\n    return n + 1\ndef g():\n    return 1\n", app=source)
    stop = guest.client.pdb("b work.py:2, n == 19", "b work.py:4, False", "c", entrypoint="python app.py")
    assert guest.client.pdb("p n")["reply"] == "19\n"
    stop = guest.client.pdb("c")
    assert (stop["state"], stop["exit_code"], stop["output"]) == ("exited", 0, "")


@pytest.mark.parametrize("option", ["-I", "-E", "-S"])
def test_a_python_that_loads_no_hook_is_debugged_as_the_entry_point_itself(guest: Guest, option: str) -> None:
    guest.write("app.py", "x = 1\ny = 2\n")
    stop = guest.client.pdb("n", "p x", entrypoint=f"python {option} app.py")
    assert (stop["state"], stop["reply"].splitlines()[-1]) == ("stopped", "1")
