"""Messages of failing assertions as they are told."""

from __future__ import annotations

import pytest

from tools._assertions import leave_out_difference, shorten_assertion

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

BUILT_IN = """\
assert 3 == 1
 +  where 3 = <built-in method count of str object at 0x14125cd0>('a')
 +    where <built-in method count of str object at 0x14125cd0> = {0!r}.count
 +      where {0!r} = <M3U8>.text"""
SPECIAL = """\
assert 2 == 1
 +  where 2 = <method-wrapper '__len__' of list object at 0x7fce>()
 +    where <method-wrapper '__len__' of list object at 0x7fce> = [1, 2].__len__"""
FUNCTIONS = """\
assert 2.0 == 1
 +  where 2.0 = <built-in function sqrt>(4)
 +    where <built-in function sqrt> = <module 'math' (built-in)>.sqrt
 +  and   1 = <function Shop.<locals>.one at 0x7fce>(<function two at 0x7fcf>)"""

FUNCTIONS_TOLD = """\
assert 2.0 == 1
 +  where 2.0 = sqrt(4)
 +  and   1 = Shop.<locals>.one(<function two at 0x7fcf>)"""


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
        (
            BUILT_IN.format("aaa"),
            "assert 3 == 1\n +  where 3 = 'aaa'.count('a')\n +      where 'aaa' = <M3U8>.text",
        ),
        (
            BUILT_IN.format("a" * 90),
            f"assert 3 == 1\n +  where 3 = str.count('a')\n +      where '{'a' * 90}' = <M3U8>.text",
        ),
        (SPECIAL, "assert 2 == 1\n +  where 2 = [1, 2].__len__()"),
        (FUNCTIONS, FUNCTIONS_TOLD),
        (
            f"assert 'b' in '{'a' * 90}'\n +  where '{'a' * 90}' = <M3U8>.text()",
            f"assert 'b' in '{'a' * 90}'\n +  where '{'a' * 39}… = <M3U8>.text()",
        ),
    ],
    ids=[
        *("lists", "lists with a text", "texts", "texts with a text", "pytest", "advice", "method"),
        *("method of a short text", "method of a long text", "special method", "functions", "long value"),
    ],
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
        "assert <function f at 0x7fce> is <function g at 0x7fcf>\nThey differ.",
        "assert f\n +  where f = <bound method Broken.f of <Broken(",
        f"{'x' * 200} != {'y' * 200}\n- {'x' * 200}\n+ {'y' * 200}",
    ],
    ids=[
        "short",
        "lines",
        "cut by unittest",
        "cut by pytest",
        "no comparison",
        "functions compared",
        "never closed",
        "long",
    ],
)
def test_what_tells_more_than_the_first_line_stays(message: str) -> None:
    assert shorten_assertion(message) == message


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (LISTS, LISTS),  # it tells how many more there are
        ("'a' != 'b'\n- a\n+ b : the bill", "'a' != 'b'\n- a\n+ b : the bill"),
        ("'a' != 'b'\n- a\n+ b\nsecond line", "'a' != 'b'\n- a\n+ b\nsecond line"),
        ("'a' != 'b'\n- a\n?  ^\n\n+ b\n?  ^\n", "'a' != 'b'"),
        ("[1] != [2]\n\nFirst differing element 0:\n1\n2\n\n- [1]\n+ [2]", "[1] != [2]"),
        (
            "{} == {}\nassert {'a': 1} == {'a': 2}\n  Differing items:",
            "{} == {}\nassert {'a': 1} == {'a': 2}\n  Differing items:",
        ),
        ("left != right\nassert [1] == [2]\n  - 2\n  + 1", "left != right\nassert [1] == [2]"),
        ("assert 'a' == 'b'\n  - b\n  - c\n  + a", "assert 'a' == 'b'\n  - b\n  - c\n  + a"),
        ("assert [1] == [2]\n  \n  At index 0 diff: 1 != 2\n  Use -v to get more diff", "assert [1] == [2]"),
        ("the bill\nassert 'a...' == 'b...'\n  \n  - b\n  + a", "the bill\nassert 'a...' == 'b...'"),
        (
            "assert 'a' == 'b'\n  \n  - b\n  + a\n +  where 'a' = f(1)",
            "assert 'a' == 'b'\n +  where 'a' = f(1)",
        ),
        ("no such table\nin shop.db", "no such table\nin shop.db"),
        ("", ""),
    ],
)
def test_a_difference_that_is_told_otherwise_is_left_out(message: str, told: str) -> None:
    assert leave_out_difference(message) == told


@pytest.mark.parametrize(("count", "is_marked"), [(2, True), (3, False)])
def test_many_marks_of_differing_characters_are_left_out(count: int, is_marked: bool) -> None:
    pairs = "".join(f"- f({n})\n?   ^\n+ g({n})\n" for n in range(count))
    message = f"'f(0)[{'x' * 99} chars]' != 'g(0)[342 chars]'\n{pairs}? what is this"
    told = shorten_assertion(message)
    assert ("?   ^" in told) == is_marked
    assert told.endswith("+ g(1)\n? what is this" if count == 2 else "+ g(2)\n? what is this")
