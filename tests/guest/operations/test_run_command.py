from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from sandbox.guest.supervisor.errors import GuestError
from tests.guest.operations.conftest import Guest


def run(guest: Guest, command: str, **args: Any) -> dict[str, Any]:
    return guest.ask(
        "exec", command=command, **{"timeout_s": 60, "max_output": 1 << 20, "with_pipe": True, **args}
    )


def test_output_and_exit_code(guest: Guest) -> None:
    answer = run(guest, "echo out; echo err >&2; printf 'no newline'; exit 3")
    assert (answer["output"], answer["exit_code"], answer["signal"], answer["timed_out"]) == (
        "out\nerr\nno newline",
        3,
        None,
        False,
    )
    assert (answer["omitted"], answer["gap"]) == (0, None)


def test_cwd_env_and_an_empty_stdin(guest: Guest) -> None:
    (guest.root / "sub").mkdir()
    answer = run(guest, 'pwd; echo "$PWD $A"', cwd="sub", env={"A": "b c"})
    assert answer["output"] == f"{guest.root}/sub\n{guest.root}/sub b c\n"
    assert run(guest, "cat; echo end")["output"] == "end\n"
    with pytest.raises(GuestError) as caught:
        run(guest, "pwd", cwd="..")
    assert caught.value.code == "path"


def test_the_codes_of_all_parts_of_a_pipe_are_told(guest: Guest) -> None:
    assert run(guest, "(exit 3) | (exit 2) | cat")["pipe"] == [3, 2, 0]
    assert run(guest, "cd /\n(exit 4) | cat && true")["pipe"] == []  # the last pipe is `true`
    assert run(guest, "true || (exit 5) | cat")["pipe"] == []
    assert run(guest, "echo a | grep b; exit 7")["exit_code"] == 7
    answer = run(guest, "seq 100000 | head -1; echo ${BASH_ENV-none}")
    assert (answer["output"], answer["pipe"]) == ("1\nnone\n", [])


def test_pipes_without_bash_reading_the_file_or_with_a_hostile_one(guest: Guest, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.write_text("A=from-own")
    answer = run(guest, "(exit 3) | echo $A", env={"BASH_ENV": str(own)})
    assert (answer["output"], answer["pipe"]) == ("from-own\n", [])
    codes = "$(trap -p EXIT | grep -o '/[^ ]*codes')"
    assert run(guest, f"F={codes}; trap - EXIT; mkfifo $F; (exit 3) | cat")["pipe"] == []
    assert run(guest, f"F={codes}; trap - EXIT; printf '9 x ' > $F; (exit 3) | cat")["pipe"] == []
    syntax = run(guest, "if | cat")
    assert syntax["exit_code"] == 2 and "trap" not in syntax["output"]


def test_argv_goes_past_the_shell(guest: Guest) -> None:
    assert guest.ask("exec", argv=["printf", "%s", "$HOME *"], timeout_s=10)["output"] == "$HOME *"
    with pytest.raises(GuestError) as caught:
        guest.ask("exec", argv=["no-such-program"], timeout_s=10)
    assert caught.value.code == "not_found"


def test_a_crash_is_told_by_its_signal(guest: Guest) -> None:
    assert run(guest, "exec kill -SEGV $$")["signal"] == "SIGSEGV"


def test_output_is_exact_whatever_is_printed(guest: Guest) -> None:
    program = "import os, sys\nfor i in range(3000): sys.stdout.write('€')\nsys.stdout.flush()\nos.write(1, b'\\xff(Pdb) \\0')\n"
    guest.write({"p.py": program})
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


def test_a_background_process_that_holds_the_output_does_not_hold_the_answer(guest: Guest) -> None:
    answer = run(guest, "sleep 1000 & echo started", timeout_s=100)
    assert (answer["output"], answer["killed"], answer["timed_out"]) == ("started\n", 1, False)
    assert run(guest, "true")["killed"] == 0


def test_many_commands_at_once_keep_their_answers_apart(guest: Guest) -> None:
    answers: dict[int, str] = {}

    def ask(i: int) -> None:
        answers[i] = run(guest, f"for n in 1 2 3; do echo {i}; done")["output"]

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {i: f"{i}\n" * 3 for i in range(12)}


def test_no_descriptors_are_left_open(guest: Guest) -> None:
    run(guest, "true")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        run(guest, "echo x")
        guest.ask("eval", command="true", timeout_s=10)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.mark.parametrize(
    "args", [{"command": " "}, {"command": "a\0b"}, {"argv": []}, {"command": "x", "env": {"A=B": "x"}}]
)
def test_nonsense_is_refused(guest: Guest, args: dict[str, Any]) -> None:
    with pytest.raises(GuestError) as caught:
        guest.ask("exec", timeout_s=5, **args)
    assert caught.value.code == "invalid"


def test_a_long_output_is_in_a_file_for_as_long_as_it_is_kept(guest: Guest) -> None:
    first = run(guest, "seq 1000", to_file=True)
    path = Path(first["kept_in"])
    assert path.read_text() == first["output"]
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert "kept_in" not in run(guest, "seq 1000")
    assert "kept_in" not in run(guest, "seq 3", to_file=True)
    for _ in range(6):
        last = run(guest, "head -c 900000 /dev/zero | tr '\\0' x", to_file=True)
        assert Path(last["kept_in"]).stat().st_size == 900_000
    assert not path.exists()
    with pytest.raises(GuestError):
        guest.state.saved_outputs.read(first["kept"], 0, 10)


def test_where_no_file_can_be_made_the_output_is_there_all_the_same(guest: Guest) -> None:
    (guest.home / "output").write_text("in the way")
    answer = run(guest, "seq 1000", to_file=True)
    assert (answer["kept_in"], answer["output"][:4]) == (None, "1\n2\n")


def test_no_link_of_a_program_is_followed(guest: Guest) -> None:
    outside = guest.root / "outside"
    number = run(guest, "seq 1000")["kept"]
    (guest.home / "output").mkdir()
    (guest.home / "output" / str(number + 1)).symlink_to(outside)
    assert run(guest, "seq 1000", to_file=True)["kept_in"] is None
    assert not outside.exists()
