"""Functions that tell nothing of a failure, by their source and the lines that have run."""

from __future__ import annotations

import ast

import pytest

from sandbox.guest.diagnosis.plain_functions import find

HANDING_ON = "def call(self, *args, **kwargs):\n"


def is_plain(source: str, *ran: int) -> bool:
    function = ast.parse(source).body[0]
    return find([("call", function)], ran) == {"call"}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def call(self, w, h): self.w = w", True),
        ("def call(self, w, h): self._w = w", True),
        ("def call(self, w, h): self.__w: int = w", True),
        ("def call(self, value): self.w = value", True),
        ("def call(self, w, h): self.w = h", False),
        ("def call(self, *, w, h=1): self.w = h", False),
        ("def call(self): self.w = h", False),
        ("def call(self, w): self.pop().w = w", False),
        ("def call(self, w): self.w = w + 1", False),
    ],
)
def test_a_setter_stores_the_variable_of_its_name_or_the_only_one(source: str, expected: bool) -> None:
    assert is_plain(source) is expected


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("function(*args, **kwargs)", True),
        ("self.run.now(self.text, 3, *args, retries=self.n, **kwargs)", True),
        ('self.run(text.strip() + "x", 3, *args, retries=self.n + 1, **kwargs)', False),
        ("self.run(text.strip(), *args, **kwargs)", False),
        ("self.run(*args, retries=self.n + 1, **kwargs)", False),
        ("self.table[name.lower()](*args, **kwargs)", False),
        ("self.find()(*args, **kwargs)", False),
        ("self.run(**kwargs)", False),
    ],
)
def test_what_hands_on_calculates_nothing(call: str, expected: bool) -> None:
    assert is_plain(f"{HANDING_ON}    return {call}", 2) is expected


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("if self.old:", True),
        ("while self.old > 3:", True),
        ("for one in kwargs:", True),
        ("if self.cache.pop(1, None):", False),
        ("while not self.queue.get():", False),
        ("if (found := self.old):", False),
    ],
)
def test_a_condition_before_has_done_nothing_without_a_call(before: str, expected: bool) -> None:
    source = f"{HANDING_ON}    {before}\n        print(self)\n    return self.run(*args, **kwargs)"
    assert is_plain(source, 2, 4) is expected
    assert not is_plain(source, 2, 3, 4)
