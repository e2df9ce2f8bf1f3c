"""The state that changes of the code are about, and the lines of a file that use it."""

# Nodes with a position are told by their attributes.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import ast
import itertools
from collections import Counter

from ..sources import binds, changed_by, changes, is_named, lines_that_change
from ..syntax_trees import DEFINITIONS, own_attribute, parameters
from .caches import is_cached_attribute
from .definitions import assigned_in

_MAX_TOLD, _MAX_NAMES = 40, 12
_MAX_BESIDE, _MAX_BESIDE_USES = 3, 12
_MAX_LOOKED_FOR = 8
"""Names whose uses are looked for."""
_MAX_ELSEWHERE = 6
"""Lines of other files with a name, up to which it is not one that many things have."""


def find(mutants, filename, definitions):
    """(name, name of its file, [(line, True if it is written there)]) of the state that changes of a file are about; "" if none.

    Where the best one computes a cached attribute anew, or a kept result that is made of attributes of its object, it is that;
    where it leaves out that an attribute is assigned to another one, it is the first, whose value is wrong; where it adds that
    one state is written, that one. Else it is an attribute that is not called, or a constant of a module, which may be a
    container: in the code of at least half of the changes, one of which writes it. Else a global or an attribute that functions
    write whose calls are left out, or an attribute of the object or the class itself that is in the best change and that the
    file writes.
    """
    computed_by = mutants[0].computed_by if mutants else None
    if computed_by is not None and (_computes_attribute(computed_by) or _own_attributes([computed_by])):
        return _of_cached(computed_by, definitions)
    named = [{(filename, name): writes for name, writes in _state_in(one.code).items()} for one in mutants]
    found = (
        next(_handed_on(mutants[:1], filename, definitions), None)
        or next(_added(mutants[:1], filename), None)
        or _most_frequent(named)
        or _most_frequent([_written_by_called(one, definitions) for one in mutants])
        or next(_own_state(mutants[:1], filename, definitions), None)
    )
    filename, name = found or (filename, "")
    uses = _uses(definitions, filename, name)
    written = [one for one in uses if one[1]]
    return name.lstrip("."), filename, (uses if len(uses) <= _MAX_TOLD else written)[:_MAX_TOLD]


def find_beside(mutants, filename, known, definitions, filenames):
    """[(name, [(name of a file, line, True if it is written there)])] of what else changes of one file name.

    Attributes that are not called, those that the file sets and are named like a parameter, and globals that it assigns, other
    than the names `known`. `filenames`: names of the files whose lines are told.
    """
    tree = definitions.trees[filename]
    named = (one for mutant in mutants for one in _named_in(mutant, tree) if one[0].lstrip(".") not in known)
    found = []
    for name, is_parameter in itertools.islice(dict.fromkeys(named), _MAX_LOOKED_FOR):
        own = _uses(definitions, filename, name)
        if is_parameter and not any(is_written for _, is_written in own):
            continue
        uses = [(filename, *use) for use in own] + find_elsewhere(name, filename, definitions, filenames)
        if len(uses) <= _MAX_BESIDE_USES:
            found.append((name.lstrip("."), uses))
    return found[:_MAX_BESIDE]


def find_elsewhere(name, filename, definitions, filenames):
    """[(name of a file, line, True if it is written there)] of an attribute in other files than one; empty if there are many."""
    is_shared = _is_attribute(name) and not name.startswith(".__")
    others = [one for one in filenames if one != filename] if is_shared else []
    found = [(other, *use) for other in others for use in _uses(definitions, other, name)]
    return found if len(found) <= _MAX_ELSEWHERE else []


def _named_in(mutant, tree):
    """Yield (name, True if it is that of a parameter) of attributes, with a dot before each, and of globals that a change is about."""
    nodes = [node for one in mutant.code for node in ast.walk(one)]
    called = {node.func for node in nodes if isinstance(node, ast.Call)}
    assigned = {getattr(target, "id", None) for one in tree.body for target, _ in assigned_in(one)}
    around = _function_around(tree, mutant.line)
    given = set(parameters(around.args)) - {"self", "cls"} if around is not None else set()
    for node in nodes:
        if isinstance(node, ast.Attribute) and node not in called and not _is_class(node.value):
            yield f".{node.attr}", False
        elif isinstance(node, ast.Name) and node.id in given:
            yield f".{node.id}", True
        elif isinstance(node, ast.Name) and node.id in assigned:
            yield node.id, False


def _of_cached(function, definitions):
    """The same for a kept result and what it is computed of: the lines that may compute it, and that change the latter."""
    filename = definitions.filename_of(function)
    used = _own_attributes([function])
    written = [line for name in used for line, is_written in _uses(definitions, filename, name) if is_written]
    computed = [f".{function.name}"] if _computes_attribute(function) else []
    computed = [line for name in computed for line, _ in _uses(definitions, filename, name)]
    lines = sorted({*computed, *written, function.lineno})[:_MAX_TOLD]
    names = ", ".join([function.name, *(name.lstrip(".") for name in used)])
    return names, filename, [(line, True) for line in lines]


def _computes_attribute(function):
    """True for a function that computes a cached attribute."""
    return any(map(is_cached_attribute, function.decorator_list))


def _handed_on(mutants, filename, definitions):
    """Yield (name of the file, name) of the attributes whose assignment to others changes leave out, if the file writes them."""
    for one in [one for each in mutants if each.leaves_out for one in each.code]:
        value = one.value if isinstance(one, ast.Assign) else None
        held, target = map(_container_of, (value, one.targets[0] if value is not None else None))
        if isinstance(held, ast.Attribute) and isinstance(target, ast.Attribute):
            name = f".{held.attr}"
            if any(is_written for _, is_written in _uses(definitions, filename, name)):
                yield filename, name


def _added(mutants, filename):
    """Yield (name of the file, name) of the state that the code which changes add writes, if that is all that it names."""
    for one in mutants:
        names = _state_in(one.code) if one.is_added else {}
        if len(names) == 1 and all(names.values()):
            yield filename, *names


def _container_of(node):
    """`a.b` of `a.b[0][1]`."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node


def _own_state(mutants, filename, definitions):
    """Yield (name of the file, name) of the attributes of `self` and `cls` in the code of changes that the file writes.

    Those first that the changed function writes itself.
    """
    tree = definitions.trees.get(filename)
    names = _own_attributes(one for each in mutants for one in each.code)
    functions = [_function_around(tree, each.line) for each in mutants]

    def is_others(name):
        return not any(any(lines_that_change(one, name)) for one in functions if one is not None)

    for name in sorted(names, key=is_others):
        if any(is_written for _, is_written in _uses(definitions, filename, name)):
            yield filename, name


def _own_attributes(code):
    """The first names of attributes of `self`, and of `cls`, in syntax trees, with a dot before each."""
    nodes = (node for one in code for node in ast.walk(one))
    return list(dict.fromkeys(f".{node.attr}" for node in nodes if own_attribute(node) or _is_of_cls(node)))[
        :_MAX_NAMES
    ]


def _is_of_cls(node):
    return isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "cls"


def _function_around(tree, line):
    """The innermost function with a line; None if there is none."""
    found = [
        one
        for one in (ast.walk(tree) if tree is not None else ())
        if isinstance(one, DEFINITIONS) and one.lineno <= line <= (one.end_lineno or 0)
    ]
    return max(found, key=lambda one: one.lineno, default=None)


def _most_frequent(named):
    """The key of at least half of some dicts that has a true value in one of them; None if there is none."""
    for one, count in Counter(key for each in named for key in each).most_common():
        if count * 2 >= len(named) and any(each.get(one) for each in named):
            return one
    return None


def _written_by_called(mutant, definitions):
    """{(name of a file, name of a global or an attribute that a function writes whose call is left out): True}."""
    found = {}
    for node in mutant.code if mutant.is_blunt else ():
        for call in ast.walk(node):
            function = definitions.find_called(call) if isinstance(call, ast.Call) else None
            if function is not None:
                filename, called = function
                names = _written_in(called, definitions.trees[filename])
                found.update({(filename, name): True for name in sorted(names, key=_is_attribute)})
    return found


def _is_attribute(name):
    return name.startswith(".")


def _written_in(function, tree):
    """The globals and attributes that a function writes."""
    names = {getattr(target, "id", "") for one in tree.body for target, _ in assigned_in(one)}
    names |= {f".{node.attr}" for node in ast.walk(function) if isinstance(node, ast.Attribute)}
    return [name for name in sorted(names) if any(lines_that_change(function, name))]


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


def _uses(definitions, filename, name):
    """[(line, True if it is written there)] of a global, or of an attribute and the variables of classes of its name."""
    tree = definitions.trees.get(filename)
    if tree is None or not name:
        return []
    if not _is_attribute(name):
        return sorted(_uses_of_global(tree, name).items())
    of_files = definitions.attribute_uses
    if filename not in of_files:
        of_files[filename] = _uses_of_attributes(tree)
    return sorted(of_files[filename].get(name, {}).items())


def _uses_of_global(tree, name):
    """{line: True if it is written there}."""
    found: dict = {}
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        is_written = changes(node, name)
        if is_written or is_named(node, name):
            found[node.lineno] = found.get(node.lineno, False) or is_written
        for one in ast.iter_child_nodes(node):
            if not (isinstance(one, DEFINITIONS) and binds(one, name)):
                waiting.append(one)
    return found


def _uses_of_attributes(tree):
    """{name of an attribute, with a dot before it: the same}, with the variables of classes."""
    found: dict = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            found.setdefault(f".{node.attr}", {}).setdefault(node.lineno, False)
        changed = changed_by(node)
        if isinstance(changed, ast.Attribute):
            found.setdefault(f".{changed.attr}", {})[node.lineno] = True
        for one in node.body if isinstance(node, ast.ClassDef) else ():
            for target in (target for target, _ in assigned_in(one) if isinstance(target, ast.Name)):
                found.setdefault(f".{target.id}", {})[one.lineno] = True
    return found
