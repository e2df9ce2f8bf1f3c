"""Changes of conditions and of their parts."""

# Nodes with a position are told by their attributes.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import ast

from .mutant import AIMED, LIKELY, POSSIBLE, READ, Mutant, expression, is_docstring, last_name

_MAX_FLAGS, _MAX_AMONG = 6, 5
"""Variables and attributes; values among which something is looked for."""
_COMPARED = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt,),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt,),
    ast.Is: (ast.Eq,),
    ast.Eq: (ast.NotEq, ast.LtE, ast.GtE),
    ast.NotEq: (ast.Eq, ast.Lt, ast.Gt),
    ast.IsNot: (ast.NotEq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_SILENT = (ast.Pass, ast.Continue, ast.Global, ast.Nonlocal)
"""Statements whose lines some versions of Python don't tell of."""
_EFFECTIVE = (ast.Call, ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)
_ASKING = ("isinstance", "issubclass", "hasattr", "callable", "len", "type")
"""Functions without effects."""
_OPPOSITE = {ast.Eq, ast.NotEq}, {ast.In, ast.NotIn}
_SIGNS = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip


def conditions(node, names):
    """With the other outcome of a condition."""
    for outcome in (True, False):
        if isinstance(node.test, ast.Constant) or (isinstance(node, ast.While) and outcome):
            continue
        if names.settled.get(node.test) == outcome:
            continue  # it is so
        fields = {"test": ast.copy_location(ast.Constant(value=outcome), node.test)}
        text = "if {} were " + ("true" if outcome else "false")
        yield Mutant(node, fields, node.test, LIKELY, text, node.test)


def wider(node, names):
    """With another variable or attribute that the function asks for elsewhere, where one is asked for."""
    asked = asked_by(node.test)
    if not all(map(is_flag, asked.values())):
        return
    for flag in [one for dump, one in names.flags.items() if dump not in asked][:_MAX_FLAGS]:
        either = expression("_a or _b", node.test, _a=node.test, _b=flag)
        yield Mutant(node, {"test": either}, node.test, AIMED, "if {} were enough for {}", flag, node.test)


def asked_for_none(node, names):
    """With a test for None where it is asked for truth, which an empty container or zero has not."""
    for part in node.test.values if isinstance(node.test, ast.BoolOp) else [node.test]:
        is_not = isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not)
        value = part.operand if is_not else part
        if isinstance(value, READ):
            asked = expression("_it is None" if is_not else "_it is not None", part, _it=value)
            values = [asked if one is part else one for one in getattr(node.test, "values", ())]
            fields = {"values": values} if values else {"test": asked}
            owner = node.test if values else node
            yield Mutant(owner, fields, part, AIMED, "if {} were asked for None alone", part)


def asked_for_truth(node, names):
    """With a test for truth where it is asked for None alone: an empty container or zero is to count as nothing."""
    if is_compared_with_none(node):
        sign = ast.Eq if isinstance(node.ops[0], ast.IsNot) else ast.NotEq
        fields = {
            "left": expression("bool(_it)", node, _it=node.left),
            "ops": [sign()],
            "comparators": [expression("True", node)],
        }
        yield Mutant(node, fields, node, AIMED, "if {} were asked for truth in {}", node.left, node)


def without_not(node, names):
    """Without a `not`."""
    if isinstance(node.op, ast.Not):
        same = {"op": ast.Not(), "operand": expression("not _it", node, _it=node.operand)}
        yield Mutant(node, same, node, LIKELY, "without `not` in {}", node)


def operands(node, names):
    """Without a part of an `and` or `or`, with the other one of these, with its parts in the other order."""
    is_all = isinstance(node.op, ast.And)
    has_whole_outcome = names.settled.get(node) == is_all  # then each part has it, too
    for index, one in enumerate(node.values if not has_whole_outcome else ()):
        neutral = ast.copy_location(ast.Constant(value=is_all), one)
        values = [*node.values[:index], neutral, *node.values[index + 1 :]]
        yield Mutant(node, {"values": values}, one, LIKELY, "without {} in {}", one, node)
    first, second = node.values[0], node.values[-1]
    other = {"op": ast.Or() if is_all else ast.And()}
    yield Mutant(node, other, node, LIKELY, "with `" + ("or" if is_all else "and") + "` in {}", node)
    if len(node.values) > 2:
        return
    if isinstance(node.op, ast.Or) and isinstance(first, (*READ, ast.Call)):
        chosen = expression("_a if _a is not None else _b", node, _a=first, _b=second)
        yield Mutant(
            node, {"values": [chosen, chosen]}, node, AIMED, "with {} only where {} is None", second, first
        )
    yield Mutant(node, {"values": [second, first]}, node, POSSIBLE, "with {} before {}", second, first)


def comparisons(node, names):
    """With another sign in a comparison."""
    if len(node.ops) == 1:
        sides = node.left, node.comparators[0]
        is_of_numbers = all(
            type(getattr(one, "value", 0)) in (int, float) or isinstance(one, READ) for one in sides
        )
        for kind in _COMPARED.get(type(node.ops[0]), ()):
            if node in names.settled and {kind, type(node.ops[0])} in _OPPOSITE:
                continue  # as if the condition had its other outcome
            if (
                type(node.ops[0]) in (ast.Eq, ast.NotEq)
                and kind not in (ast.Eq, ast.NotEq)
                and not is_of_numbers
            ):
                continue
            sign = _SIGNS[kind]
            yield Mutant(node, {"ops": [kind()]}, node, LIKELY, "with `" + sign + "` in {}", node)


def without_one(node, names):
    """Without one of the few values among which something is looked for."""
    among = node.comparators[0]
    if len(node.ops) > 1 or not isinstance(node.ops[0], (ast.In, ast.NotIn)):
        return
    if isinstance(among, ast.Constant) and type(among.value) is str:
        for one in dict.fromkeys(among.value if 1 < len(among.value) <= _MAX_AMONG else ""):
            fields = {"value": among.value.replace(one, "")}
            yield Mutant(among, fields, node, AIMED, "without `{}` in {}", repr(one), node)
    elif isinstance(among, (ast.Tuple, ast.List, ast.Set)) and 1 < len(among.elts) <= _MAX_AMONG:
        for index, one in enumerate(among.elts):
            fields = {"elts": [*among.elts[:index], *among.elts[index + 1 :]]}
            yield Mutant(among, fields, node, AIMED, "without {} in {}", one, node)


def only_outcome(node, executed):
    """The only outcome that the condition of an `if` had, by the lines that have run; None if it may have had both.

    None, too, for one with calls: without them, more would be different.
    """

    def is_left_out(block):
        is_told = any(not isinstance(one, _SILENT) and not is_docstring(one) for one in block)
        if not is_told or block[0].lineno <= node.test.end_lineno:
            return False  # its lines don't tell
        return executed.isdisjoint(range(block[0].lineno, block[-1].end_lineno + 1))

    for one in ast.walk(node.test):
        if isinstance(one, _EFFECTIVE) and last_name(getattr(one, "func", None)) not in _ASKING:
            return None
    if is_left_out(node.body):
        return False
    return True if is_left_out(node.orelse) else None


def is_compared_with_none(node):
    """True for `x is None` and `x is not None`."""
    other = node.comparators[0]
    is_none = isinstance(other, ast.Constant) and other.value is None
    return is_none and len(node.ops) == 1 and isinstance(node.ops[0], (ast.Is, ast.IsNot))


def asked_by(test):
    """{dump: part} of the parts of a condition."""
    return {ast.dump(one): one for one in (test.values if isinstance(test, ast.BoolOp) else [test])}


def is_flag(part):
    """True for a variable or an attribute."""
    return isinstance(part, (ast.Name, ast.Attribute))
