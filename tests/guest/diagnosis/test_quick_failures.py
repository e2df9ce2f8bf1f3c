"""Failures without texts that tell how values differ."""

from __future__ import annotations

import unittest

import pytest

from sandbox.guest.diagnosis.mutation.quick_failures import QuickFailures


class Differing(unittest.TestCase):
    maxDiff = None


def message(name: str, first: object, second: object) -> str:
    with pytest.raises(AssertionError) as raised:
        getattr(Differing(), name)(first, second)
    return str(raised.value)


@pytest.mark.parametrize(
    ("name", "first", "second", "difference"),
    [
        ("assertEqual", [1, 2], [1, 3], "- [1, 2]"),
        ("assertEqual", {1: 2}, {1: 3}, "- {1: 2}"),
        ("assertMultiLineEqual", "a\nb", "a\nc", "- b"),
    ],
)
def test_unittest_tells_no_difference_meanwhile(
    name: str, first: object, second: object, difference: str
) -> None:
    assert difference in message(name, first, second)
    quick = QuickFailures()
    quick.begin()
    try:
        assert difference not in message(name, first, second)
    finally:
        quick.end()
    assert difference in message(name, first, second)


def test_pytest_explains_nothing_meanwhile() -> None:
    quick = QuickFailures()
    quick.begin()
    try:
        with pytest.raises(AssertionError) as raised:
            assert list(range(50)) == list(range(51))
        assert "contains one more item" not in str(raised.value)
    finally:
        quick.end()
    with pytest.raises(AssertionError, match="contains one more item"):
        assert list(range(50)) == list(range(51))
