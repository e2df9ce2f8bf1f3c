"""One change of a function's syntax tree, and nodes to make it of."""

# Nodes with a position are told by their attributes.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import ast
import copy
import re

from ..syntax_trees import DEFINITIONS

_MAX_TEXT = 70
_QUOTED, _WORD = re.compile("`[^`]*`"), re.compile(r"\w+")
_EFFECTS = (ast.Expr, ast.Return, ast.Raise, *DEFINITIONS)
_HOLLOW = "if it returned"
_DECIDED = "were true", "were false"
_BLUNT = "without", f"{_HOLLOW} at once"
READ = (ast.Name, ast.Attribute, ast.Subscript)
FIRST, AIMED, LIKELY, POSSIBLE, UNLIKELY = range(-2, 3)
"""Promise of a kind of change; up to `AIMED`: it mends one kind of fault, and few places of a program have it."""


class Mutant:
    """One change: while it is entered, fields of a node have other values.

    `code`: syntax trees of the code that it is about; only what is added where `is_added`. `computed_by`: the function whose
    kept result it computes anew. `is_forced`: it leaves something out, or decides a condition. `is_blunt`: it leaves out an
    effect as a whole, which often hides a fault that is elsewhere. `is_hollow`: it leaves out all that a function does.
    """

    __slots__ = (
        "_fields",
        "_old",
        "_owner",
        "_text",
        "code",
        "computed_by",
        "is_added",
        "is_blunt",
        "is_forced",
        "is_hollow",
        "likelihood",
        "line",
    )

    def __init__(
        self, owner, fields, node, likelihood, text, *parts, added=(), computed_by=None, is_added=False
    ):
        self._owner, self._fields, self._old = owner, fields, {}
        self._text = text, parts
        self.is_added = is_added
        self.code = [*(one for one in parts if type(one) is not str and not is_added), *added]
        self.computed_by = computed_by
        self.line, self.likelihood = node.lineno, likelihood
        self.is_hollow = text.startswith(_HOLLOW)
        self.is_forced = text.startswith("without ") or text.endswith(_DECIDED)
        self.is_blunt = text.startswith(_BLUNT) and isinstance(parts[0] if parts else node, _EFFECTS)

    @property
    def changed_parts(self):
        """{(id of a node, name of its field): (its value, the changed value)}."""
        return {
            (id(self._owner), field): (getattr(self._owner, field), value)
            for field, value in self._fields.items()
        }

    def __enter__(self):
        for field, value in self._fields.items():
            self._old[field] = getattr(self._owner, field)
            setattr(self._owner, field, value)

    def __exit__(self, *exc):
        for field, value in self._old.items():
            setattr(self._owner, field, value)

    def put(self, values):
        """Set fields of the changed node to {(its id, field): value} while the change is made."""
        for (_, field), value in values.items():
            setattr(self._owner, field, value)

    @property
    def leaves_out(self):
        """True if it leaves out something."""
        return self._text[0].startswith("without {}")

    @property
    def kind(self):
        """Its text without the names in it: the same for all changes that do the same."""
        return _QUOTED.sub(lambda quoted: _WORD.sub("", quoted[0]), self._text[0])

    def describe(self, lines):
        """Describe the change, with the source of its parts."""
        text, parts = self._text
        return text.format(*(part if type(part) is str else _source(part, lines) for part in parts))


class Joined:
    """Two changes at once, of different parts: it has what a change has."""

    def __init__(self, first, second, merged):
        """`merged`: parts that both change, lists of which each replaces other items -> the list with all of these."""
        self._both, self._merged = (first, second), merged
        self.code = [*first.code, *second.code]
        self.computed_by = first.computed_by
        self.line, self.likelihood = first.line, max(first.likelihood, second.likelihood)
        self.is_hollow = first.is_hollow or second.is_hollow
        self.is_blunt = first.is_blunt or second.is_blunt
        self.is_forced = first.is_forced or second.is_forced
        self.leaves_out, self.kind = first.leaves_out and second.leaves_out, first.kind
        self.is_added = first.is_added and second.is_added

    @classmethod
    def of(cls, first, second):
        """Both changes at once; None if they can't be made together."""
        parts, more = first.changed_parts, second.changed_parts
        both = parts.keys() & more.keys()
        merged = {part: _merge(parts[part][0], parts[part][1], more[part][1]) for part in both}
        return None if None in merged.values() else cls(first, second, merged)

    def __enter__(self):
        first, second = self._both
        first.__enter__()
        second.__enter__()
        second.put(self._merged)

    def __exit__(self, *exc):
        first, second = self._both
        second.__exit__(*exc)
        first.__exit__(*exc)

    def describe(self, lines):
        """Describe both, with the line of the second one."""
        first, second = self._both
        return f"{first.describe(lines)}, and :{second.line} {second.describe(lines)}"


def _merge(before, first, second):
    """A list with the items of two others that each have replaced some of its own; None if that can't be."""
    if not type(before) is type(first) is type(second) is list or not len(before) == len(first) == len(
        second
    ):
        return None
    merged = []
    for old, one, other in zip(before, first, second):
        if one is not old and other is not old:
            return None
        merged.append(other if one is old else one)
    return merged


def parsed(text, at, **parts):
    """Parse statements, which get the position of a node. Names that stand for `parts` are replaced by these."""
    tree = ast.parse(text)
    for one in ast.walk(tree):
        if hasattr(one, "lineno"):
            ast.copy_location(one, at)
    return _Filling(parts).visit(tree).body


def expression(text, at, **parts):
    """Parse one expression as `parsed` does."""
    return parsed(text, at, **parts)[0].value


def filled(nodes, name, part, after: float = 0):
    """Copies of nodes in which `part` stands for a name where that is read, in lines after one."""
    return [_Filling({name: part}, after).visit(copy.deepcopy(one)) for one in nodes]


class _Filling(ast.NodeTransformer):
    """Puts nodes in the place of names that are read in lines after one."""

    def __init__(self, parts, after: float = 0):
        self._parts, self._after = parts, after

    def visit_Name(self, node):
        is_late = isinstance(node.ctx, ast.Load) and node.lineno > self._after
        return self._parts.get(node.id, node) if is_late else node


class Ends:
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
        return Mutant(self._node, {"body": made}, at, likelihood, braced(told), added=added, is_added=True)

    def at_end(self, text, likelihood, told):
        """Add statements behind all, before a `return` that ends the function."""
        body, at = self._node.body, self._node.body[-1]
        added = parsed(text, at)
        made = [*body[: self._last], *added, *body[self._last :]]
        return Mutant(self._node, {"body": made}, at, likelihood, braced(told), added=added, is_added=True)


def copying(name):
    """Text of a statement after which a variable stands for a copy."""
    return f"{name} = __import__('copy').copy({name})"


def copying_inside(name):
    """The same for a copy whose attributes have containers of their own, too; it raises IndexError where there are none."""
    copies = "{at: __import__('copy').copy(held) for at, held in vars(made).items() if type(held) in (dict, list, set)}"
    filled = f"[vars(made).update(own) or made for own in [{copies}] if own and made is not it]"
    return f"{name} = (lambda it, made: {filled}[0])({name}, __import__('copy').copy({name}))"


def holding(attribute, value):
    """An object that has a value as an attribute, for one whose attribute is read; not a private one, whose name its class changes."""
    holder = f"__import__('types').SimpleNamespace({attribute.attr}=_value)"
    return expression(holder, attribute, _value=value)


def copied(node):
    return expression("__import__('copy').copy(_it)", node, _it=node)


def blocks_in(node):
    """Yield (field, statements) of the blocks of a node, but for the body of a class."""
    for field in ("body", "orelse", "finalbody"):
        block = getattr(node, field, None)
        if type(block) is list and not isinstance(node, ast.ClassDef):
            yield field, block


def local_names(function):
    """Names that a function binds: parameters and variables, also those of functions in it."""
    found = {}
    for node in ast.walk(function):
        if isinstance(node, ast.arg):
            found[node.arg] = True
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found[node.id] = True
    return list(found)


def last_name(node):
    """`c` of `a.b.c`; None if it is neither a name nor an attribute."""
    return getattr(node, "attr", None) or getattr(node, "id", None)


def has_run(node, executed):
    """True if one of the lines of a node, for a statement its first one, is among those that have run."""
    if isinstance(node, ast.comprehension):
        node = node.iter
    start = getattr(node, "lineno", None)
    if start is None:
        return False
    if isinstance(node, ast.stmt):
        return start in executed
    # A part of a statement over several lines need not begin one of them.
    return not executed.isdisjoint(range(start, (node.end_lineno or start) + 1))


def braced(text):
    """Escape a text that is to be formatted."""
    return text.replace("{", "{{").replace("}", "}}")


def read_of(target):
    """The expression that reads what an assignment writes to."""
    made = copy.copy(target)
    made.ctx = ast.Load()
    return made


def is_docstring(node):
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def path_of(node):
    """`a.b.c` of names alone; else an empty text."""
    if isinstance(node, ast.Name):
        return node.id
    above = path_of(node.value) if isinstance(node, ast.Attribute) else ""
    return f"{above}.{node.attr}" if above else ""


class Replacing(ast.NodeTransformer):
    """Puts a local variable in the place of a name or an attribute; or only where it is asked what that contains."""

    def __init__(self, path, variable, only_asked=False):
        self._path, self._variable, self._only_asked = path, variable, only_asked

    def visit(self, node):
        if not self._only_asked and isinstance(getattr(node, "ctx", None), ast.Load):
            if path_of(node) == self._path:
                return expression(self._variable, node)
        elif self._only_asked and isinstance(node, ast.Compare):
            if path_of(node.comparators[0]) == self._path:
                node.comparators[0] = expression(self._variable, node)
        return self.generic_visit(node)


def _source(node, lines):
    """Source of a node in backticks: its first line, shortened."""
    first = lines[node.lineno - 1].encode()
    if node.end_lineno == node.lineno:
        text = first[node.col_offset : node.end_col_offset].decode("utf-8", "replace")
    else:
        text = first[node.col_offset :].decode("utf-8", "replace").rstrip() + "…"
    return "`" + (text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 1] + "…") + "`"
