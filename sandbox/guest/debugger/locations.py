"""From what a person writes to a place in a file: lines with code, functions by name, modules not yet imported."""

# Nodes of all kinds go through the same code.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import ast
import contextlib
import dis
import linecache
import os
import sys
import warnings

if sys.version_info >= (3, 10):

    def lines_of_code(code):
        """The lines of a code object, without those of the functions inside it."""
        return {line for _, _, line in code.co_lines() if line}

else:

    def lines_of_code(code):
        """The lines of a code object, without those of the functions inside it."""
        return {line for _, line in dis.findlinestarts(code)}


def first_line(code):
    """The line a call of this function stops at first."""
    if sys.version_info < (3, 11):
        return next((line for _, line in dis.findlinestarts(code) if line), code.co_firstlineno)
    started = False
    for instruction in dis.get_instructions(code):
        line = instruction.positions.lineno if instruction.positions else None
        if started and line:
            return line
        started = started or instruction.opname == "RESUME"
    return code.co_firstlineno


@contextlib.contextmanager
def unwarned():
    """What the compiler warns of was said to the program when it was loaded; or will be."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


_lines = {}  # path -> (size and time of the file, lines with code)


def code_lines(path):
    """The numbers of the lines of a file that have code, or None when it can't be compiled."""
    stamp = _stamp(path)
    known = _lines.get(path)
    if known is not None and known[0] == stamp:
        return known[1]
    tree = parsed(path)
    found = None
    if tree is not None:
        try:
            with unwarned():
                found = _all_lines(compile(tree, path, "exec", dont_inherit=True))
        except (SyntaxError, ValueError, RecursionError):
            pass  # valid grammar, but no program (`return` outside of a function)
    _lines[path] = (stamp, found)
    return found


def _stamp(path):
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def _all_lines(code):
    found = lines_of_code(code)
    for const in code.co_consts:
        if isinstance(const, type(code)):
            found |= _all_lines(const)
    # 3.11+ starts a module at line 0, and a function at the line of its `def`, which the module has anyway.
    found.discard(0)
    return found


_trees = {}


def parsed(path):
    """The syntax tree of a file, or None."""
    stamp = _stamp(path)
    known = _trees.get(path)
    if known is not None and known[0] == stamp:
        return known[1]
    linecache.checkcache(path)
    try:
        with unwarned():
            tree = ast.parse("".join(linecache.getlines(path)), path)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        tree = None
    if len(_trees) > 16:
        _trees.clear()
    _trees[path] = (stamp, tree)
    return tree


_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def _children(node):
    """The definitions right inside a scope, also those under `if`, `try` and `with`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _SCOPES):
            yield child
        elif isinstance(child, (ast.stmt, ast.excepthandler)):
            for found in _children(child):
                yield found


def _last(node):
    return max((getattr(child, "lineno", 0) for child in ast.walk(node)), default=node.lineno)


def scope_of(path, line):
    """The qualified name of the function or class a line is in; "" for the module."""
    tree, names = parsed(path), []
    node = tree
    while node is not None:
        inside = None
        for child in _children(node):
            first = min([child.lineno] + [item.lineno for item in child.decorator_list])
            if first <= line <= (getattr(child, "end_lineno", None) or _last(child)):
                inside = child
        if inside is None:
            break
        names.append(inside.name)
        node = inside
    return ".".join(names)


def find_function(path, qualname):
    """(name, line of the `def`, first line that runs) of a function in a file, or None."""
    tree = parsed(path)
    if tree is None:
        return None
    nodes = [tree]
    parts = qualname.split(".")
    for index, part in enumerate(parts):
        wanted = _FUNCTIONS if index == len(parts) - 1 else _SCOPES
        nodes = [
            child
            for node in nodes
            for child in _children(node)
            if child.name == part and isinstance(child, wanted)
        ]
    if not nodes and len(parts) == 1:
        # A method named without its class, when there is only one.
        nodes = [node for node in ast.walk(tree) if isinstance(node, _FUNCTIONS) and node.name == parts[0]]
        nodes = nodes if len(nodes) == 1 else []
    if not nodes:
        return None
    node = nodes[-1]  # the last definition is the one that counts
    first = min([node.lineno] + [item.lineno for item in node.decorator_list])
    body = node.body
    start = body[1] if ast.get_docstring(node, clean=False) is not None and len(body) > 1 else body[0]
    return node.name, first, start.lineno


def nearest(path, line, count=2):
    """The nearest lines with code round a line, as [(number, text)]: at most `count` above and `count` below."""
    lines = code_lines(path) or ()
    above = sorted(number for number in lines if number < line)[-count:]
    below = sorted(number for number in lines if number > line)[:count]
    return [(number, linecache.getline(path, number).strip()) for number in above + below]


class Resolver:
    """Looks names up from the root of the repository and along the program's import path."""

    def __init__(self, root):
        self.root = root

    def file(self, name):
        """The file a person means by `name` (a path relative to the repository, or a dotted module), or None."""
        candidates = [name] if name.endswith(".py") else [name, name + ".py"]
        for candidate in candidates:
            path = os.path.join(self.root, os.path.expanduser(candidate))
            if os.path.isfile(path):
                return os.path.normpath(path)
        return self.module(name) if not name.endswith(".py") else None

    def module(self, name):
        """The source file of a module, found without importing anything, or None."""
        module = sys.modules.get(name)
        path = getattr(module, "__file__", None)
        if isinstance(path, str) and path.endswith(".py"):
            return path
        relative = name.replace(".", os.sep)
        for folder in [self.root, os.path.join(self.root, "src")] + sys.path:
            if not isinstance(folder, str):
                continue
            for candidate in (relative + ".py", os.path.join(relative, "__init__.py")):
                path = os.path.join(folder or os.getcwd(), candidate)
                if os.path.isfile(path):
                    return os.path.abspath(path)
        return None

    def qualified(self, name):
        """(function, file, def line, first line) for `module.function` or `module.Class.method`, or None."""
        parts = name.split(".")
        for cut in range(len(parts) - 1, 0, -1):
            path = self.module(".".join(parts[:cut]))
            if path is not None:
                found = find_function(path, ".".join(parts[cut:]))
                if found is not None:
                    return (found[0], path) + found[1:]
        return None
