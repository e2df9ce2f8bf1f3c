"""Each link of the way back is true: its line gave this value, and another value there changes what it led to."""

from __future__ import annotations

import ast
import builtins
import itertools
import os
from collections.abc import Iterator
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sandbox.guest.diagnosis import chain, sites
from sandbox.guest.diagnosis.comparison.snapshots import snapshot
from sandbox.guest.diagnosis.events import Events
from sandbox.guest.diagnosis.rewriting import ENTER, RECORD, Rewriter
from sandbox.guest.diagnosis.safe_values import text_of
from sandbox.guest.diagnosis.slicing import Slice, causes

PROGRAMS = int(os.environ.get("PDBOX_TRUTH_PROGRAMS", "50"))
CHANGE = 10**9
LIBRARY = """\
class Box:
    def __init__(self, size):
        self.size = size
        self.held = []
    def put(self, item):
        self.held.append(item)
        return self
    @property
    def weight(self):
        found = self.size
        for item in self.held:
            found += item
        return found
def twice(n):
    return n + n
def second(pair):
    first, other = pair
    return other
def either(flag, one, two=7):
    if flag > 0:
        result = one
    else:
        result = two
    return result
def gather(items):
    found = 0
    for item in items:
        found += item
    return found
def down(n, left):
    if not left:
        return n
    return down(n + 1, left - 1)
def each(items):
    for item in items:
        yield item + 1
def into(target, key, value):
    target[key] = value
def adder(n):
    def add(m):
        return n + m
    return add
def safely(n):
    try:
        return n + 2
    finally:
        pass
"""
FORMS = [
    "{name} = {constant}",
    "{name} = {a} + {b}",
    "{name} = twice({a})",
    "{name} = second([{a}, {b}])",
    "{name} = second(({a}, {b}))",
    "{name} = either(1, {a}, {b})",
    "{name} = either(0, {a}, two={b})",
    "{name} = either(0, {a})",
    "{name} = gather([{a}, {b}])",
    "{name} = down({a}, 2)",
    "{name} = sum(each([{a}, {b}]))",
    "{name} = max([n + 1 for n in ({a}, {b})])",
    "{name} = adder({a})({b})",
    "{name} = safely({a})",
    "{name} = {a}\n{name} += {b}",
    "l{number} = [{a}]\nl{number}.append({b})\n{name} = l{number}[1]",
    "l{number} = [{a}]\nm{number} = l{number}\nm{number}.append({b})\n{name} = gather(l{number})",
    "l{number} = [{a}, {b}]\n{name} = l{number}.pop()",
    "d{number} = {{'x': {a}}}\nd{number}['y'] = {b}\n{name} = d{number}['y']",
    "d{number} = {{'x': {a}}}\ninto(d{number}, 'x', {b})\n{name} = d{number}['x']",
    "d{number} = {{'x': {a}}}\nd{number}['x'] += {b}\n{name} = d{number}.get('x')",
    "b{number} = Box({a})\n{name} = b{number}.size",
    "b{number} = Box({a})\nb{number}.size = {b}\n{name} = b{number}.size",
    "b{number} = Box({a})\nb{number}.size += {b}\n{name} = b{number}.size",
    "b{number} = Box({a}).put({b})\n{name} = b{number}.weight",
    "b{number} = Box({a})\nc{number} = b{number}\nc{number}.put({b})\n{name} = b{number}.held[0]",
    "{name}, t{number} = {a}, {b}",
    "t{number}, {name} = {a}, {b}\n{name}, t{number} = t{number}, {name}",
    "if (w{number} := {a}) > 0:\n    {name} = w{number}\nelse:\n    {name} = {b}",
    "{name} = {a} if {b} > 0 else {b}",
    "{name} = {a} or {b}",
    "{name} = {a} and {b}",
    "z{number} = 0\n{name} = z{number} or {a}",
    "z{number} = 0\n{name} = (z{number} and {a} or {b}) + {a}",
    "if {a} < 0 or not {b} and {a} < {b}:\n    {name} = {a}\nelse:\n    {name} = {b}",
    "b{number} = Box({a})\nsetattr(b{number}, 'size', {b})\n{name} = b{number}.size",
    "b{number} = Box({a})\nfor k{number} in ['held', 'size']:\n    setattr(b{number}, k{number}, {b})\n{name} = b{number}.size",
    "b{number} = Box({a})\nobject.__setattr__(b{number}, 'size', {b})\n{name} = getattr(b{number}, 'size', {a})",
    "b{number} = Box({a})\nfor k{number} in ['size']:\n    {name} = getattr(b{number}, k{number}) + {b}",
    "{name} = 1\nfor i{number} in range(3):\n    {name} = {name} + {a}",
    "{name} = (lambda n: n + {a})({b})",
]
"""Statements whose results grow with all that they are made of."""


@st.composite
def programs(draw: st.DrawFn) -> str:
    """A program whose last name is its result."""
    lines, names = list[str](), list[str]()
    for number in range(draw(st.integers(2, 10))):
        form = draw(st.sampled_from(FORMS)) if names else FORMS[0]
        a, b = (draw(st.sampled_from(names)) if names else "" for _ in "ab")
        name = f"v{number}"
        lines.append(form.format(name=name, number=number, constant=1000 + 37 * number, a=a, b=b))
        names.append(name)
    inside = "\n".join(lines).replace("\n", "\n    ")
    return f"{LIBRARY}def main():\n    {inside}\n    return {names[-1]}\nresult = main()\n"


class Run:
    """A recorded run, in which one event may have another value."""

    def __init__(self, source: str, changed: int | None = None) -> None:
        self.rewriter, self._log, self._changed = Rewriter(), list[Any](), changed
        self.texts = list[str]()
        """Text of each value at its event."""
        tree = ast.parse(source)
        self.rewriter.rewrite(tree, "program.py")
        names = {RECORD: self._record, ENTER: self._enter}
        self.scope: dict[str, Any] = {"__name__": "program", "__builtins__": {**vars(builtins), **names}}
        exec(compile(tree, "program.py", "exec"), self.scope)

    def _record(self, site: int, frame: int, value: Any) -> Any:
        if len(self._log) // 3 == self._changed:
            value += CHANGE
        self._log.extend((site, frame, value))
        self.texts.append(snapshot(value))
        return value

    def _enter(self, site: int, *parameters: Any) -> int:
        frame = self.rewriter.new_frame()
        for number, value in enumerate((None, *parameters), site):
            self._log.extend((number, frame, value))
            self.texts.append(snapshot(value))
        return frame

    def events(self) -> Events:
        return Events(self._log, self.rewriter)


TELLING = (ast.Assign, ast.Return, ast.NamedExpr, ast.Lambda, ast.Call, ast.ListComp, ast.Yield, ast.IfExp)


class Seen(ast.NodeTransformer):
    """Plain source that tells the values of each line, without the rewriting that is tested."""

    def visit(self, node: ast.AST) -> Any:
        return self._values(node) if isinstance(node, TELLING) else super().visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        self._values(node)
        target = ast.parse(ast.unparse(node.target), mode="eval").body
        for part in ast.walk(target):
            ast.copy_location(part, node)
        return [node, ast.copy_location(ast.Expr(self._see(target)), node)]

    def _values(self, node: Any) -> Any:
        self.generic_visit(node)
        if isinstance(node, ast.Call):
            node.args = [self._see(arg) for arg in node.args]
            for keyword in node.keywords:
                keyword.value = self._see(keyword.value)
        elif isinstance(node, ast.ListComp):
            node.elt = self._see(node.elt)
        elif isinstance(node, ast.Lambda):
            node.body = self._see(node.body)
        elif isinstance(node, ast.IfExp):
            node.test = self._see(node.test)
        elif node.value is not None:
            node.value = self._see(node.value)
        return node

    def visit_If(self, node: ast.If) -> ast.AST:
        self.generic_visit(node)
        node.test = self._see(node.test)
        return node

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        assert isinstance(node.target, ast.Name)
        node.body.insert(0, self._statement(node.target.id, node))
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        node.body[:0] = [self._statement(argument.arg, node) for argument in node.args.args]
        return node

    def visit_Tuple(self, node: ast.Tuple) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            node.elts = [self._see(element) for element in node.elts]
        return node

    def _statement(self, name: str, near: ast.stmt) -> ast.stmt:
        value = ast.copy_location(ast.Name(name, ast.Load()), near)
        return ast.copy_location(ast.Expr(self._see(value)), near)

    @staticmethod
    def _see(node: ast.expr) -> ast.expr:
        seen = ast.Call(ast.Name("SEE", ast.Load()), [ast.Constant(node.lineno), node], [])
        return ast.copy_location(seen, node)


def values_of_lines(source: str) -> set[tuple[int, str]]:
    """(line, text) of all values in a plain run; of containers as they are in the end, as links show them."""
    seen = list[tuple[int, Any]]()

    def see(line: int, value: Any) -> Any:
        seen.append((line, value))
        return value

    tree = ast.fix_missing_locations(Seen().visit(ast.parse(source)))
    exec(compile(tree, "program.py", "exec"), {"__name__": "program", "SEE": see})
    return {(line, text_of(value)) for line, value in seen}


CHANGED_IN_PLACE = (sites.STORE, sites.RETURN, sites.ARGUMENT, sites.ELEMENT, sites.YIELD, sites.CALL)


def is_passed_on(events: Events, event: int) -> bool:
    """True if the program goes on with what is recorded there, and that is a number."""
    site = events.site(event)
    alone = site.kind == sites.STORE and (site.augments or not site.deps or _is_loop(events, site))
    return site.kind in CHANGED_IN_PLACE and type(events.value_of[event]) is int and not alone


def _is_loop(events: Events, site: sites.Site) -> bool:
    return any(type(dep) is int and events.sites[dep].kind == sites.ITERABLE for dep in site.deps)


def data_links(events: Events, path: list[int]) -> Iterator[tuple[int, int]]:
    """(event, cause) of the links along a path, up to one that only decided about a value, or may have changed it.

    A change of a container or an attribute is a link from what was read there to what was put there.
    """
    effect = path[0]
    for event, cause in itertools.pairwise(path):
        if (cause, 1) not in set(causes(events, event)):
            return
        if events.site(event).kind not in (sites.BASE, sites.ITEM, sites.SETATTR):
            effect = event
        yield effect, cause


@settings(
    max_examples=PROGRAMS,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(programs(), st.data())
def test_each_link_is_true_and_what_the_one_before_is_made_of(source: str, data: st.DataObject) -> None:
    run = Run(source)
    events = run.events()
    start = max(event for event in range(len(events)) if events.site(event).kind == sites.STORE)
    way = Slice(events, [(0, start)], 10_000)
    target = data.draw(st.sampled_from(sorted(way.distance)), label="target")
    path = way.path(target)

    def place(event: int) -> dict[str, Any]:
        return {"path": "", "line": events.site(event).line}

    links, *_ = chain.build(events, path, place, lambda site: 0.0)
    seen = values_of_lines(source)
    for link in links:
        value = link["value"].partition(" in the end")[0]
        assert not value or (link["line"], value) in seen, link
    for event, cause in data_links(events, path):
        if is_passed_on(events, cause):
            other = Run(source, changed=cause)
            one, two = events.site(event), events.site(cause)
            assert other.texts[event] != run.texts[event], (
                f"{one.kind} {one.name} of line {one.line} is not made of {two.kind} {two.name} of line {two.line}"
            )
