"""Rewrites source so that values are recorded: `x = f(y)` becomes `x = R(17, frame, f(R(16, frame, y)))`.

Values pass through unchanged, and evaluation keeps its order. Annotations, decorators, defaults, patterns,
f-strings and zero-argument `super()` stay as they are.
"""

# A module has no scope around it, and nodes with a position are told by their attributes.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false
from __future__ import annotations

import ast

from . import sites
from .sites import Scope, Site
from .syntax_trees import (
    RECORD,
    assigns_each,
    bound_names,
    complete_positions,
    constant_value,
    has_docstring,
    imported_modules,
    index_of,
    is_frames_own,
    is_of_attribute,
    is_of_pytest,
    leaves_block,
    mentions_pytest,
    parameters,
    place_like,
    recorded_site,
    shared_defaults,
    short_text,
)

ENTER = "_@enter"
CAUGHT = "_@caught"
FRAME = "_@frame"
"""Local variable with the number of its frame. No program can have it, and `import *` leaves it out."""

_PURE = frozenset(
    "abs all any bool callable divmod enumerate filter float frozenset getattr hasattr hash id int isinstance"
    " issubclass iter len list dict set tuple map max min next ord chr pow print range repr reversed round"
    " sorted str sum type zip".split()
)
"""Builtins whose result is a part of the expression around them."""
_OF_KEYS = sites.MUTATORS | {"get"}
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)


class Rewriter:
    """Rewrites modules; keeps the table of all sites."""

    def __init__(self, asides=True):
        """`asides`: record keys and containers of `key in container`, and operands of `and` and `or`, too."""
        self.records_asides = asides
        self.sites = []
        self.first_sites = []
        """Number of the first site of each module."""
        self._frames = iter(range(1, 1 << 40))
        self.module_scopes = {}
        self.classes = {}
        """Scopes of classes by their qualified names."""

    def new_frame(self):
        """Number of a new frame."""
        return next(self._frames)

    def rewrite(self, tree, filename, functions=True):
        """Change the syntax tree of a module in place; without `functions`, only what runs at its import."""
        scope = Scope(filename, "<module>", None)
        self.first_sites.append(len(self.sites))
        number = self.new_frame()
        self.module_scopes[number] = scope
        _Module(self, scope, number, imported_modules(tree), functions=functions).rewrite(tree)
        complete_positions(tree)

    def add_site(self, kind, scope, line, name):
        site = Site(len(self.sites), kind, scope, line, name)
        self.sites.append(site)
        return site


class _Module(ast.NodeTransformer):
    """Rewrites the code of one scope; functions within get a rewriter of their own."""

    def __init__(self, rewriter, scope, frame, imported, in_class=False, functions=True):
        """`frame`: number of the frame, if it is known: a module has one only."""
        self._rewriter, self._scope, self._frame, self._imported = rewriter, scope, frame, imported
        self._in_class, self._functions = in_class, functions
        self._deps, self._choices = [], []
        self._whole = None
        self._controls = []
        self._tests = {}
        """Sites of the conditions of `if` statements, by the id of the statement."""

    def rewrite(self, tree):
        tree.body = self._body(tree.body)

    # Statements

    def _body(self, statements):
        done, outer = [], len(self._controls)
        for statement in statements:
            handler = getattr(self, "_do_" + type(statement).__name__, None)
            if handler is None or is_of_pytest(statement):
                done.append(statement)
                continue
            self._deps, self._choices = [], []
            made = handler(statement)
            done.extend(made if isinstance(made, list) else [made])
            if leaves_block(statement) and self._tests.get(id(statement)) is not None:
                self._controls.append(self._tests[id(statement)])
        del self._controls[outer:]
        return done

    def _do_FunctionDef(self, node):
        self._bind(node.name)
        if not self._functions:
            return node
        scope = Scope(self._scope.filename, _qualified(self._scope, node.name), self._scope)
        names = parameters(node.args)
        scope.bound.update(names)
        scope.defaults = frozenset(shared_defaults(node.args))
        first = self._rewriter.add_site(sites.ENTER, scope, node.lineno, node.name)
        for name in names:
            site = self._rewriter.add_site(sites.PARAMETER, scope, node.lineno, name)
            site.extra = (name,)
        inner = _Module(self._rewriter, scope, None, self._imported - set(names))
        start = 1 if has_docstring(node.body) else 0
        body = inner._body(node.body[start:])
        arguments = [ast.Constant(first.number)] + [ast.Name(name, ast.Load()) for name in names]
        enter = ast.Assign([ast.Name(FRAME, ast.Store())], _call(ENTER, arguments))
        place_like(enter, node.body[start] if len(node.body) > start else node)
        node.body[start:] = [enter] + body
        return node

    _do_AsyncFunctionDef = _do_FunctionDef

    def _do_ClassDef(self, node):
        self._bind(node.name)
        scope = Scope(self._scope.filename, _qualified(self._scope, node.name), self._scope)
        scope.is_class = True
        self._rewriter.classes.setdefault(scope.name, []).append(scope)
        inner = _Module(self._rewriter, scope, self._frame, self._imported, True, self._functions)
        node.body = inner._body(node.body)
        return node

    def _do_Assign(self, node):
        names = [name for target in node.targets for name in bound_names(target)]
        if self._in_class and any(name.startswith("__") for name in names):
            return node
        if (
            names
            and names[0].startswith("@py_assert")
            and isinstance(node.value, ast.Constant)
            and node.value.value is None
        ):
            return node  # pytest frees the parts of an assertion that holds
        if assigns_each(node):
            (target,) = node.targets
            pairs = list(zip(target.elts, node.value.elts))
            for number, (one, value) in enumerate(pairs):
                node.value.elts[number] = self._wrap(
                    value, sites.STORE, short_text(one), tuple(bound_names(one))
                )
            stores = self._deps[-len(pairs) :]
            self._bind(*names)
            target.elts = [self._target(one, store) for one, store in zip(target.elts, stores)]
            return node
        node.value = self._wrap(node.value, sites.STORE, short_text(node.targets[0]), tuple(names))
        self._bind(*names)
        store = self._deps[-1]
        node.targets = [self._target(target, store) for target in node.targets]
        return node

    def _do_AnnAssign(self, node):
        if node.value is None or self._in_class:
            return node
        names = tuple(bound_names(node.target))
        node.value = self._wrap(node.value, sites.STORE, short_text(node.target), names)
        self._bind(*names)
        node.target = self._target(node.target, self._deps[-1])
        return node

    def _do_AugAssign(self, node):
        names = tuple(bound_names(node.target))
        name = short_text(node.target)
        node.value = self._wrap(node.value, sites.AUGMENTED, name)
        value = self._deps[-1]
        if not names:
            node.target = self._target(node.target, value)
            return node
        self._bind(*names)
        after = self._record_name(names[0], node, name)
        site = self._rewriter.sites[after[1]]
        site.deps, site.augments = (value, names[0]), True
        return [node, after[0]]

    def _record_name(self, name, near, text):
        """(statement that records a name's value, its site)."""
        site = self._add(sites.STORE, near.lineno, text)
        site.extra = (name,)
        record = ast.Expr(self._record(site, ast.Name(name, ast.Load())))
        return place_like(record, near), site.number

    def _do_Return(self, node):
        if node.value is not None:
            node.value = self._wrap(node.value, sites.RETURN, "return")
        return node

    def _do_Expr(self, node):
        node.value = self.visit(node.value)
        return node

    def _do_Assert(self, node):
        node.test = self._wrap(node.test, sites.TEST, "assert")
        return node

    def _do_Raise(self, node):
        if node.exc is not None:
            node.exc = self.visit(node.exc)
        return node

    def _do_Delete(self, node):
        for target in node.targets:
            if isinstance(target, (ast.Subscript, ast.Attribute)):
                self._target(target, None, "delete")
        return node

    def _do_If(self, node):
        if not mentions_pytest(node.test):
            node.test = self._wrap(node.test, sites.TEST, "if")
            self._tests[id(node)] = self._deps[-1]
            self._controls.append(self._deps[-1])
            node.body, node.orelse = self._body(node.body), self._body(node.orelse)
            self._controls.pop()
        else:
            node.body, node.orelse = self._body(node.body), self._body(node.orelse)
        return node

    def _do_While(self, node):
        node.test = self._wrap(node.test, sites.TEST, "while")
        self._controls.append(self._deps[-1])
        node.body = self._body(node.body)
        self._controls.pop()
        node.orelse = self._body(node.orelse)
        return node

    def _do_For(self, node):
        node.iter = self._wrap(node.iter, sites.ITERABLE, short_text(node.target))
        loop = self._deps[-1]
        names = list(bound_names(node.target))
        self._bind(*names)
        self._controls.append(loop)
        records = []
        for name in names:
            record, number = self._record_name(name, node, name)
            self._rewriter.sites[number].deps = (loop,)
            records.append(place_like(record, node.body[0]))
        node.body = records + self._body(node.body)
        self._controls.pop()
        node.orelse = self._body(node.orelse)
        return node

    _do_AsyncFor = _do_For

    def _do_With(self, node):
        records = []
        for item in node.items:
            item.context_expr = self._wrap(item.context_expr, sites.CALL, "with")
            entered = self._deps[-1]
            for name in bound_names(item.optional_vars) if item.optional_vars is not None else ():
                self._bind(name)
                record, number = self._record_name(name, node, name)
                self._rewriter.sites[number].deps = (entered,)
                records.append(place_like(record, node.body[0]))
        node.body = records + self._body(node.body)
        return node

    _do_AsyncWith = _do_With

    def _do_Try(self, node):
        node.body, node.orelse = self._body(node.body), self._body(node.orelse)
        for handler in node.handlers:
            site = self._add(sites.CAUGHT, handler.lineno, "except")
            record = ast.Expr(_call(CAUGHT, [ast.Constant(site.number), self._frame_number()]))
            place_like(record, handler.body[0])
            self._controls.append(site.number)
            handler.body = [record] + self._body(handler.body)
            self._controls.pop()
        node.finalbody = self._body(node.finalbody)
        return node

    _do_TryStar = _do_Try

    def _do_Match(self, node):
        node.subject = self._wrap(node.subject, sites.TEST, "match")
        for case in node.cases:
            case.body = self._body(case.body)
        return node

    def _do_Global(self, node):
        self._scope.foreign.update(node.names)
        return node

    _do_Nonlocal = _do_Global

    # Expressions

    def _wrap(self, node, kind, name, extra=None):
        outer, self._deps = self._deps, []
        beside, self._choices = self._choices, []
        whole, self._whole = self._whole, node
        done = self.visit(node)
        self._whole = whole
        site = self._add(kind, node.lineno, name)
        site.deps, site.choices, site.extra = tuple(self._deps), tuple(self._choices), extra
        site.is_call = isinstance(node, (ast.Call, ast.Await, ast.YieldFrom))
        self._deps, self._choices = outer, beside
        outer.append(site.number)
        return place_like(self._record(site, done), node)

    def _record(self, site, value):
        return _call(RECORD, [ast.Constant(site.number), self._frame_number(), value])

    def _frame_number(self):
        return ast.Name(FRAME, ast.Load()) if self._frame is None else ast.Constant(self._frame)

    def _target(self, node, store, use="store"):
        """Record the object whose attribute or item is about to be set; `store` is the site of the value."""
        if isinstance(node, (ast.Tuple, ast.List)):
            node.elts = [self._target(element, store, use) for element in node.elts]
        elif isinstance(node, ast.Starred):
            node.value = self._target(node.value, store, use)
        elif isinstance(node, ast.Attribute):
            node.value = self._base(node.value, sites.BASE, node.attr, (use, store))
        elif isinstance(node, ast.Subscript):
            self._item(node, use, store)
        return node

    def _base(self, node, kind, name, extra):
        return self._wrap(node, kind, name, extra)

    def _item(self, node, use, store=None):
        text = short_text(node.value)
        node.value = self._wrap(node.value, sites.ITEM, text, None)
        base = self._rewriter.sites[self._deps[-1]]
        key = index_of(node)
        constant, key_site = None, None
        if isinstance(key, ast.Constant):
            constant = key.value
        elif not isinstance(key, (ast.Slice, ast.Tuple)) and type(key).__name__ != "ExtSlice":
            wrapped = self._wrap(key, sites.KEY, "key")
            key_site = self._deps[-1]
            if type(node.slice).__name__ == "Index":
                node.slice.value = wrapped
            else:
                node.slice = wrapped
        base.extra = (use, store, key_site, constant)

    def visit_Name(self, node):
        if isinstance(node.ctx, ast.Load) and not node.id.startswith("@py_builtins"):
            self._deps.append(node.id)
        return node

    def visit_Attribute(self, node):
        if not isinstance(node.ctx, ast.Load):
            return node
        if isinstance(node.value, ast.Name) and node.value.id in self._imported:
            return node
        if is_frames_own(node.value) or mentions_pytest(node.value, deep=False):
            return node
        node.value = self._base(node.value, sites.BASE, node.attr, ("load", None))
        return node

    def visit_Subscript(self, node):
        if isinstance(node.ctx, ast.Load):
            self._item(node, "load")
        return node

    def visit_Call(self, node):
        if is_frames_own(node):
            return node
        if is_of_attribute(node):
            return self._attribute_call(node)
        whole, self._whole = self._whole is node, None
        pure = isinstance(node.func, ast.Name) and node.func.id in _PURE
        before, method = len(self._deps), None
        beside = len(self._choices)
        if isinstance(node.func, ast.Attribute):
            node.func = self._method(node.func)
            method = self._rewriter.sites[self._deps[-1]] if len(self._deps) > before else None
        elif not isinstance(node.func, ast.Name):
            node.func = self.visit(node.func)
        elif self._scope.parent is not None and node.func.id in self._scope.bound:
            self._deps.append(
                node.func.id
            )  # a local one: `@py_assert1`, or a function that a call has returned
        key = constant_value(node.args[0]) if node.args else None
        default = [one.value for one in node.args[1:2] if isinstance(one, ast.Constant)]
        if whole or pure:
            self._arguments(node, pure)
            self._add_key(method, node, key, default)
            return node
        base, outer = self._deps[before:], self._deps[:before]
        self._deps = []
        self._arguments(node, False)
        self._add_key(method, node, key, default)
        site = self._add(sites.CALL, node.lineno, short_text(node.func))
        site.deps, site.is_call = tuple(base + self._deps), True
        site.choices = tuple(self._choices[beside:])
        del self._choices[beside:]
        self._deps = outer
        outer.append(site.number)
        return place_like(self._record(site, node), node)

    def _attribute_call(self, node):
        """Record the object and the name of `getattr(object, name)` and `setattr(object, name, value)`, and that value."""
        target, name, *rest = node.args
        attribute = constant_value(name)
        text = f"{short_text(target)}.{attribute if isinstance(attribute, str) else '…'}"
        is_set = getattr(node.func, "id", "") != "getattr"
        if not is_set and isinstance(attribute, str):
            node.args[0] = self._base(target, sites.BASE, attribute, ("load", None))
            self._default(node, self._deps[-1])
            return node
        node.args[0] = self._wrap(target, sites.SETATTR if is_set else sites.GETATTR, text)
        base, key = self._rewriter.sites[self._deps[-1]], None
        if not isinstance(name, ast.Constant):
            node.args[1] = self._wrap(name, sites.KEY, "key")
            key = self._deps[-1]
        if is_set:
            node.args[2] = self._wrap(rest[0], sites.STORE, text, ())
            base.extra = "store", self._deps[-1], key, attribute
        else:
            base.extra = "load", None, key, attribute
            self._default(node, base.number)
        return node

    def _default(self, node, base):
        """Visit what `getattr` gives in place of an attribute, if there is one: a choice between that and the site `base`."""
        if len(node.args) > 2:
            outer, beside = self._deps, self._choices
            self._deps, self._choices = [], []
            node.args[2] = self.visit(node.args[2])
            beside.append((None, [(base, (), ()), (None, tuple(self._deps), tuple(self._choices))]))
            self._deps, self._choices = outer + self._deps, beside

    def _method(self, func):
        if isinstance(func.value, ast.Name) and func.value.id in self._imported:
            return func
        if is_frames_own(func.value) or mentions_pytest(func.value, deep=False):
            return func
        use = "mutate" if func.attr in sites.MUTATORS else "method"
        text = short_text(func.value)
        func.value = self._base(func.value, sites.BASE, func.attr, (use, text))
        return func

    def _add_key(self, method, node, key, default):
        """Note at a method of containers which key it is given, and which default in place of a missing one."""
        if method is not None and method.name in _OF_KEYS and node.args:
            method.extra += (recorded_site(node.args[0]), key, *default)

    def visit_Compare(self, node):
        """Record key and container of `key in container`, if that is not made there."""
        right = node.comparators[0]
        is_look_up = self._rewriter.records_asides and isinstance(node.ops[0], (ast.In, ast.NotIn))
        is_look_up = (
            is_look_up and len(node.ops) == 1 and isinstance(right, (ast.Name, ast.Attribute, ast.Subscript))
        )
        name, constant, key = short_text(right), constant_value(node.left), None
        before = len(self._deps)
        self.generic_visit(node)
        if not is_look_up:
            return node
        if not isinstance(node.left, ast.Constant):
            # What it depends on stays what the whole expression depends on, without a step between them.
            key = self._add(sites.SOUGHT, node.lineno, "key")
            node.left = place_like(self._record(key, node.left), node.left)
        site = self._add(sites.ASKED, node.lineno, name)
        site.deps = tuple(self._deps[before:])
        site.extra = ("asked", None, None if key is None else key.number, constant)
        self._deps.append(site.number)
        node.comparators[0] = place_like(self._record(site, node.comparators[0]), right)
        return node

    def _arguments(self, node, pure):
        is_exec, code = isinstance(node.func, ast.Name) and node.func.id == "exec", None
        for number, argument in enumerate(node.args):
            if isinstance(argument, ast.Starred):
                argument.value = self.visit(argument.value)
            elif pure or isinstance(argument, (ast.Constant, ast.Lambda, ast.GeneratorExp)):
                node.args[number] = self.visit(argument)
            else:
                node.args[number] = self._wrap(argument, sites.ARGUMENT, short_text(argument), code)
                code = self._deps[-1] if is_exec and not number else code
        for keyword in node.keywords:
            if pure or isinstance(keyword.value, ast.Constant) or keyword.arg is None:
                keyword.value = self.visit(keyword.value)
            else:
                keyword.value = self._wrap(keyword.value, sites.ARGUMENT, keyword.arg)

    def visit_BoolOp(self, node):
        """Record each operand: which one was evaluated last tells what has decided."""
        if mentions_pytest(node) or not self._rewriter.records_asides:
            return self.generic_visit(node)
        outer, beside, operands = self._deps, self._choices, []
        for index, operand in enumerate(node.values):
            self._deps, self._choices = [], []
            done = self.visit(operand)
            site = self._add(sites.OPERAND, operand.lineno, short_text(operand))
            site.deps, site.choices = tuple(self._deps), tuple(self._choices)
            operands.append((site.number, site.deps, site.choices))
            outer += self._deps
            node.values[index] = place_like(self._record(site, done), operand)
        self._deps, self._choices = outer, [*beside, (isinstance(node.op, ast.Or), operands)]
        return node

    def visit_IfExp(self, node):
        if mentions_pytest(node):
            return self.generic_visit(node)
        node.test = self._wrap(node.test, sites.TEST, "if")
        test = self._deps[-1]
        node.body = self._wrap(node.body, sites.BRANCH, short_text(node.body), test)
        node.orelse = self._wrap(node.orelse, sites.BRANCH, short_text(node.orelse), test)
        return node

    def visit_Yield(self, node):
        if node.value is not None:
            node.value = self._wrap(node.value, sites.YIELD, "yield")
        return node

    def visit_NamedExpr(self, node):
        names = tuple(bound_names(node.target))
        self._bind(*names)
        node.value = self._wrap(node.value, sites.STORE, names[0], names)
        return node

    def visit_Lambda(self, node):
        self._hide(
            parameters(node.args),
            lambda: setattr(node, "body", self._wrap(node.body, sites.RETURN, "lambda")),
        )
        return node

    def _comprehension(self, node):
        if self._in_class:
            return node  # a scope of its own, which does not see the names of the class
        targets = [name for each in node.generators for name in bound_names(each.target)]
        self._hide(targets, lambda: self._parts(node))
        return node

    visit_ListComp = visit_SetComp = visit_GeneratorExp = visit_DictComp = _comprehension

    def _parts(self, node):
        for each in node.generators:
            each.iter = self._wrap(each.iter, sites.ITERABLE, short_text(each.target))
            each.ifs = [self.visit(condition) for condition in each.ifs]
        if isinstance(node, ast.DictComp):
            node.key = self.visit(node.key)
            node.value = self._wrap(node.value, sites.ELEMENT, "element")
        else:
            node.elt = self._wrap(node.elt, sites.ELEMENT, "element")

    def _hide(self, names, visit):
        """Visit an inner scope whose own `names` are no reads of this one, and where each round may decide otherwise."""
        outer, self._deps = self._deps, []
        beside, self._choices = self._choices, []
        first = len(self._rewriter.sites)
        visit()
        self._choices = beside
        hidden = set(names)
        for site in self._rewriter.sites[first:]:
            site.deps = tuple(dep for dep in site.deps if dep not in hidden)
        self._deps = outer + [dep for dep in self._deps if dep not in hidden]

    def visit_JoinedStr(self, node):
        for part in ast.walk(node):
            if isinstance(part, ast.Name):
                self._deps.append(part.id)
        return node

    visit_TemplateStr = visit_JoinedStr

    def _add(self, kind, line, name):
        site = self._rewriter.add_site(kind, self._scope, line, name)
        site.control = self._controls[-1] if self._controls else None
        return site

    def _bind(self, *names):
        self._scope.bound.update(name for name in names if name not in self._scope.foreign)


def _call(function, arguments):
    return ast.Call(ast.Name(function, ast.Load()), arguments, [])


def _qualified(scope, name):
    return name if scope.parent is None else f"{scope.name}.{name}"


__all__ = ["CAUGHT", "ENTER", "FRAME", "RECORD", "Rewriter"]
