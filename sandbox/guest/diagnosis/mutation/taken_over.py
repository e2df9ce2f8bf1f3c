"""Changes of methods that make another object of their own one: with one more attribute taken over, or a copy without its value."""

# Nodes with a position are told by their attributes.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import ast

from ..syntax_trees import own_attribute
from .definitions import assigned_in
from .mutant import AIMED, Mutant, blocks_in, braced, last_name, parsed

_MAX_ATTRIBUTES = 8


def taken_over(changed, state, executed):
    """Yield changes of a method's `Function`: `made.x = self.x` where an object is made of attributes, or is given some.

    And `made.x = None`, or another first value, where it is made as a copy.
    """
    function = changed.node
    known = _given_to(function, changed.owner)
    for owner in ast.walk(function):
        for field, block in blocks_in(owner):
            last = {}
            for index, one in enumerate(block):
                name = _filled_by(one, changed.owner) if one.lineno in executed else None
                if name is not None:
                    last[name] = index
            for name, index in last.items():
                missing = [one for one in state.assigned if one not in known.get(name, ())]
                for attribute in missing[:_MAX_ATTRIBUTES]:
                    yield _with_attribute(owner, field, block, index, name, attribute, f"self.{attribute}")
            for index, one in enumerate(block):
                name = _copied_by(one) if one.lineno in executed else None
                for attribute, value in list(state.initial.items())[:_MAX_ATTRIBUTES] if name else ():
                    if attribute not in known.get(name, ()):
                        yield _with_attribute(owner, field, block, index, name, attribute, value)


def _with_attribute(owner, field, block, index, name, attribute, value):
    at, is_returned = block[index], isinstance(block[index], ast.Return)
    text = f"{name}.{attribute} = {value}"
    added = parsed(f"_made = _it\n{text}\nreturn _made" if is_returned else text, at, _it=at.value)
    before = block[: index + (not is_returned)]
    told = f".{attribute} = {braced(value)}` for {{}}" if is_returned else f"{braced(text)}` after {{}}"
    told = f"with `{told}"
    changed = {field: [*before, *added, *block[index + 1 :]]}
    return Mutant(owner, changed, at, AIMED, told, at.value if is_returned else at, added=added)


def _filled_by(statement, owner):
    """The variable that a statement sets to an object made of attributes of `self`, or that it gives one of them.

    `_made` if it returns such an object.
    """
    value = statement.value if isinstance(statement, (ast.Assign, ast.Return)) else None
    own = {one.attr for one in ast.walk(value) if own_attribute(one)} if value is not None else ()
    if own and isinstance(value, ast.Call) and _is_class(value.func, owner):
        return "_made" if isinstance(statement, ast.Return) else getattr(statement.targets[0], "id", None)
    for target, _ in assigned_in(statement):
        name = getattr(target.value, "id", "self") if isinstance(target, ast.Attribute) else "self"
        if name != "self" and target.attr in own:
            return name
    return None


def _copied_by(statement):
    """The variable that a statement sets to a copy of `self`; `_made` if it returns one; else None."""
    value = statement.value if isinstance(statement, (ast.Assign, ast.Return)) else None
    if not isinstance(value, ast.Call) or last_name(value.func) not in ("copy", "deepcopy"):
        return None
    given = value.args[:1] or [getattr(value.func, "value", None)]
    if getattr(given[0], "id", None) != "self":
        return None
    return "_made" if isinstance(statement, ast.Return) else getattr(statement.targets[0], "id", None)


def _is_class(node, owner):
    """True for `type(self)`, `self.__class__`, `cls`, the class by its name."""
    if isinstance(node, ast.Call):
        return last_name(node.func) == "type"
    return last_name(node) in ("__class__", "cls", owner)


def _given_to(function, owner):
    """{variable: names of the attributes of `self` that it is made of or that are set in it}, also for `_made`."""
    found = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Return):
            value = node.value
            made = [("_made", value)] if isinstance(value, ast.Call) and _is_class(value.func, owner) else []
        else:
            made = [(getattr(target, "id", None), value) for target, value in assigned_in(node)]
        for name, value in made:
            found.setdefault(name, set()).update(one.attr for one in ast.walk(value) if own_attribute(one))
        for target, _ in assigned_in(node):
            if isinstance(target, ast.Attribute):
                found.setdefault(getattr(target.value, "id", None), set()).add(target.attr)
    return found
