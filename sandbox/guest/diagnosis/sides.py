"""The two sides of a failing comparison: the value that the program made, and the one that the test expects."""

from __future__ import annotations

import ast

from . import failure

_OF_UNITTEST = (("first", "second"), ("seq1", "seq2"), ("d1", "d2"), ("member", "container"))
_EXPECTED = ("expect", "want", "correct", "should")
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
                    found = ("==", names[first], names[second])
        step = step.tb_next
    return found


def actual_first(sides, statement):
    """(operator, actual, expected) of what a statement has compared, which may name the expected value first.

    That is the one side that is a literal, or whose name says so.
    """
    operator, first, second = sides
    nodes = _compared(statement)
    if nodes is not None and _is_expected(nodes[0]) and not _is_expected(nodes[1]):
        return operator, second, first
    return operator, first, second


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


def _is_expected(node):
    if isinstance(node, (ast.Name, ast.Attribute)):
        name = (node.id if isinstance(node, ast.Name) else node.attr).lower()
        return any(word in name for word in _EXPECTED)
    return all(isinstance(one, _PLAIN) for one in ast.walk(node))
