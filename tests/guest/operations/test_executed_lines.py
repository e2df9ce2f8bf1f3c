from __future__ import annotations

from pathlib import Path

import pytest

from sandbox.guest.supervisor.files.executed_lines import ExecutedLines, find_unexecuted

SOURCE = """\
import os
if os.name == "none":
    VALUE = 1
    OTHER = 2
    THIRD = 3

def ran(value):
    if value:
        first = 1
        second = 2
        return first + second
    elif value is None:
        return [
            1,
        ]
    try:
        return value()
    except TypeError:
        value = None
        other = None
        return other
    finally:
        value = 1

class Kept:
    attribute = 1

    @property
    def idle(self):
        \"\"\"Do nothing.

        At all.
        \"\"\"
        return 5

    def busy(self):
        def inner():
            a = 1
            b = 2
            return a + b

        return 1
"""


def test_blocks_of_functions_without_a_line_that_ran_are_found() -> None:
    assert find_unexecuted(SOURCE.encode(), [8, 12, 16, 17, 23, 37, 42]) == [
        [9, 11],  # the branch that was not taken
        [13, 15],
        [19, 21],  # the handler
        [30, 34],  # of a function that nobody called, with its docstring
        [38, 40],
    ]


def test_what_ran_in_part_is_searched_further() -> None:
    assert [38, 40] not in find_unexecuted(SOURCE.encode(), [39])
    assert [37, 42] in find_unexecuted(SOURCE.encode(), [8])


def test_a_function_that_does_nothing_leaves_no_sign_that_it_ran() -> None:
    source = b'class A:\n  def f(self):\n    """Do\n\n    nothing."""\n    pass\n'
    assert find_unexecuted(source, [9]) == []


@pytest.mark.parametrize("source", [b"def f(:\n a\n b\n c\n", b"\xff\xfe", b""])
def test_a_source_that_is_none_has_no_blocks(source: bytes) -> None:
    assert find_unexecuted(source, [1]) == []


def test_lines_are_kept_until_the_file_changes(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text(SOURCE)
    lines = ExecutedLines({"a.py": [8], "gone.py": [1], "odd\0.py": [1]}, str(tmp_path))
    assert [9, 11] in lines.unexecuted("a.py", str(file), file.read_bytes())
    assert lines.unexecuted("gone.py", str(file), file.read_bytes()) == []
    file.write_text(SOURCE + "\n")
    assert lines.unexecuted("a.py", str(file), file.read_bytes()) == []


@pytest.mark.parametrize("found", [None, [], {"a.py": None}, {"a.py": [1] * 300_000}, {"a.py": ["8", None]}])
def test_what_a_program_made_up_is_not_kept(found: object, tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text(SOURCE)
    lines = ExecutedLines(found, str(tmp_path))
    assert lines.unexecuted("a.py", str(file), file.read_bytes()) == []
