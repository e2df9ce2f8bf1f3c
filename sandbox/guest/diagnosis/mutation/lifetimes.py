"""Changes of how long a value holds: an attribute that is put back at the end, or with another; a variable that is read anew."""

# Nodes with a position are told by their attributes.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import ast
import copy
import math
from collections import Counter

from ..syntax_trees import DEFINITIONS, has_docstring, own_attribute
from .definitions import assigned_in, initial_text, is_empty
from .mutant import (
    AIMED,
    POSSIBLE,
    Mutant,
    Replacing,
    blocks_in,
    braced,
    expression,
    filled,
    has_run,
    last_name,
    local_names,
    parsed,
)

_MAX_ATTRIBUTES, _MAX_INNER, _MAX_VARIABLES = 3, 4, 4
_MAX_BESIDE, _MAX_COUNTS = 6, 4
_INNER = (ast.Lambda, *DEFINITIONS)
_COPYING = "list", "dict", "set", "tuple", "copy", "deepcopy"


def put_back(function, executed):
    """Yield changes of a method that sets attributes and goes on: with such an attribute at its end as it was before.

    Not one that is set to a constant: that is a reset.
    """
    node = function.node
    first = int(has_docstring(node.body))
    rest = node.body[first:]
    if function.owner is None or node.name == "__init__" or not rest:
        return
    calls = [one.lineno for one in ast.walk(node) if isinstance(one, ast.Call)]
    names = {}
    for one in ast.walk(node):
        for target, value in assigned_in(one) if has_run(one, executed) else ():
            if own_attribute(target) and not initial_text(value) and any(line > one.lineno for line in calls):
                names[target.attr] = one
    for name, at in list(names.items())[:_MAX_ATTRIBUTES]:
        text = f"_kept = getattr(self, {name!r}, None)\ntry:\n pass\nfinally:\n self.{name} = _kept"
        kept, guarded = parsed(text, rest[0])
        guarded.body = rest
        body = {"body": [*node.body[:first], kept, guarded]}
        told = braced(f"with `self.{name}` at its end as it was before")
        yield Mutant(node, body, at, AIMED, told, added=guarded.finalbody)


def reset_beside(function, state, executed):
    """Yield changes of a method where it resets an attribute, or hands one over: with others, or that one, reset there, too."""
    for owner in ast.walk(function):
        for field, block in blocks_in(owner):
            found = [_reset_by(one, state.initial) if one.lineno in executed else () for one in block]
            last = max((index for index, names in enumerate(found) if names), default=-1)
            known = [name for names in found for name in names]
            others = [one for one in state.initial.items() if one[0] not in known]
            for name, value in others[:_MAX_BESIDE] if last >= 0 else ():
                yield _reset_after(owner, field, block, last, name, value)
            for index, one in enumerate(block):
                name = _handed_over(one) if one.lineno in executed else ""
                if is_empty(state.initial.get(name, "")):
                    yield _reset_after(owner, field, block, index, name, state.initial[name])


def _reset_after(owner, field, block, index, name, value):
    at, text = block[index], f"self.{name} = {value}"
    added = parsed(text, at)
    made = [*block[: index + 1], *added, *block[index + 1 :]]
    told = braced(f"with `{text}` after ") + "{}"
    return Mutant(owner, {field: made}, at, AIMED, told, at, added=added, is_added=True)


def _handed_over(statement):
    """Name of the own attribute that a statement gives to another object as it is, or a copy of it; else an empty text."""
    value = statement.value if isinstance(statement, ast.Assign) else None
    if isinstance(value, ast.Call) and len(value.args) == 1 and last_name(value.func) in _COPYING:
        value = value.args[0]
    if isinstance(value, ast.Call) and getattr(value.func, "attr", None) == "copy":
        value = value.func.value
    if value is None or not own_attribute(value) or any(map(own_attribute, statement.targets)):
        return ""
    return value.attr


def _reset_by(statement, initial):
    """Names of attributes that a statement sets as they were in the beginning, or empties."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and getattr(call.func, "attr", None) == "clear":
        return [call.func.value.attr] if own_attribute(call.func.value) else []
    return [
        target.attr
        for target, value in assigned_in(statement)
        if own_attribute(target) and initial_text(value) == initial.get(target.attr, "-")
    ]


def counted_anew(function, state, executed):
    """Yield changes of a method that reads a number of its object: with the length of a container in its place."""
    loaded = (one for one in ast.walk(function) if own_attribute(one) and isinstance(one.ctx, ast.Load))
    read = {one.attr: one for one in loaded if has_run(one, executed)}
    counts = [one for one in read if state.initial.get(one) in ("0", "-1")]
    containers = [one for one in read if one in state.containers]
    for name, container in [(one, other) for one in counts for other in containers][:_MAX_COUNTS]:
        length = f"len(self.{container})" + " - 1" * (state.initial[name] == "-1")
        body = [Replacing(f"self.{name}", length).visit(copy.deepcopy(one)) for one in function.body]
        told = braced(f"with `{length}` for `self.{name}`")
        yield Mutant(function, {"body": body}, read[name], POSSIBLE, told, read[name])


def taken_anew(function, executed):
    """Yield changes of functions inside: with what a variable of the outer one was set to, evaluated when they are called."""
    bound, inside, waiting = {}, [], [function]
    while waiting:
        for node in ast.iter_child_nodes(waiting.pop()):
            (inside if isinstance(node, _INNER) else waiting).append(node)
            for target, value in assigned_in(node):
                if isinstance(target, ast.Name):
                    bound.setdefault(target.id, []).append(value)
    once = {name: values[0] for name, values in bound.items() if len(values) == 1}
    for inner in [one for one in inside if has_run(one, executed)][:_MAX_INNER]:
        for name in sorted(_read_in(inner) & once.keys()):
            value = once[name]
            if isinstance(value, (ast.Call, ast.Attribute, ast.Subscript)):
                body = filled(_body_of(inner), name, value)
                fields = {"body": body[0] if isinstance(inner, ast.Lambda) else body}
                yield Mutant(inner, fields, inner, AIMED, "with {} evaluated anew in {}", value, inner)


def bound_early(function, executed):
    """Yield changes of functions made in a loop: with its variables as they are then, not as they are when it has ended."""
    made = set()
    outer = {one for node in ast.walk(function) if isinstance(node, ast.Global) for one in node.names}
    for targets, inside in _loops_in(function):
        first, later = _stored_in(targets), _stored_in(inside)
        for inner in [one for part in inside for one in ast.walk(part) if isinstance(one, _INNER)]:
            bound = {one.id for one in first} | {one.id for one in later if one.lineno <= inner.lineno}
            names = sorted(_read_in(inner) & bound - outer)
            if names and inner not in made and has_run(inner, executed) and len(made) < _MAX_INNER:
                made.add(inner)
                given, bound_now = copy.copy(inner.args), ", ".join(f"{name}={name}" for name in names)
                added = expression(f"lambda *, {bound_now}: 0", inner).args
                given.kwonlyargs = [*given.kwonlyargs, *added.kwonlyargs]
                given.kw_defaults = [*given.kw_defaults, *added.kw_defaults]
                told = "with `" + "`, `".join(names) + "` as at that time in {}"
                yield Mutant(inner, {"args": given}, inner, AIMED, told, inner)


def _loops_in(function):
    """Yield (targets, what is evaluated in each round) of the loops and comprehensions of a function."""
    for node in ast.walk(function):
        if isinstance(node, (ast.For, ast.AsyncFor)):
            yield [node.target], node.body
        elif isinstance(node, ast.DictComp):
            yield [one.target for one in node.generators], [node.key, node.value]
        elif isinstance(node, (ast.ListComp, ast.SetComp)):
            yield [one.target for one in node.generators], [node.elt]


def _stored_in(nodes):
    names = [one for node in nodes for one in ast.walk(node) if isinstance(one, ast.Name)]
    return [one for one in names if isinstance(one.ctx, ast.Store)]


def _read_in(inner):
    """Names of the outer function that a function in it reads."""
    found = {
        one.id
        for part in _body_of(inner)
        for one in ast.walk(part)
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)
    }
    return found - set(local_names(inner))


def read_anew(function, executed):
    """Yield changes of what is done with variables after calls: with what they were set to read once more."""
    first = int(has_docstring(function.body))
    called = sorted(
        one.lineno for one in ast.walk(function) if isinstance(one, ast.Call) and has_run(one, executed)
    )
    bindings, reads = Counter(), {}
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            reads.setdefault(node.id, []).append(node.lineno)
        elif not isinstance(node, ast.keyword):
            bindings[getattr(node, "id", getattr(node, "arg", getattr(node, "name", None)))] += 1
    made = 0
    for node in ast.walk(function):
        for target, value in assigned_in(node):
            name = getattr(target, "id", None)
            is_read = isinstance(value, (ast.Attribute, ast.Subscript)) and bindings[name] == 1
            after = next((line for line in called if line > node.end_lineno), math.inf)
            late = [line for line in reads.get(name, ()) if line > after]
            if is_read and late and made < _MAX_VARIABLES:
                made += 1
                body = filled(function.body[first:], name, value, after)
                fields = {"body": [*function.body[:first], *body]}
                text = "with {} read once more from line {} on"
                yield Mutant(function, fields, node, AIMED, text, value, str(min(late)))


def _body_of(inner):
    return [inner.body] if isinstance(inner, ast.Lambda) else inner.body
