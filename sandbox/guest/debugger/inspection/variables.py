"""Shows one level of a value at a time, in pages."""

from __future__ import annotations

import itertools

from . import arrays, await_eval, safe_repr
from .attributes import attributes

_MAX_COUNT = 200
_MAX_DEPTH = 3
_REPR = 2000


def inspect(debugger, message):
    """Describe the value of an expression and one page of its children.

    Returns {type, repr, length, start, total, children: [{name, type, repr, length, children?}]}.

    `frame` counts outwards from the current one. Raises the errors of the expression, IndexError for a
    missing frame.
    """
    frame = _frame(debugger, int(message.get("frame") or 0))
    expression = message["expression"].strip()
    value = _value(debugger, expression, frame)
    start = max(0, int(message.get("start") or 0))
    count = min(_MAX_COUNT, max(1, int(message.get("count") or 50)))
    depth = min(_MAX_DEPTH, max(1, int(message.get("depth") or 1)))
    answer = _node(value, _REPR)
    answer["expression"] = expression
    answer["start"] = start
    answer["total"], answer["children"] = _children(value, start, count, depth)
    return answer


def _value(debugger, expression, frame):
    code = await_eval.expression(expression)
    if code is not None:
        return await_eval.evaluate(debugger.session, code, frame.f_globals, frame.f_locals)
    code, names = compile(expression, "<inspect>", "eval"), frame.f_locals
    return eval(code, await_eval.nested_scope(code, frame.f_globals, names), names)


def _frame(debugger, outwards):
    index = debugger.curindex - outwards
    if not 0 <= index < len(debugger.stack):
        raise IndexError(f"there are {debugger.curindex + 1} frames, frame {outwards} is none of them")
    return debugger.stack[index][0]


def _node(value, limit=200):
    kind = type(value)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return {
        "type": safe_repr.shorten_name(name),
        "repr": safe_repr.show(value, limit),
        "length": _length(value),
    }


def _length(value):
    for kind in (dict, list, tuple, set, frozenset, str, bytes, bytearray):
        if issubclass(type(value), kind):
            return kind.__len__(value)  # `__len__` of the subclass may differ, or never return
    return arrays.length(value, type(value))


def _children(value, start, count, depth):
    total, pairs = _pairs(value, start, count)
    found = []
    for name, child in pairs:
        node = _node(child)
        node["name"] = safe_repr.shorten_name(name)
        if depth > 1:
            more, children = _children(child, 0, 20, depth - 1)
            if children:
                node["total"], node["children"] = more, children
        found.append(node)
    return total, found


def _pairs(value, start, count):
    """Return (total, [(name, value)] of the wanted page)."""
    stop = start + count
    if issubclass(type(value), dict):
        page = itertools.islice(dict.items(value), start, stop)
        return dict.__len__(value), [(f"[{safe_repr.show(key, 100)}]", item) for key, item in page]
    for kind in (list, tuple):
        if issubclass(type(value), kind):
            page = kind.__getitem__(value, slice(start, stop))
            names = getattr(type(value), "_fields", None)
            if isinstance(names, tuple) and kind is tuple:
                return len(names), list(zip(names[start:stop], page))
            return kind.__len__(value), [(f"[{start + i}]", item) for i, item in enumerate(page)]
    for kind in (set, frozenset):
        if issubclass(type(value), kind):
            page = itertools.islice(kind.__iter__(value), start, stop)
            return kind.__len__(value), [(f"{{{start + i}}}", item) for i, item in enumerate(page)]
    if arrays.library(type(value)) is not None:
        try:
            found = arrays.pairs(value, type(value), start, stop, lambda name: safe_repr.show(name, 100))
        except Exception:  # sparse and other tensors have no rows
            found = None
        if found is not None:
            return found
    found = attributes(value) if not issubclass(type(value), type) else sorted(vars(value).items())
    return len(found), found[start:stop]
