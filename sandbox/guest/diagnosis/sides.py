"""The two sides of a failing comparison: the value that the program made, and the one that the test expects."""

from __future__ import annotations

import ast
from collections import OrderedDict

from . import failure
from .events import is_atom, is_same
from .safe_values import text_of

_OF_UNITTEST = (("first", "second"), ("seq1", "seq2"), ("d1", "d2"), ("member", "container"))
_EXPECTED = ("expect", "want", "correct", "should")
_ACTUAL = ("actual", "result", "got", "output", "val", "value", "res", "ret", "out")
_MAX_DEPTH, _MAX_PARTS = 30, 20_000
_FEW = 6
"""Items that are seen at a glance."""
_CHARACTER = "character "
_AROUND = 30
"""Characters of a text before and after the first one that differs."""
_HOLDING = dict, list, tuple
_NUMBERS = (bool, int, float, complex)
_PLAIN = (
    ast.Constant, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.UnaryOp, ast.unaryop, ast.BinOp, ast.operator, ast.expr_context
)  # fmt: skip


def of_unittest(exc):
    """(operator, first, second) of a failing assertion of unittest, from the frames of its methods; None for others."""
    step, found = failure.traceback_of(exc), None
    while step is not None:
        if step.tb_frame.f_code.co_filename.endswith("unittest/case.py"):
            names = step.tb_frame.f_locals
            for first, second in _OF_UNITTEST:
                if first in names and second in names and found is None:
                    found = ("in" if first == "member" else "==", names[first], names[second])
        step = step.tb_next
    return found


def actual_first(sides, statement):
    """(operator, actual, expected) of what a statement has compared, which may name the expected value first.

    The latter is the one side that is a literal, or whose name says so; the former may have a name that says so, too.
    """
    operator, first, second = sides
    nodes = _compared(statement)
    if nodes is not None and _likeness(nodes[0]) > _likeness(nodes[1]):
        return operator, second, first
    return operator, first, second


def is_ordered(statement):
    """False if nothing tells which side of an assertion is the expected one: `assertEqual` is called either way."""
    nodes = _compared(statement)
    is_told = nodes is not None and _likeness(nodes[0]) != _likeness(nodes[1])
    return is_told or isinstance(statement, ast.Assert)


def describe_difference(sides, statement):
    """{place, actual, expected, is_ordered} of the first difference; None if that is seen at a glance, or there is no place of it."""
    operator, actual, expected = sides
    found = None if operator in ("in", "not in") else first_difference(actual, expected)
    if found is None:
        return None
    return dict(zip(("place", "actual", "expected"), found), is_ordered=is_ordered(statement))


def _compared(statement):
    """The expressions that a statement compares: of its only comparison, or the arguments of its assertion; else None."""
    if statement is None:
        return None
    if isinstance(statement, ast.Assert):
        found = [
            (one.left, one.comparators[0])
            for one in ast.walk(statement.test)
            if isinstance(one, ast.Compare) and len(one.ops) == 1
        ]
    else:
        found = [
            tuple(one.args[:2])
            for one in ast.walk(statement)
            if isinstance(one, ast.Call)
            and isinstance(one.func, ast.Attribute)
            and one.func.attr.startswith("assert")
            and len(one.args) >= 2
        ]
    return found[0] if len(found) == 1 else None


def _likeness(node):
    """1 for what is likely to be expected, -1 for what is likely to be a result of the program, else 0."""
    if isinstance(node, (ast.Name, ast.Attribute)):
        name = (node.id if isinstance(node, ast.Name) else node.attr).lower()
        return any(word in name for word in _EXPECTED) - (name in _ACTUAL)
    return int(all(isinstance(one, _PLAIN) for one in ast.walk(node)))


def first_difference(actual, expected):
    """(place, actual, expected) of the first parts that differ in two values that hold many others, or are long texts; else None.

    The place is as in source: `['body'][2]`. In builtin types, and in subclasses of these with the same `==`; other
    objects are not compared.
    """
    found = _first_difference(actual, expected)
    if found is None or found[0].startswith(_CHARACTER) or found[0].count("[") > 1:
        return found
    return found if max(map(_kind_of(actual).__len__, (actual, expected))) > _FEW else None


def _kind_of(value):
    """The type of a value; of one that is a dict, a list or a tuple, and compared like that, the builtin type."""
    kind = type(value)
    for one in _HOLDING if kind not in _HOLDING else ():
        if issubclass(kind, one) and type.__getattribute__(kind, "__eq__") in (
            one.__eq__,
            OrderedDict.__eq__,
        ):
            return one
    return kind


def _first_difference(actual, expected):
    waiting, made = [("", actual, expected, 0)], 0
    while waiting:
        place, one, other, depth = waiting.pop()
        if is_same(one, other) or _are_equal_numbers(one, other):
            continue
        kind = _kind_of(one)
        if kind is not _kind_of(other) or is_atom(one):
            return _differing(place, one, other) if is_atom(one) or is_atom(other) or depth else None
        if kind not in _HOLDING or depth > _MAX_DEPTH or made > _MAX_PARTS:
            continue
        if kind is dict and _is_in_other_order(one, other):
            return None  # there is no place of it
        parts = _parts(place, one, other, depth + 1)
        made += len(parts)
        # What only one has comes last: it may have moved everything behind it.
        waiting[:0] = [part for part in parts if part[1] is _MISSING or part[2] is _MISSING][:1]
        waiting += reversed([part for part in parts if part[1] is not _MISSING and part[2] is not _MISSING])
    return None


def _is_in_other_order(one, other):
    """True for two OrderedDict with the same keys in another order, which are not equal."""
    if not isinstance(one, OrderedDict) or not isinstance(other, OrderedDict):
        return False
    first, second = (
        [(type(key), key) for key in OrderedDict.__iter__(side) if is_atom(key)] for side in (one, other)
    )
    return first != second and set(first) == set(second)


def _are_equal_numbers(one, other):
    """True for `0.0` and `0`, `True` and `1`."""
    are_atoms = is_atom(one) and is_atom(other)  # else their types may define `==`
    return are_atoms and type(one) in _NUMBERS and type(other) in _NUMBERS and one == other


_MISSING = object()


def _parts(place, one, other, depth):
    """(place, part, part, depth) of two dicts or sequences; `_MISSING` for what only one has."""
    kind = _kind_of(one)
    if kind is dict:
        # By type, and without the program's own keys, which may define `==`.
        first, second = (
            {(type(key), key): value for key, value in dict.items(side) if is_atom(key)}
            for side in (one, other)
        )
        keys = list(dict.fromkeys([*first, *second]))[:_MAX_PARTS]
        pairs = [(key[1], first.get(key, _MISSING), second.get(key, _MISSING)) for key in keys]
    else:
        longer = range(min(max(map(kind.__len__, (one, other))), _MAX_PARTS))
        pairs = [
            (
                index,
                *(
                    kind.__getitem__(side, index) if index < kind.__len__(side) else _MISSING
                    for side in (one, other)
                ),
            )
            for index in longer
        ]
    return [(f"{place}[{text_of(key)}]", first, second, depth) for key, first, second in pairs]


def _differing(place, one, other):
    if type(one) is str and type(other) is str and max(len(one), len(other)) > 2 * _AROUND:
        start = next(
            (index for index, pair in enumerate(zip(one, other)) if pair[0] != pair[1]),
            min(len(one), len(other)),
        )
        place = f"{place}, {_CHARACTER}{start}" if place else f"{_CHARACTER}{start}"
        one, other = (_around(text, start) for text in (one, other))
    elif not place:
        return None
    else:
        one, other = ("nothing" if value is _MISSING else text_of(value, 1) for value in (one, other))
    return place, one, other


def _around(text, start):
    first = max(0, start - _AROUND)
    cut = text[first : start + _AROUND]
    return ("…" if first else "") + repr(cut) + ("…" if start + _AROUND < len(text) else "")
