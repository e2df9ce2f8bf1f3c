"""Functions and lines of source files, by their syntax trees."""

from __future__ import annotations

import ast
import re

MAX_SOURCE = 4 << 20
_MAX_TEXT = 120
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Sources:
    """Lines and functions of files, read when they are asked for."""

    def __init__(self):
        self._lines = {}
        self._functions = {}

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
            self._lines[filename] = data.decode("utf-8", "replace").split("\n")
        return self._lines[filename]

    def class_attribute(self, filename, method, name):
        """Line at which the class of a method sets an attribute for all instances; 0 if instances have their own."""
        owner = method.rpartition(".")[0]
        for path, node in _classes_in(_parse("\n".join(self.lines(filename)))):
            if path == owner:
                return 0 if _sets_on_instance(node, name) else _line_of_attribute(node, name)
        return 0

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
            self._functions[filename] = list(_functions_in(_parse("\n".join(self.lines(filename)))))
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


def _functions_in(tree):
    """Yield (qualified name, first line, last line) of all functions."""
    for name, node in _definitions_in(tree):
        if isinstance(node, _DEFINITIONS):
            first = min([node.lineno] + [mark.lineno for mark in node.decorator_list])
            yield name, first, node.end_lineno or node.lineno


def _classes_in(tree):
    return [(name, node) for name, node in _definitions_in(tree) if isinstance(node, ast.ClassDef)]


def _definitions_in(tree):
    """Yield (qualified name, node) of all functions and classes."""
    waiting = [] if tree is None else [(tree, "")]
    while waiting:
        node, prefix = waiting.pop()
        for child in ast.iter_child_nodes(node):
            name = prefix
            if isinstance(child, (*_DEFINITIONS, ast.ClassDef)):
                name = prefix + child.name
                yield name, child
                name += "."
            waiting.append((child, name))


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
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
        for node in ast.walk(owner)
    )
