"""Definitions in Python source: the lines of functions, classes and constants by name."""

from __future__ import annotations

import re
import sys

MAX_SOURCE = 2 << 20
"""Bytes; larger sources are not parsed."""
_MAX_DEFINITIONS = 20_000
_MAX_FOUND = 50
_MAX_NEAREST = 5
_MAX_COMPARED = 2000
_MAX_NAME = 200
_MAX_NESTED = 5000
"""Signs that may begin a nested expression. Before Python 3.10 the compiler crashes on some 100,000 levels."""
BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")
_HEAD = re.compile(r"([ \t]*)(?:(?:async[ \t]+)?def|class)[ \t]+(\w+)")
_CLOSING = (")", "]", "}", "#")


def find(data: bytes, names: list) -> list[dict]:
    """[{"name", "found": [[qualified name, first line, last line]], "nearest": [names]}] for each of `names`.

    `nearest` is set if nothing was found: similar names, else the first ones of the file.
    """
    known = definitions(data)
    return [_find_one(known, str(name)[:_MAX_NAME]) for name in names]


def definitions(data: bytes) -> list[tuple[str, int, int]]:
    """[(qualified name, first line, last line)] in the order of lines, decorators included."""
    if len(data) > MAX_SOURCE:
        return []
    found = _by_ast(data)
    if found is None:
        found = _by_indentation(data)
    return sorted(found, key=lambda one: one[1])


def _find_one(known: list, name: str) -> dict:
    wanted = name.strip().replace("::", ".")
    if wanted.endswith("()"):
        wanted = wanted[:-2]
    found = [one for one in known if one[0] == wanted]
    if not found:
        found = [one for one in known if one[0].endswith("." + wanted)]
    nearest = [] if found else _nearest(known, wanted)
    return {"name": name, "found": [list(one) for one in found[:_MAX_FOUND]], "nearest": nearest}


def _nearest(known: list, wanted: str) -> list[str]:
    import difflib

    names = list(dict.fromkeys(one[0] for one in known[:_MAX_COMPARED]))
    last = wanted.rpartition(".")[2]
    ends = [name.rpartition(".")[2] for name in names]
    close = difflib.get_close_matches(last, ends, _MAX_NEAREST)
    similar = [name for name, end in zip(names, ends) if end == last]
    similar += difflib.get_close_matches(wanted, names, _MAX_NEAREST)
    similar += [name for name, end in zip(names, ends) if end in close]
    return list(dict.fromkeys(similar or names))[:_MAX_NEAREST]


def parse(data: bytes):
    """The syntax tree of a module; None if it can't be compiled, or is too long."""
    import ast
    import warnings

    if len(data) > MAX_SOURCE:
        return None
    if sys.version_info < (3, 10) and sum(map(data.count, (b".", b"(", b"["))) > _MAX_NESTED:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # The compiler refuses what is nested too deeply; before Python 3.11 `ast.parse` crashes on it.
            compile(data, "", "exec", dont_inherit=True)
            return ast.parse(data)
    except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError):
        return None


def _by_ast(data: bytes):
    """Definitions of a module; None if it can't be compiled."""
    module = parse(data)
    if module is None:
        return None
    import ast

    found: list[tuple[str, int, int]] = []
    waiting: list = [(module, "", False)]
    while waiting and len(found) < _MAX_DEFINITIONS:
        node, prefix, is_in_function = waiting.pop()
        for field in BLOCKS:
            for child in getattr(node, field, None) or ():
                waiting.append(_note(ast, child, prefix, is_in_function, found))
    return found


def first_line(statement) -> int:
    """Line at which a statement begins, with its decorators."""
    return min([statement.lineno] + [one.lineno for one in getattr(statement, "decorator_list", ())])


def _note(ast, node, prefix: str, is_in_function: bool, found: list) -> tuple:
    """Append the definitions that a statement is. Returns (it, prefix and kind of the scope in it)."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        found.append(((prefix + node.name)[:_MAX_NAME], first_line(node), node.end_lineno))
        return node, (prefix + node.name + ".")[:_MAX_NAME], not isinstance(node, ast.ClassDef)
    if not is_in_function and isinstance(node, (ast.Assign, ast.AnnAssign)):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            for part in target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]:
                if isinstance(part, ast.Name):
                    found.append(((prefix + part.id)[:_MAX_NAME], node.lineno, node.end_lineno))
    return node, prefix, is_in_function


def _by_indentation(data: bytes) -> list[tuple[str, int, int]]:
    """Functions and classes of a source with syntax errors, by the indentation of its lines."""
    found: list[tuple[str, int, int]] = []
    inside: list = []  # (indentation, qualified name, first line)
    last = decorated = 0
    lines = data.decode("utf-8", "replace").split("\n")
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text:
            continue
        indentation = len(line) - len(line.lstrip())
        while inside and indentation <= inside[-1][0] and not text.startswith(_CLOSING):
            found.append((inside[-1][1], inside.pop()[2], last))
        last = number
        head = _HEAD.match(line)
        if head is not None and len(found) < _MAX_DEFINITIONS:
            prefix = inside[-1][1] + "." if inside else ""
            inside.append((indentation, (prefix + head.group(2))[:_MAX_NAME], decorated or number))
        decorated = (decorated or number) if text.startswith("@") else 0
    return found + [(name, first, last) for _, name, first in inside]
