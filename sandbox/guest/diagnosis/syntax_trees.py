"""Questions about syntax trees, and positions for the nodes that are added to one."""

# Nodes with a position are told by their attributes.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import ast

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
RECORD = "_@record"
"""Name of the function that records a value."""
_OF_PYTEST = ("@py_format", "@pytest_ar", "@py_builtins")
_OF_FRAME = frozenset("super locals vars globals dir eval exec".split())
_MAX_BITS = 1000
"""Of an integer in the source whose text is told."""


def assigns_each(node):
    """True for `a, b.c = x, y`: each value is written beside its target."""
    target, value = node.targets[0], node.value
    return (
        len(node.targets) == 1
        and isinstance(target, (ast.Tuple, ast.List))
        and isinstance(value, (ast.Tuple, ast.List))
        and len(target.elts) == len(value.elts) > 0
        and not any(isinstance(part, ast.Starred) for part in target.elts + value.elts)
    )


def leaves_block(statement):
    """True for an `if` without `else` that ends in `continue`, `return` or the like: what follows depends on it."""
    return (
        isinstance(statement, ast.If)
        and not statement.orelse
        and isinstance(statement.body[-1], (ast.Continue, ast.Break, ast.Return, ast.Raise))
    )


def yields(function):
    """True for a function with a `yield` in it: a generator, or one around a generator."""
    return any(isinstance(one, (ast.Yield, ast.YieldFrom)) for one in ast.walk(function))


def index_of(subscript):
    """The expression in brackets, which Python 3.8 wraps."""
    index = subscript.slice
    return index.value if type(index).__name__ == "Index" else index


def imported_modules(tree):
    """Return the names that are bound to modules by imports at the top, whose attributes need no record."""
    found = set()
    for node in tree.body:
        if isinstance(node, ast.Import):
            found.update(alias.asname or alias.name.partition(".")[0] for alias in node.names)
    return found


def short_text(node):
    """Short text of a target or of a receiver: `order.lines[2]`."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{short_text(node.value)}.{node.attr}"
    if isinstance(node, ast.Subscript):
        return f"{short_text(node.value)}[…]"
    if isinstance(node, (ast.Tuple, ast.List)):
        return ", ".join(map(short_text, node.elts[:4]))
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id == RECORD:
            return short_text(node.args[2])
        return f"{short_text(node.func)}(…)"
    if isinstance(node, ast.Constant):
        is_huge = type(node.value) is int and node.value.bit_length() > _MAX_BITS  # no text is made of it
        return "…" if is_huge else repr(node.value)[:30]
    return "…"


def own_attribute(node):
    """True for `self.x`."""
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def constant_value(node):
    """The value of a constant; None for other expressions."""
    return node.value if isinstance(node, ast.Constant) else None


def recorded_site(node):
    """Number of the site that records an expression; None if it is not recorded."""
    is_record = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == RECORD
    return node.args[0].value if is_record else None


def bound_names(target):
    """Yield the names that a target binds."""
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, (ast.Tuple, ast.List)):
        for element in target.elts:
            yield from bound_names(element)
    elif isinstance(target, ast.Starred):
        yield from bound_names(target.value)


def parameters(args):
    """Return the names of all parameters."""
    found = [arg.arg for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
    return found + [arg.arg for arg in (args.vararg, args.kwarg) if arg is not None]


def shared_defaults(args):
    """Yield the parameters whose default is an object that all calls share."""
    positional = [*args.posonlyargs, *args.args]
    pairs = list(zip(positional[len(positional) - len(args.defaults) :], args.defaults))
    pairs += zip(args.kwonlyargs, args.kw_defaults)
    for parameter, default in pairs:
        if isinstance(default, (ast.List, ast.Dict, ast.Set, ast.Call)):
            yield parameter.arg


def has_docstring(body):
    first = body[0] if body else None
    return (
        isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    )


def is_of_pytest(statement):
    """True for what pytest's assertion rewriting has added to explain a failure."""
    if isinstance(statement, (ast.Assign, ast.Expr, ast.Raise)):
        return mentions_pytest(statement)
    return False


def mentions_pytest(node, deep=True):
    parts = ast.walk(node) if deep else [node]
    for part in parts:
        if isinstance(part, ast.Name) and part.id.startswith(_OF_PYTEST):
            return True
    return False


def complete_positions(tree):
    """Give each node a position. Of those made by pytest some have a first line only, and may stand anywhere."""
    ast.fix_missing_locations(tree)
    for node in ast.walk(tree):
        first, last = getattr(node, "lineno", None), getattr(node, "end_lineno", None)
        if first is None or last is None:
            continue
        if (last, node.end_col_offset or 0) < (first, node.col_offset):
            node.end_lineno, node.end_col_offset = first, node.col_offset


def place_like(node, like):
    """Give `node` and its new parts the position of `like`. What has one has no new parts."""
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, (ast.expr, ast.stmt)):
            if hasattr(part, "lineno"):
                continue
            ast.copy_location(part, like)
        waiting += ast.iter_child_nodes(part)
    return node


def is_of_attribute(node):
    """True for `getattr(…)`, `setattr(…)` and `object.__setattr__(…)` of a given object."""
    if node.keywords or any(isinstance(argument, ast.Starred) for argument in node.args):
        return False
    if isinstance(node.func, ast.Name):
        return len(node.args) in {"getattr": (2, 3), "setattr": (3,)}.get(node.func.id, ())
    is_of_object = isinstance(node.func, ast.Attribute) and getattr(node.func.value, "id", "") == "object"
    return is_of_object and node.func.attr == "__setattr__" and len(node.args) == 3


def is_frames_own(node):
    """True for `super()` and the like, which depend on the frame that calls them."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
        return False
    return node.func.id in _OF_FRAME and not (node.func.id == "exec" and len(node.args) > 1)
