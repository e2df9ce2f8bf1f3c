"""The state that changes of the code are about, and its uses in a file."""

from __future__ import annotations

import ast

import pytest

from sandbox.guest.diagnosis.mutation import state_uses
from sandbox.guest.diagnosis.mutation.definitions import Definitions
from sandbox.guest.diagnosis.mutation.functions import functions_in
from sandbox.guest.diagnosis.mutation.mutant import Mutant
from sandbox.guest.diagnosis.mutation.mutants import mutants_of

SOURCE = '''\
LEVELS = {}
# LEVELS of all

class Tree:
    levels = None

    def clear(self):
        """Forget."""
        self.levels.clear()
        if self.levels == {}:
            def inner(levels):
                self.levels["a"] = levels

    async def size(self):
        del self.levels[0]
        return len(self.levels) + self.width()

    def kept(self, name):
        if name not in self.found:
            self.found[name] = 1
            LEVELS[name] = 1
        return self.found[name]
'''
TREE = ast.parse(SOURCE)


def changes(*wanted: str) -> list[Mutant]:
    """Those of all changes of the methods that are described like this."""
    lines, definitions = SOURCE.splitlines(), Definitions([TREE])
    made = [
        one
        for function in functions_in("tree.py", TREE)
        for one in mutants_of(function, set(range(len(lines))), definitions)
    ]
    found = [one for text in wanted for one in made if one.describe(lines) == text]
    assert len(found) >= len(wanted), [one.describe(lines) for one in made]
    return found


@pytest.mark.parametrize(
    ("described", "name"),
    [
        (["without `self.levels.clear()`", "if `self.levels == {}` were true"], "levels"),
        (["without `self.found[name] = 1`", "if `name not in self.found` were true"], "found"),
        (["if `self.found` were empty each time"], "found"),
        (["with `self.levels = None` at its end", "with `1` for `0`", "with `2` for `1`"], ""),
        (["with `self.levels = None` at its end", "with `1` for `0`"], "levels"),
        (["if `self.levels == {}` were true"], ""),  # read alone
        ([], ""),
    ],
)
def test_the_state_that_changes_are_about(described: list[str], name: str) -> None:
    found = state_uses.find(changes(*described), TREE)
    assert (found[0] if found else "") == name


def test_lines_that_use_and_write_an_attribute_or_a_constant() -> None:
    found = state_uses.find(changes("without `self.levels.clear()`"), TREE)
    assert found == ("levels", [(5, True), (9, True), (10, False), (12, True), (15, True), (16, False)])
    found = state_uses.find(changes("without `LEVELS[name] = 1`"), TREE)
    assert found == ("LEVELS", [(1, True), (21, True)])
