"""The calls of a failing test that matter most."""

from __future__ import annotations

import pytest

from sandbox.guest.supervisor.processes import diagnosis
from sandbox.session.diagnosis import Call, Diagnosis
from tests.guest.diagnosis.conftest import ODD, PYTHON, Diagnose

HEAD = "import unittest\nfrom shop import *\n\nclass Case(unittest.TestCase):\n"
CASE = "test_shop.Case.test_bad"
SHOP = """\
class Cart:
    def __init__(self, lines):
        self.lines = lines

    def add(self, name, price=1, *notes):
        self.lines.append((name, net(price)))
        return self

    def copy(self):
        return self

    def total(self):
        found = 0
        for name, price in self.lines:
            found += price
        return found

    def __repr__(self):
        return shown(self)


def net(price):
    return price * 2


def shown(cart):
    return "cart of %d" % len(cart.lines)
"""
BAD = """\
    def test_bad(self):
        cart = Cart([])
        cart.add("a", 3)
        cart.add("b", 4)
        other = cart.copy()
        other.add("c")
        self.assertEqual(cart.total(), 14)
"""


def calls_of(found: Diagnosis) -> list[Call]:
    assert found.recording is not None, found.notes
    assert found.recording.problems == []
    return found.recording.calls


def texts(found: Diagnosis) -> list[str]:
    return [f"{'  ' * one.depth}{one.function}({one.arguments}) {one.result}" for one in calls_of(found)]


def test_functions_that_those_of_the_calls_have_called_are_told_with_the_line(diagnose: Diagnose) -> None:
    found = diagnose({"shop.py": SHOP, "test_shop.py": HEAD + BAD}, CASE)
    assert found.recording is not None
    helpers = [(one.function, one.by.function, one.by.line, one.results) for one in found.recording.helpers]
    assert helpers == [("net", "Cart.add", 6, ["6", "8", "2"])]


def test_a_function_that_also_describes_the_failure_is_told_by_its_other_calls(diagnose: Diagnose) -> None:
    shop = SHOP.replace("found = 0", "found = len(shown(self)) - 9")
    tests = HEAD + BAD.replace("cart.total(), 14", "str(cart), str(cart.total())")
    found = diagnose({"shop.py": shop.replace("__repr__", "__str__"), "test_shop.py": tests}, CASE)
    assert found.recording is not None and found.recording.problems == []
    assert ("shown", "Cart.total", 13) in {
        (one.function, one.by.function, one.by.line) for one in found.recording.helpers
    }
    assert "Cart.__str__" not in {one.function for one in calls_of(found)}


ACCESSES = """\
import functools

class Rate:
    def __init__(self, rate):
        self._rate = rate

    @property
    def rate(self):
        '''The rate.'''
        return self._rate

    @property
    def of_two(self):
        return self._rate

    @of_two.setter
    def of_two(self, value):
        self._rate = value * 2

    @functools.lru_cache()
    def cached(self):
        return self._rate

    def reset(self):
        self._rate = 0

    def __eq__(self, other):
        return self._rate == other._rate

    __hash__ = object.__hash__

def renamed(function):
    @functools.wraps(function)
    def call(*args, **kwargs):
        new = {}
        for name in kwargs:
            new[name] = 1
            print(name)
            print(new)
        if new:
            args = list(args)
        return function(*args, **kwargs)
    return call

def counted(function):
    def count(*args, **kwargs):
        function.calls = 1
        return function(*args, **kwargs)
    return count

@renamed
@counted
def total(rate):
    rate.of_two = 2
    rate.reset()
    return rate.rate + rate.of_two + rate.cached()
"""


def test_functions_that_only_set_or_return_an_attribute_or_hand_on_are_not_named(diagnose: Diagnose) -> None:
    tests = HEAD + "    def test_bad(self): self.assertEqual((Rate(1) == Rate(2)) + total(Rate(1)), 4)\n"
    found = diagnose({"shop.py": ACCESSES, "test_shop.py": tests}, CASE)
    assert found.recording is not None and found.recording.problems == []
    assert {one.function for one in found.recording.plain} == {"Rate.__init__", "Rate.rate", "renamed.call"}
    ran = {one.function for one in found.recording.ran}
    assert ran == {"Rate.of_two", "Rate.cached", "Rate.reset", "counted.count", "total"}


LATER = """\
class Rate:
    def __init__(self, rate):
        self.rate = rate

    def of(self, prices):
        return sum(prices) / self.rate

class Cart:
    def __init__(self, lines):
        self.lines = lines
        self.set_rate(0)

    def set_rate(self, rate):
        self.rate = Rate(rate)

    def prices(self):
        for line in self.lines:
            yield line * 2

    def total(self):
        found = self.prices()
        return self.rate.of(found)
"""


def test_generators_and_callers_are_told_with_the_line_of_the_call(diagnose: Diagnose) -> None:
    tests = HEAD + "    def test_bad(self): self.assertEqual(Cart([1]).total(), 3)\n"
    shop = LATER.replace("set_rate(0)", "set_rate(1)")
    found = diagnose({"shop.py": shop, "test_shop.py": tests}, CASE)
    assert found.recording is not None and found.recording.problems == []
    helpers = {(one.function, one.by.function, one.by.line) for one in found.recording.helpers}
    assert ("Cart.prices", "Cart.total", 21) in helpers
    callers = {(one.function, one.line, one.by.function) for one in found.recording.callers}
    assert {("Cart.total", 22, "Rate.of"), ("Cart.set_rate", 14, "Rate.__init__")} <= callers
    assert not any(one.path == "test_shop.py" for one in found.recording.callers)


def test_where_attributes_were_set_that_functions_of_the_failure_read(diagnose: Diagnose) -> None:
    tests = HEAD + "    def test_bad(self): self.assertEqual(Cart([1]).total(), 2)\n"
    found = diagnose({"shop.py": LATER, "test_shop.py": tests}, CASE)
    assert found.recording is not None and found.recording.problems == []
    told = [
        (one.name, one.value, one.read.function, one.function, one.maker and one.maker.line)
        for one in found.recording.attributes
    ]
    # A constructor that a test calls, `Cart.lines`, tells nothing.
    assert told == [
        ("rate", "0", "Rate.of", "Rate.__init__", 14),
        ("rate", "", "Cart.total", "Cart.set_rate", None),
    ]


def test_calls_are_told_in_order_with_arguments_results_and_their_number(diagnose: Diagnose) -> None:
    found = diagnose({"shop.py": SHOP, "test_shop.py": HEAD + BAD}, CASE)
    assert texts(found) == [
        "Cart.__init__(lines=<list> changed later) ",  # it was changed since
        "Cart.copy() self itself",
        "Cart.add(name='c', price=1) self itself",
        "  net(price=1) 2",
        "Cart.total() 16",
    ]
    add = next(one for one in calls_of(found) if one.function == "Cart.add")
    assert (add.path, add.line, add.called_at, add.calls) == ("shop.py", 5, 10, 3)
    assert found.recording is not None and found.recording.functions == 5


def test_what_only_describes_the_failure_is_not_told(diagnose: Diagnose) -> None:
    tests = HEAD + BAD.replace("cart.total(), 14", "cart, 14")
    found = diagnose({"shop.py": SHOP, "test_shop.py": tests}, CASE)
    assert "Cart.copy" in {one.function for one in calls_of(found)}
    assert not {"Cart.__repr__", "shown"} & {one.function for one in calls_of(found)}
    assert found.recording is not None
    assert not {"Cart.__repr__", "shown"} & {one.function for one in found.recording.suspects}


def test_calls_of_fixtures_count_and_frames_of_the_failure_are_told_elsewhere(diagnose: Diagnose) -> None:
    tests = (
        HEAD
        + "    def setUp(self):\n        self.cart = Cart([])\n\n"
        + "    def test_bad(self):\n        self.cart.add('a', None)\n"
    )
    found = diagnose({"shop.py": SHOP, "test_shop.py": tests}, CASE)
    assert texts(found) == ["Cart.__init__(lines=<list> changed later) "]
    assert calls_of(found)[0].called_at == 6


def test_of_many_functions_those_that_set_the_test_apart_and_long_ones_are_told(diagnose: Diagnose) -> None:
    small = "".join(f"def small_{number}():\n    pass\n\n" for number in range(30))
    odd = "def odd(x):\n    if x > 3:\n        x += 1\n        x *= 2\n    return x\n"
    every = "".join(f"        small_{number}()\n" for number in range(30))
    tests = (
        HEAD
        + f"    def test_bad(self):\n{every}        self.assertEqual(odd(7), 0)\n"
        + f"    def test_good(self):\n{every}        self.assertEqual(odd(0), 0)\n"
    )
    found = diagnose({"shop.py": small + odd, "test_shop.py": tests}, CASE)
    assert len(calls_of(found)) == 10 and found.recording is not None and found.recording.functions == 31
    best = max(calls_of(found), key=lambda one: one.score)
    assert (best.function, best.suspect_line, best.result) == ("odd", 94, "16")


def test_values_whatever_they_are_are_not_asked(diagnose: Diagnose) -> None:
    shop = ODD + "def give(one, *rest, **more):\n    return one\n\ndef same(one):\n    return [one]\n"
    tests = (
        HEAD
        + "    def test_bad(self):\n        x = give(Odd(), Odd, y=Odd())\n        same(x)\n        1 / 0\n"
    )
    found = diagnose({"shop.py": shop, "test_shop.py": tests}, CASE)
    assert texts(found) == [
        "give(one=<Odd>, rest=(<Meta>,), more={'y': <Odd>}) one itself",
        "same(one=<Odd>) [<Odd>]",
    ]


def test_a_recursion_is_one_call(diagnose: Diagnose) -> None:
    shop = "def down(n):\n    if n:\n        return down(n - 1)\n    return 'end'\n"
    tests = HEAD + "    def test_bad(self):\n        self.assertEqual(down(50), '')\n"
    found = diagnose({"shop.py": shop, "test_shop.py": tests}, CASE)
    assert [(one.function, one.calls, one.result) for one in calls_of(found)] == [("down", 51, "'end'")]


def test_of_a_program_without_tests_the_calls_of_its_module_are_told(diagnose: Diagnose) -> None:
    app = "from shop import *\n\ncart = Cart([])\ncart.add('a')\nprint(cart.total() / net(0))\n"
    found = diagnose({"shop.py": SHOP, "app.py": app}, command=f"{PYTHON} app.py")
    assert texts(found) == [
        "Cart.__init__(lines=<list> changed later) ",
        "Cart.add(name='a', price=1) self itself",
        "Cart.total() 2",
        "net(price=0) 0",
    ]


def test_a_test_too_long_to_record_whole_has_the_calls_of_its_end(
    diagnose: Diagnose, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diagnosis, "_MAX_EVENTS", 10_000)
    shop = "def step(n):\n    return n + 1\n\ndef walk():\n    n = 0\n    while n < 5000:\n        n = step(n)\n    return n\n"
    tests = HEAD + "    def test_bad(self):\n        self.assertEqual(walk(), 0)\n"
    found = diagnose({"shop.py": shop, "test_shop.py": tests}, CASE)
    assert found.recording is not None and "were kept" in found.recording.cut
    assert texts(found) == ["step(n=4999) 5000"]
    assert calls_of(found)[0].called_at == 0


def test_lines_of_a_long_call_are_those_near_its_most_suspect_one(diagnose: Diagnose) -> None:
    body = "".join(f"    n = add(n, {number})\n" for number in range(90))
    shop = f"def add(n, m):\n    return n + m\n\ndef sum_up(n):\n{body}    if n == 4007:\n        n = 0\n    return n\n"
    good = "    def test_good(self):\n        self.assertEqual(sum_up(1), 4006)\n"
    tests = HEAD + good + "    def test_bad(self):\n        self.assertEqual(sum_up(2), 4007)\n"
    (call,) = [
        one
        for one in calls_of(diagnose({"shop.py": shop, "test_shop.py": tests}, CASE))
        if one.function == "sum_up"
    ]
    assert call.suspect_line == 96
    assert [line for line, _ in call.lines] == list(range(38, 98))


def test_lines_that_ran_have_what_was_set_and_decided_there(diagnose: Diagnose) -> None:
    shop = """\
def pick(texts):
    found = None
    kept = []
    for text in texts:
        if text:
            found = text.upper()
            kept.append(text)
    try:
        size = len(found)
    except TypeError:
        return kept
    return size
"""
    tests = HEAD + "    def test_bad(self):\n        self.assertEqual(pick(['a', 'b', '']), 7)\n"
    (call,) = calls_of(diagnose({"shop.py": shop, "test_shop.py": tests}, CASE))
    looped = [(4, "text = ''"), (5, "''"), (6, "found = 'B'"), (7, "append('b')")]
    assert call.lines == [(2, ""), (3, ""), *looped, (9, "size = 1"), (12, "→ 1")]
    tests = HEAD + "    def test_bad(self):\n        self.assertEqual(pick(['']), 7)\n"
    (call,) = calls_of(diagnose({"shop.py": shop, "test_shop.py": tests}, CASE))
    caught = [(10, "caught TypeError"), (11, "→ []")]
    assert call.lines == [(2, ""), (3, ""), (4, "text = ''"), (5, "''"), *caught]


def test_what_makes_an_object_is_less_suspect_than_what_does_the_same_later(diagnose: Diagnose) -> None:
    shop = """\
class Cell:
    def __init__(self, value):
        self.value = value

    def put(self, value):
        self.value = value
"""
    tests = (
        HEAD
        + "    def test_bad(self):\n        cell = Cell(1)\n        cell.put(2)\n        self.assertEqual(cell, 3)\n"
    )
    made, put = calls_of(diagnose({"shop.py": shop, "test_shop.py": tests}, CASE))
    assert (made.function, put.function) == ("Cell.__init__", "Cell.put")
    assert put.score - made.score >= 0.25


def test_of_a_function_that_reads_kept_state_the_call_that_read_it_is_told(diagnose: Diagnose) -> None:
    shop = """\
class Prices:
    def __init__(self):
        self._known = {}

    def find(self, name, country):
        if name not in self._known:
            self._known[name] = name + country
        return self._known[name]

    def label(self, name, country):
        return "%s!" % self.find(name, country)
"""
    tests = (
        HEAD
        + """\
    def test_bad(self):
        prices = Prices()
        first, second = prices.label("tea", "FR"), prices.label("tea", "IT")
        self.assertEqual([first, second, prices.find("milk", "DE")], ["teaFR!", "teaIT!", "milkDE"])
"""
    )
    (found,) = [
        one
        for one in calls_of(diagnose({"shop.py": shop, "test_shop.py": tests}, CASE))
        if one.function == "Prices.find"
    ]
    assert (found.arguments, found.result, found.called_at) == (
        "name='tea', country='IT'",
        "'teaFR'",
        7,
    )
