"""Limits of `watch`: failed frames, forks, recursion, interrupts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.guest.debugger.pdb.test_watch import place, watches


def test_a_failed_frame_has_nothing_left_to_watch(start: Any) -> None:
    program = start("def f(box):\n    raise ValueError\n\nf([1])\n", "c")
    assert program.last["reason"] == "post_mortem"
    assert "*** Unable to watch box: its frame has ended." in program.do("watch box")["text"]


def test_children_that_are_forked_are_not_watched(start: Any) -> None:
    text = """
        import os

        class Box:
            value = 0

        def main():
            box = Box()
            mark = 1
            pid = os.fork()
            if not pid:
                box.value = 3
                os._exit(box.value)
            status = os.waitpid(pid, 0)[1] >> 8
            box.value = 4
            print(status)

        main()
    """
    program = start(text, "b 8", "c", "watch box.value", "c")
    assert watches(program.last)[0].startswith("watch 1: box.value: 0 -> 4, changed by app.py:14")
    assert program.do("c")["event"] == "end"
    program.finish()
    assert "3" in program.text


def test_the_end_of_tracing_at_the_recursion_limit_is_told(start: Any, version: tuple[int, int]) -> None:
    text = """
        class Box:
            value = 0

        def dive(box, n):
            return dive(box, n + 1)

        def main():
            box = Box()
            try:
                dive(box, 0)
            except RecursionError:
                box.value = 1
            return box

        main()
    """
    program = start(text, "b 9", "c", "watch box.value", "c")
    if version >= (3, 12):
        assert watches(program.last)[0].startswith("watch 1: box.value: 0 -> 1, changed by app.py:12 in main")
    else:  # Python itself ends it
        assert program.last["notices"] == ["watch 1 (box.value) was not seen to change until the end."]
        assert "Tracing has ended" in program.notices[0]


def test_a_local_is_compared_in_its_function_and_what_is_in_it_everywhere(start: Any) -> None:
    text = """
        def helper(rows):
            rows.append(1)
            return rows

        def outer():
            count, rows = 0, []
            def inner():
                nonlocal count
                count += 1
                return count
            inner()
            helper(rows)
            kept = 5
            kept = helper(rows)
            helper(rows)
            return kept

        outer()
    """
    program = start(text, "b 11", "c", "watch count", "c")
    assert watches(program.last)[0].startswith(
        "watch 1: count: 0 -> 1, changed by app.py:9 in inner: `count += 1`"
    )
    program.do("unwatch")
    program.do("b 14", "c")
    program.do("watch kept")
    stop = program.do("c")
    assert watches(stop)[0].startswith("watch 2: kept: 5 -> [1, 1], changed by app.py:14 in outer")
    stop = program.do("c")
    assert watches(stop)[0].startswith(
        "watch 2: kept: [1, 1] -> [1, 1, 1] (in place: [2] = 1), changed by app.py:2 in helper"
    )


def test_an_interrupt_ends_an_evaluation_and_stops_the_program(start: Any, tmp_path: Path) -> None:
    text = """
        import sys
        sys.path.append("site-packages")
        import lib

        class Box:
            value = 0

            @property
            def held(self):
                return lib.wait(self.value)

        def main():
            box = Box()
            box.value = 1
            box.value = 2
            return box

        main()
    """
    (tmp_path / "site-packages").mkdir()
    waiting = "def wait(value):\n    if value == 1:\n        print('waiting', flush=True)\n        threading.Event().wait()\n"
    (tmp_path / "site-packages" / "lib.py").write_text(f"import threading\n\n{waiting}    return value\n")
    program = start(text, "b 14", "c", "watch box.held")
    program.send("c")
    program.next("resumed")
    program.wait_for("waiting")
    stop = program.break_in()
    assert (stop["reason"], place(stop)) == ("interrupt", ("main", 15))
    assert stop["notices"] == ["watch 1 ended: its evaluation takes too long at each line (box.held = 0)."]
    program.settle()
    assert program.do("c")["event"] == "end"
