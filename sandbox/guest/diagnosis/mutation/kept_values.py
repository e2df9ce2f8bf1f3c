"""Changes of values that are kept: stored again after a variable has changed, stored where the same is only returned."""

# Nodes with a position are told by their attributes.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import ast
import copy

from ..syntax_trees import DEFINITIONS
from .mutant import AIMED, FIRST, Mutant, blocks_in, read_of
from .statements import MOVABLE

_MAX_DISTANCE = 12
"""Statements by which a variable is computed later."""
_MAX_LATER = 3
"""Later statements that give a variable another value."""
_OTHER_SCOPES = (
    *DEFINITIONS,
    ast.ClassDef,
    ast.Lambda,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
)


def kept_values(function, executed):
    """Yield changes of a function's assignments to attributes and items, at lines that have run."""
    kept = {}
    blocks = [(owner, *one) for owner in _own_nodes(function) for one in blocks_in(owner)]
    for owner, field, block in blocks:
        for index, one in enumerate(block):
            if isinstance(one, ast.Assign) and isinstance(one.targets[0], (ast.Attribute, ast.Subscript)):
                if isinstance(one.value, ast.Call):
                    kept[ast.dump(one.value)] = one
                if one.lineno in executed:
                    yield from _kept_again(owner, field, block, index, executed)
            elif isinstance(one, ast.Assign) and one.lineno in executed:
                yield from _computed_later(owner, field, block, index, executed)
    for owner, field, block in blocks if kept else ():
        yield from _kept_too(owner, field, block, kept, executed)


def _own_nodes(node):
    """Yield a node and those in it, but for those with variables of their own."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        yield one
        waiting += [each for each in ast.iter_child_nodes(one) if not isinstance(each, _OTHER_SCOPES)]


def _kept_again(owner, field, block, index, executed):
    """With it stored again behind statements that give a variable another value: it may be the one before that is kept."""
    one = block[index]
    names = {each.id for each in _own_nodes(one.value) if isinstance(each, ast.Name)}
    changing = [
        at
        for at in range(index + 1, len(block))
        if block[at].lineno in executed and names.intersection(_bound_in(block[at]))
    ]
    for at in changing[:_MAX_LATER]:
        made = [*block[: at + 1], one, *block[at + 1 :]]
        yield Mutant(owner, {field: made}, one, AIMED, "with {} once more after {}", one, block[at])


def _computed_later(owner, field, block, index, executed):
    """With a variable computed behind a statement that gives one of those that it is computed of another value."""
    one = block[index]
    names = {each.id for each in _own_nodes(one) if isinstance(each, ast.Name)}
    own = _bound_in(one)
    changing = []
    for at in range(index + 1, min(index + 1 + _MAX_DISTANCE, len(block)) if own else 0):
        if own.intersection(each.id for each in ast.walk(block[at]) if isinstance(each, ast.Name)):
            break
        is_next = at == index + 1 and isinstance(block[at], MOVABLE)  # they are exchanged anyway
        if block[at].lineno in executed and (names - own).intersection(_bound_in(block[at])) and not is_next:
            changing.append(at)
    for at in changing[: -_MAX_LATER - 1 : -1]:
        made = [*block[:index], *block[index + 1 : at + 1], one, *block[at + 1 :]]
        yield Mutant(owner, {field: made}, one, AIMED, "with {} after {}", one, block[at])


def _bound_in(statement):
    """Names that a statement, and those in it, give a value."""
    found = (each for each in _own_nodes(statement) if isinstance(each, ast.Name))
    return {each.id for each in found if isinstance(each.ctx, ast.Store)}


def _kept_too(owner, field, block, kept, executed):
    """With what a block returns stored, as another line does that computes the same."""
    last = block[-1] if block else None
    if not isinstance(last, ast.Return) or last.value is None or last.lineno not in executed:
        return
    keeping = kept.get(ast.dump(last.value))
    if keeping is not None and keeping.lineno > last.lineno:  # else it may have been stored already
        given = copy.copy(last)
        given.value = read_of(keeping.targets[0])
        made = [*block[:-1], keeping, given]
        yield Mutant(owner, {field: made}, last, FIRST, "with {}, then returned, for {}", keeping, last)
