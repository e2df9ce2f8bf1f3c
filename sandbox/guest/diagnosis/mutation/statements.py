"""Changes of statements in their blocks: without one, in another form, at another place."""

# Nodes with a position are told by their attributes.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import ast
import copy
import re

from ..syntax_trees import index_of, leaves_block
from .definitions import assigned_in, initial_text
from .mutant import (
    AIMED,
    LIKELY,
    POSSIBLE,
    READ,
    Mutant,
    Replacing,
    blocks_in,
    copied,
    copying,
    copying_inside,
    is_docstring,
    parsed,
    path_of,
    read_of,
)

_MAX_BEFORE, _MAX_LATER, _MAX_SKIPPED = 4, 4, 3
"""Statements before a loop; behind one that leaves a block; that a `return` skips."""
_MAX_LIKES = 4
_NAMES = re.compile(r"\b(?:id|attr)='\w*'")
"""Names of variables and attributes in the dump of a syntax tree."""
_LOSING = "clear", "pop", "popleft", "discard", "close", "release"
_LEAVING = (ast.Return, ast.Raise, ast.Break, ast.Continue)
_COMPOUND = (ast.If, ast.For, ast.While, ast.With, ast.Try)
_SIMPLE = (ast.Expr, ast.Assign, ast.AugAssign, ast.Delete)
_REMOVABLE = (*_SIMPLE, *_LEAVING)
MOVABLE = (*_SIMPLE, ast.If)
_IN_PLACE = (ast.Add, ast.BitOr, ast.BitAnd)
"""Operators that lists, sets and dicts have, too."""


def changes_of_block(owner, field, block, executed, shared):
    """Yield changes of the statements of a block, one at a time: without it, after the next one, in another form.

    `shared`: variables that may stand for what somebody else has, too: of these, changes with a copy.
    """
    for index, one in enumerate(block):
        if one.lineno not in executed or is_docstring(one):
            continue
        if isinstance(one, _REMOVABLE) and not _binds_name(one):
            without = [*block[:index], ast.copy_location(ast.Pass(), one), *block[index + 1 :]]
            yield Mutant(owner, {field: without}, one, LIKELY, "without {}", one)
        for text, made in [*_other_forms(one), *_of_container(one, owner)]:
            changed = [*block[:index], *made, *block[index + 1 :]]
            yield Mutant(owner, {field: changed}, one, AIMED, text, one)
        for name in sorted(_changed_names(one) & shared):
            for made, more in (copying, ""), (copying_inside, " and its containers"):
                changed = [*block[:index], *parsed(made(name), one), *block[index:]]
                told = "with a copy of `" + name + "`" + more + " before {}"
                yield Mutant(owner, {field: changed}, one, AIMED, told, one)
        following = block[index + 1] if index + 1 < len(block) else None
        if leaves_block(one):
            continue  # what follows is moved by `moves_of`
        if isinstance(one, MOVABLE) and isinstance(following, MOVABLE) and following.lineno in executed:
            moved = [*block[:index], following, one, *block[index + 2 :]]
            likelihood = AIMED if _depends(following, one) or _depends(one, following) else POSSIBLE
            yield Mutant(owner, {field: moved}, one, likelihood, "with {} after {}", one, following)


def _depends(one, other):
    """True for a statement that reads an attribute which another one sets."""
    targets = (
        [other.target] if isinstance(other, ast.AugAssign) else [target for target, _ in assigned_in(other)]
    )
    written = {path_of(target) for target in targets if isinstance(target, ast.Attribute)} - {""}
    return bool(written) and any(
        isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and path_of(node) in written
        for node in ast.walk(one)
    )


def _changed_names(statement):
    """Variables whose objects a statement changes: by a method that is called for its effect, an attribute, an item."""
    if isinstance(statement, ast.Expr):
        changed = [statement.value.func] if isinstance(statement.value, ast.Call) else []
    else:
        changed = [target for target, _ in assigned_in(statement)]
    bases = (
        getattr(one, "value", None) for one in changed if isinstance(one, (ast.Attribute, ast.Subscript))
    )
    return {one.id for one in bases if isinstance(one, ast.Name)}


def _other_forms(one):
    """Yield (text, statements): an addition in place or not, or none; an item set only where there is none, an `if` for each `elif`."""
    added = _other_addition(one)
    if added is not None:
        how = "in place" if isinstance(one, ast.Assign) else "without changing what was there"
        yield "with {} " + how, [added]
    if isinstance(one, ast.AugAssign):
        plain = ast.Assign(targets=[one.target], value=one.value)
        yield "with `=` alone in {}", [ast.copy_location(plain, one)]
    target = one.targets[0] if isinstance(one, ast.Assign) and len(one.targets) == 1 else None
    if isinstance(target, ast.Subscript) and not isinstance(index_of(target), ast.Slice):
        parts = {"_at": target.value, "_key": index_of(target), "_value": one.value}
        yield "with {} only where there is none", parsed("_at.setdefault(_key, _value)", one, **parts)
    if _is_elif(one):
        chain = [one]
        while _is_elif(chain[-1]):
            chain.append(chain[-1].orelse[0])
        alone = [_changed(each, orelse=[]) for each in chain[:-1]]
        if not all(map(leaves_block, alone)):
            yield "with `if` for each `elif` after {}", [*alone, chain[-1]]


def _of_container(one, owner):
    """Yield (text, statements): an attribute filled anew in place, where it gets a new container, and the other way round.

    Others may hold the container that it had, and are to see that, or not to.
    """
    target = one.targets[0] if isinstance(one, ast.Assign) and len(one.targets) == 1 else None
    if isinstance(target, ast.Attribute) and getattr(owner, "name", "") != "__init__":
        fill = _filling(one.value)
        if fill:
            yield "with {} in place", parsed(fill, one, _at=read_of(target), _value=one.value)
    held = _loses_entry(one)
    if held is not None:
        yield "with all of it removed in {}", parsed("_at.clear()", one, _at=held)
    call = one.value if isinstance(one, ast.Expr) else None
    if isinstance(call, ast.Call) and getattr(call.func, "attr", None) == "clear":
        held = call.func.value
        if isinstance(held, ast.Attribute):
            target = ast.copy_location(ast.Attribute(held.value, held.attr, ast.Store()), held)
            anew = ast.copy_location(ast.Assign(targets=[target], value=copied(held)), one)
            yield "with a new container in {}", [anew, one]


def _loses_entry(one):
    """The attribute from which a statement removes one entry, if it is there: it may be a cache of which none holds any longer."""
    call = one.value if isinstance(one, ast.Expr) and isinstance(one.value, ast.Call) else None
    if call is not None and isinstance(call.func, ast.Attribute) and not call.keywords:
        is_removed = (call.func.attr, len(call.args)) in (("pop", 2), ("discard", 1))
        return call.func.value if is_removed and isinstance(call.func.value, ast.Attribute) else None
    target = one.targets[0] if isinstance(one, ast.Delete) and len(one.targets) == 1 else None
    if not isinstance(target, ast.Subscript) or isinstance(index_of(target), ast.Slice):
        return None
    return target.value if isinstance(target.value, ast.Attribute) else None


def _filling(value):
    """Text of statements that fill a container in place with what a new one has; "" if the value is no new container."""
    maker = getattr(value.func, "id", "") if isinstance(value, ast.Call) else ""
    if isinstance(value, (ast.List, ast.ListComp)) or maker in ("list", "sorted"):
        return "_at[:] = _value"
    if isinstance(value, (ast.Dict, ast.DictComp, ast.Set, ast.SetComp)) or maker in ("dict", "set"):
        return "_new = _value\n_at.clear()\n_at.update(_new)"
    return ""


def _is_elif(one):
    """True for an `if` with an `elif`."""
    return (
        isinstance(one, ast.If)
        and len(one.orelse) == 1
        and isinstance(one.orelse[0], ast.If)
        and one.orelse[0].col_offset == one.col_offset
    )


def _other_addition(one):
    """`x = x + y` for `x += y`, and the other way round; None for another statement, and for numbers and texts."""
    if isinstance(one, ast.Assign) and len(one.targets) == 1 and isinstance(one.value, ast.BinOp):
        target, operation, added = one.targets[0], one.value.op, one.value.right
        if not isinstance(target, READ) or ast.dump(read_of(target)) != ast.dump(one.value.left):
            return None
        made = ast.AugAssign(target=target, op=operation, value=added)
    elif isinstance(one, ast.AugAssign):
        target, operation, added = one.target, one.op, one.value
        sum_of = ast.copy_location(ast.BinOp(left=read_of(target), op=operation, right=added), one)
        made = ast.Assign(targets=[target], value=sum_of)
    else:
        return None
    if not isinstance(operation, _IN_PLACE) or isinstance(added, (ast.Constant, ast.JoinedStr)):
        return None
    return ast.copy_location(made, one)


def _binds_name(node):
    """True for an assignment of names: without it, they are missing below."""
    return isinstance(node, ast.Assign) and all(isinstance(one, ast.Name) for one in node.targets)


def moves_of(function, executed):
    """Yield changes with statements moved out of a block and into it, a value that each round of a loop begins with, a `finally`."""
    yield from _before_returns(function, executed)
    for owner in ast.walk(function):
        for field, block in blocks_in(owner):
            yield from _of_likes(owner, field, block, executed)
            for index, one in enumerate(block):
                if one.lineno in executed:
                    yield from _of_statement(owner, field, block, index)


def _of_likes(owner, field, block, executed):
    """With the same outcome of all conditions of a block that ask the same of different names."""
    likes = {}
    for one in block:
        if isinstance(one, ast.If) and one.lineno in executed:
            likes.setdefault(_NAMES.sub("=''", ast.dump(one.test)), []).append(one)
    for alike in likes.values():
        for outcome in (True, False) if 1 < len(alike) <= _MAX_LIKES else ():
            made = [
                _changed(one, test=ast.copy_location(ast.Constant(value=outcome), one.test))
                if one in alike
                else one
                for one in block
            ]
            text = "if {} and the like were " + ("true" if outcome else "false")
            yield Mutant(owner, {field: made}, alike[0], AIMED, text, alike[0].test)


def _before_returns(function, executed):
    """With what ends the function's work, an attribute that is reset for instance, before a `return` that skips it, too."""
    ending = [index for index, one in enumerate(function.body) if _ends_work(one)]
    for index, above in enumerate(function.body if ending else ()):
        if not isinstance(above, ast.If):
            continue
        skipped = [function.body[one] for one in ending if one > index][:_MAX_SKIPPED]
        for owner, field, block in _blocks_of_if(above):
            last = block[-1]
            if not isinstance(last, ast.Return) or last.lineno not in executed:
                continue
            done = [ast.dump(one) for one in block]
            for one in skipped:
                if ast.dump(one) not in done:
                    made = {field: [*block[:-1], one, last]}
                    yield Mutant(owner, made, last, AIMED, "with {} before {}, too", one, last)


def _blocks_of_if(node):
    """Yield (owner, field, block) of the blocks of an `if` and of those in them."""
    waiting = [node]
    while waiting:
        owner = waiting.pop()
        for field, block in blocks_in(owner):
            if block:
                yield owner, field, block
                waiting += [one for one in block if isinstance(one, ast.If)]


def _ends_work(statement):
    """True for an attribute that is set to a plain value or counted, and for a container that loses something."""
    if isinstance(statement, ast.AugAssign):
        return isinstance(statement.target, ast.Attribute)
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call):
        return getattr(call.func, "attr", None) in _LOSING
    found = list(assigned_in(statement))
    return any(isinstance(target, ast.Attribute) and initial_text(value) for target, value in found)


def _of_statement(owner, field, block, index):
    one, rest = block[index], block[index + 1 :]
    if isinstance(getattr(one, "value", None), ast.Yield) and rest and not isinstance(owner, ast.Try):
        guarded = ast.copy_location(ast.Try(body=[one], handlers=[], orelse=[], finalbody=rest), one)
        yield Mutant(
            owner, {field: [*block[:index], guarded]}, one, AIMED, "with what follows {} in a `finally`", one
        )
    yield from _set_before(owner, field, block, index)
    if leaves_block(one):
        for number, later in enumerate(rest[:_MAX_LATER]):
            if isinstance(later, MOVABLE):
                moved = [*block[:index], later, one, *rest[:number], *rest[number + 1 :]]
                yield Mutant(
                    owner, {field: moved}, later, AIMED, "with {} before {}, not after it", later, one
                )
    if isinstance(one, ast.If):
        yield from _hoisted(owner, field, block, index)
        yield from _sunk(owner, field, block, index)
        yield from _of_branches(owner, field, block, index)
    if not isinstance(one, _COMPOUND) or getattr(one, "orelse", None):
        return
    if isinstance(one, (ast.For, ast.While)):
        yield from _of_rounds(one, block[max(0, index - _MAX_BEFORE) : index])
    last = one.body[-1]
    if isinstance(last, MOVABLE):
        inner = _changed(one, body=one.body[:-1] or [ast.copy_location(ast.Pass(), last)])
        made = [*block[:index], inner, last, *rest]
        yield Mutant(
            owner, {field: made}, last, POSSIBLE, "with {} after the block of {}, not in it", last, one
        )
    if rest and isinstance(rest[0], MOVABLE) and not isinstance(last, _LEAVING):
        made = [*block[:index], _changed(one, body=[*one.body, rest[0]]), *rest[1:]]
        yield Mutant(owner, {field: made}, rest[0], POSSIBLE, "with {} in the block of {}", rest[0], one)
    if (
        isinstance(one, ast.If)
        and isinstance(owner, ast.For)
        and field == "body"
        and not isinstance(last, _LEAVING)
    ):
        body = [*one.body, ast.copy_location(ast.Break(), last)]
        yield Mutant(one, {"body": body}, last, POSSIBLE, "with `break` after {}", last)


def _hoisted(owner, field, block, index):
    """With the first statement of an `if` before it: it is done in any case."""
    one = block[index]
    first = one.body[0]
    if isinstance(first, _SIMPLE) and not _binds_name(first):
        inner = _changed(one, body=one.body[1:] or [ast.copy_location(ast.Pass(), first)])
        made = [*block[:index], first, inner, *block[index + 1 :]]
        yield Mutant(owner, {field: made}, first, AIMED, "with {} before {}, not in it", first, one)


def _sunk(owner, field, block, index):
    """With the statement before an `if` that leaves the block done in that alone: it is for the end, not for each pass of a loop."""
    one, before = block[index], block[index - 1] if index else None
    if isinstance(before, _SIMPLE) and not _binds_name(before) and isinstance(one.body[-1], _LEAVING):
        inner = _changed(one, body=[before, *one.body])
        made = [*block[: index - 1], inner, *block[index + 1 :]]
        yield Mutant(
            owner, {field: made}, before, AIMED, "with {} in the block of {}, not before it", before, one
        )


def _of_branches(owner, field, block, index):
    """With what follows an `if` and its `else` in one of these alone."""
    one, rest = block[index], block[index + 1 :]
    if not one.orelse or not rest or not isinstance(rest[0], MOVABLE):
        return
    for branch, name in ("body", "block"), ("orelse", "`else`"):
        statements = getattr(one, branch)
        if not isinstance(statements[-1], _LEAVING):
            made = _changed(one, **{branch: [*statements, rest[0]]})
            changed = [*block[:index], made, *rest[1:]]
            yield Mutant(
                owner, {field: changed}, rest[0], AIMED, "with {} in the " + name + " of {}", rest[0], one
            )


def _set_before(owner, field, block, index):
    """With an attribute set before calls that are given its old value: what they call may look at it."""
    one, following = block[index], block[index + 1] if index + 1 < len(block) else None
    targets = following.targets if isinstance(following, ast.Assign) else []
    path = path_of(targets[0]) if len(targets) == 1 and isinstance(targets[0], ast.Attribute) else ""
    nodes = list(ast.walk(one)) if path and isinstance(one, (ast.Expr, *_COMPOUND)) else []
    if any(isinstance(each, ast.Call) for each in nodes) and any(path_of(each) == path for each in nodes):
        given = Replacing(path, "_was").visit(copy.deepcopy(one))
        made = [*block[:index], *parsed(f"_was = {path}", following), following, given, *block[index + 2 :]]
        told = "with {} before {}, which is given the old value"
        yield Mutant(owner, {field: made}, following, AIMED, told, following, one)


def _of_rounds(loop, before):
    """With what is set before a loop set in each round, but for what its condition asks for."""
    condition = loop.test if isinstance(loop, ast.While) else loop.iter
    asked = {one.id for one in ast.walk(condition) if isinstance(one, ast.Name)}
    for one in before:
        names = [
            target.id
            for target, value in assigned_in(one)
            if isinstance(target, ast.Name) and initial_text(value)
        ]
        if names and asked.isdisjoint(names):
            yield Mutant(
                loop, {"body": [one, *loop.body]}, loop, AIMED, "with {} in each round of {}", one, loop
            )


def _changed(node, **fields):
    """A copy of a node with other values of some fields."""
    made = copy.copy(node)
    for name, value in fields.items():
        setattr(made, name, value)
    return made
