"""Parts of files: how they are asked for, and cut."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.errors import InvalidArgument
from tools._catalog import catalog
from tools._selection import Selection, parse
from tools._truncation import LIMIT, WIDE_LIMIT, truncate
from tools.view import Part, Range, ViewAnswer, join_overlaps, render, take_usable


def test_of_an_endless_line_only_its_beginning_is_looked_at() -> None:
    (line,) = take_usable(["x" * (8 << 20)])
    assert WIDE_LIMIT < len(line) < 100_000 and set(line) == {"x"}


def test_lines_behind_what_an_answer_can_have_are_left_out() -> None:
    lines = [f"line {number}" for number in range(100_000)]
    kept = take_usable(lines)
    assert kept[:-1] == lines[: len(kept) - 1]
    assert WIDE_LIMIT < sum(map(len, kept)) < 100_000


def test_a_short_file_stays_as_it_is() -> None:
    assert take_usable(["a", "", "b"]) == ["a", "", "b"]


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("shop/a.py", [Selection("shop/a.py")]),
        ("a.py:10-40", [Selection("a.py", 10, 40)]),
        ("a.py:10-", [Selection("a.py", 10, -1)]),
        ("a.py:30", [Selection("a.py", 20, 40)]),
        ("a.py:3:7", [Selection("a.py", 1, 13)]),
        ("a.py:1-5, 20-30,b.py", [Selection("a.py", 1, 5), Selection("a.py", 20, 30), Selection("b.py")]),
        (
            "a.py::Order.total, ::f\nt.py::TestA::test_b",
            [
                Selection("a.py", name="Order.total"),
                Selection("a.py", name="f"),
                Selection("t.py", name="TestA::test_b"),
            ],
        ),
        ("t.py::test_b[x, y-1], u.py", [Selection("t.py", name="test_b"), Selection("u.py")]),
    ],
)
def test_parts_are_written_as_tracebacks_and_test_ids_have_them(path: str, parts: list[Selection]) -> None:
    assert parse(path) == parts


def test_a_range_without_a_file_and_too_many_parts_are_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"'::f' has no file"):
        parse("::f")
    with pytest.raises(InvalidArgument, match=r"names 51 parts"):
        parse(",".join(["a"] * 51))


def test_the_limit_is_the_same_for_all_ways_to_name_what_is_wanted() -> None:
    tool = catalog()["view"]
    for arguments in (
        {"path": "a.py", "start": 1},
        {"path": "a.py", "end": -1},
        {"path": "a.py:1-"},
        {"path": "a.py", "name": "f"},
        {"path": "a.py::f"},
        {"path": "a.py, b.py"},
    ):
        assert tool.limit(tool.parse(arguments)) == WIDE_LIMIT, arguments
    assert tool.limit(tool.parse({"path": "a.py"})) == LIMIT


def part(path: str, start: int, count: int, width: int = 30, total: int = 1000) -> Part:
    lines = [f"{number:0{width}}" for number in range(start, start + count)]
    shown = Part(path=path, start=start, end=start + count - 1, total_lines=total, lines=lines)
    return shown.asking_up_to(start + count - 1)


def answer(*parts: Part) -> ViewAnswer:
    fields = {name: getattr(parts[0], name) for name in Part.model_fields}
    return ViewAnswer(**fields, more=list(parts[1:])).asking_up_to(parts[0].rest()[2])


def test_an_answer_is_cut_at_its_end_and_names_the_next_call() -> None:
    cut, text = truncate(answer(part("a.py", 1, 50), part("b.py", 11, 500), part("c.py", 5, 6)), render)
    assert len(text) <= LIMIT
    assert [one.path for one in cut.parts()] == ["a.py", "b.py"]
    last = cut.parts()[1].end
    assert text.endswith(
        f'(left out: {510 - last + 6} lines. Go on with view(path="b.py:{last + 1}-510, c.py:5-10").)'
    )
    one, text = truncate(answer(part("a.py", 1, 900)), render)
    assert text.endswith(f'Go on with view(path="a.py", start={one.end + 1}, end=900).)')
    assert text.split("\n")[-2].endswith(f"{one.end:030}")


def test_what_is_cut_leaves_more_than_a_tenth_for_the_next_call() -> None:
    counts = range(80, 130)
    sizes = [
        (len(text), bool(cut.omitted))
        for cut, text in (truncate(answer(part("a.py", 1, n)), render, data=False) for n in counts)
    ]
    whole = [len(render(answer(part("a.py", 1, n)))) for n in counts]
    assert {is_cut for _, is_cut in sizes} == {True, False}
    for (size, is_cut), full in zip(sizes, whole, strict=True):
        assert is_cut == (full > LIMIT) and size <= (LIMIT * 0.9 if is_cut else LIMIT)


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        (
            [("a", 52, 89, "A"), ("a", 35, 49, "B"), ("b", 30, 60), ("a", 40, 90)],
            [("a", 35, 90), ("b", 30, 60)],
        ),
        ([("a", 1, 9), ("a", 20, 29), ("a", 5, 24)], [("a", 1, 29)]),
        ([("a", 4, 6), ("a", 1, 9, "A")], [("a", 1, 9, "A")]),
        ([("a", 1, 9), ("a", 10, 19)], [("a", 1, 9), ("a", 10, 19)]),
        ([("a", 1, 400), ("a", 10, 19, "A")], [("a", 1, 400), ("a", 10, 19, "A")]),
    ],
)
def test_no_line_is_shown_twice(asked: list[Any], shown: list[Any]) -> None:
    joined = join_overlaps([(path, Range(*lines)) for path, *lines in asked])
    assert joined == [(path, Range(*lines)) for path, *lines in shown]


def test_of_an_endless_line_the_beginning_is_shown() -> None:
    endless = Part(path="a.js", start=1, end=1, total_lines=2, lines=["x" * 9000]).asking_up_to(2)
    cut, text = truncate(answer(endless), render)
    assert len(text) <= LIMIT and "\n1\txxx" in text and len(cut.lines[0]) > 2000
    assert "characters of the first line." in text
    assert text.endswith('Go on with view(path="a.js", start=2).)')
