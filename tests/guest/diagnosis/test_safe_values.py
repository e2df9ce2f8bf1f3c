"""Short texts of values."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from sandbox.guest.diagnosis.safe_values import text_of


class Plain:
    def __init__(self, **held: object) -> None:
        self.__dict__.update(held)


class Slotted:
    __slots__ = ("_key", "name")

    def __init__(self, key: object) -> None:
        self._key = key


class Both(Slotted):
    """With slots of the class above and attributes of its own."""


class Odd:
    @property
    def name(self) -> str:
        raise RuntimeError("name")

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)


def both(key: object, **held: object) -> Both:
    made = Both(key)
    for name, value in held.items():
        setattr(made, name, value)
    return made


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Plain(name="a", id=3), "<Plain name='a'>"),
        (Plain(id=3, size=4), "<Plain id=3>"),
        (Plain(name=None, _tag="b", value=True), "<Plain _tag='b'>"),
        (Plain(name="x" * 90), "<Plain name='" + 29 * "x" + ">"),
        (Plain(size=4), "<Plain>"),
        (Slotted("k"), "<Slotted _key='k'>"),
        (Slotted([]), "<Slotted>"),
        (both("k"), "<Both _key='k'>"),
        (both("k", name="a", tag=1), "<Both name='a'>"),
        (both(None, tag=1), "<Both tag=1>"),
        ([Plain(name="a")], "[<Plain name='a'>]"),
        ([[Plain(name="a")]], "[[<Plain>]]"),
        (Plain, "class Plain"),
    ],
)
def test_an_object_is_told_with_what_tells_it_from_others(value: object, text: str) -> None:
    assert text_of(value) == text


def test_no_code_of_an_object_runs() -> None:
    made = object.__new__(Odd)
    object.__getattribute__(made, "__dict__")["kind"] = 1
    assert text_of(made) == "<Odd kind=1>"


def test_the_attributes_of_an_object_are_not_copied() -> None:
    made = Plain(**{f"x{number}": number for number in range(100_000)}, title="a")
    text_of(made)
    tracemalloc.start()
    try:
        assert text_of(made) == "<Plain title='a'>"
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()
