"""Finds the functions that prepared a failing test: `setUp` and fixtures, without running code of the program."""

from __future__ import annotations

import sys
import types

from .attributes import attributes, locals_of
from .called_functions import code_of, member

MAX = 4
SOURCE = 1500  # characters
_METHODS = ("setUp", "asyncSetUp", "setup_method")
_FIXTURE_MARKS = ("_pytestfixturefunction", "_fixture_function_marker")


def named_in(frame):
    """Yield the code of what prepared the test of a frame: methods of its class, fixtures that are its arguments."""
    code, variables = frame.f_code, dict(locals_of(frame))
    count = code.co_argcount + code.co_kwonlyargcount
    names = code.co_varnames[:count]
    case = variables.get(names[0]) if names and names[0] == "self" else None
    for name in _METHODS if case is not None else ():
        found = code_of(member(case, name))
        if found is not None:
            yield found
    for name in names:
        for value in [member(case, name), *_globals(frame, name)]:
            found = _code_of_fixture(value)
            if found is not None:
                yield found
                break


def _globals(frame, name):
    """Yield what a name is in the module of a test, and in the files of fixtures for its folder and those above."""
    yield frame.f_globals.get(name)
    for module_name, module in list(sys.modules.items()):
        if module_name.rpartition(".")[2] == "conftest" and type(module) is types.ModuleType:
            yield object.__getattribute__(module, "__dict__").get(name)


def _code_of_fixture(value):
    """Return the code of a function that `pytest.fixture` has marked; None of anything else."""
    held = dict(attributes(value)) if value is not None else {}
    if not any(mark in held for mark in _FIXTURE_MARKS):
        return None
    return code_of(held.get("_fixture_function", value))
