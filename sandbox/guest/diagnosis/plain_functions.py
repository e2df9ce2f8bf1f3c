"""Functions that tell nothing of a failure: they set or return an attribute, or hand on what they are given."""

from __future__ import annotations

import ast

from .syntax_trees import DEFINITIONS, has_docstring

_DECORATORS = frozenset("property setter getter deleter classmethod staticmethod wraps".split())
"""Those that change nothing about what a call does."""


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
    is_access = len(body) == 1 and _is_access(body[0])
    if not body or not (is_access or _hands_on(function.args, body, ran)):
        return False
    return all(map(_is_plain_decorator, function.decorator_list))


def _is_plain_decorator(node):
    called = node.func if isinstance(node, ast.Call) else node
    return getattr(called, "attr", getattr(called, "id", "")) in _DECORATORS


def _is_access(statement):
    """True for `self.x = y` of a variable, `return self.x` and `return getattr(self, "x", None)`."""
    if isinstance(statement, (ast.Assign, ast.AnnAssign)):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        is_one = len(targets) == 1 and isinstance(targets[0], ast.Attribute)
        return is_one and isinstance(statement.value, ast.Name)
    value = statement.value if isinstance(statement, ast.Return) else None
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "getattr":
        return all(map(_is_name, value.args))
    return isinstance(value, ast.Attribute) and _is_name(value)


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
    return names == [args.vararg.arg, args.kwarg.arg] and all(
        _has_done_nothing(one, ran) for one in body[:-1]
    )


def _has_done_nothing(statement, ran):
    """True for a condition or a loop of which nothing inside has run, and for `found = {}`."""
    if isinstance(statement, (ast.If, ast.For, ast.While)):
        first, last = statement.body[0].lineno, statement.end_lineno
        return not any(first <= line <= last for line in ran)
    value = statement.value if isinstance(statement, ast.Assign) else None
    if value is None or not all(isinstance(one, ast.Name) for one in statement.targets):
        return False
    return not any(isinstance(one, (ast.Name, ast.Call)) for one in ast.walk(value))
