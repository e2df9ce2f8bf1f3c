"""Exceptions that the program catches on the way to a failure."""

from __future__ import annotations

from sandbox.session.diagnosis import Diagnosis
from tests.guest.diagnosis.conftest import ODD, Diagnose
from tools._diagnosis import render_diagnosis

HEAD = "import unittest\nfrom shop import *\n\nclass Case(unittest.TestCase):\n"
CASE = "test_shop.Case.test_bad"
SHOP = """\
def price(text):
    amount, unit = text.split(":")
    return int(amount) * {"kg": 2, "t": 9}[unit]


def total(texts):
    found = 0
    for text in texts:
        try:
            found += price(text)
        except (KeyError, ValueError):
            continue
    return found
"""
GOOD = "    def test_good(self):\n        self.assertEqual(total(['1:kg']), 2)\n"


def caught(found: Diagnosis) -> list[tuple[str, str, int, int]]:
    assert found.recording is not None, found.notes
    assert found.recording.problems == []
    return [(one.type, one.message, one.raised.line, one.line) for one in found.recording.caught]


def test_an_exception_that_hides_the_cause_is_told_with_both_places(diagnose: Diagnose) -> None:
    tests = HEAD + "    def test_bad(self):\n        self.assertEqual(total(['1:kg', '1:lb']), 3)\n" + GOOD
    found = diagnose({"shop.py": SHOP, "test_shop.py": tests}, CASE)
    assert caught(found) == [("KeyError", "lb", 3, 11)]
    assert (
        'KeyError: lb was raised at shop.py:3 price(): return int(amount) * {"kg": 2, "t": 9}[unit]; '
        "caught at shop.py:11 total()\n"
    ) in render_diagnosis(found)


def test_what_passing_tests_catch_too_is_not_told(diagnose: Diagnose) -> None:
    others = "".join(
        f"    def test_good_{number}(self):\n        self.assertEqual(total(['1:kg', '{number}:lb']), 2)\n"
        for number in range(15)
    )
    tests = HEAD + "    def test_bad(self):\n        self.assertEqual(total(['1:lb', '2:kg']), 3)\n" + others
    assert caught(diagnose({"shop.py": SHOP, "test_shop.py": tests}, CASE)) == []


def test_exceptions_whatever_they_are_leave_the_program_as_it_is(diagnose: Diagnose) -> None:
    shop = (
        ODD
        + """
class Wild(Exception, Odd):
    args = property(lambda self: 1 / 0)

    def __str__(self):
        raise RuntimeError("str")


def call(number):
    try:
        raise Wild(number)
    except BaseException as exc:
        return type(exc) is Wild and number
"""
    )
    tests = HEAD + "    def test_bad(self):\n        self.assertEqual(call(700), 1)\n"
    found = diagnose({"shop.py": shop, "test_shop.py": tests}, CASE)
    assert found.recording is not None and not found.recording.differs
    assert [one.type for one in found.recording.caught] == ["Wild"]


def test_a_message_that_is_a_number_of_6_000_digits_leaves_the_program_as_it_is(diagnose: Diagnose) -> None:
    shop = "def call():\n    try:\n        raise ValueError(10 ** 6000)\n    except ValueError:\n        return 2\n"
    tests = HEAD + "    def test_bad(self):\n        self.assertEqual(call(), 1)\n"
    found = diagnose({"shop.py": shop, "test_shop.py": tests}, CASE)
    assert found.recording is not None and not found.recording.differs
    assert found.recording.failed is not None and found.recording.failed.type == "AssertionError"


def test_the_end_of_an_iteration_is_no_exception_to_tell(diagnose: Diagnose) -> None:
    shop = "def first(rows):\n    try:\n        return next(rows)\n    except StopIteration:\n        return None\n"
    tests = HEAD + "    def test_bad(self):\n        self.assertEqual(first(iter(())), 1)\n"
    assert caught(diagnose({"shop.py": shop, "test_shop.py": tests}, CASE)) == []
