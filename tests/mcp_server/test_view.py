"""Several parts and files in one call of `view`, and definitions by name."""

from __future__ import annotations

from pathlib import Path

import pytest
from mcp import Client

from tests.mcp_server.conftest import Connect
from tests.mcp_server.test_calls import refused, text

pytestmark = pytest.mark.anyio

SHOP = """\
import functools

RATE = 3

class Order:
    @property
    @functools.cache
    def total(self):
        return 1

    def add(self):
        def inner():
            pass

class Cart:
    def total(self):
        pass
"""


@pytest.fixture(autouse=True)
def shop(repo: Path) -> None:
    (repo / "shop.py").write_text(SHOP)
    (repo / "odd, name.py:1-2").write_text("odd\n")


async def shown(client: Client, **arguments: object) -> str:
    return text(await client.call_tool("view", dict(arguments)))


async def test_a_definition_is_shown_by_its_name_with_its_decorators(connect: Connect) -> None:
    async with connect() as client:
        assert await shown(client, path="shop.py", name="Order.total") == (
            "shop.py Order.total, lines 6-9 of 17\n"
            "6\t    @property\n"
            "7\t    @functools.cache\n"
            "8\t    def total(self):\n"
            "9\t        return 1"
        )
        several = await shown(client, path="shop.py, app.py", name="RATE, double, inner")
        assert [line for line in several.split("\n") if ", lines" in line] == [
            "shop.py RATE, lines 3-3 of 17",
            "shop.py Order.add.inner, lines 12-13 of 17",
            "app.py double, lines 1-3 of 5",
        ]
        both = await shown(client, path="shop.py::total")
        assert "Order.total, lines 6-9" in both and "Cart.total, lines 16-17" in both


async def test_a_name_that_is_not_there_gives_those_that_are(connect: Connect) -> None:
    async with connect() as client:
        near = await refused(client, "view", path="shop.py", name="Ordr.total")
        assert near.startswith("shop.py has no definition of Ordr.total. There are: Order.total, Cart.total")
        half = await shown(client, path="shop.py", name="Cart.total, nope")
        assert half.startswith("shop.py Cart.total, lines 16-17 of 17\n")
        assert "\nnote: shop.py has no definition of nope. There are: RATE, Order, " in half


async def test_a_name_of_many_long_definitions_lists_them(connect: Connect, repo: Path) -> None:
    (repo / "many.py").write_text(
        "".join(f"class C{n}:\n  def f():\n{'    0' + chr(10) * 50}    1\n" for n in range(3))
    )
    async with connect() as client:
        listed = await refused(client, "view", path="many.py", name="f")
        assert "many.py has 3 definitions of f: C0.f (2-53), C1.f (55-106), C2.f (108-159)." in listed


async def test_ranges_of_several_files_take_one_call(connect: Connect) -> None:
    async with connect() as client:
        assert await shown(client, path="shop.py:1-1, 3-3, app.py:2-3, none.py") == (
            "shop.py, lines 1-1 of 17\n1\timport functools\n"
            "shop.py, lines 3-3 of 17\n3\tRATE = 3\n"
            "app.py, lines 2-3 of 5\n2\t    result = n * 2\n3\t    return result\n"
            "note: No such file or folder: none.py."
        )
        assert "lines 1-5 of 5" in await shown(client, path="app.py:4")
        assert "are for one file" in await refused(client, "view", path="shop.py, app.py", start=3)
        assert "not both" in await refused(client, "view", path="shop.py", start=3, name="f")


async def test_a_file_with_an_odd_name_is_shown(connect: Connect) -> None:
    async with connect() as client:
        assert (await shown(client, path="odd, name.py:1-2")).endswith("1\todd")


async def test_long_docstrings_of_a_long_part_are_folded_and_lines_keep_their_numbers(
    connect: Connect, repo: Path
) -> None:
    words = "".join(f"        line {number}\n" for number in range(1, 21))
    long = f'class Long:\n    def told(self):\n        """Tell it.\n\n{words}        """\n        return 1\n'
    (repo / "long.py").write_text(long + "\n\n" + "VALUE = 1\n" * 60)
    async with connect() as client:
        shown = text(await client.call_tool("view", {"path": "long.py"}))
        assert '3\t        """Tell it.\n… 22 lines of docstring\n26\t        return 1\n' in shown
        assert "long.py, lines 1-88 of 88" in shown
        assert "line 20" in text(await client.call_tool("view", {"path": "long.py", "start": 1, "end": 30}))
