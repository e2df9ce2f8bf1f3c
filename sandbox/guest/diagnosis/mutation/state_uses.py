"""The state that changes of the code are about, and the lines of a file that use it."""

# Nodes with a position are told by their attributes.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import ast
from collections import Counter

from ..sources import changes, is_named
from .definitions import assigned_in

_MAX_TOLD = 40


def find(mutants, tree):
    """(name, [(line of the tree, True if it is written there)]) of the state of most of the mutants; None if there is none.

    It is an attribute that is not called, or a constant of a module, which may be a container: in the code of at least half of
    the changes, one of which writes it.
    """
    named = [_state_in(one.code) for one in mutants]
    counted = Counter(name for one in named for name in one)
    for name, count in counted.most_common():
        if count * 2 >= len(named) and any(one.get(name) for one in named):
            uses = _uses(tree, name)
            written = [one for one in uses if one[1]]
            return name.lstrip("."), (uses if len(uses) <= _MAX_TOLD else written)[:_MAX_TOLD]
    return None


def _state_in(code):
    """{name of a state in syntax trees: True if it is written}; an attribute has a dot before it."""
    nodes = [node for one in code for node in ast.walk(one)]
    called = {node.func for node in nodes if isinstance(node, ast.Call)}
    names = dict.fromkeys(_name_of_state(node) for node in nodes if node not in called)
    return {name: any(changes(node, name) for node in nodes) for name in names if name}


def _name_of_state(node):
    if isinstance(node, ast.Attribute) and not _is_class(node.value):
        return f".{node.attr}"
    return node.id if isinstance(node, ast.Name) and _is_constant(node.id) else ""


def _is_class(node):
    return isinstance(node, ast.Name) and node.id[:1].isupper()


def _is_constant(name):
    return len(name) > 2 and name == name.upper() and name.strip("_")[:1].isalpha()


def _uses(tree, name):
    """[(line, True if it is written there)] of a global, or of an attribute and the variables of classes of its name."""
    found: dict = {}
    for node in () if tree is None else ast.walk(tree):
        for one in node.body if isinstance(node, ast.ClassDef) else ():
            if any(name == f".{getattr(target, 'id', '')}" for target, _ in assigned_in(one)):
                found[one.lineno] = True
        is_written = isinstance(node, ast.expr) and changes(node, name)
        if is_written or is_named(node, name):
            found[node.lineno] = found.get(node.lineno, False) or is_written
    return sorted(found.items())
