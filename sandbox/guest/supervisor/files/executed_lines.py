"""Lines that the failing test of the last diagnosis has executed, and the blocks of a source that it has not."""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right

from . import definitions
from .workspace import stamp_of

_MAX_FILES = 500
_MAX_LINES = 200_000
_MAX_FOUND = 1000
_FEW = 3
"""Lines of a block that are worth to be named by their number."""
_OF_PARTS = ("handlers", "cases")
"""Blocks that are made of parts of a statement, not of statements."""


class ExecutedLines:
    """Lines by file, as long as that is unchanged."""

    def __init__(self, found, workdir: str) -> None:
        """Keep {path: [line]} of a recording; nothing if it is no such thing."""
        self._files: dict = {}
        """Path relative to the workspace -> (stamp of the file, its lines)."""
        room = _MAX_LINES
        for path, lines in found.items() if isinstance(found, dict) else ():
            if len(self._files) == _MAX_FILES or not isinstance(lines, list) or len(lines) > room:
                break
            room -= len(lines)
            try:
                stamp = stamp_of(os.path.join(workdir, path))
            except ValueError:
                continue  # no path
            self._files[path] = stamp, sorted(line for line in lines if isinstance(line, int))

    def unexecuted(self, path: str, real: str, data: bytes) -> list:
        """[[first, last]] of the blocks in functions of a file that have not run; [] if it is not known which have.

        `path`: relative to the workspace; `real`: where it is; `data`: its content.
        """
        stamp, lines = self._files.get(path) or (None, None)
        return find_unexecuted(data, lines) if lines and stamp and stamp == stamp_of(real) else []


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
        for name in definitions.BLOCKS:
            block = getattr(node, name, None)
            if not block:
                continue
            if not is_inside or name in _OF_PARTS or _has_run(block, ran):
                waiting += [(child, is_inside) for child in block]
                continue
            first, last = _span_of(block)
            if last - first + 1 >= _FEW and not all(_does_nothing(ast, one) for one in block):
                found.append([first, last])
    return sorted(found)


def _has_run(block: list, ran: list) -> bool:
    first, last = _span_of(block)
    return bisect_left(ran, first) < bisect_right(ran, last)


def _span_of(block: list) -> tuple[int, int]:
    return definitions.first_line(block[0]), block[-1].end_lineno


def _does_nothing(ast, statement) -> bool:
    """True for a docstring, `...` and `pass`: whether they ran leaves no sign."""
    is_constant = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return is_constant or isinstance(statement, ast.Pass)
