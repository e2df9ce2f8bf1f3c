"""Statements of a piece of source."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Iterator

import pytest

from tools import _statements
from tools._statements import Statement, read_statements


@pytest.mark.parametrize(
    ("source", "uses", "binds", "sets"),
    [
        ("x = y", "y", "x", "x"),
        ("x = x + 1", "x", "x", "x"),
        ("x, y = z = a.b", "a", "x y z", "x y z"),
        ("x: int = 1", "int", "x", "x"),
        ("x: int = y = 1", "int", "x y", "x y"),
        ("x.y: list[int] = z", "x list int z", "", "x"),
        ("x.y = x = z", "x z", "x", "x"),
        ("x += y", "x y", "", "x"),
        ("x[y].z = make(w=1, v=u)", "x y make u", "", "x"),
        ("x.add(y)", "x y", "", "x"),
        ("x(y)", "x y", "", ""),
        ("assert x == y", "x y", "", ""),
        ("assert 'x = 1' in y  # z = 1", "y", "", ""),
        ("for x in y:", "x y", "", "x"),
        ("for x in y in z:", "x y z", "", "x"),
        ("if x: y = z", "x z", "", "y"),
        ("if x: y.add(z)", "x y z", "", "y"),
        ("if x[y:z]: w = v; u += t", "x y z v u t", "", "w u"),
        ("else: x, y = z", "z", "", "x y"),
        ("async with x as y: z = y", "x y", "", "y z"),
        ("case 1: x = y", "case y", "", "x"),
        ("match = x", "x", "match", "match"),
        ("match, x = y", "y", "match x", "match x"),
        ("match: int = 1", "int", "match", "match"),
        ("x = lambda y, z=1: w", "y w", "x", "x"),
        ("if (x := y()):", "y", "", "x"),
        ("while x := y(z := 1):", "y", "", "x z"),
        ("x = [y := z, y]", "z y", "x", "x y"),
        ("assert x == f'y='", "x", "", ""),
        ("x = f'('; y = z", "z", "x y", "x y"),
        ("x = '\ud800' + y", "y", "x", "x"),
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


def test_parts_of_a_literal_are_no_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before Python 3.12 an f-string is one token."""
    read = tokenize.generate_tokens

    def in_parts(readline: object) -> Iterator[tokenize.TokenInfo]:
        for one in read(readline):  # type: ignore[arg-type] - handed on
            yield one._replace(string=one.string.strip("'")) if one.type == tokenize.STRING else one

    monkeypatch.setattr("tools._statements.tokenize.generate_tokens", in_parts)
    for literal in ("'('", "'x='", "'='", "')'", "';'", "'z'"):
        one, *_ = read_statements([f"assert x == {literal}, y"], 1)
        assert (one.uses, one.binds, one.sets) == (["x", "y"], set(), set()), literal


def test_no_more_characters_are_read_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    make = io.StringIO
    monkeypatch.setattr("tools._statements.io.StringIO", lambda text: read.append(text) or make(text))
    targets = "".join(f"a{number}=" for number in range(16_000)) + "1"
    definition = ["class A:", *([" " + "name," * 500] * 2000)]
    for lines in ([targets], ["def test():", targets], [" "] * 60_000, ["def test():", *definition]):
        found = list(read_statements(lines, 1))
        assert len(read.pop()) <= 50_000
        assert sum(len(one.uses) for one in found) <= 10_000
    assert [one.first for one in read_statements(["x = 1", "#" * 49_993, "y = 1"], 1)] == [1]
    assert [one.first for one in read_statements(["x = 1", "#" * 49_987, "y = 1"], 1)] == [1, 3]


def test_the_names_of_a_definition_are_collected_in_one_list(monkeypatch: pytest.MonkeyPatch) -> None:
    describe, lists = _statements._statement, list[list[str]]()  # pyright: ignore[reportPrivateUsage] - to look at its lists

    def remember(code: list[tokenize.TokenInfo], before: int) -> Statement:
        one = describe(code, before)
        lists.append(one.uses)
        return one

    monkeypatch.setattr("tools._statements._statement", remember)
    _, definition = read_statements(["class Test:", "  class A:", "    x = y", "    z = w"], 1)
    assert definition.uses is lists[1] and definition.uses == ["A", "y", "w"]


def test_names_before_an_equals_sign_are_looked_at_once() -> None:
    chain = "=".join(["x.y"] * 8_000)
    (one,) = (one for one in read_statements(["def test():", f"  {chain} = z"], 1) if one.first == 2)
    assert (len(one.uses), one.sets) == (8_001, {"x"})


def test_reading_ends_at_source_that_is_not_python() -> None:
    lines = ["x = 1", "y = " + "'\\" * 500 + "x", "z = 1"]
    assert [one.first for one in read_statements(lines, 1)] == [1, 2]
