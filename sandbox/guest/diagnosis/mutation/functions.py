"""Functions of loaded files, and changed code in their place."""

# `ast.ClassDef` has type parameters from 3.12 on.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations
import __future__

import ast
import gc
import importlib
import sys
import types

from ...debugger.isolation.pristine import os
from ..syntax_trees import DEFINITIONS

_FUTURE = 0
for _name in __future__.all_feature_names:
    _FUTURE |= getattr(__future__, _name).compiler_flag


class Function:
    """An outermost function or method of a file: its syntax tree, and the class whose names it may use."""

    __slots__ = ("filename", "name", "node", "owner")

    def __init__(self, filename, name, node, owner):
        self.filename, self.name, self.node, self.owner = filename, name, node, owner

    @property
    def first_line(self):
        return min([self.node.lineno, *(one.lineno for one in self.node.decorator_list)])


class Loaded:
    """The function objects of some files that exist now, by the place of their code."""

    def __init__(self, relative, paths):
        """`relative(filename)`: the path of a file, which is to be among `paths`."""
        self._found, self._at_lines, self._flags, self._of_tests = {}, {}, {}, {}
        self.filenames = {}
        """Path -> name of the file in its code."""
        for one in gc.get_objects():
            if type(one) is types.FunctionType:
                name = one.__code__.co_filename
                if name not in self._flags and relative(name) in paths:
                    self._flags[name] = one.__code__.co_flags & _FUTURE
                    self.filenames[relative(name)] = name
                if name in self._flags:
                    self._found.setdefault(_place(one.__code__), []).append(one)
                    self._at_lines.setdefault(_place(one.__code__)[:2], []).append(one)

    def has(self, function):
        return _place_of(function) in self._found

    def is_of_tests(self, function):
        """True for a method of a test case, which is to make tests pass, wherever its file is."""
        place = _place_of(function)
        if (
            place not in self._of_tests
        ):  # it is asked for each change; a decorator's function may have thousands of objects
            case = getattr(sys.modules.get("unittest.case"), "TestCase", None)
            self._of_tests[place] = any(case in _classes_of(one) for one in self._found[place])
        return self._of_tests[place]

    def objects_of(self, function):
        """The function objects of a function and of those inside it."""
        span = range(function.first_line, (function.node.end_lineno or 0) + 1)
        return [one for line in span for one in self._at_lines.get((function.filename, line), ())]

    def _compile_module(self, tree, filename):
        flags = self._flags.get(filename, 0)
        try:
            return compile(tree, filename, "exec", flags, dont_inherit=True)
        except TypeError:  # a node of the change has no position; to look for it takes as long as to compile
            return compile(ast.fix_missing_locations(tree), filename, "exec", flags, dont_inherit=True)

    def compile_file(self, filename, tree):
        """The code of a file whose syntax tree is changed; None if it is no code."""
        try:
            return self._compile_module(tree, filename)
        except SyntaxError:
            return None

    def compile(self, function):
        """(function object, its new code) for a function whose syntax tree is changed, and those inside it.

        None if the changed code does not fit: it is no code, or uses other variables of functions around it.
        """
        body = function.node
        decorators, body.decorator_list = body.decorator_list, []
        try:
            code = self._compile_module(_module_of(function), function.filename)
        except SyntaxError:  # a `break` that was moved out of its loop
            return None
        finally:
            body.decorator_list = decorators
        changed, lines = [], {body.lineno: function.first_line}
        for one in _codes_in(code):
            line = lines.get(one.co_firstlineno, one.co_firstlineno)
            for loaded in self._found.get((function.filename, line, one.co_name), ()):
                if one.co_freevars == loaded.__code__.co_freevars:
                    changed.append((loaded, one))
                elif line == function.first_line or not {*one.co_freevars} < {*loaded.__code__.co_freevars}:
                    return None
                # A function inside that was made before keeps its variables: those made from now on have their own.
        return changed or None


def import_modules(paths, root, relative):
    """Import the modules of files that the test itself would import: their functions are to exist before it begins.

    `relative(filename)`: the path of a file below `root`.
    """
    loaded = {
        relative(name) for one in list(sys.modules.values()) if (name := getattr(one, "__file__", None))
    }
    for path in sorted(paths - loaded):
        filename = os.path.join(root, path)
        above = max(
            (one for one in sys.path if one and filename.startswith(one + os.sep)), key=len, default=None
        )
        if above is None:
            continue
        parts = os.path.relpath(filename, above)[: -len(".py")].split(os.sep)
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if all(one.isidentifier() for one in parts) and name not in sys.modules:
            try:
                importlib.import_module(name)
            except (Exception, SystemExit):
                pass  # the test knows how to


def without_annotations(tree):
    """The tree with plain assignments for those in functions that have an annotation, which nobody evaluates there."""
    waiting = [(tree, False)]
    while waiting:
        node, is_inside = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            is_inside = not isinstance(node, ast.ClassDef)
        for _, block in ast.iter_fields(node):
            for index, one in enumerate(block if type(block) is list else ()):
                if is_inside and isinstance(one, ast.AnnAssign) and one.value is not None:
                    block[index] = ast.copy_location(ast.Assign(targets=[one.target], value=one.value), one)
        waiting += [(one, is_inside) for one in ast.iter_child_nodes(node) if not isinstance(one, ast.expr)]
    return tree


def functions_in(filename, tree):
    """Yield the functions and methods of a file that are in no other function."""
    waiting: list = [(tree, "", None)]
    while waiting:
        node, path, owner = waiting.pop()
        for one in ast.iter_child_nodes(node):
            if isinstance(one, DEFINITIONS):
                yield Function(filename, path + one.name, one, owner)
            elif isinstance(one, ast.ClassDef):
                waiting.append((one, f"{path}{one.name}.", one.name))
            elif isinstance(one, ast.stmt):
                waiting.append((one, path, owner))


def _module_of(function):
    """A module with this function alone, in its class: private names and `super()` need it."""
    body: list = [function.node]
    if function.owner is not None:
        made = ast.ClassDef(name=function.owner, bases=[], keywords=[], body=body, decorator_list=[])
        if "type_params" in ast.ClassDef._fields:
            made.type_params = []
        body = [ast.copy_location(made, function.node)]
    return ast.Module(body=body, type_ignores=[])


def _codes_in(code):
    for one in code.co_consts:
        if isinstance(one, types.CodeType):
            yield one
            yield from _codes_in(one)


def _classes_of(function):
    """The class of a method and all that it inherits from; none if it is not where its name says."""
    names, owner = getattr(sys.modules.get(function.__module__), "__dict__", {}), None
    for name in function.__qualname__.split(".")[:-1]:
        owner = names.get(name)
        if not isinstance(owner, type):
            return ()
        names = type.__getattribute__(owner, "__dict__")  # a metaclass may have another one
    return () if owner is None else type.__getattribute__(owner, "__mro__")


def _place_of(function):
    return function.filename, function.first_line, function.node.name


def _place(code):
    return code.co_filename, code.co_firstlineno, code.co_name
