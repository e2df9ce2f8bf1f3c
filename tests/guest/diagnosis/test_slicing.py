"""Values and what they are made of: operands that decided them, and attributes that were set or read by their names."""

from __future__ import annotations

import pytest

from sandbox.guest.diagnosis import sites
from sandbox.guest.diagnosis.slicing import causes
from tests.guest.diagnosis.conftest import Diagnose
from tests.guest.diagnosis.test_rewriting import recorded
from tests.guest.diagnosis.test_wrong_values import recording

WEAK = 3
"""Weight of what did not decide a value."""


def weights(source: str) -> dict[str, int]:
    """Name -> weight of the variables that the last value of a program is made of."""
    _, events = recorded(source)
    found = [
        (events.site(cause), weight) for cause, weight in causes(events, len(events) - 1) if cause is not None
    ]
    return {site.name: weight for site, weight in found if site.kind == sites.STORE}


@pytest.mark.parametrize(
    ("values", "expression", "found"),
    [
        ("a = 1; b = 2", "a or b", {"a": 1, "b": WEAK}),
        ("a = 0; b = 2", "a or b", {"a": WEAK, "b": 1}),
        ("a = 1; b = 2", "a and b", {"a": WEAK, "b": 1}),
        ("a = 0; b = 2", "a and b", {"a": 1, "b": WEAK}),
        ("a = 0; b = 2; c = 3", "(a and b) or c", {"a": WEAK, "b": WEAK, "c": 1}),
        ("a = 0; b = 2", "(a or b) + a", {"a": 1, "b": 1}),
        ("a = True; b = True", "a and b", {"a": 1, "b": 1}),
        ("a = True; b = False", "a and b", {"a": WEAK, "b": 1}),
        ("a = 1; b = 5", "[x for x in (1, 2) if x >= a and x < b]", {"a": 1, "b": 1}),
        ("a = 1; x = 5", "sum([x for x in (1, 2) if x < 9 and x]) + x + a", {"a": 1, "x": 1}),
    ],
)
def test_what_did_not_decide_a_value_is_weighed_less(
    values: str, expression: str, found: dict[str, int]
) -> None:
    assert weights(f"{values}\nz = {expression}") == found


@pytest.mark.parametrize(
    ("test", "found"),
    [("a and b", {"a": 1, "b": 1}), ("a or b", {"a": 1, "b": WEAK}), ("not a or b", {"a": WEAK, "b": 1})],
)
def test_all_operands_of_a_condition_count_that_none_has_ended(test: str, found: dict[str, int]) -> None:
    _, events = recorded(f"a = 1; b = 2\nif {test}:\n    pass")
    (asked,) = events.of_kind(sites.TEST)
    weighed = [(events.site(cause), weight) for cause, weight in causes(events, asked) if cause is not None]
    assert {site.name: weight for site, weight in weighed if site.kind == sites.STORE} == found


@pytest.mark.parametrize(("is_set", "found"), [(True, {"a": WEAK, "b": WEAK}), (False, {"a": 1, "b": WEAK})])
def test_a_default_counts_where_the_attribute_was_not_set(is_set: bool, found: dict[str, int]) -> None:
    source = f"class Box: pass\na = 1; b = 2; box = Box()\n{'box.size = 3' if is_set else ''}\n"
    weighed = weights(source + "z = getattr(box, 'size', a or b)")
    assert {name: weight for name, weight in weighed.items() if name in found} == found


def test_properties_that_are_read_by_a_name_are_followed() -> None:
    source = (
        "class Box:\n    @property\n    def size(self):\n        return 3\nk = 'size'\nz = getattr(Box(), k)"
    )
    _, events = recorded(source)
    made_of = [events.site(cause).kind for cause, _ in causes(events, len(events) - 1) if cause is not None]
    assert sites.RETURN in made_of


BOXES = """\
class Box:
    def __init__(self, **given):
        for name, value in given.items():
            setattr(self, name, value)

def filled(box, more):
    box.held.append(more)
    return box

def weight(box):
    return sum(box.held) + box.empty
"""
BOXED = """\
import unittest
from rows import *

class Case(unittest.TestCase):
    def test_bad(self):
        one = [1]
        first, second = Box(held=one, empty=2), Box(held=one, empty=3)
        filled(first, 4)
        self.assertEqual(weight(second), 4)
"""


def test_attributes_that_are_set_by_a_name_are_told_with_it(diagnose: Diagnose) -> None:
    found = recording(diagnose, BOXES, BOXED)
    assert ("self.held", 4) in {(one.name, one.line) for one in found.chain} | {
        (one.name, one.stored.line) for one in found.aliases
    }
    names = BOXED.replace("weight(second), 4", "second.empty + second.size, 4").replace(
        "empty=3", "empty=3, size=5"
    )
    written = recording(diagnose, BOXES, names)
    assert {(one.name, one.value) for one in written.chain} & {("self.empty", "3"), ("self.size", "5")}
