"""Arguments that a function gets and never uses, and options that a caller has and does not hand on."""

# Nodes of one kind are told by their attributes.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import ast
import re

from ..events import is_atom, is_same, method_codes
from ..safe_values import text_of
from .call_sites import UNKNOWN, find_call, gives, parameter_value
from .view import Signal, is_name, reads

_OF_FRAME = frozenset(("locals", "vars", "eval", "exec"))
_KNOWN_UNUSED = re.compile(r"unused|ignored|deprecated|compat|not used|no effect", re.IGNORECASE)
_PLAIN_DECORATORS = frozenset(("staticmethod", "classmethod"))


def find_unused(view):
    """Yield a signal for each parameter that got another value than its default, and that its function never reads.

    Only for calls by the function's name: a callback has the parameters that its caller gives. Places: the function, the
    call.
    """
    for function in view.functions:
        for name, default in _unused_parameters(view, function):
            for frame in function.frames:
                value = parameter_value(view.events, frame, name)
                if value is UNKNOWN or is_same(value, default) or _is_inherited(view, frame, name):
                    continue
                call = find_call(view, frame, function.scope.name)
                if call is None or gives(function, call[1], name) is False:
                    continue
                yield Signal(
                    "unused", function.rank, [function.place, call[0]], name=name, value=text_of(value)
                )
                break


def _unused_parameters(view, function):
    """(name, default) of the parameters that a function never reads."""
    node = function.node
    if not _may_have_unused(node) or _KNOWN_UNUSED.search(_text(view, function)):
        return []
    body = ast.Module(node.body, [])
    return [
        (name, default)
        for name, default in _plain_defaults(node.args)
        if not name.startswith("_") and not reads(body, name) and not _is_of_interface(view, function, name)
    ]


def _text(view, function):
    first, last = function.node.lineno - 1, function.node.end_lineno
    return "\n".join(view.sources.lines(function.scope.filename)[first:last])


def _may_have_unused(node):
    """True for a function with a body of its own that nothing but its calls gives arguments."""
    if any(getattr(one, "id", None) not in _PLAIN_DECORATORS for one in node.decorator_list):
        return False
    if all(isinstance(one, (ast.Pass, ast.Raise, ast.Expr)) and not _is_call(one) for one in node.body):
        return False
    last = node.body[-1]
    is_constant = isinstance(last, ast.Return) and isinstance(
        last.value, (ast.Constant, type(None), ast.Name)
    )
    is_short = len([one for one in node.body if not isinstance(one, ast.Expr)]) == 1
    if is_constant and is_short:
        return False
    return not any(
        isinstance(one, ast.Call) and getattr(one.func, "id", None) in _OF_FRAME for one in ast.walk(node)
    )


def _is_call(statement):
    return isinstance(statement, ast.Expr) and isinstance(statement.value, (ast.Call, ast.Await, ast.Yield))


def _is_of_interface(view, function, name):
    """True if other classes of the file have a method with this parameter; of constructors, if another one ignores it."""
    owner, dot, method = function.scope.name.rpartition(".")
    if not dot:
        return False
    if method.startswith("__") and method not in ("__init__", "__call__"):
        return True
    for (other, _), node in view.definitions(function.scope.filename).items():
        if other.rpartition(".")[2] != method or node is function.node or isinstance(node, ast.ClassDef):
            continue
        if name in _names(node.args) and (method != "__init__" or not reads(ast.Module(node.body, []), name)):
            return True
    return False


def _is_inherited(view, frame, name):
    """True if a class above or below has the method with the parameter, too: then it is a part of the interface."""
    receiver, method = view.calls.receiver(frame), view.calls.scope_of(frame).name.rpartition(".")[2]
    if receiver is None or method == "__init__":
        return False
    return (
        sum(
            name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            for code in method_codes(receiver, method)
        )
        > 1
    )


def find_not_handed_on(view):
    """Yield a signal for each option left at its default by a caller that has one of this name, with another value.

    An option is a parameter, or a key that is taken from `**options`. Places: the function, the call. Its name is that
    of the caller's: `self.debug`.
    """
    events = view.events
    for function in view.functions:
        for name, default, is_key in _options(function.node):
            for frame in function.frames:
                call = (
                    find_call(view, frame, function.scope.name)
                    if _is_left_out(view, frame, name, default, is_key)
                    else None
                )
                if call is None or view.is_test_code(call[0][0]):
                    continue
                given = gives(function, call[1], name)
                if given or is_key and given is None:
                    continue
                owned, value = _option(view, call[2], events.entered[frame], name)
                if owned and _is_option(value) and not is_same(value, default):
                    places, values = [function.place, call[0]], (text_of(value), text_of(default))
                    yield Signal("not_handed_on", function.rank, places, name, *values, owned)
                    break


def _options(function):
    """Yield (name, default, is a key of `**options`) of what a function takes as a choice of its caller, and reads."""
    body = ast.Module(function.body, [])
    for name, default in _plain_defaults(function.args):
        if reads(body, name) and not _looks_elsewhere(body, name):
            yield name, default, False
    for one in ast.walk(body) if function.args.kwarg else ():
        is_key = (
            isinstance(one, ast.Call)
            and isinstance(one.func, ast.Attribute)
            and one.func.attr in ("get", "pop")
            and is_name(one.func.value, function.args.kwarg.arg)
            and len(one.args) == 2
            and all(isinstance(each, ast.Constant) for each in one.args)
        )
        if is_key:
            yield one.args[0].value, one.args[1].value, True


def _is_left_out(view, frame, name, default, is_key):
    return is_key or is_same(parameter_value(view.events, frame, name), default)


def _option(view, outer, event, name):
    """(name, value) of an option of the caller: a parameter, not left at its default, a key of its `**options`, or an
    attribute of its `self` that one of those was kept in, or that a test set; ("", None) if it has none."""
    owned, value = _given(view, outer, name)
    if owned or name in _names(view.node_of(outer).args):
        return owned, value
    events, receiver = view.events, view.calls.receiver(outer)
    writer = None if receiver is None else events.attribute_writer(receiver, name, event)
    stored = None if writer is None else events.stored_value_event(writer)
    if stored is None or not _is_chosen(view, writer, name, events.value_of[stored]):
        return "", None
    return "self." + name, events.value_of[stored]


def _is_chosen(view, writer, name, value):
    """True if an attribute was set by a test, or to what the function that set it was given under its name."""
    if view.is_test_code(view.events.site(writer).scope.filename):
        return True
    owned, given = _given(view, view.events.frame_of[writer], name)
    return bool(owned) and is_same(given, value)


def _given(view, frame, name):
    """(name, value) of what a call was given as `name`: a parameter, not left at its default, or a key of its `**options`."""
    events, node = view.events, view.node_of(frame)
    if node is None:
        return "", None
    if name in _names(node.args):
        value, defaults = parameter_value(events, frame, name), dict(_plain_defaults(node.args))
        return ("", None) if name in defaults and is_same(value, defaults[name]) else (name, value)
    others = parameter_value(events, frame, node.args.kwarg.arg) if node.args.kwarg else None
    for key, value in list(others.items()) if type(others) is dict else ():
        if type(key) is str and key == name:
            return f"{node.args.kwarg.arg}[{name!r}]", value
    return "", None


def _is_option(value):
    """True for a value by which a caller chooses: not a name, which each object has its own of."""
    return any(type(value) is kind for kind in (bool, int, float))


def _looks_elsewhere(body, name):
    """True if a function also reads an attribute of the parameter's name, or names it in a text."""
    return any(
        isinstance(one, ast.Attribute) and one.attr == name and isinstance(one.ctx, ast.Load)
        or isinstance(one, ast.Constant) and one.value == name
        for one in ast.walk(body)
    )  # fmt: skip


def _names(args):
    return [one.arg for one in (*args.posonlyargs, *args.args, *args.kwonlyargs)]


def _plain_defaults(args):
    """Yield (name, value) of the parameters with a plain value as their default."""
    positional = [*args.posonlyargs, *args.args]
    pairs = list(zip(positional[len(positional) - len(args.defaults) :], args.defaults))
    pairs += zip(args.kwonlyargs, args.kw_defaults)
    for parameter, default in pairs:
        if isinstance(default, ast.Constant) and is_atom(default.value):
            yield parameter.arg, default.value
