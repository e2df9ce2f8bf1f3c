"""Short texts of values."""

from __future__ import annotations

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


class Odd:
    @property
    def name(self) -> str:
        raise RuntimeError("name")

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)


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
