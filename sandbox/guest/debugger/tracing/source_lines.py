"""Finds places in source files: lines with code, functions by name, modules not yet imported."""

# Nodes of all kinds go through the same code.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import ast
import contextlib
import dis
import itertools
import linecache
import sys
import warnings

from ...paths import FOREIGN_FOLDERS
from ..isolation.pristine import io, os

if sys.version_info >= (3, 10):

    def lines_of_code(code):
        """Return the lines of a code object, without those of nested functions."""
        return {line for _, _, line in code.co_lines() if line}

else:

    def lines_of_code(code):
        """Return the lines of a code object, without those of nested functions."""
        return {line for _, line in dis.findlinestarts(code)}


def first_line(code):
    """Return the line at which a call of this function stops first."""
    if sys.version_info < (3, 11):
        return next((line for _, line in dis.findlinestarts(code) if line), code.co_firstlineno)
    started = False
    for instruction in dis.get_instructions(code):
        line = instruction.positions.lineno if instruction.positions else None
        if started and line:
            return line
        started = started or instruction.opname == "RESUME"
    return code.co_firstlineno


def loops_on_a_line(code, lines):
    """Return {offset: line} of the instructions that jump back within one of `lines` (one-line loops)."""
    line_at, jumps = {}, {}
    for instruction in dis.get_instructions(code):
        line_at[instruction.offset] = instruction.positions.lineno if instruction.positions else None
        if instruction.opname == "JUMP_BACKWARD":
            jumps[instruction.offset] = instruction.argval
    return {
        offset: line_at[offset]
        for offset, target in jumps.items()
        if line_at[offset] in lines and line_at.get(target) == line_at[offset]
    }


@contextlib.contextmanager
def ignore_warnings():
    """Suppress warnings of the compiler: the program gets them when it loads the code."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


_lines = {}  # path -> (size and time of the file, lines with code)


def code_lines(path):
    """Return the numbers of the lines of a file with code, or None if it can't be compiled."""
    stamp = _stamp(path)
    known = _lines.get(path)
    if known is not None and known[0] == stamp:
        return known[1]
    tree = parse_file(path)
    found = None
    if tree is not None:
        try:
            with ignore_warnings():
                found = _all_lines(compile(tree, path, "exec", dont_inherit=True))
        except (SyntaxError, ValueError, RecursionError):
            pass  # valid grammar, but not a valid program (`return` outside of a function)
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
    # From 3.11 on a module starts at line 0. A function starts at its `def`, which is a line of the module
    # anyway.
    found.discard(0)
    return found


_trees = {}


def parse_file(path):
    """Return the syntax tree of a file, or None."""
    stamp = _stamp(path)
    known = _trees.get(path)
    if known is not None and known[0] == stamp:
        return known[1]
    linecache.checkcache(path)
    try:
        with ignore_warnings():
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
    """Yield the direct definitions of a scope, also those under `if`, `try` and `with`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _SCOPES):
            yield child
        elif isinstance(child, (ast.stmt, ast.excepthandler)):
            for found in _children(child):
                yield found


def _first_line_of(statement):
    """Return the first line of a statement: that of its first decorator, if it has any."""
    decorators = getattr(statement, "decorator_list", ())
    return min([statement.lineno] + [item.lineno for item in decorators])


def scope_of(path, line):
    """Return the qualified name of the function or class around a line; "" for the module."""
    tree, names = parse_file(path), []
    node = tree
    while node is not None:
        inside = None
        for child in _children(node):
            if _first_line_of(child) <= line <= child.end_lineno:
                inside = child
        if inside is None:
            break
        names.append(inside.name)
        node = inside
    return ".".join(names)


def runs_on_import(path, line):
    """True if a line is outside of all functions, so that it runs only on import."""
    tree = parse_file(path)
    if tree is None:
        return False
    for node in ast.walk(tree):
        if isinstance(node, _FUNCTIONS + (ast.Lambda,)):
            body = node.body if isinstance(node, ast.Lambda) else node.body[0]
            if body.lineno <= line <= node.end_lineno:
                return False
    return True


def is_imported(path):
    """True if a module of the file at `path` has been imported completely."""
    scopes = (vars(module) for module in list(sys.modules.values()) if type(module) is type(sys))
    return any(
        _leads_to(scope.get("__file__"), path) and not getattr(scope.get("__spec__"), "_initializing", False)
        for scope in scopes
    )


def _leads_to(file, path):
    # Base names are compared first, which is cheap: there are hundreds of modules.
    same = isinstance(file, str) and os.path.basename(file) == os.path.basename(path)
    return same and os.path.realpath(file) == path


def find_function(path, qualname):
    """Return (name, line of the `def`, first line that runs) of a function in a file, or None."""
    tree = parse_file(path)
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
        # A method without its class, if only one has the name.
        nodes = [node for node in ast.walk(tree) if isinstance(node, _FUNCTIONS) and node.name == parts[0]]
        nodes = nodes if len(nodes) == 1 else []
    if not nodes:
        return None
    node = nodes[-1]  # the last definition is the one that counts
    first = _first_line_of(node)
    body = node.body
    start = body[1] if ast.get_docstring(node, clean=False) is not None and len(body) > 1 else body[0]
    return node.name, first, _first_line_of(start)


def nearest(path, line, count=2):
    """Return the nearest lines with code as [(number, text)]: at most `count` above and `count` below."""
    lines = code_lines(path) or ()
    above = sorted(number for number in lines if number < line)[-count:]
    below = sorted(number for number in lines if number > line)[:count]
    return [(number, linecache.getline(path, number).strip()) for number in above + below]


_MAX_LOOKED_AT = 10000
_MAX_READ = 1 << 20


def _mentions(path, name):
    """True if a file contains `name`. This is faster than to parse it."""
    try:
        with io.open(path, "rb") as file:
            return name.encode() in file.read(_MAX_READ)
    except OSError:
        return False


def _current_folder():
    try:
        return os.getcwd()
    except OSError:
        return ""  # the program has removed it


class Resolver:
    """Looks names up from the root of the repository and along the program's import path."""

    def __init__(self, root):
        self.root = root

    def file(self, name):
        """Return the file for `name` (a path relative to the repository, or a dotted module), or None."""
        if name[:1] in ("'", '"') and name[:1] == name[-1:]:
            name = name[1:-1]  # quoted as for a shell
        candidates = [name] if name.endswith(".py") else [name, name + ".py"]
        for folder in [self.root, _current_folder()]:
            for candidate in candidates:
                path = os.path.join(folder, os.path.expanduser(candidate))
                if os.path.isfile(path):
                    return os.path.normpath(path)
        return self.module(name) if not name.endswith(".py") else None

    def similar(self, name):
        """Return at most three files of the repository whose name is the last part of `name`."""
        wanted = name.strip("'\"").replace("\\", "/").rpartition("/")[2]
        close = (path for path in self._files() if os.path.basename(path) in (wanted, wanted + ".py"))
        return [os.path.relpath(path, self.root) for path in itertools.islice(close, 3)]

    def defining(self, name):
        """Return at most three definitions of a function in the repository, as `file:function` for `b`."""
        parts = name.split(".")
        if not all(part.isidentifier() for part in parts):
            return []
        found = []
        for path in self._files():
            if not path.endswith(".py") or not _mentions(path, parts[-1]):
                continue
            # Only the end of `package.module.Class.method` must match.
            endings = (".".join(parts[cut:]) for cut in range(len(parts)))
            known = next((ending for ending in endings if find_function(path, ending)), None)
            if known is not None:
                found.append(f"{os.path.relpath(path, self.root)}:{known}")
                if len(found) == 3:
                    break
        return found

    def _files(self):
        """Yield the paths of the repository's own files, at most so many that a caller can wait for it."""
        seen = 0
        for folder, folders, files in os.walk(self.root):
            folders[:] = sorted(each for each in folders if each[:1] != "." and each not in FOREIGN_FOLDERS)
            for each in sorted(files):
                yield os.path.join(folder, each)
            seen += len(files)
            if seen > _MAX_LOOKED_AT:
                return

    def module(self, name):
        """Return the source file of a module, or None. Imports nothing."""
        module = sys.modules.get(name)
        path = getattr(module, "__file__", None)
        if isinstance(path, str) and path.endswith(".py"):
            return path
        relative = name.replace(".", os.sep)
        for folder in [self.root, os.path.join(self.root, "src")] + sys.path:
            if not isinstance(folder, str):
                continue
            for candidate in (relative + ".py", os.path.join(relative, "__init__.py")):
                path = os.path.join(folder or _current_folder(), candidate)
                if os.path.isfile(path):
                    return os.path.abspath(path)
        return None

    def qualified(self, name):
        """Return (function, file, def line, first line) of a dotted name (`module.Class.method`), or None."""
        parts = name.split(".")
        for cut in range(len(parts) - 1, 0, -1):
            path = self.module(".".join(parts[:cut]))
            if path is not None:
                found = find_function(path, ".".join(parts[cut:]))
                if found is not None:
                    return (found[0], path) + found[1:]
        return self._elsewhere(parts)

    def _elsewhere(self, parts):
        """Search as `qualified` in folders that the program may add to its import path later.

        Returns the definition only if a single file matches.
        """
        found = []
        for path in self._files():
            module, extension = os.path.splitext(path)
            folder, name = os.path.split(module)
            module = folder if name == "__init__" else module
            for cut in range(1, len(parts)):
                if extension == ".py" and module.endswith(os.sep + os.sep.join(parts[:cut])):
                    place = find_function(path, ".".join(parts[cut:]))
                    found += [(place[0], path) + place[1:]] if place is not None else []
        return found[0] if len(found) == 1 else None
