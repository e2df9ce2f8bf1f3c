"""Much output, long names, and many commands or files in one answer."""

from __future__ import annotations

import pytest

from sandbox.session.debugger import StopReply, Value
from sandbox.session.guest_data import validate
from tests.guest.supervisor.guest import Guest
from tests.guest.supervisor.program.sample import HAS_PYTEST, place, start


def test_twenty_megabytes_of_output_are_bounded(guest: Guest) -> None:
    stop = start(guest, "for n in range(250_000):\n    print('%079d' % n)\nx = 1\n", "b 3", "c")
    assert place(stop) == ("app.py", 3)
    assert len(stop["output"]) == 256 << 10
    assert len(stop["output"]) + stop["output_omitted"] == 20_000_000
    kept = guest.client.request("output.read", since=19_999_920, max=100)
    assert kept == {"text": f"{249_999:079d}\n", "next": 20_000_000, "omitted": 0, "total": 20_000_000}


def test_more_lines_than_an_answer_may_name_are_counted(guest: Guest) -> None:
    stop = start(guest, "import os\nos._exit(3)\n", "n", "n", *["p 1"] * 1000)
    assert (stop["exit_code"], len(stop["not_run"])) == (3, 200)
    assert "1000 lines were not run; `not_run` has the first 200." in stop["notices"]


def test_names_of_any_length_are_told_so_that_the_host_takes_them(guest: Guest) -> None:
    source = f"""\
import threading
threading.current_thread().name = "x" * 5_000_000
class {"C" * 20_000}(Exception): pass
def {"f" * 20_000}({"a" * 20_000}):
    raise {"C" * 20_000}()
{"f" * 20_000}(1)
"""
    stop = start(guest, source, "c")
    assert stop["reason"] == "post_mortem"
    shown = validate(StopReply, stop)
    assert shown.frame and shown.frame.function == "f" * 999 + "…"
    assert shown.thread and shown.thread.name == "x" * 999 + "…"
    assert shown.exception and shown.exception.type == "C" * 999 + "…"
    assert [variable.name for variable in shown.locals] == ["a" * 79 + "…"]
    inspected = guest.client.request("debug.inspect", expression="locals()")
    assert validate(Value, inspected).total == 1


@pytest.mark.skipif(not HAS_PYTEST, reason="no pytest here")
def test_a_test_with_a_long_name_is_debugged_as_any_other(guest: Guest) -> None:
    source = 'import pytest\n@pytest.mark.parametrize("text", [1], ids=["x" * 20_000])\ndef test_it(text):\n    assert not text\n'
    guest.write("test_long.py", source)
    stop = guest.client.pdb("c", entrypoint="pytest test_long.py")
    assert place(stop) == ("test_long.py", 4)
    assert (validate(StopReply, stop).test or "").startswith("test_long.py::test_it[xxx")


def test_any_number_of_commands_and_edited_files_is_told_so_that_the_host_takes_it(guest: Guest) -> None:
    names = [f"module{number}" for number in range(300)]
    for name in names:
        guest.write(name + ".py", "x = 1\n")
    source = "".join(f"import {name}\n" for name in names) + "print(1)\nprint(2)\n"
    condition = "len(%r)" % ("x" * 20_000)
    stop = start(guest, source, f"b 301, {condition}", "commands 1", *["p 1"] * 400, "end", "c")
    told = validate(StopReply, stop).breakpoints
    assert told and (told[0].condition, len(told[0].commands)) == (condition, 400)
    for name in names:
        guest.write(name + ".py", "x = 1000\n")
    guest.client.request("exec", command="true")
    stop = guest.client.pdb("p 2")
    assert validate(StopReply, stop).reply == "2\n"
    assert len(stop["stale"]) == 200
    assert any(notice.startswith("300 files changed on disk") for notice in stop["notices"])
