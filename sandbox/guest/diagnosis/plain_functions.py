"""Functions that tell nothing of a failure: they set or return an attribute, or hand on what they are given."""

from __future__ import annotations

import ast

from .syntax_trees import DEFINITIONS, has_docstring, parameters

_DECORATORS = frozenset("property setter getter deleter classmethod staticmethod wraps".split())
"""Those that change nothing about what a call does."""
_DOING = (ast.Call, ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)
"""Expressions that may do something."""


def among(order, events, sources):
    """Those of the events at which functions are entered, `order`, whose functions are such."""
    ran, scopes = events.executed_lines(), {one: events.site(one).scope for one in order}
    plain = {
        filename: find(sources.definitions(filename), ran.get(filename, ()))
        for filename in {scope.filename for scope in scopes.values()}
    }
    return [entered for entered, scope in scopes.items() if scope.name in plain[scope.filename]]


def find(definitions, ran):
    """Qualified names of such functions; of several with one name, as those of a property, if all are.

    `definitions`: (qualified name, syntax tree); `ran`: numbers of the lines that have run.
    """
    plain, others = set(), set()
    for name, node in definitions:
        (plain if isinstance(node, DEFINITIONS) and _is_plain(node, ran) else others).add(name)
    return plain - others


def _is_plain(function, ran):
    body = function.body[has_docstring(function.body) :]
    is_access = len(body) == 1 and _is_access(function.args, body[0])
    if not body or not (is_access or _hands_on(function.args, body, ran)):
        return False
    return all(map(_is_plain_decorator, function.decorator_list))


def _is_plain_decorator(node):
    called = node.func if isinstance(node, ast.Call) else node
    return getattr(called, "attr", getattr(called, "id", "")) in _DECORATORS


def _is_access(args, statement):
    """True for `self.x = x`, `return self.x` and `return getattr(self, "x", None)`."""
    if isinstance(statement, (ast.Assign, ast.AnnAssign)):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        return len(targets) == 1 and _is_set(args, targets[0], statement.value)
    value = statement.value if isinstance(statement, ast.Return) else None
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "getattr":
        return all(map(_is_name, value.args))
    return isinstance(value, ast.Attribute) and _is_name(value)


def _is_set(args, target, value):
    """True if an attribute gets the variable of its name, or the only one that the function is given."""
    if not isinstance(target, ast.Attribute) or not isinstance(value, ast.Name) or not _is_name(target):
        return False
    return target.attr.lstrip("_") == value.id or parameters(args)[1:] == [value.id]


def _is_name(node):
    """True for a name, a constant, and an attribute of one."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, (ast.Name, ast.Constant))


def _hands_on(args, body, ran):
    """True if all that has run returns the result of a call that is given `*args, **kwargs` as they came."""
    last = body[-1]
    call = last.value if isinstance(last, ast.Return) else None
    call = call.value if isinstance(call, ast.Await) else call
    if not isinstance(call, ast.Call) or args.vararg is None or args.kwarg is None:
        return False
    starred = [one.value for one in call.args if isinstance(one, ast.Starred)]
    given = starred + [one.value for one in call.keywords if one.arg is None]
    names = [getattr(one, "id", "") for one in given]
    others = [one for one in call.args if not isinstance(one, ast.Starred)]
    others += [one.value for one in call.keywords if one.arg is not None]
    return (
        names == [args.vararg.arg, args.kwarg.arg]
        and all(map(_is_name, [call.func, *others]))
        and all(_has_done_nothing(one, ran) for one in body[:-1])
    )


def _has_done_nothing(statement, ran):
    """True for a condition without calls or a loop of which nothing inside has run, and for `found = {}`."""
    if isinstance(statement, (ast.If, ast.While)) and _does_something(statement.test):
        return False
    if isinstance(statement, (ast.If, ast.For, ast.While)):
        first, last = statement.body[0].lineno, statement.end_lineno
        return not any(first <= line <= last for line in ran)
    value = statement.value if isinstance(statement, ast.Assign) else None
    if value is None or not all(isinstance(one, ast.Name) for one in statement.targets):
        return False
    return not any(isinstance(one, (ast.Name, ast.Call)) for one in ast.walk(value))


def _does_something(expression):
    return any(isinstance(one, _DOING) for one in ast.walk(expression))
