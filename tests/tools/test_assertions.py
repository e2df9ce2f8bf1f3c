"""Messages of failing assertions as they are told."""

from __future__ import annotations

import pytest

from tools._assertions import shorten_assertion

LISTS = """\
Lists differ: [1] != [1, 1]

Second list contains 1 additional elements.
First extra element 1:
1

- [1]
+ [1, 1]"""
METHOD = """\
assert 1 == 0
 +  where 1 = <bound method Table.count of <Table name='orders', of=<Base>>>(Query() > 1)
 +    where <bound method Table.count of <Table name='orders', of=<Base>>> = <Table name='orders', of=<Base>>.count
 +    and   Query() = where('qty')"""


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (LISTS, "Lists differ: [1] != [1, 1]"),
        (f"{LISTS} : the bill", "Lists differ: [1] != [1, 1]\n+ [1, 1] : the bill"),
        ("'ab' != 'ac'\n- ab\n?  ^\n+ ac\n?  ^\n", "'ab' != 'ac'"),
        ("'ab' != 'ac'\n- ab\n?  ^\n+ ac\n?  ^\n : the name", "'ab' != 'ac'\n : the name"),
        ("assert 'ab' == 'ac'\n  - ac\n  + ab", "assert 'ab' == 'ac'"),
        (
            "assert {1} == {2}\n  Extra items in the left set:\n  1\n  Use -v to get more diff",
            "assert {1} == {2}\n  Extra items in the left set:\n  1",
        ),
        (METHOD, "assert 1 == 0\n +  where 1 = Table.count(Query() > 1)\n +    and   Query() = where('qty')"),
    ],
    ids=["lists", "lists with a text", "texts", "texts with a text", "pytest", "advice", "method"],
)
def test_what_the_first_line_has_told_is_not_told_again(message: str, told: str) -> None:
    assert shorten_assertion(message) == told


@pytest.mark.parametrize(
    "message",
    [
        "one line",
        "'a\\nb' != 'a\\nc'\n  a\n- b\n+ c",
        "Lists differ: [1, [40 chars] 2] != []\n\nFirst list contains 9 additional elements.\n- [1,\n+ []",
        "assert [Node('...b')] == []\n  Left contains one more item: Node('ab')",
        "no comparison\n- b\n+ c",
        "assert f\n +  where f = <bound method Broken.f of <Broken(",
        f"{'x' * 200} != {'y' * 200}\n- {'x' * 200}\n+ {'y' * 200}",
    ],
    ids=["short", "lines", "cut by unittest", "cut by pytest", "no comparison", "never closed", "long"],
)
def test_what_tells_more_than_the_first_line_stays(message: str) -> None:
    assert shorten_assertion(message) == message
