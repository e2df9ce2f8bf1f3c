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
if (lambda over, frame: getattr(over, "__code__", frame.f_code) is not frame.f_code and not any(
    one.f_code is over.__code__ and one.f_locals.get("self") is frame.f_locals["self"]
    for one, _ in __import__("traceback").walk_stack(frame)
))(getattr(type(self), {name!r}, None), __import__("sys")._getframe()):
    return type(self).{name}({given})
"""
"""Without a variable of its own: it could hide a global, and a frame that holds itself keeps what it was given."""


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
    """Yield a change of a method that subclasses replace: it calls that of its object's class, unless that has called it."""
    function, first = changed.node, int(has_docstring(changed.node.body))
    given = _given_on(function)
    is_marked = all(isinstance(one, ast.Call) for one in function.decorator_list)  # `@command("idle")`
    if given[:1] != ["self"] or not is_marked or changed.name != f"{changed.owner}.{function.name}":
        return
    below = definitions.overriding(changed.owner, function.name)
    if below and function.body[first:] and _does_at_once(function):
        text = _OVERRIDING.format(name=function.name, given=", ".join(given))
        what = f"of `{below[0]}`" if len(below) == 1 else "that replaces it in the class of its object"
        told = f"with the `{function.name}` {what}"
        yield Ends(function, first, executed).at_start(text, AIMED, told)


def _is_plain_method(method):
    """True for one that does its work when it is called with its object, and that classes may replace."""
    return not method.decorator_list and method.name != "__new__" and _does_at_once(method)


def _does_at_once(method):
    """True if it does its work when it is called, and its name is no private one."""
    is_private = method.name.startswith("__") and not method.name.endswith("__")
    return not (is_private or isinstance(method, ast.AsyncFunctionDef) or yields(method))


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
