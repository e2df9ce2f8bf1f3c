"""Parts of a function that a diagnosis names."""

from __future__ import annotations

import pytest

from tools._source_parts import find_bindings, find_block

LONG = ["def check(orders):", *["    count += 1"] * 50]
LOOP = ["    for order in orders:", "        if order.open:", "            close(order)", "    return count"]
SOURCE = [*LONG, *LOOP]
FIRST = len(LONG)


@pytest.mark.parametrize("line", [FIRST, FIRST + 1, FIRST + 2])
def test_the_longest_block_around_a_line_is_found_that_is_not_too_long(line: int) -> None:
    assert find_block(SOURCE, line) == range(FIRST, FIRST + 3)


def test_a_line_of_a_long_function_alone_is_its_own_block() -> None:
    assert find_block(SOURCE, 7) == range(7, 8)
    assert find_block(SOURCE, 0) == range(0)
    assert find_block(LOOP, 3) == range(3, 4)


def test_a_line_of_a_docstring_binds_no_name() -> None:
    docstring = [
        '    """Add orders.',
        "",
        "    Args:",
        "        other: the ones, all = added",
        "    Returns:",
        "        None",
        '    """',
    ]
    body = ["    other = list(other)", "    self.all += other"]
    assert list(find_bindings(["def add(self, other):", *docstring, *body], 9)) == [8]
    assert list(find_bindings(["def add(self, other):", *docstring, body[1]], 8)) == []
