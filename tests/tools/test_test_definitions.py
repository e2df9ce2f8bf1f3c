"""Classes and constants of a test's file that the test names."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import pytest

from sandbox.errors import NotFound
from sandbox.guest.supervisor.files import definitions
from sandbox.session.workspace import Marks
from tools._test_definitions import LinesOfTest, read_definitions

SOURCE = f'''\
import shop

RATES = {{
    "de": 7,
}}
TEXT = """
RATES = 1
"""
LONG = "{"x" * 600}"
TOTAL = 1 + \\
    2
OPEN: str = "("
if TOTAL == 3: HAS = True
MANY = [
{"    1," * 3}
{chr(10).join("    1," for _ in range(30))}
]

class Order(shop.Order):
    """An order."""

    rates = RATES

@shop.registered
class Line:
    price = 1

@shop.registered
def make():
    class Made: pass
    return Made()

class TestShop:
    def test_total(self):
        order = make(Order, RATES, self.Line, "Line")
        assert order.total(TEXT, LONG, MANY, gone, HAS) == RATES if TOTAL else OPEN
'''
LINES = SOURCE.splitlines()


class Workspace:
    """One file, as far as definitions need it."""

    def __init__(self, source: str = SOURCE) -> None:
        self.workspace, self.source = self, source
        self.asked: list[str] = []
        """Names that were looked up last."""

    async def read_marked(self, path: str, names: Sequence[str] = ()) -> tuple[SimpleNamespace, Marks]:
        if path != "test_shop.py":
            raise NotFound(path)
        self.asked = list(names)
        found = definitions.find(self.source.encode(), list(names))
        marks = Marks.model_validate({"definitions": found})
        return SimpleNamespace(lines=self.source.splitlines()), marks


def at(text: str) -> int:
    """Number of the first line that begins like this."""
    return next(number for number, line in enumerate(LINES, 1) if line.startswith(text))


def lines_from(text: str) -> dict[int, str]:
    first = next(number for number, line in enumerate(LINES, 1) if text in line)
    return dict(enumerate(LINES[first - 1 :], first))


async def test_short_classes_and_constants_that_a_test_names_are_shown_in_its_order() -> None:
    test = LinesOfTest("test_shop.py", lines_from("def test_total"))
    texts = await read_definitions(Workspace(), test)  # type: ignore[arg-type] - all that it uses of one
    assert [text.split("\n")[0] for text in texts] == [
        "test_shop.py Order",
        "test_shop.py RATES",
        "test_shop.py TEXT",
        "test_shop.py HAS",
        "test_shop.py TOTAL",
        "test_shop.py OPEN",
    ]
    assert texts[1].split("\n")[1:] == ["3\tRATES = {", '4\t    "de": 7,', "5\t}"]
    assert texts[2].endswith('RATES = 1\n8\t"""')
    assert texts[4].endswith("TOTAL = 1 + \\\n11\t    2")
    assert texts[5].count("\n") == 1


async def test_what_is_shown_already_and_other_files_are_left_out() -> None:
    test = LinesOfTest("test_shop.py", lines_from("class TestShop") | {at("RATES"): "RATES = {"})
    texts = await read_definitions(Workspace(), test)  # type: ignore[arg-type] - all that it uses of one
    assert [text.split("\n")[0].split()[1] for text in texts] == ["Order", "TEXT", "HAS", "TOTAL", "OPEN"]
    shown = test._replace(others=frozenset([at("OPEN"), at("class Order") + 1]))
    texts = await read_definitions(Workspace(), shown)  # type: ignore[arg-type]
    assert [text.split("\n")[0].split()[1] for text in texts] == ["TEXT", "HAS", "TOTAL"]
    assert await read_definitions(Workspace(), test._replace(path="gone.py")) == []  # type: ignore[arg-type]


async def test_the_middle_of_a_long_test_is_shown_unless_it_is_long() -> None:
    test = LinesOfTest("test_shop.py", {at("import"): "import shop", 5: "}"})
    texts = await read_definitions(Workspace(), test)  # type: ignore[arg-type] - all that it uses of one
    assert texts == ['test_shop.py, lines 2-4\n\n3\tRATES = {\n4\t    "de": 7,']
    for lines in (
        {1: "", at("class TestShop"): ""},
        {at("class Order"): "", at("@shop"): ""},
        {1: "", 3: ""},
    ):
        assert await read_definitions(Workspace(), LinesOfTest("test_shop.py", lines)) == []  # type: ignore[arg-type]


async def read(source: str, *shown: int, failing: int = 0) -> list[str]:
    """Read what tells more of a test of which some lines are shown."""
    test = LinesOfTest("test_shop.py", dict.fromkeys(shown, ""), failing=failing)
    return await read_definitions(Workspace(source), test)  # type: ignore[arg-type] - all that it uses of one


async def test_no_more_names_are_looked_up_than_the_limit() -> None:
    workspace = Workspace("def test():\n    make(" + ", ".join(f"name{number}" for number in range(99)) + ")")
    test = LinesOfTest("test_shop.py", {1: "", 2: ""})
    assert await read_definitions(workspace, test) == []  # type: ignore[arg-type] - all that it uses of one
    assert workspace.asked == ["test", "make", *(f"name{number}" for number in range(48))]


@pytest.mark.parametrize(("line", "is_read"), [(2001, True), (2002, False)])
async def test_no_more_lines_of_a_test_are_read_than_the_limit(line: int, is_read: bool) -> None:
    lines = ["rate = 7", "def test():", *(["    x"] * 3000)]
    lines[line] = "    rate"
    assert await read("\n".join(lines), 2, line + 1) == (
        ["test_shop.py rate\n1\trate = 7"] if is_read else []
    )


@pytest.mark.parametrize(("failing", "is_read"), [(1900, True), (2900, False)])
async def test_nothing_leads_to_a_failing_line_that_was_not_read(failing: int, is_read: bool) -> None:
    lines = "\n".join(["def test():", *(["    x = x + 1"] * 3000)])
    texts = await read(lines, 1, 30, failing, failing=failing)
    assert [text.partition("\n")[0] for text in texts] == ["test_shop.py, lines 2-29"] * is_read


@pytest.mark.parametrize(("size", "told"), [(225, 4), (226, 3), (300, 3), (301, 2), (500, 1), (501, 0)])
async def test_definitions_have_few_characters_each_and_in_all(size: int, told: int) -> None:
    names = [f"name{number}" for number in range(6)]
    lines = [f"{name} = '".ljust(size - 1, "x") + "'" for name in names]
    texts = await read("\n".join([*lines, "def test():", f"    make({', '.join(names)})"]), 7, 8)
    assert [text.partition("\n")[0] for text in texts] == [f"test_shop.py {name}" for name in names[:told]]


@pytest.mark.parametrize(("size", "is_shown"), [(150, True), (151, False)])
async def test_the_middle_of_a_test_has_few_characters(size: int, is_shown: bool) -> None:
    lines = ["def test():", *(["    make('".ljust(size - 2, "x") + "')"] * 10), "    assert make()"]
    texts = await read("\n".join(lines), 1, 12)
    assert [text.partition("\n")[0] for text in texts] == ["test_shop.py, lines 2-11"] * is_shown


@pytest.mark.parametrize("shown", [(1, 10**6), (-(10**6), 1, 10**6), (10**6, 2 * 10**6), (-5, 0)])
async def test_lines_that_the_file_does_not_have_are_not_looked_at(
    shown: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []

    def measured(*bounds: int) -> range:
        sizes.append(len(range(*bounds)))
        return range(*bounds)

    monkeypatch.setattr("tools._test_definitions.range", measured, raising=False)
    texts = await read("def test():\n    x = 1\n    y = 2", *shown)
    assert texts == (["test_shop.py, lines 2-3\n2\t    x = 1\n3\t    y = 2"] if 1 in shown else [])
    assert max(sizes, default=0) <= 3


LONG_TEST = f'''\
rate = 7
option = 1

def test_shop():
    text = """
option = 1
    rate = 3
"""
    rows = [
        7,
    ]
    cart = Cart(rows)
    other = 1
{chr(10).join("    other += 1" for _ in range(20))}
    cart.add(1)
    result = None
    result = cart.total(text)
    assert result == rate
'''


async def test_of_a_long_middle_the_statements_are_shown_that_set_what_the_failing_line_uses() -> None:
    lines = LONG_TEST.splitlines()
    last = len(lines)
    shown = {4: lines[3], 5: lines[4], **{number: lines[number - 1] for number in (last - 2, last - 1, last)}}
    test = LinesOfTest("test_shop.py", shown, failing=last)
    middle, rate = await read_definitions(Workspace(LONG_TEST), test)  # type: ignore[arg-type]
    assert middle == (
        "test_shop.py, lines 6-34, parts\n"
        '6\toption = 1\n7\t    rate = 3\n8\t"""\n9\t    rows = [\n10\t        7,\n11\t    ]\n12\t    cart = Cart(rows)\n'
        "…\n34\t    cart.add(1)"
    )
    assert rate == "test_shop.py rate\n1\trate = 7"
    # What is shown elsewhere, as a function inside of the test may be, is left out.
    others = test._replace(others=frozenset(range(5, last)))
    assert await read_definitions(Workspace(LONG_TEST), others) == [rate]  # type: ignore[arg-type]


async def test_a_branch_on_one_line_leaves_what_was_set_before() -> None:
    lines = ["def test():", "    x = 0", *(["    other()"] * 20), "    if a: x = 1", "    use(x)"]
    (middle,) = await read("\n".join(lines), 1, 24, failing=24)
    assert middle == "test_shop.py, lines 2-23, parts\n2\t    x = 0\n…\n23\t    if a: x = 1"
