"""State that changes are about, and its other uses in a file."""

from __future__ import annotations

import pytest

from tools._state_uses import find_state, function_around, lines_with, writes

SOURCE = '''\
LEVELS = {}
# levels of all

class Tree:
    levels = None

    def clear(self):
        """Forget."""
        self.levels.clear()
        if self.levels == {}:
            def inner():
                self.levels["a"] = 1

    async def size(self):
        return len(self.levels)
'''.splitlines()


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        (["without `EVALUATED[expr] = result`", "if `expr not in EVALUATED` were true"], "EVALUATED"),
        (["with `self._size = None` at its end", "with `0` for `1`"], "_size"),
        (["if `self._levels` were empty each time"], "_levels"),
        (["if `args != list(self.args)` were true"], ""),  # read alone
        (["without `self.log(x)`", "without `self.a = 1`", "with `0` for `1`"], ""),
        ([], ""),
    ],
)
def test_the_state_that_changes_are_about(changes: list[str], name: str) -> None:
    assert find_state(changes) == name


def test_lines_that_use_and_write_it() -> None:
    used = list(lines_with("levels", SOURCE))
    assert [SOURCE[index].strip() for index in used] == [
        "levels = None",
        "self.levels.clear()",
        "if self.levels == {}:",
        'self.levels["a"] = 1',
        "return len(self.levels)",
    ]
    assert [writes("levels", SOURCE[index]) for index in used] == [True, True, False, True, False]
    assert writes("x", "self.x: list[int] = []") and writes("x", "del self.x[0]") and writes("x", "x += 1")
    assert not writes("x", "self.x.append") and not writes("x", "f(x) == 1")
    assert [function_around(SOURCE, index) for index in used] == ["", "clear", "clear", "inner", "size"]
