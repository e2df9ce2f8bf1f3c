"""Statements of a piece of source."""

from __future__ import annotations

import pytest

from tools._statements import read_statements


@pytest.mark.parametrize(
    ("source", "uses", "binds", "sets"),
    [
        ("x = y", "y", "x", "x"),
        ("x = x + 1", "x", "x", "x"),
        ("x, y = z = a.b", "a", "x y z", "x y z"),
        ("x: int = 1", "int", "x", "x int"),
        ("x += y", "x y", "", "x"),
        ("x[y].z = make(w=1, v=u)", "x y make u", "", "x"),
        ("x.add(y)", "x y", "", "x"),
        ("x(y)", "x y", "", ""),
        ("assert x == y", "x y", "", ""),
        ("assert 'x = 1' in y  # z = 1", "y", "", ""),
        ("for x in y:", "x y", "", "x"),
        ("with open(x) as y:", "open x y", "", "y"),
        ("from x import y", "x y", "", "x y"),
        ("x = [\n  y for y in z]", "y z", "x", "x"),
    ],
)
def test_names_of_a_statement(source: str, uses: str, binds: str, sets: str) -> None:
    one, *_ = read_statements(source.split("\n"), 1)
    assert list(dict.fromkeys(one.uses)) == uses.split()
    assert (one.binds, one.sets) == ({*binds.split()}, {*sets.split()})


def test_a_function_inside_of_the_first_one_is_one_statement_and_a_cut_text_ends_one() -> None:
    source = '    def test():\n        def f(x):\n            if x:\n                y = z\n\n        a = """\nb = 1\n"""\n        f("""\nc'
    found = [(one.first, one.last, one.uses) for one in read_statements(source.split("\n"), 11)]
    assert found[:3] == [(11, 11, ["test"]), (12, 14, ["f", "x", "x", "z"]), (16, 18, [])]
    assert all(one[0] == 19 for one in found[3:])
