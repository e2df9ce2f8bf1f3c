"""Calls of traced functions: arguments, results, exceptions, expressions, and what is the same object."""

from __future__ import annotations

import pytest

from sandbox.guest.supervisor.errors import GuestError
from sandbox.session.trace import Event, Trace
from tests.guest.diagnosis.conftest import PYTHON, Traced

CART = """\
class Cart:
    def __init__(self, lines):
        self.lines = lines
        self.saved = []

    def defer(self):
        self.saved = self.lines
        return self.saved

    def total(self):
        return sum(net(line) for line in self.saved)

def net(line, *, rate=2):
    if line > 1000:
        raise ValueError("too much")
    return line * rate
"""
TESTS = """\
import unittest
from cart import Cart, net

class Case(unittest.TestCase):
    def test_bad(self):
        cart = Cart([10, 20])
        cart.defer()
        with self.assertRaises(ValueError):
            net(2000)
        self.assertEqual(cart.total(), 61)
"""
FILES = {"cart.py": CART, "test_cart.py": TESTS}


def calls(found: Trace) -> list[tuple[str, list[str], str]]:
    """(function, arguments, result or exception) of each call."""
    return [
        (
            found.functions[event.function][0],
            [f"{name}={text}" for name, text, _ in event.arguments],
            event.error or (event.value[0] if event.value else "?"),
        )
        for event in of_kind(found, "call")
    ]


def of_kind(found: Trace, kind: str) -> list[Event]:
    return [event for event in found.events if event.kind == kind]


def counts(found: Trace) -> dict[str, int]:
    return {name: count for name, _, _, count, _ in found.functions}


def test_each_call_has_its_arguments_and_its_result(traced: Traced) -> None:
    found = traced(FILES, "net", "Cart.total")
    assert calls(found) == [
        ("net", ["line=2000", "rate=2"], "ValueError: too much"),
        ("Cart.total", ["self=<Cart lines=[10, 20], saved=[10, 20]>"], "60"),
        ("net", ["line=10", "rate=2"], "20"),
        ("net", ["line=20", "rate=2"], "40"),
    ]
    first, total, *below = of_kind(found, "call")
    assert first.parent == total.parent == 0
    assert [event.parent for event in below] == [total.number] * 2
    assert (first.place, below[0].place) == (("test_cart.py", 9), ("cart.py", 11))
    assert found.functions == [("net", "cart.py", 13, 3, True), ("Cart.total", "cart.py", 10, 1, True)]
    assert (found.differs, found.notes, found.missing) == (None, [], [])


def test_the_outcome_is_that_of_the_run(traced: Traced) -> None:
    outcome = traced(FILES, "net").outcome
    assert (outcome.counts, outcome.exit_code) == ({"failed": 1}, 1)
    (failure,) = outcome.failures
    assert (failure.text, failure.path, failure.line) == ("AssertionError: 60 != 61", "test_cart.py", 10)


def test_objects_that_are_the_same_have_the_same_number(traced: Traced) -> None:
    found = traced(FILES, "cart.py::Cart")
    made, deferred, total = of_kind(found, "call")
    lines = made.arguments[1][2]
    assert lines
    assert deferred.value == ("[10, 20]", lines)
    assert deferred.held_as == "self.lines, self.saved"
    assert made.arguments[0][2] == deferred.arguments[0][2] == total.arguments[0][2] != lines
    assert made.changed == [("self", "<Cart lines=[10, 20], saved=[]>")]


def test_expressions_are_evaluated_at_the_return_and_may_fail(traced: Traced) -> None:
    expressions = [
        "len(self.saved)",
        "result is self.lines",
        "1 / 0",
        "self.",
        "[self.saved[i] for i in range(1)]",
    ]
    (event,) = of_kind(traced(FILES, "Cart.defer", expressions=expressions), "call")
    assert event.expressions[:3] == ["2", "True", "!! ZeroDivisionError: division by zero"]
    assert event.expressions[3].startswith("!! SyntaxError")
    assert event.expressions[4] == "[10]"


def test_an_expression_without_an_end_is_ended(traced: Traced) -> None:
    found = traced(FILES, "Cart.defer", expressions=["[1 for _ in iter(int, 1)]", "self.total()"])
    (event,) = of_kind(found, "call")
    assert event.expressions == ["!! took too long", "60"]
    assert found.outcome.counts == {"failed": 1}


@pytest.mark.parametrize(
    ("of", "traced_functions"),
    [
        ("cart.net", {"net"}),
        ("cart.Cart.total", {"Cart.total"}),
        ("cart.py::Cart.total", {"Cart.total"}),
        ("Cart.total()", {"Cart.total"}),
        ("Cart", {"Cart.__init__", "Cart.defer", "Cart.total"}),
        ("cart", {"Cart.__init__", "Cart.defer", "Cart.total", "net"}),
        ("cart.py", {"Cart.__init__", "Cart.defer", "Cart.total", "net"}),
        ("unittest.TestCase.assertEqual", {"unittest.TestCase.assertEqual"}),
    ],
)
def test_functions_are_found_by_the_names_that_people_write(
    traced: Traced, of: str, traced_functions: set[str]
) -> None:
    assert set(counts(traced(FILES, of))) == traced_functions


def test_names_that_nothing_has_are_told_with_similar_ones(traced: Traced) -> None:
    found = traced(FILES, "nett", "shop.py", "cart.py::Cart.total")
    assert found.missing == [
        "nett: no such function, class, module or attribute in the repository (did you mean net?)",
        "shop.py: no such file",
    ]
    assert counts(found) == {"Cart.total": 1}
    with pytest.raises(GuestError, match="0 names"):
        traced(FILES)


def test_generators_and_coroutines_are_one_call_from_begin_to_end(traced: Traced) -> None:
    program = """\
import asyncio

def inner(n):
    return n

def numbers(n):
    for i in range(n):
        yield inner(i)

async def fetch(n):
    await asyncio.sleep(0)
    return inner(n)

async def both():
    return await asyncio.gather(fetch(1), fetch(2))

def delegate():
    yield from numbers(2)
    return 7

sum(numbers(5))
first = numbers(5)
next(first)
first.close()
list(delegate())
asyncio.run(both())
"""
    found = traced({"app.py": program}, "app.py", command=f"{PYTHON} app.py")
    told = [
        (name, result, event.yields, [text for text, _ in event.yielded])
        for (name, _, result), event in zip(calls(found), of_kind(found, "call"), strict=True)
        if name not in ("inner", "both")
    ]
    # From 3.13 on `close` does not run the generator if nothing in it waits for that.
    assert told.pop(1) in [("numbers", "closed", 1, ["0"]), ("numbers", "?", 0, ["0"])]
    assert told == [
        ("numbers", "None", 5, ["0", "1", "2"]),
        ("delegate", "7", 2, ["0", "1"]),
        ("numbers", "None", 2, ["0", "1"]),
        ("fetch", "1", 1, []),
        ("fetch", "2", 1, []),
    ]
    names = {event.number: found.functions[event.function][0] for event in of_kind(found, "call")}
    below = {(names.get(event.parent), names[event.number]) for event in of_kind(found, "call")}
    assert below >= {("numbers", "inner"), ("delegate", "numbers"), ("fetch", "inner")}
    assert ("delegate", "inner") not in below


def test_exceptions_that_are_handled_inside_do_not_end_a_call(traced: Traced) -> None:
    program = """\
def fails():
    raise KeyError("x")

def handles():
    try:
        fails()
    except KeyError:
        return None

def finishes():
    try:
        fails()
    finally:
        len("")

handles()
try:
    finishes()
except KeyError:
    pass
"""
    found = traced({"app.py": program}, "handles", "finishes", command=f"{PYTHON} app.py")
    assert calls(found) == [("handles", [], "None"), ("finishes", [], "KeyError: 'x'")]
    assert found.outcome.exit_code == 0


def test_the_calls_of_each_thread_nest_for_themselves(traced: Traced) -> None:
    program = """\
import threading

ready, done = threading.Barrier(2, timeout=60), threading.Barrier(2, timeout=60)

def outer(n):
    ready.wait()
    inner(n)
    done.wait()

def inner(n):
    ready.wait()

threads = [threading.Thread(target=outer, args=(n,)) for n in (1, 2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""
    found = traced({"app.py": program}, "app.py", command=f"{PYTHON} app.py")
    events = {event.number: event for event in of_kind(found, "call")}
    inner = [event for event in events.values() if event.parent]
    assert len(events) == 4
    assert len({event.thread for event in events.values()}) == 2
    for event in inner:
        outer = events[event.parent]
        assert (outer.thread, outer.arguments[0][1]) == (event.thread, event.arguments[0][1])


def test_a_module_of_the_program_with_a_name_of_the_library_stays_its_own(traced: Traced) -> None:
    app = "import json\n\ndef net(n):\n    return json.RATE + n\n\nnet(1)\n"
    found = traced({"json.py": "RATE = 41\n", "app.py": app}, "net", command=f"{PYTHON} app.py")
    assert calls(found) == [("net", ["n=1"], "42")], found.notes
