"""Changes that add to a function what may have been forgotten: a value that is not reset, an argument not handed on."""

# Nodes with a position are told by their attributes.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import ast
import copy

from ..sites import MUTATORS
from ..syntax_trees import has_docstring, index_of, leaves_block, own_attribute, parameters
from .definitions import assigned_in, container_text, initial_text
from .mutant import (
    AIMED,
    FIRST,
    POSSIBLE,
    UNLIKELY,
    Mutant,
    blocks_in,
    braced,
    copying,
    expression,
    last_name,
    local_names,
    parsed,
)

_MAX_ATTRIBUTES, _MAX_KEYS, _MAX_CALLED = 6, 3, 3
_MAX_ARGUMENTS, _MAX_MOVED = 4, 4
_MAX_BEFORE, _MAX_LATER = 4, 4
"""Statements before a loop; behind one that leaves a block."""
_MIN_COMMON = 5
"""Characters that names have in common which mean the same."""
_LEAVING = (ast.Return, ast.Raise, ast.Break, ast.Continue)
_COMPOUND = (ast.If, ast.For, ast.While, ast.With, ast.Try)
_MOVABLE = (ast.Expr, ast.Assign, ast.AugAssign, ast.If, ast.Delete)


def insertions_of(function, executed, definitions):
    """Yield changes of a `Function` that add something at lines that have run."""
    node = function.node
    first = int(has_docstring(node.body))
    if not node.body[first:]:
        return
    names = [one.arg for one in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]]
    is_method = function.owner is not None and names[:1] == ["self"]
    ends = _Ends(node, first, executed)
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
    yield from _of_blocks(node, executed)


class _Ends:
    """Adds statements at the start and at the end of a function."""

    def __init__(self, node, first, executed):
        self._node, self._first = node, first
        last = node.body[-1]
        self._last = len(node.body) - isinstance(last, ast.Return)
        self.has_end = last.lineno in executed and not isinstance(last, ast.Raise)

    def at_start(self, text, likelihood, told):
        body, at = self._node.body, self._node.body[self._first]
        added = parsed(text, at)
        made = [*body[: self._first], *added, *body[self._first :]]
        return Mutant(self._node, {"body": made}, at, likelihood, braced(told), added=added)

    def at_end(self, text, likelihood, told):
        """Add statements behind all, before a `return` that ends the function."""
        body, at = self._node.body, self._node.body[-1]
        added = parsed(text, at)
        made = [*body[: self._last], *added, *body[self._last :]]
        return Mutant(self._node, {"body": made}, at, likelihood, braced(told), added=added)


def _copies_of_parameters(node, names, ends):
    """With copies of the arguments that it changes."""
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
    for one, value in zip(optional, node.args.defaults):
        if container_text(value):
            made = f"{one.arg} = {container_text(value)}"
            yield ends.at_start(made, AIMED, f"with `{made}` at its start")


def _fresh_caches(node, ends):
    """With an empty container for one that is no local variable, and that it both looks something up in and writes to."""
    own = local_names(node)
    written, grown, read, asked = {}, {}, set(), set()
    for one in ast.walk(node):
        if isinstance(one, ast.Subscript):
            if isinstance(one.ctx, ast.Store) and getattr(one.value, "id", None) not in own:
                written.setdefault(_path_of(one.value), one)
            elif isinstance(one.ctx, ast.Load):
                read.add(_path_of(one.value))
        elif isinstance(one, ast.Compare):
            asked.add(_path_of(one.comparators[0]))
        elif isinstance(one, ast.Call) and getattr(one.func, "attr", None) in ("get", "setdefault"):
            read.add(_path_of(one.func.value))
        elif isinstance(one, ast.Call) and getattr(one.func, "attr", None) in ("add", "append"):
            if getattr(one.func.value, "id", None) not in own:
                grown.setdefault(_path_of(one.func.value), one)
    for path, at in {**grown, **written}.items():
        if path and (path in asked or (path in written and path in read)):
            replaced = _Replacing(path, "_empty", only_asked=path not in written)
            body = [replaced.visit(one) for one in copy.deepcopy(node.body)]
            made = parsed(f"_empty = type({path})()", node.body[0])
            told = braced(f"if `{path}` were empty each time")
            emptied = parsed(f"{path} = None", at)  # as good as that
            yield Mutant(node, {"body": [*made, *body]}, at, FIRST, told, added=emptied)


def _path_of(node):
    """`a.b.c` of names alone; else an empty text."""
    if isinstance(node, ast.Name):
        return node.id
    above = _path_of(node.value) if isinstance(node, ast.Attribute) else ""
    return f"{above}.{node.attr}" if above else ""


class _Replacing(ast.NodeTransformer):
    """Puts a local variable in the place of a name or an attribute; or only where it is asked what that contains."""

    def __init__(self, path, variable, only_asked=False):
        self._path, self._variable, self._only_asked = path, variable, only_asked

    def visit(self, node):
        if not self._only_asked and isinstance(getattr(node, "ctx", None), ast.Load):
            if _path_of(node) == self._path:
                return expression(self._variable, node)
        elif self._only_asked and isinstance(node, ast.Compare):
            if _path_of(node.comparators[0]) == self._path:
                node.comparators[0] = expression(self._variable, node)
        return self.generic_visit(node)


def _kept_state(function, definitions, ends):
    """With attributes of the object set as they were in the beginning, without a key, computed anew."""
    node = function.node
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


def _of_blocks(function, executed):
    """With statements moved out of a block and into it, a value that each round of a loop begins with, a `break`, a `finally`."""
    for owner in ast.walk(function):
        for field, block in blocks_in(owner):
            for index, one in enumerate(block):
                if one.lineno in executed:
                    yield from _of_statement(owner, field, block, index)


def _of_statement(owner, field, block, index):
    one, rest = block[index], block[index + 1 :]
    if isinstance(getattr(one, "value", None), ast.Yield) and rest and not isinstance(owner, ast.Try):
        guarded = ast.copy_location(ast.Try(body=[one], handlers=[], orelse=[], finalbody=rest), one)
        yield Mutant(
            owner, {field: [*block[:index], guarded]}, one, AIMED, "with what follows {} in a `finally`", one
        )
    yield from _set_before(owner, field, block, index)
    if leaves_block(one):
        for number, later in enumerate(rest[:_MAX_LATER]):
            if isinstance(later, _MOVABLE):
                moved = [*block[:index], later, one, *rest[:number], *rest[number + 1 :]]
                yield Mutant(
                    owner, {field: moved}, later, AIMED, "with {} before {}, not after it", later, one
                )
    if isinstance(one, ast.If) and one.orelse:
        yield from _of_branches(owner, field, block, index)
    if not isinstance(one, _COMPOUND) or getattr(one, "orelse", None):
        return
    if isinstance(one, (ast.For, ast.While)):
        yield from _of_rounds(one, block[max(0, index - _MAX_BEFORE) : index])
    last = one.body[-1]
    if isinstance(last, _MOVABLE):
        inner = _with_body(one, one.body[:-1] or [ast.copy_location(ast.Pass(), last)])
        made = [*block[:index], inner, last, *rest]
        yield Mutant(
            owner, {field: made}, last, POSSIBLE, "with {} after the block of {}, not in it", last, one
        )
    if rest and isinstance(rest[0], _MOVABLE) and not isinstance(last, _LEAVING):
        made = [*block[:index], _with_body(one, [*one.body, rest[0]]), *rest[1:]]
        yield Mutant(owner, {field: made}, rest[0], POSSIBLE, "with {} in the block of {}", rest[0], one)
    if (
        isinstance(one, ast.If)
        and isinstance(owner, ast.For)
        and field == "body"
        and not isinstance(last, _LEAVING)
    ):
        body = [*one.body, ast.copy_location(ast.Break(), last)]
        yield Mutant(one, {"body": body}, last, POSSIBLE, "with `break` after {}", last)


def _of_branches(owner, field, block, index):
    """With what follows an `if` and its `else` in one of these alone."""
    one, rest = block[index], block[index + 1 :]
    if not rest or not isinstance(rest[0], _MOVABLE):
        return
    for branch, name in ("body", "block"), ("orelse", "`else`"):
        statements = getattr(one, branch)
        if not isinstance(statements[-1], _LEAVING):
            made = copy.copy(one)
            setattr(made, branch, [*statements, rest[0]])
            changed = [*block[:index], made, *rest[1:]]
            yield Mutant(
                owner, {field: changed}, rest[0], AIMED, "with {} in the " + name + " of {}", rest[0], one
            )


def _set_before(owner, field, block, index):
    """With an attribute set before calls that are given its old value: what they call may look at it."""
    one, following = block[index], block[index + 1] if index + 1 < len(block) else None
    targets = following.targets if isinstance(following, ast.Assign) else []
    path = _path_of(targets[0]) if len(targets) == 1 and isinstance(targets[0], ast.Attribute) else ""
    nodes = list(ast.walk(one)) if path and isinstance(one, (ast.Expr, *_COMPOUND)) else []
    if any(isinstance(each, ast.Call) for each in nodes) and any(_path_of(each) == path for each in nodes):
        given = _Replacing(path, "_was").visit(copy.deepcopy(one))
        made = [*block[:index], *parsed(f"_was = {path}", following), following, given, *block[index + 2 :]]
        told = "with {} before {}, which is given the old value"
        yield Mutant(owner, {field: made}, following, AIMED, told, following, one)


def _of_rounds(loop, before):
    """With what is set before a loop set in each round, but for what its condition asks for."""
    condition = loop.test if isinstance(loop, ast.While) else loop.iter
    asked = {one.id for one in ast.walk(condition) if isinstance(one, ast.Name)}
    for one in before:
        names = [
            target.id
            for target, value in assigned_in(one)
            if isinstance(target, ast.Name) and initial_text(value)
        ]
        if names and asked.isdisjoint(names):
            yield Mutant(
                loop, {"body": [one, *loop.body]}, loop, AIMED, "with {} in each round of {}", one, loop
            )


def _with_body(compound, body):
    made = copy.copy(compound)
    made.body = body
    return made
