"""Changes that take what a name means from another place: a variable for an attribute of its name, and the other way round."""

from __future__ import annotations

import ast

from .mutant import AIMED, Mutant, blocks_in, expression, filled, holding, local_names

_MIN_WORD = 4
"""Characters of the last word of a variable that may be the name of an attribute."""
_MAX_HOLDERS, _MAX_HELD = 4, 24
_SIMPLE = (ast.Return, ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign)


def stand_ins(node, names):
    """Yield changes of an attribute: with one more that others ask for beside it, with a variable of its name."""
    base = node.value
    is_alone = node not in names.definitions.asked
    for name in names.definitions.alternatives.get(node.attr, ()) if is_alone else ():
        either = expression(f"_it.{node.attr} or _it.{name}", node, _it=base)
        yield _in_place_of(node, either, "with `or " + base.id + "." + name + "` after {}")
    for name in names.ending(node.attr):
        if name != base.id:
            yield _in_place_of(node, expression(name, node), "with `" + name + "` in place of {}")


def whole_durations(node, names):
    """Yield changes of the seconds of a `timedelta`, which leave out its days and fractions: with all of it."""
    if node.attr == "seconds" and isinstance(node.ctx, ast.Load):
        total = expression("_it.total_seconds()", node, _it=node.value)
        yield _in_place_of(node, total, "with `total_seconds()` for `seconds` in {}")


def _in_place_of(attribute, value, text):
    return Mutant(attribute, {"value": holding(attribute, value)}, attribute, AIMED, text, attribute)


def held_by_others(function, executed, names):
    """Yield changes of statements that use a variable: with the attribute of its name that another variable has.

    `order.customer` for `new_customer`.
    """
    made = 0
    for owner in ast.walk(function):
        for field, block in blocks_in(owner):
            for index, one in enumerate(block):
                for node, text in _held(one, names) if _is_simple(one, executed) else ():
                    if made < _MAX_HELD:
                        made += 1
                        changed = filled([one], node.id, expression(text, node))
                        block_made = [*block[:index], *changed, *block[index + 1 :]]
                        told = "with `" + text + "` for {} in {}"
                        yield Mutant(owner, {field: block_made}, node, AIMED, told, node, one)


def _is_simple(statement, executed):
    return isinstance(statement, _SIMPLE) and statement.lineno in executed


def _held(statement, names):
    """Yield (variable that a statement only reads, text of an attribute that may be meant)."""
    found = [one for one in ast.walk(statement) if isinstance(one, ast.Name)]
    read = {one.id: one for one in found if isinstance(one.ctx, ast.Load)}
    bound = {*local_names(statement)}
    for node in [one for name, one in read.items() if name not in bound]:
        _, line, attribute = node.id.rpartition("_")
        is_known = line and len(attribute) >= _MIN_WORD and names.definitions.has_field(attribute)
        if is_known and node.id in names.locals:
            for name in names.others(node.id)[:_MAX_HOLDERS]:
                yield node, f"{name}.{attribute}"
