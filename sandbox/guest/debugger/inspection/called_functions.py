"""Finds what a line of source names, without running code of the program."""

from __future__ import annotations

import linecache
import re
import types

from .attributes import attributes, is_code, locals_of

NAME = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
MAX = 4
MAX_STATEMENT = 8
"""Lines of a statement that are looked at."""
SOURCE = 1200  # characters
_MAX_LINES = 30
_MAX_LINE = 160
_MAX_WRAPPERS = 4
_DEF = re.compile(r"\s*(?:async\s+)?def\b")


def resolve(token, variables, scope):
    """Follow a dotted name through attributes of instances. Returns (name, value, the rest of the names).

    The name is "" if the first part is no variable; `a.b` may be one as a whole. `scope`: the globals.
    """
    parts = token.split(".")
    names = (".".join(parts[:count]) for count in range(1, len(parts) + 1))
    name = next((one for one in names if one in variables), parts[0])
    if name not in variables and name not in scope:
        return "", None, parts[1:]
    value, rest = variables[name] if name in variables else scope[name], parts[name.count(".") + 1 :]
    while rest:
        held = {} if is_code(value) else dict(attributes(value))
        if "%s.%s" % (name, rest[0]) in variables:
            value = variables["%s.%s" % (name, rest[0])]
        elif rest[0] in held:
            value = held[rest[0]]
        else:
            break
        name = "%s.%s" % (name, rest.pop(0))
    return name, value, rest


def named_in(frame, texts):
    """Yield the code of the functions that pieces of source name, without repetition."""
    variables, found = dict(locals_of(frame)), []
    for token in [token for text in texts for token in NAME.findall(text)]:
        name, value, rest = resolve(token, variables, frame.f_globals)
        for attribute in rest:
            value = member(value, attribute)
        code = code_of(value) if name else None
        if code is not None and code not in found:
            found.append(code)
            yield code


def statements(lines):
    """Return the lines, those of a statement whose brackets go on over several as one."""
    found, text, count = [], "", 0
    for line in lines:
        text, count = text + line, count + 1
        if count == MAX_STATEMENT or is_closed(text):
            found.append(text)
            text, count = "", 0
    return found


def is_closed(text):
    """True if no bracket of a text is open at its end."""
    return sum(map(text.count, "([{")) <= sum(map(text.count, ")]}"))


def leading_to(code, above, text):
    """Return those of the statements `above` the one of `text` that name a variable of it, or of one of them.

    The nearest first. Variables are locals of the function of `code`, and attributes of its `self`.
    """
    wanted, found = _variables(code, text), []
    for each in reversed(above):
        named = _variables(code, each)
        if named & wanted:
            wanted |= named
            found.append(each)
    return found


def _variables(code, text):
    names = set()
    for match in NAME.finditer(text):
        first, *rest = match[0].split(".")
        if first in ("self", "cls"):
            is_method = len(rest) == 1 and text[match.end() : match.end() + 1] == "("
            names.update("self." + name for name in rest[:1] if not is_method)
        elif first in code.co_varnames or first in code.co_cellvars:
            names.add(first)
    return names


def member(value, name):
    """Return an attribute of a module or class, or of the class of an instance, or what makes up for it.

    None if there is none.
    """
    if type(value) is types.ModuleType:
        return object.__getattribute__(value, "__dict__").get(name)
    kind = value if issubclass(type(value), type) else type(value)
    for wanted in (name, "__getattr__"):
        for base in type.__dict__["__mro__"].__get__(kind):
            scope = type.__dict__["__dict__"].__get__(base)
            if wanted in scope:
                return scope[wanted]
    return None


def code_of(value):
    """Return the code of a function, of a property, or of the `__init__` of a class."""
    if issubclass(type(value), type):
        value = type.__dict__["__dict__"].__get__(value).get("__init__")
    if type(value) in (staticmethod, classmethod, types.MethodType):
        value = value.__func__
    elif type(value) is property:
        value = value.fget
    for _ in range(_MAX_WRAPPERS):
        if type(value) is types.FunctionType and "__wrapped__" in value.__dict__:
            value = value.__dict__["__wrapped__"]
    return value.__code__ if type(value) is types.FunctionType else None


def start_of(code, lines, limit):
    """Return the line of the `def` of a function, without its decorators; 1 for a module."""
    first = max(1, code.co_firstlineno)
    for number in range(first, min(limit, len(lines)) + 1):
        if _DEF.match(lines[number - 1]):
            return number
    return first


def source_of(code):
    """Return (lines, number of the first) of a function; no lines if it is long."""
    lines = linecache.getlines(code.co_filename)
    first = start_of(code, lines, code.co_firstlineno + _MAX_LINES)
    found = [text.rstrip()[:_MAX_LINE] for text in lines[first - 1 : first + _MAX_LINES]]
    indent = _indent(found[0]) if found else 0
    for number, text in enumerate(found[1:], 1):
        if text and _indent(text) <= indent and text.strip()[:1] not in ")]}":
            return _without_blank_end(found[:number]), first
    return ([] if len(found) > _MAX_LINES else _without_blank_end(found)), first


def _indent(text):
    return len(text) - len(text.lstrip())


def _without_blank_end(lines):
    while lines and not lines[-1]:
        lines = lines[:-1]
    return lines
