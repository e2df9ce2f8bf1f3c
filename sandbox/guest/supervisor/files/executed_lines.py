"""Lines that the failing test of the last diagnosis has executed, and the blocks of a source that it has not."""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right

from . import definitions

_MAX_FILES = 500
_MAX_LINES = 200_000
_MAX_FOUND = 1000
_FEW = 3
"""Lines of a block that are worth to be named by their number."""
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


class ExecutedLines:
    """Lines by file, as long as that is unchanged."""

    def __init__(self) -> None:
        self._files: dict = {}
        """Path relative to the workspace -> (state of the file, its lines)."""

    def keep(self, found, workdir: str) -> None:
        """Keep {path: [line]} of a recording, in place of what was kept before; nothing if it is no such thing."""
        self._files = {}
        room = _MAX_LINES
        for path, lines in found.items() if isinstance(found, dict) else ():
            if len(self._files) == _MAX_FILES or not isinstance(lines, list) or len(lines) > room:
                break
            room -= len(lines)
            try:
                status = os.stat(os.path.join(workdir, path))
            except (OSError, ValueError):
                continue  # gone since, or no path
            self._files[path] = _state_of(status), sorted(line for line in lines if isinstance(line, int))

    def unexecuted(self, path: str, status: os.stat_result, data: bytes) -> list:
        """[[first, last]] of the blocks in functions of a file that have not run; [] if it is not known which have."""
        state, lines = self._files.get(path) or (None, None)
        return find_unexecuted(data, lines) if lines and state == _state_of(status) else []


def find_unexecuted(data: bytes, ran: list) -> list:
    """[[first line, last line]] of the bodies of functions, and blocks in them, without one of the lines that `ran`, in order."""
    module = definitions.parse(data)
    if module is None:
        return []
    import ast

    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    found: list = []
    waiting = [(module, False)]
    while waiting and len(found) < _MAX_FOUND:
        node, is_inside = waiting.pop()
        is_inside = is_inside or isinstance(node, functions)
        for name in _BLOCKS:
            block = getattr(node, name, None) or []
            span = _span_of(block) if is_inside and name in _BLOCKS[:3] and isinstance(block, list) else None
            if span is None or bisect_left(ran, span[0]) < bisect_right(ran, span[1]):
                waiting += [(child, is_inside) for child in block] if isinstance(block, list) else []
            elif span[1] - span[0] + 1 >= _FEW and not all(_does_nothing(ast, one) for one in block):
                found.append(list(span))
    return sorted(found)


def _does_nothing(ast, statement) -> bool:
    """True for a docstring, `...` and `pass`: whether they ran leaves no sign."""
    is_constant = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return is_constant or isinstance(statement, ast.Pass)


def _span_of(block: list):
    """First and last line of a block of statements; None if it is empty."""
    if not block:
        return None
    first = min([block[0].lineno] + [one.lineno for one in getattr(block[0], "decorator_list", ())])
    return first, block[-1].end_lineno


def _state_of(status: os.stat_result) -> tuple:
    return status.st_ino, status.st_size, status.st_mtime_ns
