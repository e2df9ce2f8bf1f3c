"""Histories of attributes, items and variables: each change with its line, and who else holds the object."""

from __future__ import annotations

import pytest

from sandbox.session.trace import Trace
from tests.guest.diagnosis.conftest import ODD, PYTHON, Traced

APP = """\
from dataclasses import dataclass, field
import heapq

DEFAULTS = {"limit": 1000}
_cache = {}

@dataclass
class Item:
    name: str
    qty: int = 1
    tags: list = field(default_factory=list)

class Slotted:
    __slots__ = ("left",)
    kinds = []

    def __init__(self):
        self.left = 1

class Order:
    def __init__(self, items=[]):
        self.items = items

    def add(self, item):
        self.items.append(item)
        return self

def options(**own):
    found = DEFAULTS
    found.update(own)
    return found

def rate(country, year):
    if country not in _cache:
        _cache[country] = year * 2
    return _cache[country]

def total(items):
    result = 0
    for item in items:
        result += item.qty
    return result

options(limit=5)
rate("de", 1), rate("fr", 2)
a, b = Item("a"), Item("b", 3)
total([a, b])
setattr(a, "qty", 7)
heapq.heappush(a.tags, "x")
b.tags = a.tags
b.tags.append("y")
del a.qty
slotted = Slotted()
slotted.left = 2
slotted.kinds.append(3)
first = Order().add(1)
second = Order().add(2)
"""
COMMAND = f"{PYTHON} app.py"


def history(found: Trace) -> list[tuple[str, str, str, str, str]]:
    """(line, name, kind of change, before, after) of each change."""
    return [
        (event.source, event.name, event.how, event.before, event.value[0] if event.value else "")
        for event in found.events
        if event.kind == "change"
    ]


@pytest.mark.parametrize(
    ("of", "changes"),
    [
        (
            "DEFAULTS",
            [
                ('DEFAULTS = {"limit": 1000}', "DEFAULTS", "set", "", "{'limit': 1000}"),
                ("found.update(own)", "DEFAULTS", "in place", "{'limit': 1000}", "{'limit': 5}"),
            ],
        ),
        (
            "app.DEFAULTS['limit']",
            [
                ('DEFAULTS = {"limit": 1000}', "DEFAULTS['limit']", "set", "", "1000"),
                ("found.update(own)", "DEFAULTS['limit']", "set", "1000", "5"),
            ],
        ),
        ("app.py::_cache['fr']", [("_cache[country] = year * 2", "_cache['fr']", "set", "", "4")]),
        (
            "Item.qty",
            [
                ('a, b = Item("a"), Item("b", 3)', "Item.qty of the class", "first seen", "", "1"),
                ('a, b = Item("a"), Item("b", 3)', "Item#1.qty", "set", "", "1"),
                ('a, b = Item("a"), Item("b", 3)', "Item#2.qty", "set", "", "3"),
                ('setattr(a, "qty", 7)', "Item#1.qty", "set", "1", "7"),
                ("del a.qty", "Item#1.qty", "deleted", "7", ""),
            ],
        ),
        (
            "app.Slotted.left",
            [
                ("self.left = 1", "Slotted#1.left", "set", "", "1"),
                ("slotted.left = 2", "Slotted#1.left", "set", "1", "2"),
            ],
        ),
        (
            "Slotted.kinds",
            [
                ("slotted = Slotted()", "Slotted.kinds of the class", "first seen", "", "[]"),
                ("slotted.kinds.append(3)", "Slotted.kinds of the class", "in place", "[]", "[3]"),
            ],
        ),
        (
            "total.result",
            [
                ("result = 0", "result in total#1", "set", "", "0"),
                ("result += item.qty", "result in total#1", "set", "0", "1"),
                ("result += item.qty", "result in total#1", "set", "1", "4"),
            ],
        ),
    ],
)
def test_each_change_has_its_line_and_both_values(
    traced: Traced, of: str, changes: list[tuple[str, str, str, str, str]]
) -> None:
    found = traced({"app.py": APP}, of, command=COMMAND)
    assert history(found) == changes
    assert (found.notes, found.missing, found.differs, found.outcome.exit_code) == ([], [], None, 0)


def test_another_name_for_the_same_object_is_told_when_it_is_given_and_when_the_object_changes(
    traced: Traced,
) -> None:
    found = traced({"app.py": APP}, "Item.tags", command=COMMAND)
    assert history(found)[2:] == [
        ('heapq.heappush(a.tags, "x")', "Item#1.tags", "in place", "[]", "['x']"),
        ("b.tags = a.tags", "Item#1.tags", "shared", "Item#2.tags", "['x']"),
        ("b.tags = a.tags", "Item#2.tags", "set", "[]", "['x']"),
        ('b.tags.append("y")', "Item#1.tags", "in place", "['x']", "['x', 'y']"),
    ]
    assert found.events[-1].others == ["Item#2.tags, set at app.py:50"]
    assert found.events[-1].detail == "[1] = 'y'"


def test_a_default_that_all_calls_share_is_told(traced: Traced) -> None:
    found = traced({"app.py": APP}, "Order.items", command=COMMAND)
    first, added, *_ = found.events
    assert first.others == ["a default of __init__()"]
    assert (added.place, added.function_name, added.called_from) == (
        ("app.py", 25),
        "Order.add",
        ("app.py", 56),
    )
    assert added.source == "self.items.append(item)"
    assert ("self.items = items", "Order#2.items", "set", "", "[1]") in history(found)


def test_a_change_by_a_name_that_nobody_would_look_for(traced: Traced) -> None:
    files = {
        "cart.py": (
            "class Cart:\n"
            "    def __init__(self, lines):\n"
            "        self.lines = lines\n"
            "class Report:\n"
            "    def __init__(self, rows):\n"
            "        self.rows = rows\n"
            "    def shrink(self):\n"
            "        while len(self.rows) > 1:\n"
            "            self.rows.pop()\n"
        ),
        "test_cart.py": (
            "import unittest\n"
            "from cart import Cart, Report\n"
            "class Case(unittest.TestCase):\n"
            "    def test_bad(self):\n"
            "        cart = Cart([1, 2])\n"
            "        report = Report(cart.lines)\n"
            "        report.shrink()\n"
            "        self.assertEqual(cart.lines, [1, 2])\n"
        ),
    }
    found = traced(files, "Cart.lines")
    assert history(found) == [
        ("self.lines = lines", "Cart#1.lines", "set", "", "[1, 2]"),
        ("self.rows = rows", "Cart#1.lines", "shared", "Report.rows", "[1, 2]"),
        ("self.rows.pop()", "Cart#1.lines", "in place", "[1, 2]", "[1]"),
    ]
    assert found.events[-1].kind == "test"
    change = found.events[-2]
    assert change.others == ["Report.rows, set at cart.py:6"]
    assert (change.function_name, change.called_from) == ("Report.shrink", ("test_cart.py", 7))


def test_calls_and_histories_are_told_together_in_their_order(traced: Traced) -> None:
    found = traced({"app.py": APP}, "options", "DEFAULTS", command=COMMAND)
    assert [(event.kind, event.name) for event in found.events] == [
        ("change", "DEFAULTS"),
        ("call", ""),
        ("change", "DEFAULTS"),
    ]


def test_a_change_is_told_within_the_call_that_makes_it(traced: Traced) -> None:
    app = """\
class Cart:
    def __init__(self):
        self.lines = []

    def add(self, line):
        self.lines.append(line)

def fill(cart):
    cart.add(1)
    cart.lines.append(2)

fill(Cart())
"""
    found = traced({"app.py": app}, "fill", "Cart.add", "Cart.lines", command=COMMAND)
    names = {
        event.number: found.functions[event.function][0] for event in found.events if event.kind == "call"
    }
    changes = [(event.source, names.get(event.parent)) for event in found.events if event.kind == "change"]
    assert changes == [
        ("self.lines = []", None),
        ("self.lines.append(line)", "Cart.add"),
        ("cart.lines.append(2)", "fill"),
    ]


def test_a_name_that_is_never_set_has_no_change(traced: Traced) -> None:
    found = traced({"app.py": APP}, "Order.nope", command=COMMAND)
    assert (found.watched, found.events) == ([("Order.nope", 2, 0)], [])


def test_objects_that_raise_whatever_is_done_with_them(traced: Traced) -> None:
    app = (
        ODD
        + """\
class Box:
    def __init__(self, held):
        self.held = held

def make(odd, more):
    box = Box(odd)
    box.held = [odd, more]
    box.held.append(odd)
    return box

make(type.__call__(Odd), {"odd": type.__call__(Odd)})
"""
    )
    found = traced({"app.py": app}, "Box.held", "app.py", command=COMMAND)
    assert (found.notes, found.differs, found.outcome.exit_code) == ([], None, 0)
    assert [(line, how) for line, _, how, _, _ in history(found)] == [
        ("self.held = held", "set"),
        ("box.held = [odd, more]", "set"),
        ("box.held.append(odd)", "in place"),
    ]
