"""Changes that add to a function what may have been forgotten: a value that is not reset, an argument not handed on."""

# Nodes with a position are told by their attributes.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import ast
import copy

from ..sites import MUTATORS
from ..syntax_trees import has_docstring, index_of, own_attribute, parameters
from .definitions import assigned_in, container_text, initial_text
from .mutant import (
    AIMED,
    FIRST,
    POSSIBLE,
    UNLIKELY,
    Ends,
    Mutant,
    Replacing,
    braced,
    copying,
    expression,
    last_name,
    local_names,
    parsed,
    path_of,
)

_MAX_ATTRIBUTES, _MAX_KEYS, _MAX_CALLED = 6, 3, 3
_MAX_ARGUMENTS, _MAX_MOVED = 4, 4
_MIN_COMMON = 5
"""Characters that names have in common which mean the same."""
_ANSWERS = (ast.Return, ast.If)
_WORK = ast.Call, ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr
"""Expressions by which a function does something."""


def insertions_of(function, executed, definitions):
    """Yield changes of a `Function` that add something at lines that have run."""
    node = function.node
    first = int(has_docstring(node.body))
    if not node.body[first:]:
        return
    names = [one.arg for one in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]]
    is_method = function.owner is not None and names[:1] == ["self"]
    ends = Ends(node, first, executed)
    yield from _copies_of_parameters(node, names, ends)
    yield from _fresh_caches(node, ends)
    if is_method and node.name != "__init__":
        yield from _kept_state(function, definitions, ends)
    if function.owner is not None:
        yield from _own_containers(function, definitions, names, ends)
        yield from _normalised(function, definitions, names, ends)
    if any(isinstance(one, ast.Return) and one.value is not None for one in ast.walk(node)):
        for name in names[1 if is_method else 0 :][:2]:
            yield ends.at_start(f"return {name}", UNLIKELY, f"if it returned its argument `{name}` at once")
    if ends.has_end:
        yield from _moved(node, names, definitions, ends)
    yield from _handed_on(function, executed, definitions)


def _copies_of_parameters(node, names, ends):
    """With copies of the arguments that it changes; of those with a default, a container of its own, the other flag."""
    changed = {}
    for one in ast.walk(node):
        if isinstance(one, (ast.Subscript, ast.Attribute)) and not isinstance(one.ctx, ast.Load):
            changed[getattr(one.value, "id", None)] = True
        elif isinstance(one, ast.Call) and getattr(one.func, "attr", None) in MUTATORS:
            changed[getattr(one.func.value, "id", None)] = True
        elif isinstance(one, ast.AugAssign):
            changed[getattr(one.target, "id", None)] = True
    for name in names:
        if name in changed and name not in ("self", "cls"):
            yield ends.at_start(copying(name), AIMED, f"with a copy of its argument `{name}`")
    optional = [*node.args.posonlyargs, *node.args.args][-len(node.args.defaults) :]
    defaults = [*zip(optional, node.args.defaults), *zip(node.args.kwonlyargs, node.args.kw_defaults)]
    for one, value in defaults:
        if container_text(value):
            made = f"{one.arg} = {container_text(value)}"
            yield ends.at_start(made, AIMED, f"with `{made}` at its start")
        elif type(getattr(value, "value", None)) is bool:
            other = f"if {one.arg} is {value.value}: {one.arg} = {not value.value}"
            told = f"if `{one.arg}` were {not value.value} where it is {value.value}"
            yield ends.at_start(other, POSSIBLE, told)


def _fresh_caches(node, ends):
    """With an empty container for one that is no local variable, and that it both looks something up in and writes to."""
    own = local_names(node)
    written, grown, read, asked = {}, {}, set(), set()
    for one in ast.walk(node):
        if isinstance(one, ast.Subscript):
            if isinstance(one.ctx, ast.Store) and getattr(one.value, "id", None) not in own:
                written.setdefault(path_of(one.value), one)
            elif isinstance(one.ctx, ast.Load):
                read.add(path_of(one.value))
        elif isinstance(one, ast.Compare):
            asked.add(path_of(one.comparators[0]))
        elif isinstance(one, ast.Call) and getattr(one.func, "attr", None) in ("get", "setdefault"):
            read.add(path_of(one.func.value))
        elif isinstance(one, ast.Call) and getattr(one.func, "attr", None) in ("add", "append"):
            if getattr(one.func.value, "id", None) not in own:
                grown.setdefault(path_of(one.func.value), one)
    for path, at in {**grown, **written}.items():
        if path and (path in asked or (path in written and path in read)):
            replaced = Replacing(path, "_empty", only_asked=path not in written)
            body = [replaced.visit(one) for one in copy.deepcopy(node.body)]
            made = parsed(f"_empty = type({path})()", node.body[0])
            told = braced(f"if `{path}` were empty each time")
            emptied = parsed(f"{path} = None", at)  # as good as that
            yield Mutant(node, {"body": [*made, *body]}, at, FIRST, told, added=emptied)


def _kept_state(function, definitions, ends):
    """With attributes of the object set as they were in the beginning, without a key, computed anew."""
    node = function.node
    if _only_answers(node):
        return
    state = definitions.state(function.owner)
    assigned, called, keys = set(), set(), {}
    is_resetting = any(word in node.name for word in ("reset", "clear"))
    for one in ast.walk(node):
        for target, value in assigned_in(one):
            is_resetting |= own_attribute(target) and initial_text(value) == state.initial.get(
                target.attr, "-"
            )
        if own_attribute(one):
            if isinstance(one.ctx, ast.Store):
                assigned.add(one.attr)
        elif isinstance(one, ast.Subscript) and isinstance(index_of(one), ast.Name):
            if not isinstance(one.ctx, ast.Load):
                keys[index_of(one).id] = True
        elif isinstance(one, ast.Call):
            if own_attribute(one.func):
                called.add(one.func.attr)
            if getattr(one.func, "attr", None) in ("pop", "remove", "discard") and one.args:
                keys[getattr(one.args[0], "id", None)] = True
    keys.pop(None, None)
    if ends.has_end:
        for name in state.refreshing[:_MAX_CALLED]:
            if name not in called and name != node.name:
                yield ends.at_end(f"self.{name}()", AIMED, f"with `self.{name}()` at its end")
        for key in list(keys)[:_MAX_KEYS]:
            for name in state.containers[:_MAX_ATTRIBUTES]:
                told = f"with `{key}` removed from `self.{name}` at its end"
                yield ends.at_end(_without(name, key), AIMED, told)
    resets = [(name, value) for name, value in state.initial.items() if name not in assigned]
    resets.sort(key=lambda one: one[1] in ("True", "False") or one[1].isdigit())
    for name, value in resets[:_MAX_ATTRIBUTES]:
        text = f"self.{name} = {value}"
        if ends.has_end:
            likelihood = AIMED if is_resetting else POSSIBLE
            yield ends.at_end(text, likelihood, f"with `{text}` at its end")
        yield ends.at_start(text, POSSIBLE, f"with `{text}` at its start")


def _only_answers(function):
    """True if it does nothing but to return some value other than a variable: `return self` is what may have been a stub."""
    body = function.body[int(has_docstring(function.body)) :]
    nodes = [node for one in body for node in ast.walk(one)]
    statements = [one for one in nodes if isinstance(one, ast.stmt)]
    answers = [one.value for one in statements if isinstance(one, ast.Return)]
    is_plain = all(isinstance(one, _ANSWERS) for one in statements)
    is_told = any(one is not None and not isinstance(one, ast.Name) for one in answers)
    return is_plain and is_told and not any(isinstance(one, _WORK) for one in nodes)


def _own_containers(function, definitions, names, ends):
    """With containers of its own where the class has one for all."""
    if function.node.name in ("__init__", "__init_subclass__") and names:
        for name in definitions.state(function.owner).of_class[:_MAX_ATTRIBUTES]:
            attribute = f"{names[0]}.{name}"
            yield ends.at_start(copying(attribute), AIMED, f"with a `{attribute}` of its own")


def _normalised(function, definitions, names, ends):
    """With arguments converted as other methods of the class convert those of that name."""
    state = definitions.state(function.owner)
    for name in names:
        is_converted = (function.node, name) in state.converting
        for receiver, text in state.conversions.get(name, ()) if not is_converted else ():
            if receiver is None or receiver == names[0]:
                yield ends.at_start(f"{name} = {text}", AIMED, f"with `{name} = {text}` at its start")


def _moved(node, names, definitions, ends):
    """With attributes of arguments left empty once they are read: moved, not copied."""
    read, written = {}, set()
    for one in ast.walk(node):
        if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name) and one.value.id in names:
            if isinstance(one.ctx, ast.Load):
                read[one.value.id, one.attr] = True
            else:
                written.add((one.value.id, one.attr))
    moved = [
        one for one in read if one not in written and one[0] != "self" and one[1] in definitions.left_empty
    ]
    for name, attribute in moved[:_MAX_MOVED]:
        text = f"{name}.{attribute} = {definitions.left_empty[attribute]}"
        yield ends.at_end(text, POSSIBLE, f"with `{text}` at its end")


def _without(name, key):
    attribute = f"self.{name}"
    return (
        f"if {key} in {attribute}:\n"
        f" {attribute}.remove({key}) if hasattr({attribute}, 'remove') else {attribute}.pop({key})"
    )


def _handed_on(function, executed, definitions):
    """With arguments that calls leave to their defaults: variables and attributes of the same name, the other flag."""
    node = function.node
    names = set(parameters(node.args))
    names |= {
        one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
    }
    own = definitions.state(function.owner).attributes if "self" in names else set()
    for call in ast.walk(node):
        if not isinstance(call, ast.Call) or call.lineno not in executed:
            continue
        called = last_name(call.func)
        given = {one.arg for one in call.keywords}
        if called is None or None in given:
            continue
        missing = {}
        for positional, defaults in definitions.parameters(called):
            has_stars = any(isinstance(one, ast.Starred) for one in call.args)
            passed = given.union(positional if has_stars else positional[: len(call.args)])
            missing.update({name: value for name, value in defaults.items() if name not in passed})
        for name, value in list(missing.items())[:_MAX_ARGUMENTS]:
            kept = [one for one in sorted(own) if _means(one, name)]
            if name in names:
                yield _with_keyword(call, name, name, AIMED)
            elif kept:
                yield _with_keyword(call, name, f"self.{kept[0]}", AIMED)
            elif isinstance(value, ast.Constant) and type(value.value) is bool:
                yield _with_keyword(call, name, str(not value.value), POSSIBLE)


def _means(attribute, name):
    """True if an attribute is likely to keep what a parameter is given: `_hash_func` what `hash_function` is."""
    short, long = sorted((attribute.strip("_"), name), key=len)
    return short == long or (len(short) >= _MIN_COMMON and long.startswith(short))


def _with_keyword(call, name, value, likelihood):
    given = ast.keyword(arg=name, value=expression(value, call))
    keywords = [*call.keywords, ast.copy_location(given, call)]
    return Mutant(call, {"keywords": keywords}, call, likelihood, f"with `{name}={value}` in {{}}", call)
