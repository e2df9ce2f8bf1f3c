from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from sandbox.guest.supervisor.errors import GuestError
from tests.guest.files.conftest import OPS, Guest


def run(guest: Guest, command: str, **args: Any) -> dict[str, Any]:
    return guest.ask("exec", command=command, **{"timeout_s": 20, "max_output": 1 << 20, **args})


def test_output_and_exit_code(guest: Guest) -> None:
    answer = run(guest, "echo out; echo err >&2; printf 'no newline'; exit 3")
    assert (answer["output"], answer["exit_code"], answer["signal"], answer["timed_out"]) == ("out\nerr\nno newline", 3, None, False)
    assert (answer["omitted"], answer["gap"]) == (0, None)


def test_cwd_env_and_stdin(guest: Guest) -> None:
    (guest.root / "sub").mkdir()
    answer = run(guest, 'pwd; echo "$PWD $A"; cat', cwd="sub", env={"A": "b c"}, stdin="typed €")
    assert answer["output"] == f"{guest.root}/sub\n{guest.root}/sub b c\ntyped €"
    assert run(guest, "cat; echo end")["output"] == "end\n"
    with pytest.raises(GuestError) as caught:
        run(guest, "pwd", cwd="..")
    assert caught.value.code == "path"


def test_argv_goes_past_the_shell(guest: Guest) -> None:
    assert guest.ask("exec", argv=["printf", "%s", "$HOME *"], timeout_s=10)["output"] == "$HOME *"
    with pytest.raises(GuestError) as caught:
        guest.ask("exec", argv=["no-such-program"], timeout_s=10)
    assert caught.value.code == "not_found"


def test_a_crash_is_told_by_its_signal(guest: Guest) -> None:
    assert run(guest, "exec kill -SEGV $$")["signal"] == "SIGSEGV"


def test_output_is_exact_whatever_is_printed(guest: Guest) -> None:
    guest.write({"p.py": "import os, sys\nfor i in range(3000): sys.stdout.write('€')\nsys.stdout.flush()\nos.write(1, b'\\xff(Pdb) \\0')\n"})
    assert run(guest, f"{sys.executable} p.py")["output"] == "€" * 3000 + "\\xff(Pdb) \0"


def test_much_output_is_bounded_and_counted(guest: Guest) -> None:
    answer = run(guest, "head -c 20000000 /dev/zero | tr '\\0' 'x'; echo; echo end", max_output=10_000)
    assert len(answer["output"]) == 10_000
    assert answer["output"].endswith("x\nend\n")
    assert (answer["omitted"], answer["gap"]) == (20_000_005 - 10_000, 5000)


def test_control_characters_do_not_blow_up_the_answer(guest: Guest) -> None:
    answer = run(guest, "head -c 1000000 /dev/zero")
    assert len(answer["output"]) + answer["omitted"] == 1_000_000
    assert 100_000 < len(answer["output"]) < 500_000


STAYS = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open("pid", "w").write(str(os.getpid()))
        time.sleep(1000)
    os._exit(0)
while not os.path.exists("pid") or not open("pid").read():
    pass
"""


def is_gone(guest: Guest) -> bool:
    """Whether the daemon of STAYS has ended, or is about to: SIGKILL has been sent."""
    pid = (guest.root / "pid").read_text()
    for _ in range(500):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state in "ZX":
            return True
        os.sched_yield()
        threading.Event().wait(0.01)
    return False


def test_no_daemon_outlives_the_command(guest: Guest) -> None:
    guest.write({"stays.py": STAYS})
    answer = run(guest, f"{sys.executable} stays.py; echo done")
    assert (answer["output"], answer["exit_code"]) == ("done\n", 0)
    assert is_gone(guest)


def test_a_deadline_ends_everything_and_keeps_the_output(guest: Guest) -> None:
    guest.write({"stays.py": STAYS})
    answer = run(guest, f"{sys.executable} stays.py; echo before; trap '' TERM; sleep 1000 & wait; sleep 1000", timeout_s=1.5)
    assert (answer["timed_out"], answer["exit_code"], answer["output"]) == (True, None, "before\n")
    assert is_gone(guest)


def test_cancelling_ends_everything_at_once(guest: Guest) -> None:
    guest.write({"stays.py": STAYS})
    call = guest.call()
    call.on_progress = lambda data: call.cancel() if "ready" in data["output"] else None
    started = time.monotonic()
    with pytest.raises(GuestError) as caught:
        OPS["exec"]({"command": f"{sys.executable} stays.py; echo ready; sleep 1000", "timeout_s": 100}, b"", call)
    assert caught.value.code == "cancelled"
    assert time.monotonic() - started < 50
    assert is_gone(guest)


def test_a_background_process_that_holds_the_output_does_not_hold_the_answer(guest: Guest) -> None:
    started = time.monotonic()
    assert run(guest, "sleep 1000 & echo started", timeout_s=100)["output"] == "started\n"
    assert time.monotonic() - started < 50


def test_many_commands_at_once_keep_their_answers_apart(guest: Guest) -> None:
    answers: dict[int, str] = {}
    threads = [
        threading.Thread(target=lambda i=i: answers.__setitem__(i, run(guest, f"for n in 1 2 3; do echo {i}; done")["output"])) for i in range(12)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {i: f"{i}\n" * 3 for i in range(12)}


def test_no_descriptors_are_left_open(guest: Guest) -> None:
    run(guest, "true")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        run(guest, "echo x")
        guest.ask("eval", command="true", timeout_s=10)
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("args", [{"command": " "}, {"command": "a\0b"}, {"argv": []}, {"command": "x", "env": {"A=B": "x"}}])
def test_nonsense_is_refused(guest: Guest, args: dict[str, Any]) -> None:
    with pytest.raises(GuestError) as caught:
        guest.ask("exec", timeout_s=5, **args)
    assert caught.value.code == "invalid"
