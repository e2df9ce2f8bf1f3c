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

    def place(self, other):
        self.width = other.height

    def grow(self):
        self.height = 3

    @cached_property
    def area(self):
        return self.height * self.width

    def merge(self):
        if self.width is None or self.merged is not None:
            self.merged = 1

    def forget(self):
        registry.remove(self)
        print(self)
        return self.area

    def level(self, index):
        self.width[index] = self.found[index]

    @classmethod
    def all_parents(cls):
        cls.parents[0] = None
        return [one for one in cls.parents.values()]

    def renew(self):
        self.key = self.width
        self.clear()
'''
REGISTRY = """\
_known = []

def remove(tree):
    _known.remove(tree)
    tree.registry = None

def reset(_known):
    _known.clear()

def reset_all():
    global _known
    _known = []
"""
TREE = ast.parse(SOURCE)
OTHERS = "def remove(tree):\n    global count\n    count = 1\n\ncount = 0\n"
MODULES = {"tree.py": TREE, "shop/registry.py": ast.parse(REGISTRY), "shop/others.py": ast.parse(OTHERS)}
DEFINITIONS = Definitions(MODULES)


def changes(*wanted: str) -> list[Mutant]:
    """Those of all changes of the methods that are described like this."""
    lines = SOURCE.splitlines()
    made = [
        one
        for function in functions_in("tree.py", TREE)
        for one in mutants_of(function, set(range(len(lines) + 1)), DEFINITIONS)
    ]
    return [next(one for one in made if one.describe(lines) == text) for text in wanted]


@pytest.mark.parametrize(
    ("described", "name"),
    [
        (["without `self.levels.clear()`", "if `self.levels == {}` were true"], "levels"),
        (["without `self.found[name] = 1`", "if `name not in self.found` were true"], "found"),
        (["if `self.found` were empty each time"], "found"),
        (["with `self.levels = None` at its end", "with `1` for `0`", "with `2` for `1`"], "levels"),
        (["with `1` for `0`", "with `2` for `1`", "with `self.levels = None` at its end"], ""),
        (["with `self.levels = None` at its end", "with `1` for `0`"], "levels"),
        (["if `self.levels == {}` were true"], "levels"),  # the file writes it
        (["without `self.width = other.height`"], "height"),
        (["without `self.width[index] = self.found[index]`"], "found"),
        (["if `self.width is None or self.merged is not None` were false"], "merged"),  # it writes that
        (["if `self.found` were empty each time", "without `self.width = other.height`"], "found"),
        (["with `self.key` at its end as it was before", "with `1` for `0`", "with `2` for `1`"], "key"),
        (["with `cls.parents.values()` sorted"], "parents"),
        (
            [
                "with `self.levels = None` at its end",
                "without `self.found[name] = 1`",
                "if `name not in self.found` were true",
            ],
            "levels",
        ),
        ([], ""),
    ],
)
def test_the_state_that_changes_are_about(described: list[str], name: str) -> None:
    assert state_uses.find(changes(*described), "tree.py", DEFINITIONS)[0] == name


def test_lines_that_use_and_write_an_attribute_or_a_constant() -> None:
    found = state_uses.find(changes("without `self.levels.clear()`"), "tree.py", DEFINITIONS)
    assert found == (
        "levels",
        "tree.py",
        [(5, True), (9, True), (10, False), (12, True), (15, True), (16, False)],
    )
    found = state_uses.find(changes("without `LEVELS[name] = 1`"), "tree.py", DEFINITIONS)
    assert found == ("LEVELS", "tree.py", [(1, True), (21, True)])


def test_lines_that_compute_a_cached_attribute_and_that_change_what_it_is_computed_of() -> None:
    name, path, uses = state_uses.find(
        changes("if `self.area` were computed anew, line 30"), "tree.py", DEFINITIONS
    )
    lines = SOURCE.splitlines()
    assert (name, path) == ("area, height, width", "tree.py")
    assert [lines[line - 1].strip() for line, _ in uses] == [
        "self.width = other.height",
        "self.height = 3",
        "def area(self):",
        "return self.area",
        "self.width[index] = self.found[index]",
    ]
    assert all(is_written for _, is_written in uses)


def test_what_else_changes_name_with_its_lines_in_all_files() -> None:
    """Attributes that are not called, or are set and named like a parameter, and globals; not what is known, or has many lines."""
    modules = {
        "shop.py": ast.parse(
            "RATE = 1\ndef total(self, limit, tax):\n    self.seen = self.first(RATE, limit, tax)\n    self.many = 1\n"
            "    self.limit = 1\n" + "    self.many = 2\n" * 20
        ),
        "tax.py": ast.parse(
            "def tax(order):\n    order.limit = 1\n    return order.seen, order.first, order.tax, RATE\n"
        ),
    }
    node = modules["shop.py"].body[1]
    assert isinstance(node, ast.FunctionDef)
    mutants = [Mutant(node, {}, one, 0, "without {}", one) for one in node.body[:2]]
    found = state_uses.find_beside(mutants, "shop.py", [""], Definitions(modules), [*modules])
    assert found == [
        ("seen", [("shop.py", 3, True), ("tax.py", 3, False)]),
        ("RATE", [("shop.py", 1, True), ("shop.py", 3, False)]),
        ("limit", [("shop.py", 5, True), ("tax.py", 2, True)]),
    ]
    assert len(state_uses.find_elsewhere(".limit", "shop.py", Definitions(modules), [*modules])) == 1
    many = {**modules, "many.py": ast.parse("order.limit = 1\n" * 6)}
    assert state_uses.find_elsewhere(".limit", "shop.py", Definitions(many), [*many]) == []
    known = state_uses.find_beside(mutants, "shop.py", ["seen"], Definitions(modules), [*modules])
    assert [name for name, _ in known] == ["RATE", "limit"]


def test_lines_with_what_a_function_writes_whose_call_is_left_out() -> None:
    name, path, uses = state_uses.find(
        changes("without `registry.remove(self)`", "without `registry.remove(self)`"), "tree.py", DEFINITIONS
    )
    assert (name, path, uses) == ("_known", "shop/registry.py", [(1, True), (4, True), (12, True)])
    assert state_uses.find(changes("without `print(self)`"), "tree.py", DEFINITIONS)[0] == ""
