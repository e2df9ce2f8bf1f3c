"""Changes of one place in a function, made on its syntax tree."""

# Nodes with a position are told by their attributes.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import ast
import builtins
import copy

from ..syntax_trees import has_docstring, own_attribute, yields
from .caches import computed_anew, without_cache
from .conditions import (
    asked_by,
    asked_for_none,
    asked_for_truth,
    comparisons,
    conditions,
    is_flag,
    only_outcome,
    operands,
    wider,
    without_not,
    without_one,
)
from .counterparts import counterparts, other_places, sorted_loops
from .inheritance import inherited_item, inherited_too, own_or_inherited, with_base, with_overriding
from .insertions import insertions_of
from .kept_values import kept_values
from .lifetimes import bound_early, counted_anew, put_back, read_anew, reset_beside, taken_anew
from .lookups import asked_for_entry, asked_for_key, looked_up, own_values, without_entry, without_members
from .mutant import (
    AIMED,
    FIRST,
    LIKELY,
    POSSIBLE,
    READ,
    UNLIKELY,
    Mutant,
    blocks_in,
    braced,
    copied,
    copying,
    expression,
    has_run,
    last_name,
    local_names,
    parsed,
    read_of,
)
from .orders import other_kept_positions, other_orders, other_positions, without_sign
from .sameness import other_equality, other_keys, wider_keys
from .stand_ins import held_by_others, stand_ins, whole_durations
from .statements import changes_of_block, moves_of
from .taken_over import taken_over

_MAX_NAMES = 6
_MAX_SHORT = 2
"""Characters of texts that stand for each other: modes, keys, separators."""
_MIN_WORD = 4
"""Characters of the first word that names of like things have in common: `lines_before`, `lines_after`."""
_MAX_WORDS = 6
"""Words at the end of a function's name that may be the name of what it makes."""
_CALCULATED = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.BitOr: ast.BitXor,
    ast.BitXor: ast.BitOr,
    ast.BitAnd: ast.BitOr,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div,
}
_OF_NUMBERS = ast.Mult, ast.Div
_OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.BitOr: "|", ast.BitXor: "^", ast.Mult: "*", ast.Div: "/"}
_ITERATORS = "map", "filter", "zip", "enumerate", "reversed", "iter"
_LOOK_UPS = "get", "setdefault"
_KEEPING = "append", "appendleft", "add", "insert", "setdefault", "put"
_SHALLOW = "list", "dict", "set"
_CONVERTING = (
    "strip", "lstrip", "rstrip", "lower", "upper", "casefold", "title", "copy", "deepcopy", "sorted", "reversed", "list",
    "tuple", "set", "str", "int", "abs",
)  # fmt: skip
_MAKING = {"iadd": "add", "iconcat": "concat", "ior": "or_", "iand": "and_", "isub": "sub", "ixor": "xor"}
"""Functions of `operator` that change their first argument: others that make a new object."""


def mutants_of(changed, executed, definitions, at_any_time=None, lent=()):
    """Yield changes of a `Function` at lines that the test has run.

    `at_any_time`: all lines of its file that have run; None if not all are known. `lent`: lines of its file with arguments that
    are changed after the call.
    """
    function = changed.node
    names = _Names(function, definitions, changed.owner, at_any_time)
    names.lent.update(lent)
    for node in ast.walk(function):
        for field, block in blocks_in(node):
            yield from changes_of_block(node, field, block, executed, names.shared)
        if has_run(node, executed):
            for make in _MAKERS:
                if isinstance(node, make[0]):
                    yield from make[1](node, names)
    first = int(has_docstring(function.body))
    if not function.name.startswith("__") and function.body[first:]:
        at_once = ast.copy_location(ast.Return(value=None), function.body[first])
        body = [*function.body[:first], at_once, *_generating(function)]
        yield Mutant(function, {"body": body}, function, POSSIBLE, "if it returned at once")
    yield from insertions_of(changed, executed, definitions)
    yield from held_by_others(function, executed, names)
    yield from moves_of(function, executed)
    yield from kept_values(function, executed)
    yield from other_equality(changed, definitions)
    yield from other_keys(function, executed)
    yield from wider_keys(function, executed)
    yield from put_back(changed, executed)
    yield from taken_anew(function, executed)
    yield from bound_early(function, executed)
    yield from with_base(changed, executed, definitions)
    yield from with_overriding(changed, executed, definitions)
    yield from read_anew(function, executed)
    if changed.owner is not None and function.name != "__init__":
        state = definitions.state(changed.owner)
        yield from reset_beside(function, state, executed)
        yield from taken_over(changed, state, executed)
        yield from counted_anew(function, state, executed)


class _Names:
    """Names of a function that may stand for each other."""

    def __init__(self, function, definitions, owner, at_any_time):
        self.function, self.definitions = function, definitions
        self.settled = {}
        """Condition of an `if` -> the only outcome it had."""
        self.flags = {}
        """Variables and attributes that an `if` asks for, by their dumps."""
        self.constructs = function.name == "__init__"
        self.of_class = sorted(definitions.state(owner).attributes) if owner else []
        self.numbers = definitions.state(owner).numbers if owner else []
        self.locals = local_names(function)
        self.read = set(self.locals)
        """Variables that it binds, and that it only reads."""
        self.by_word = {}
        """Word -> variables with it in their names."""
        for name in self.locals:
            for word in dict.fromkeys(name.split("_")):
                self.by_word.setdefault(word, []).append(name)
        self.attributes, self.texts = {}, []
        self.shared = set()
        """Variables that may stand for what somebody else has, too."""
        self.lent = set()
        """Lines of arguments that are changed after the call."""
        self.effects = set()
        """Calls whose result nobody takes."""
        self.repeated = set()
        """Assignments in loops."""
        self.looked_up = {}
        """Variable -> (dict, key) where it is set once, to `dict.get(key)`."""
        for node in ast.walk(function):
            if isinstance(node, ast.If):
                outcome = None if at_any_time is None else only_outcome(node, at_any_time)
                if outcome is not None:
                    self.settled[node.test] = outcome
                self.flags.update({dump: one for dump, one in asked_by(node.test).items() if is_flag(one)})
            elif isinstance(node, (ast.For, ast.While)):
                self.repeated.update(one for one in ast.walk(node) if isinstance(one, ast.Assign))
            elif isinstance(node, ast.Expr):
                self.effects.add(node.value)
            elif isinstance(node, (ast.Assign, ast.AnnAssign)):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                bound = {one.id for one in targets if isinstance(one, ast.Name)}
                if _hands_out(node.value):
                    self.shared |= bound
                found = looked_up(node.value)
                self.looked_up.update({name: found for name in bound if found is not None})
            elif isinstance(node, ast.Name):
                self.read.add(node.id)
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                known = self.attributes.setdefault(node.value.id, [])
                if node.attr not in known:
                    known.append(node.attr)
            elif isinstance(node, ast.Constant) and type(node.value) is str:
                if 0 < len(node.value) <= _MAX_SHORT and node.value not in self.texts:
                    self.texts.append(node.value)

        bound = [*map(_bound_name, ast.walk(function))]
        self.looked_up = {name: found for name, found in self.looked_up.items() if bound.count(name) == 1}

    def alike(self, name):
        """Variables with a word of this one's name: `new_index` for `old_index`."""
        found = [one for word in sorted(_words(name)) for one in self.by_word[word] if one != name]
        return list(dict.fromkeys(found))[:_MAX_NAMES]

    def ending(self, attribute):
        """Variables that end with the name of an attribute: `row_name` for `name`."""
        found = self.by_word.get(attribute.rpartition("_")[2], ())
        return [one for one in found if one == attribute or one.endswith("_" + attribute)][:_MAX_NAMES]

    def made_by(self, called):
        """Variables that are there already, by the name of a function that makes one: `state` for `make_state()`."""
        *words, last = called.rsplit("_", _MAX_WORDS)
        endings = ["_".join([*words[index:], last]) for index in range(1, len(words) + 1)]
        return [one for one in endings if len(one) >= _MIN_WORD and one in self.read]

    def others(self, name):
        return [one for one in self.locals if one not in (name, "self", "cls")][:_MAX_NAMES]


def _bound_name(node):
    """The name that a node binds; None if it binds none."""
    if isinstance(node, ast.arg):
        return node.arg
    return node.id if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) else None


def _hands_out(value):
    """True for an expression that may give what somebody else has: an attribute, an item, what a function returns."""
    return isinstance(value, READ) or (isinstance(value, ast.Call) and not _is_class(value.func))


def _filters(node, names):
    for index, one in enumerate(node.ifs):
        rest = [*node.ifs[:index], *node.ifs[index + 1 :]]
        yield Mutant(node, {"ifs": rest}, one, LIKELY, "without the condition {}", one)
    yield from _loops(node, names)


def _operators(node, names):
    kind = _CALCULATED.get(type(node.op))
    if kind is not None and not (type(node.op) in _OF_NUMBERS and _is_of_no_numbers(node)):
        sign = _OPERATORS[kind] + "=" * isinstance(node, ast.AugAssign)
        yield Mutant(node, {"op": kind()}, node, LIKELY, "with `" + sign + "` in {}", node)
    target = getattr(node, "target", None)
    if target is not None and own_attribute(target) and target.attr in names.numbers:
        on_class = {"value": expression("type(self)", target)}
        yield Mutant(target, on_class, node, AIMED, "with `type(self)." + target.attr + "` for {}", target)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.BitOr)):
        sides = {"left": node.right, "right": node.left}
        has_list = isinstance(node.left, ast.List) or isinstance(node.right, ast.List)
        likelihood = AIMED if has_list else POSSIBLE
        yield Mutant(node, sides, node, likelihood, "with {} before {}", node.right, node.left)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and isinstance(node.left, ast.List):
        if len(node.left.elts) == 1:
            (one,) = node.left.elts
            anew = expression("[_it for _ in range(_n)]", node.left, _it=one, _n=node.right)
            each = {"left": anew, "right": expression("1", node)}
            yield Mutant(node, each, node, AIMED, "with a {} of its own each time in {}", one, node)


def _is_of_no_numbers(node):
    """True for an operation with a text or a list: `[0] * n`, `"-" * n`, `folder / "name"`."""
    return any(
        isinstance(one, (ast.List, ast.Tuple, ast.JoinedStr))
        or isinstance(getattr(one, "value", None), (str, bytes))
        for one in ([node.left, node.right] if isinstance(node, ast.BinOp) else [node.value])
    )


def _merges(node, names):
    """Of two dicts the other's items."""
    if len(node.keys) == 2 and node.keys[0] is None:
        order = {"keys": node.keys[::-1], "values": node.values[::-1]}
        yield Mutant(node, order, node, AIMED, "with {} before what is there first", node.values[1])


def _unwrapped(node):
    """Without a call that converts a value."""
    method = isinstance(node.func, ast.Attribute)
    name = last_name(node.func)
    value = node.args[0] if node.args else (node.func.value if method else None)
    if value is None or node.keywords or len(node.args) > 1 or isinstance(value, ast.Starred):
        return
    if name in _CONVERTING or (node.args and not _is_class(node.func)):
        same = {"func": expression("[_it].pop", node, _it=value), "args": []}
        likelihood = AIMED if name in _CONVERTING else UNLIKELY
        yield Mutant(node, same, node, likelihood, "with {} for {}", value, node)


def _made_before(node, names):
    """With a variable that is there already for a call that makes one: `state` for `make_state()`."""
    given = [getattr(one, "id", "") for one in node.args]
    for name in names.made_by(last_name(node.func) or ""):
        if name not in given:
            same = {"func": expression("[_it].pop", node, _it=expression(name, node))}
            fields = {**same, "args": [], "keywords": []}
            yield Mutant(node, fields, node, AIMED, "with `" + name + "` for {}", node)


def _one_more(node):
    """With another length: one more, one less."""
    for number in (1, -1):
        other = {
            "func": expression("len(_it).__add__", node, _it=node.args[0]),
            "args": [expression(str(number), node)],
        }
        sign = "+" if number > 0 else "-"
        yield Mutant(node, other, node, POSSIBLE, "with `" + sign + " 1` after {}", node)


def _calls(node, names):
    cached = names.definitions.cached_as(last_name(node.func), names.function)
    if cached is not None:
        yield from without_cache(node, *cached)
    yield from _deep_copies(node)
    if node not in names.effects:
        yield from _unwrapped(node)
        yield from _made_before(node, names)
    called = getattr(node.func, "attr", None)
    if getattr(node.func, "id", None) == "len" and len(node.args) == 1:
        yield from _one_more(node)
    if called == "append" and len(node.args) == 1:
        first = {
            "func": expression("_to.insert", node, _to=node.func.value),
            "args": [expression("0", node), *node.args],
        }
        yield Mutant(node, first, node, AIMED, "with {} at the front in {}", node.args[0], node)
    elif called == "update" and len(node.args) == 1 and not node.keywords:
        new = "{_k: _v for _k, _v in dict(_it).items() if _k not in _to}"
        given = expression(new, node, _it=node.args[0], _to=node.func.value)
        yield Mutant(node, {"args": [given]}, node, AIMED, "with only new keys in {}", node)
    elif called == "setdefault" and len(node.args) == 2 and node in names.effects:
        yield Mutant(node.func, {"attr": "__setitem__"}, node, AIMED, "with an assignment for {}", node)
    for index, one in enumerate(node.keywords):
        rest = [*node.keywords[:index], *node.keywords[index + 1 :]]
        name = one.arg or "**"
        yield Mutant(node, {"keywords": rest}, node, POSSIBLE, "without `" + name + "` in {}", node)
        yield from _copies(one, "value", one.value, FIRST if one.value.lineno in names.lent else POSSIBLE)
    plain = not any(isinstance(one, ast.Starred) for one in node.args)
    if node.args:
        yield Mutant(node, {"args": node.args[:-1]}, node, POSSIBLE, "without {} in {}", node.args[-1], node)
    if len(node.args) == 2 and plain:
        yield Mutant(node, {"args": node.args[::-1]}, node, UNLIKELY, "with exchanged arguments in {}", node)
    for index, one in enumerate(node.args):
        if isinstance(one, READ):
            given = [*node.args[:index], copied(one), *node.args[index + 1 :]]
            likelihood = FIRST if one.lineno in names.lent else AIMED if called in _KEEPING else POSSIBLE
            yield Mutant(node, {"args": given}, node, likelihood, "with a copy of {} in {}", one, node)
        if isinstance(one, ast.Name):
            for name in names.others(one.id):
                yield Mutant(one, {"id": name}, node, UNLIKELY, "with `" + name + "` for {} in {}", one, node)


def _copies(owner, field, value, likelihood=POSSIBLE):
    if isinstance(value, (*READ, ast.IfExp, ast.BoolOp)):
        yield Mutant(owner, {field: copied(value)}, value, likelihood, "with a copy of {}", value)


def _deep_copies(node):
    """With a deep copy for a shallow one."""
    is_method = isinstance(node.func, ast.Attribute) and not node.args and node.func.attr == "copy"
    is_made = getattr(node.func, "id", None) in _SHALLOW and len(node.args) == 1
    if is_method or (is_made and isinstance(node.args[0], READ)):
        func = expression("__import__('copy').deepcopy", node)
        deep = {"func": func, "args": [copy.copy(node)], "keywords": []}
        yield Mutant(node, deep, node, AIMED, "with a deep copy for {}", node)


def _values(node, names):
    value = node.value
    if value is None:
        return
    if isinstance(node, ast.Return):
        is_kept = isinstance(value, (ast.Attribute, ast.Subscript))
    else:
        is_kept = any(isinstance(one, (ast.Attribute, ast.Subscript)) for one in node.targets)
    yield from _copies(node, "value", value, AIMED if is_kept else POSSIBLE)
    called = value.func if isinstance(value, ast.Call) else None
    name = last_name(called)
    if isinstance(value, ast.GeneratorExp) or name in _ITERATORS or names.definitions.is_generator(name):
        fields = {"value": expression("list(_it)", value, _it=value)}
        yield Mutant(node, fields, value, AIMED, "with a list of {}", value)
    elif getattr(called, "attr", None) in _LOOK_UPS or (
        isinstance(node, ast.Return) and isinstance(called, READ) and not _is_class(called)
    ):
        yield Mutant(node, {"value": copied(value)}, value, POSSIBLE, "with a copy of {}", value)


def _assignments(node, names):
    """With what was there before: a flag that stays, items that others are added to."""
    target, value = node.targets[-1], node.value
    is_attribute = isinstance(target, ast.Attribute) and not names.constructs
    if len(node.targets) > 1 or not (is_attribute or isinstance(target, ast.Name) and node in names.repeated):
        return
    before = read_of(target)
    if is_attribute and getattr(value, "value", 0) is not None:
        kept = expression("_new if _old is None else _old", value, _new=value, _old=before)
        yield Mutant(node, {"value": kept}, node, AIMED, "with {} set only where it is None", target)
    if isinstance(value, (ast.Compare, ast.BoolOp)) or isinstance(getattr(value, "op", None), ast.Not):
        for operation, outcome in ("or", "true"), ("and", "false"):
            staying = expression(f"_new {operation} _old", value, _new=value, _old=before)
            yield Mutant(
                node, {"value": staying}, node, AIMED, "with {} staying " + outcome + " once it is", target
            )
    elif isinstance(value, (*READ, ast.Call, ast.List, ast.Dict)) and is_attribute:
        both = "{**_old, **_new} if isinstance(_old, dict) else _old + _new"
        added = expression(both, value, _new=value, _old=before)
        yield Mutant(node, {"value": added}, node, AIMED, "with {} added to what {} had", value, target)


def _is_class(called):
    """True for what has the name of a class: what it makes is nobody else's."""
    if isinstance(called, ast.Name) and isinstance(getattr(builtins, called.id, None), type):
        return True
    return (last_name(called) or "")[:1].isupper()


def _loops(node, names):
    taken = expression("list(_it)", node.iter, _it=node.iter)
    yield Mutant(node, {"iter": taken}, node.iter, AIMED, "over a copy of {}", node.iter)
    backwards = expression("reversed(list(_it))", node.iter, _it=node.iter)
    yield Mutant(node, {"iter": backwards}, node.iter, AIMED, "with {} in reverse", node.iter)


def _skipping(node):
    """With numbers for only those items that a loop does not skip at its start."""
    called, first, target = node.iter, node.body[0], node.target
    if getattr(getattr(called, "func", None), "id", "") != "enumerate" or len(called.args) != 1:
        return
    is_skip = isinstance(first, ast.If) and not first.orelse and isinstance(first.body[0], ast.Continue)
    item = target.elts[-1] if isinstance(target, ast.Tuple) and len(target.elts) == 2 else None
    if is_skip and isinstance(item, ast.Name):
        taken = f"[{item.id} for {item.id} in _all if not (_skipped)]"
        kept = expression(taken, called, _all=called.args[0], _skipped=first.test)
        yield Mutant(
            called, {"args": [kept]}, called, AIMED, "counting only what {} does not skip", first.test
        )


def _for(node, names):
    yield from _skipping(node)
    yield from _loops(node, names)
    targets = node.target.elts if isinstance(node.target, (ast.Tuple, ast.List)) else [node.target]
    for one in targets:
        if isinstance(one, ast.Name):
            store = parsed(copying(one.id), one)
            yield Mutant(
                node, {"body": [*store, *node.body]}, node, AIMED, "with a copy of {} each time", one
            )


def _constants(node, names):
    value = node.value
    if type(value) is bool:
        others = [not value]
    elif type(value) is int:
        others = [value + 1, value - 1]
    elif type(value) is str and value in names.texts:
        others = [one for one in names.texts if one != value][:_MAX_NAMES]
    else:
        others = []
    for one in others:
        yield Mutant(node, {"value": one}, node, POSSIBLE, "with `" + braced(repr(one)) + "` for {}", node)


def _variables(node, names):
    """With another variable of a like name: `new_index` for `old_index`."""
    if isinstance(node.ctx, ast.Load) and node.id in names.locals:
        for name in names.alike(node.id):
            yield Mutant(node, {"id": name}, node, POSSIBLE, "with `" + name + "` for {}", node)


def _words(name):
    """Words of a name that are long enough to tell that names with one of them are of a kind."""
    return {one for one in name.split("_") if len(one) >= _MIN_WORD}


def _attributes(node, names):
    if not isinstance(node.ctx, ast.Load):
        return
    for name in names.definitions.alike(node.attr):
        yield Mutant(node, {"attr": name}, node, AIMED, "with `" + name + "` for {}", node)
    if node.attr in names.definitions.cached_attributes and not node.attr.startswith("__"):
        yield from computed_anew(node, *names.definitions.cached_attributes[node.attr])
    if not isinstance(node.value, ast.Name):
        return
    base = node.value
    if not node.attr.startswith("__"):
        yield from stand_ins(node, names)
    if base.id == "operator" and node.attr in _MAKING:
        other = _MAKING[node.attr]
        yield Mutant(node, {"attr": other}, node, FIRST, "with `operator." + other + "` for {}", node)
    if (base.id, node.attr) == ("copy", "copy"):
        yield Mutant(node, {"attr": "deepcopy"}, node, FIRST, "with `copy.deepcopy` for {}", node)
    for name in names.others(base.id) if base.id not in ("self", "cls") else ():
        yield Mutant(base, {"id": name}, node, UNLIKELY, "with `" + name + "." + node.attr + "` for {}", node)
    word = _first_word(node.attr)
    alike = [one for one in names.of_class if _first_word(one) == word and one != node.attr]
    for name in alike[:_MAX_NAMES] if base.id == "self" and len(word) >= _MIN_WORD else ():
        yield Mutant(node, {"attr": name}, node, POSSIBLE, "with `self." + name + "` for {}", node)
    for name in names.attributes[base.id][: _MAX_NAMES + 1]:
        if name != node.attr:
            text = "with `" + base.id + "." + name + "` for {}"
            yield Mutant(node, {"attr": name}, node, UNLIKELY, text, node)


def _first_word(name):
    return name.strip("_").partition("_")[0]


_MAKERS = (
    ((ast.If, ast.IfExp, ast.While), conditions),
    (ast.If, wider),
    ((ast.If, ast.IfExp), asked_for_none),
    (ast.comprehension, _filters),
    (ast.BoolOp, operands),
    (ast.Compare, comparisons),
    (ast.Compare, without_one),
    (ast.Compare, asked_for_key),
    ((ast.If, ast.IfExp), asked_for_entry),
    (ast.Subscript, without_entry),
    (ast.Call, own_values),
    (ast.Call, without_members),
    ((ast.BinOp, ast.AugAssign), _operators),
    (ast.Call, _calls),
    (ast.Call, counterparts),
    (ast.List, other_places),
    ((ast.For, ast.comprehension), sorted_loops),
    (ast.Call, other_orders),
    (ast.Call, own_or_inherited),
    (ast.Call, inherited_item),
    (ast.Compare, inherited_too),
    (ast.UnaryOp, without_sign),
    (ast.UnaryOp, without_not),
    (ast.Compare, asked_for_truth),
    (ast.Subscript, other_positions),
    (ast.Assign, other_kept_positions),
    (ast.Dict, _merges),
    ((ast.Return, ast.Assign), _values),
    (ast.Assign, _assignments),
    (ast.For, _for),
    (ast.Constant, _constants),
    (ast.Name, _variables),
    (ast.Attribute, _attributes),
    (ast.Attribute, whole_durations),
)
"""(kinds of nodes, their changes)."""


def _generating(function):
    """Statements that make a function a generator although it returns at once."""
    if yields(function):
        return [ast.copy_location(ast.Expr(value=ast.Yield(value=None)), function.body[-1])]
    return []
