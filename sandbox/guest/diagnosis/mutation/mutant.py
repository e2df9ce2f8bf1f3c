"""One change of a function's syntax tree, and nodes to make it of."""

# Nodes with a position are told by their attributes.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import ast

_MAX_TEXT = 70
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_EFFECTS = (ast.Expr, ast.Return, ast.Raise, *DEFINITIONS)
_BLUNT = "without", "if it returned at once"
LIKELY, POSSIBLE, UNLIKELY = 0, 1, 2


class Mutant:
    """One change: while it is entered, fields of a node have other values.

    `is_blunt`: it leaves out an effect as a whole, which often hides a fault that is elsewhere.
    """

    __slots__ = ("_fields", "_old", "_owner", "_text", "is_blunt", "likelihood", "line")

    def __init__(self, owner, fields, node, likelihood, text, *parts):
        self._owner, self._fields, self._old = owner, fields, {}
        self._text = text, parts
        self.line, self.likelihood = node.lineno, likelihood
        self.is_blunt = text.startswith(_BLUNT) and isinstance(parts[0] if parts else node, _EFFECTS)

    def __enter__(self):
        for field, value in self._fields.items():
            self._old[field] = getattr(self._owner, field)
            setattr(self._owner, field, value)

    def __exit__(self, *exc):
        for field, value in self._old.items():
            setattr(self._owner, field, value)

    def describe(self, lines):
        """Describe the change, with the source of its parts."""
        text, parts = self._text
        return text.format(*(part if type(part) is str else _source(part, lines) for part in parts))


def copied(node):
    module = ast.Call(
        func=ast.Name(id="__import__", ctx=ast.Load()), args=[ast.Constant(value="copy")], keywords=[]
    )
    function = ast.Attribute(value=module, attr="copy", ctx=ast.Load())
    return placed(ast.Call(func=function, args=[node], keywords=[]), node)


def call_of(name, node):
    return placed(ast.Call(func=ast.Name(id=name, ctx=ast.Load()), args=[node], keywords=[]), node)


def placed(made, node):
    """Give new nodes the position of an old one, which is among them."""
    for one in ast.walk(made):
        if not hasattr(one, "lineno") and isinstance(one, ast.expr):
            ast.copy_location(one, node)
    return made


def parsed(text, at):
    """Parse statements, which get the position of a node."""
    made = ast.parse(text).body
    for statement in made:
        for one in ast.walk(statement):
            if hasattr(one, "lineno"):
                ast.copy_location(one, at)
    return made


def braced(text):
    """Escape a text that is to be formatted."""
    return text.replace("{", "{{").replace("}", "}}")


def _source(node, lines):
    """Source of a node in backticks: its first line, shortened."""
    first = lines[node.lineno - 1].encode()
    if node.end_lineno == node.lineno:
        text = first[node.col_offset : node.end_col_offset].decode("utf-8", "replace")
    else:
        text = first[node.col_offset :].decode("utf-8", "replace").rstrip() + "…"
    return "`" + (text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 1] + "…") + "`"
