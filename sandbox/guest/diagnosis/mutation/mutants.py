"""Changes of one place in a function, made on its syntax tree."""

# Nodes with a position are told by their attributes.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import ast
import builtins

_MAX_TEXT = 70
_MAX_NAMES = 6
_MAX_SHORT = 2
"""Characters of texts that stand for each other: modes, keys, separators."""
_COMPARED = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt,),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt,),
    ast.Is: (ast.Eq,),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.IsNot: (ast.NotEq,),
}
_SIGNS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Is: "is", ast.Eq: "==", ast.NotEq: "!="}
_CALCULATED = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.BitOr: ast.BitXor,
    ast.BitXor: ast.BitOr,
    ast.BitAnd: ast.BitOr,
}
_OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.BitOr: "|", ast.BitXor: "^"}
_REMOVABLE = (ast.Expr, ast.Assign, ast.AugAssign, ast.Delete, ast.Raise, ast.Return)
_MOVABLE = (ast.Expr, ast.Assign, ast.AugAssign, ast.If)
_ITERATORS = "map", "filter", "zip", "enumerate", "reversed", "iter"
_LOOK_UPS = "get", "setdefault"
_READ = (ast.Name, ast.Attribute, ast.Subscript)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_EFFECTS = (ast.Expr, ast.Return, ast.Raise, *_DEFINITIONS)
_BLUNT = "without", "if it returned"
_LIKELY, _POSSIBLE, _UNLIKELY = 0, 1, 2


class Mutant:
    """One change: while it is entered, fields of a node have other values.

    `is_blunt`: it leaves out an effect as a whole, which often hides a fault that is elsewhere.
    """

    __slots__ = ("_fields", "_old", "_owner", "_text", "is_blunt", "likelihood", "line")

    def __init__(self, owner, fields, node, likelihood, text, *parts):
        self._owner, self._fields, self._old = owner, fields, {}
        self._text = text, parts
        self.line, self.likelihood = node.lineno, likelihood
        self.is_blunt = text.startswith(_BLUNT) and isinstance(parts[0] if parts else node, _EFFECTS)

    def __enter__(self):
        for field, value in self._fields.items():
            self._old[field] = getattr(self._owner, field)
            setattr(self._owner, field, value)

    def __exit__(self, *exc):
        for field, value in self._old.items():
            setattr(self._owner, field, value)

    def describe(self, lines):
        """Describe the change, with the source of its parts."""
        text, parts = self._text
        return text.format(*(part if type(part) is str else _source(part, lines) for part in parts))


def mutants_of(function, executed):
    """Yield changes of a function at lines that have run."""
    names = _Names(function)
    for node in ast.walk(function):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if type(block) is list and not isinstance(node, ast.ClassDef):
                yield from _of_block(node, field, block, executed)
        if _has_run(node, executed):
            for make in _MAKERS:
                if isinstance(node, make[0]):
                    yield from make[1](node, names)
    first = 1 if ast.get_docstring(function, clean=False) is not None else 0
    if not function.name.startswith("__") and function.body[first:]:
        at_once = ast.copy_location(ast.Return(value=None), function.body[first])
        body = [*function.body[:first], at_once, *_generating(function)]
        yield Mutant(function, {"body": body}, function, _POSSIBLE, "if it returned at once")


class _Names:
    """Names of a function that may stand for each other."""

    def __init__(self, function):
        self.locals, self.attributes, texts = [], {}, []
        for node in ast.walk(function):
            name = None
            if isinstance(node, ast.arg):
                name = node.arg
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                name = node.id
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                known = self.attributes.setdefault(node.value.id, [])
                if node.attr not in known:
                    known.append(node.attr)
            elif isinstance(node, ast.Constant) and type(node.value) is str:
                if 0 < len(node.value) <= _MAX_SHORT and node.value not in texts:
                    texts.append(node.value)
            if name and name not in self.locals:
                self.locals.append(name)
        self.texts = texts

    def others(self, name):
        return [one for one in self.locals if one not in (name, "self", "cls")][:_MAX_NAMES]


def _of_block(owner, field, block, executed):
    """Without a statement, and with two of them exchanged."""
    for index, one in enumerate(block):
        if one.lineno not in executed or _is_docstring(one):
            continue
        if isinstance(one, _REMOVABLE) and not _binds_name(one):
            without = [*block[:index], ast.copy_location(ast.Pass(), one), *block[index + 1 :]]
            yield Mutant(owner, {field: without}, one, _LIKELY, "without {}", one)
        following = block[index + 1] if index + 1 < len(block) else None
        if isinstance(one, _MOVABLE) and isinstance(following, _MOVABLE) and following.lineno in executed:
            moved = [*block[:index], following, one, *block[index + 2 :]]
            yield Mutant(owner, {field: moved}, one, _POSSIBLE, "with {} after {}", one, following)


def _conditions(node, names):
    for outcome in (True, False):
        if isinstance(node.test, ast.Constant) or (isinstance(node, ast.While) and outcome):
            continue
        fields = {"test": ast.copy_location(ast.Constant(value=outcome), node.test)}
        text = "if {} were " + ("true" if outcome else "false")
        yield Mutant(node, fields, node.test, _LIKELY, text, node.test)


def _filters(node, names):
    for index, one in enumerate(node.ifs):
        rest = [*node.ifs[:index], *node.ifs[index + 1 :]]
        yield Mutant(node, {"ifs": rest}, one, _LIKELY, "without the condition {}", one)
    yield from _loops(node, names)


def _operands(node, names):
    for index, one in enumerate(node.values):
        neutral = ast.copy_location(ast.Constant(value=isinstance(node.op, ast.And)), one)
        values = [*node.values[:index], neutral, *node.values[index + 1 :]]
        yield Mutant(node, {"values": values}, one, _LIKELY, "without {} in {}", one, node)


def _comparisons(node, names):
    if len(node.ops) == 1:
        for kind in _COMPARED.get(type(node.ops[0]), ()):
            sign = _SIGNS[kind]
            yield Mutant(node, {"ops": [kind()]}, node, _LIKELY, "with `" + sign + "` in {}", node)


def _operators(node, names):
    kind = _CALCULATED.get(type(node.op))
    if kind is not None:
        sign = _OPERATORS[kind] + "=" * isinstance(node, ast.AugAssign)
        yield Mutant(node, {"op": kind()}, node, _LIKELY, "with `" + sign + "` in {}", node)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        sides = {"left": node.right, "right": node.left}
        yield Mutant(node, sides, node, _POSSIBLE, "with {} before {}", node.right, node.left)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and isinstance(node.left, ast.List):
        each = {
            "left": _each_anew(node.left, node.right),
            "right": ast.copy_location(ast.Constant(value=1), node),
        }
        if len(node.left.elts) == 1:
            yield Mutant(
                node, each, node, _LIKELY, "with a {} of its own each time in {}", node.left.elts[0], node
            )


def _calls(node, names):
    for index, one in enumerate(node.keywords):
        rest = [*node.keywords[:index], *node.keywords[index + 1 :]]
        name = one.arg or "**"
        yield Mutant(node, {"keywords": rest}, node, _POSSIBLE, "without `" + name + "` in {}", node)
        yield from _copies(one, "value", one.value)
    plain = not any(isinstance(one, ast.Starred) for one in node.args)
    if node.args:
        yield Mutant(node, {"args": node.args[:-1]}, node, _POSSIBLE, "without {} in {}", node.args[-1], node)
    if len(node.args) == 2 and plain:
        yield Mutant(node, {"args": node.args[::-1]}, node, _UNLIKELY, "with exchanged arguments in {}", node)
    for index, one in enumerate(node.args):
        if isinstance(one, _READ):
            given = [*node.args[:index], _copied(one), *node.args[index + 1 :]]
            yield Mutant(node, {"args": given}, node, _POSSIBLE, "with a copy of {} in {}", one, node)
        if isinstance(one, ast.Name):
            for name in names.others(one.id):
                yield Mutant(
                    one, {"id": name}, node, _UNLIKELY, "with `" + name + "` for {} in {}", one, node
                )


def _copies(owner, field, value):
    if isinstance(value, _READ):
        yield Mutant(owner, {field: _copied(value)}, value, _POSSIBLE, "with a copy of {}", value)


def _values(node, names):
    value = node.value
    if value is None:
        return
    yield from _copies(node, "value", value)
    called = value.func if isinstance(value, ast.Call) else None
    if isinstance(value, ast.GeneratorExp) or getattr(called, "id", None) in _ITERATORS:
        fields = {"value": _call_of("list", value)}
        yield Mutant(node, fields, value, _LIKELY, "with a list of {}", value)
    elif getattr(called, "attr", None) in _LOOK_UPS or (
        isinstance(node, ast.Return) and isinstance(called, _READ) and not _is_class(called)
    ):
        yield Mutant(node, {"value": _copied(value)}, value, _POSSIBLE, "with a copy of {}", value)


def _is_class(called):
    """True for what has the name of a class: what it makes is nobody else's."""
    if isinstance(called, ast.Name) and isinstance(getattr(builtins, called.id, None), type):
        return True
    return (getattr(called, "attr", None) or getattr(called, "id", ""))[:1].isupper()


def _loops(node, names):
    copied = _call_of("list", node.iter)
    yield Mutant(node, {"iter": copied}, node.iter, _POSSIBLE, "over a copy of {}", node.iter)
    backwards = _call_of("reversed", _call_of("list", node.iter))
    yield Mutant(node, {"iter": backwards}, node.iter, _UNLIKELY, "with {} in reverse", node.iter)


def _for(node, names):
    yield from _loops(node, names)
    targets = node.target.elts if isinstance(node.target, (ast.Tuple, ast.List)) else [node.target]
    for one in targets:
        if isinstance(one, ast.Name):
            read = ast.copy_location(ast.Name(id=one.id, ctx=ast.Load()), one)
            store = ast.copy_location(ast.Assign(targets=[one], value=_copied(read)), one)
            yield Mutant(
                node, {"body": [store, *node.body]}, node, _POSSIBLE, "with a copy of {} each time", one
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
        yield Mutant(node, {"value": one}, node, _POSSIBLE, "with `" + _braced(repr(one)) + "` for {}", node)


def _attributes(node, names):
    if not isinstance(node.ctx, ast.Load) or not isinstance(node.value, ast.Name):
        return
    base = node.value
    if (base.id, node.attr) == ("copy", "copy"):
        yield Mutant(node, {"attr": "deepcopy"}, node, _LIKELY, "with `copy.deepcopy` for {}", node)
    for name in names.others(base.id) if base.id not in ("self", "cls") else ():
        yield Mutant(
            base, {"id": name}, node, _UNLIKELY, "with `" + name + "." + node.attr + "` for {}", node
        )
    for name in names.attributes[base.id][: _MAX_NAMES + 1]:
        if name != node.attr:
            text = "with `" + base.id + "." + name + "` for {}"
            yield Mutant(node, {"attr": name}, node, _UNLIKELY, text, node)


_MAKERS = (
    ((ast.If, ast.IfExp, ast.While), _conditions),
    (ast.comprehension, _filters),
    (ast.BoolOp, _operands),
    (ast.Compare, _comparisons),
    ((ast.BinOp, ast.AugAssign), _operators),
    (ast.Call, _calls),
    ((ast.Return, ast.Assign), _values),
    (ast.For, _for),
    (ast.Constant, _constants),
    (ast.Attribute, _attributes),
)
"""(kinds of nodes, their changes)."""


def _has_run(node, executed):
    if isinstance(node, ast.comprehension):
        node = node.iter
    start = getattr(node, "lineno", None)
    if start is None:
        return False
    if isinstance(node, ast.stmt):
        return start in executed
    # A part of a statement over several lines need not begin one of them.
    return not executed.isdisjoint(range(start, (node.end_lineno or start) + 1))


def _is_docstring(node):
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _binds_name(node):
    """True for an assignment of names: without it, they are missing below."""
    return isinstance(node, ast.Assign) and all(isinstance(one, ast.Name) for one in node.targets)


def _generating(function):
    """Statements that make a function a generator although it returns at once."""
    if any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in ast.walk(function)):
        return [ast.copy_location(ast.Expr(value=ast.Yield(value=None)), function.body[-1])]
    return []


def _each_anew(one, number):
    """`[x for _ in range(n)]` for `[x] * n`."""
    counted = _call_of("range", number)
    target = ast.copy_location(ast.Name(id="_", ctx=ast.Store()), number)
    generator = ast.comprehension(target=target, iter=counted, ifs=[], is_async=0)
    return ast.copy_location(ast.ListComp(elt=one.elts[0], generators=[generator]), one)


def _copied(node):
    module = ast.Call(
        func=ast.Name(id="__import__", ctx=ast.Load()), args=[ast.Constant(value="copy")], keywords=[]
    )
    function = ast.Attribute(value=module, attr="copy", ctx=ast.Load())
    return _placed(ast.Call(func=function, args=[node], keywords=[]), node)


def _call_of(name, node):
    return _placed(ast.Call(func=ast.Name(id=name, ctx=ast.Load()), args=[node], keywords=[]), node)


def _placed(made, node):
    """Give new nodes the position of an old one, which is among them."""
    for one in ast.walk(made):
        if not hasattr(one, "lineno") and isinstance(one, ast.expr):
            ast.copy_location(one, node)
    return made


def _braced(text):
    return text.replace("{", "{{").replace("}", "}}")


def _source(node, lines):
    """Source of a node in backticks: its first line, shortened."""
    first = lines[node.lineno - 1].encode()
    if node.end_lineno == node.lineno:
        text = first[node.col_offset : node.end_col_offset].decode("utf-8", "replace")
    else:
        text = first[node.col_offset :].decode("utf-8", "replace").rstrip() + "…"
    return "`" + (text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 1] + "…") + "`"
