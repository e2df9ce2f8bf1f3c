"""Changes of what a class has of its bases: methods called beside those that replace them, attributes of its own alone."""

# Nodes with a position are told by their attributes.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import ast

from ..syntax_trees import has_docstring, yields
from .mutant import AIMED, POSSIBLE, Ends, Mutant, expression, is_docstring

_DISPLAYS = {
    ast.Dict: "{{**{}, **_it}}",
    ast.List: "[*{}, *_it]",
    ast.Set: "{{*{}, *_it}}",
    ast.Tuple: "(*{}, *_it)",
}

_OVERRIDING = """\
_over = getattr(type(self), {name!r}, None)
_frame = __import__('sys')._getframe()
_code = getattr(_over, '__code__', _frame.f_code)
while _frame is not None and _frame.f_code is not _code:
    _frame = _frame.f_back
if _frame is None:
    return _over({given})
"""


def with_base(changed, executed, definitions):
    """Yield changes of a method that replaces one of a base class and does not call it: with that called, too."""
    function, first = changed.node, int(has_docstring(changed.node.body))
    is_plain = _is_plain_method(function) and changed.name == f"{changed.owner}.{function.name}"
    replaced = definitions.replaced(changed.owner, function.name) if is_plain else None
    if replaced is None or not function.body[first:] or _calls_base(function):
        return
    if not _is_plain_method(replaced) or not _does_something(replaced):
        return
    call = _call_of_base(function, changed.owner)
    ends = Ends(function, first, executed)
    yield ends.at_start(call, AIMED, f"with `{call}` at its start")
    if ends.has_end:
        yield ends.at_end(call, AIMED, f"with `{call}` at its end")
    for node in ast.walk(function):
        form = _DISPLAYS.get(type(node.value)) if isinstance(node, ast.Return) else None
        if form is not None and node.lineno in executed:
            both = expression(form.format(call), node.value, _it=node.value)
            yield Mutant(node, {"value": both}, node, AIMED, "with `" + call + "` before {}", node.value)


def _call_of_base(function, owner):
    """Text of the call of the replaced method with the same arguments."""
    first, *names = _given_on(function) or ["self"]
    return f"super({owner}, {first}).{function.name}({', '.join(names)})"


def _given_on(function):
    """Texts of the arguments with which a function can be called as it was itself."""
    given = function.args
    names = [one.arg for one in [*given.posonlyargs, *given.args]]
    names += [f"*{given.vararg.arg}"] if given.vararg else []
    names += [f"{one.arg}={one.arg}" for one in given.kwonlyargs]
    return names + ([f"**{given.kwarg.arg}"] if given.kwarg else [])


def with_overriding(changed, executed, definitions):
    """Yield a change of a method that classes below replace: with theirs called for their objects, unless that has called it."""
    function, first = changed.node, int(has_docstring(changed.node.body))
    name, given = function.name, _given_on(function)
    if given[:1] != ["self"] or name.startswith("__") or not function.body[first:] or yields(function):
        return
    below = definitions.overriding(changed.owner, name)
    if not below or isinstance(function, ast.AsyncFunctionDef):
        return
    text = _OVERRIDING.format(name=name, given=", ".join(given))
    told = f"with `{name}` of `{below[0]}` for its objects"
    yield Ends(function, first, executed).at_start(text, AIMED, told)


def _is_plain_method(method):
    """True for one that does its work when it is called with its object, and that classes may replace."""
    is_private = method.name.startswith("__") and not method.name.endswith("__")
    is_special = method.decorator_list or method.name == "__new__" or isinstance(method, ast.AsyncFunctionDef)
    return not (is_private or is_special or yields(method))


def _calls_base(method):
    """True if it calls a method of its name of something else than its object: by `super()`, or by the name of a class."""
    called = [one.func for one in ast.walk(method) if isinstance(one, ast.Call)]
    same = [one for one in called if isinstance(one, ast.Attribute) and one.attr == method.name]
    return any(getattr(one.value, "id", "") != "self" for one in same)


def _does_something(method):
    """False for a method that only says that others have to do it."""
    left = method.body[has_docstring(method.body) :]
    return not all(isinstance(one, (ast.Pass, ast.Raise)) or is_docstring(one) for one in left)


def own_or_inherited(node, names):
    """Yield changes of a call that looks up an attribute by its name: in the object alone."""
    called = getattr(node.func, "id", "")
    if called not in ("hasattr", "getattr") or not 2 <= len(node.args) <= 3 or node.keywords:
        return
    owner, name, *default = node.args
    likelihood = AIMED if getattr(owner, "id", "") == "cls" else POSSIBLE
    if called == "hasattr" or default:
        look_up = "__contains__" if called == "hasattr" else "get"
        alone = {"func": expression(f"vars(_it).{look_up}", node, _it=owner), "args": [name, *default]}
        yield Mutant(node, alone, node, likelihood, "without what is inherited in {}", node)


def inherited_too(node, names):
    """Yield a change of a test whether an object has an attribute of its own: with those that it inherits."""
    among = node.comparators[0]
    if len(node.ops) != 1 or not isinstance(node.ops[0], (ast.In, ast.NotIn)):
        return
    owner = _owner_of_names(among)
    if owner is not None:
        asked = expression("dir(_it)", among, _it=owner)
        yield Mutant(node, {"comparators": [asked]}, node, AIMED, "with what is inherited in {}", node)


def inherited_item(node, names):
    """Yield a change of a look-up in the names of an object: with those that it inherits."""
    owner = _owner_of_names(getattr(node.func, "value", None))
    if owner is not None and node.func.attr == "get" and len(node.args) in (1, 2) and not node.keywords:
        default = node.args[1:] or [expression("None", node)]
        asked = {"func": expression("getattr", node), "args": [owner, node.args[0], *default]}
        yield Mutant(node, asked, node, AIMED, "with what is inherited in {}", node)


def _owner_of_names(node):
    """`x` of `x.__dict__` and of `vars(x)`; else None."""
    if isinstance(node, ast.Attribute) and node.attr == "__dict__":
        return node.value
    is_call = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "vars" and len(node.args) == 1
    return node.args[0] if is_call else None
