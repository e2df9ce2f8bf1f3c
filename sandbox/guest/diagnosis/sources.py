"""Functions and lines of source files, by their syntax trees."""

from __future__ import annotations

import ast
import re

from .sites import MUTATORS
from .syntax_trees import DEFINITIONS, has_docstring, own_attribute

MAX_SOURCE = 4 << 20
_MAX_TEXT = 120
_DISPLAYS = (ast.List, ast.Tuple, ast.ListComp)
_REPEATING = ("fromkeys", "repeat")
_MIN_SHAPE = 40
"""Nodes and names below which functions are alike by chance."""


class Sources:
    """Lines and functions of files, read when they are asked for."""

    def __init__(self):
        self._lines = {}
        self._last_tree = None, None
        """(file, its syntax tree) that was asked for last."""
        self._functions = {}
        self._repeating = {}

    def line(self, filename, number):
        """Text of a line; empty if it is not available."""
        lines = self.lines(filename)
        return lines[number - 1].strip()[:_MAX_TEXT] if 0 < number <= len(lines) else ""

    def lines(self, filename):
        """All lines of a file."""
        if filename not in self._lines:
            try:
                with open(filename, "rb") as file:
                    data = file.read(MAX_SOURCE)
            except OSError:
                data = b""
            self._lines[filename] = data.decode("utf-8-sig", "replace").split("\n")
        return self._lines[filename]

    def tree(self, filename):
        """The syntax tree of a file; None if it has none. Questions about one file come one after the other."""
        if self._last_tree[0] != filename:
            self._last_tree = filename, _parse("\n".join(self.lines(filename)))
        return self._last_tree[1]

    def statement(self, filename, number):
        """The syntax tree of the innermost statement at a line; None if there is none."""
        found = None
        for node in ast.walk(self.tree(filename) or ast.Module([], [])):
            if isinstance(node, ast.stmt) and node.lineno <= number <= (node.end_lineno or node.lineno):
                found = node
        return found

    def definitions(self, filename):
        """(qualified name, syntax tree) of each function and class of a file."""
        return list(_definitions_in(self.tree(filename)))

    def class_attribute(self, filename, method, name):
        """Line at which the class of a method sets an attribute for all instances; 0 if instances have their own."""
        owner = method.rpartition(".")[0]
        for path, node in _classes_in(self.tree(filename)):
            if path == owner:
                return 0 if _sets_on_instance(node, name) else _line_of_attribute(node, name)
        return 0

    def class_head(self, filename, name):
        """(first, last line) of a class before its first method, by its qualified name; (0, 0) if it is not there."""
        for path, node in _classes_in(self.tree(filename)):
            if path == name:
                methods = [_first_line(one) for one in node.body if isinstance(one, DEFINITIONS)]
                return node.lineno, min(methods) - 1 if methods else node.end_lineno or node.lineno
        return 0, 0

    def lines_that_repeat(self, filename):
        """Lines of a file with an expression that puts one object into several places."""
        if filename not in self._repeating:
            self._repeating[filename] = frozenset(_lines_that_repeat(self.tree(filename)))
        return self._repeating[filename]

    def writers_of(self, filename, name):
        """(qualified name, line) of each function of a file that sets or changes a global, or an attribute: `.seen`."""
        for function, node in _definitions_in(self.tree(filename)):
            if isinstance(node, DEFINITIONS):
                line = next(lines_that_change(node, name), 0)
                if line:
                    yield function, line

    def alike(self, filename, number):
        """(qualified name, line) of the functions of a file that do what the one at a line does, with other names."""
        functions = [
            each for each in _definitions_in(self.tree(filename)) if isinstance(each[1], DEFINITIONS)
        ]
        _, start, _ = self._function(filename, number)
        wanted = next((node for _, node in functions if _first_line(node) == start), None)
        if wanted is None:
            return []
        shape, size = _shape(wanted), len(_statements(wanted))
        if len(shape) < _MIN_SHAPE:
            return []
        others = [
            (name, node) for name, node in functions if node is not wanted and len(_statements(node)) == size
        ]
        return [(name, node.lineno) for name, node in others if _shape(node) == shape]

    def function_at(self, filename, number):
        """(qualified name, first line) of the innermost function at a line; of the module if there is none."""
        return self._function(filename, number)[:2]

    def mentions(self, filename, number, names):
        """True if the innermost function at a line has one of `names` in its source."""
        _, start, end = self._function(filename, number)
        words = re.findall(r"\w+", "\n".join(self.lines(filename)[start:end])) if start else ()
        return not names.isdisjoint(words)

    def _function(self, filename, number):
        """(qualified name, first line, last line)."""
        if filename not in self._functions:
            self._functions[filename] = list(_functions_in(self.tree(filename)))
        found = ("<module>", 0, 0)
        for name, start, end in self._functions[filename]:
            if start <= number <= end and start >= found[1]:
                found = (name, start, end)
        return found


def _parse(text):
    """The syntax tree of a source; None if it has none."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _statements(function):
    """The statements of a function without its docstring."""
    return function.body[has_docstring(function.body) :]


def _shape(function):
    """Types of the nodes of a function, each name replaced by its number: without docstring, literals and annotations."""
    numbers, shape = {}, []
    waiting = [function.args, *_statements(function)]
    while waiting:
        node = waiting.pop()
        shape.append(type(node).__name__)
        for field, value in ast.iter_fields(node):
            if isinstance(node, ast.Constant) or field in ("annotation", "type_comment"):
                continue
            if isinstance(value, str):
                shape.append(numbers.setdefault(value, len(numbers)))
            elif isinstance(value, ast.AST):
                waiting.append(value)
            elif isinstance(value, list):
                shape.append(len(value))
                waiting += [each for each in value if isinstance(each, ast.AST)]
    return shape


def _functions_in(tree):
    """Yield (qualified name, first line, last line) of all functions."""
    for name, node in _definitions_in(tree):
        if isinstance(node, DEFINITIONS):
            yield name, _first_line(node), node.end_lineno or node.lineno


def _first_line(definition):
    """The line of a function, or of its first decorator."""
    return min([definition.lineno] + [mark.lineno for mark in definition.decorator_list])


def _classes_in(tree):
    return [(name, node) for name, node in _definitions_in(tree) if isinstance(node, ast.ClassDef)]


def _definitions_in(tree):
    """Yield (qualified name, node) of all functions and classes."""
    waiting = [] if tree is None else [(tree, "")]
    while waiting:
        node, prefix = waiting.pop()
        for child in ast.iter_child_nodes(node):
            name = prefix
            if isinstance(child, (*DEFINITIONS, ast.ClassDef)):
                name = prefix + child.name
                yield name, child
                name += "."
            waiting.append((child, name))


def _lines_that_repeat(tree):
    """Yield the lines of `[x] * n`, `dict.fromkeys(names, x)` and `repeat(x)`, and those at which their statements begin."""
    for statement in () if tree is None else ast.walk(tree):
        if not isinstance(statement, ast.stmt) or hasattr(statement, "body"):
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.expr) and _repeats(node):
                yield statement.lineno
                yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _repeats(node):
    if isinstance(node, ast.BinOp):
        sides = (node.left, node.right)
        return isinstance(node.op, ast.Mult) and any(isinstance(side, _DISPLAYS) for side in sides)
    called = node.func if isinstance(node, ast.Call) else None
    return getattr(called, "attr", None) in _REPEATING or getattr(called, "id", None) in _REPEATING


def lines_that_change(function, name):
    """Yield the lines of a function that set or change a global, or an attribute."""
    is_own = not name.startswith(".") and binds(function, name)
    for node in () if is_own else ast.walk(function):
        if isinstance(node, ast.expr) and changes(node, name):
            yield node.lineno


def binds(function, name):
    """True if a name is local to a function."""
    nodes = list(ast.walk(function))
    if any(isinstance(node, ast.Global) and name in node.names for node in nodes):
        return False
    return any(
        isinstance(node, ast.arg)
        and node.arg == name
        or isinstance(node, ast.Name)
        and node.id == name
        and not isinstance(node.ctx, ast.Load)
        for node in nodes
    )


def changes(node, name):
    """True if an expression sets or changes the global `seen`, or the attribute `.seen` of anything."""
    return is_named(changed_by(node), name)


def changed_by(node):
    """The name or attribute that an expression sets, or the container that it changes; None if it does neither."""
    if isinstance(node, ast.Call):
        method = node.func
        return method.value if isinstance(method, ast.Attribute) and method.attr in MUTATORS else None
    if isinstance(node, ast.Subscript):
        return None if isinstance(node.ctx, ast.Load) else node.value
    is_set = isinstance(node, (ast.Name, ast.Attribute)) and not isinstance(node.ctx, ast.Load)
    return node if is_set else None


def is_named(node, name):
    """True for the global `seen`, or for an attribute of anything, `.seen`."""
    if isinstance(node, ast.Attribute):
        return name == f".{node.attr}"
    return isinstance(node, ast.Name) and name == node.id


def _line_of_attribute(owner, name):
    for node in owner.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(one, ast.Name) and one.id == name for one in targets):
            return node.lineno
    return 0


def _sets_on_instance(owner, name):
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == name
        and isinstance(node.ctx, ast.Store)
        and own_attribute(node)
        for node in ast.walk(owner)
    )
