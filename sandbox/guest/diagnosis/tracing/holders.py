"""Owners of an object: attributes, items, globals and defaults of functions that hold it."""

from __future__ import annotations

import types

from ...debugger.inspection.attributes import attributes
from ..events import is_atom, is_container
from .value_text import text_of
from .watched_places import MAX_ITEMS, MRO, NAMESPACE, OPAQUE

_MAX_ATTRIBUTES = 50
_MAX_STEPS = 1
_MAX_LOOKED_AT = 300
_MAX_FRAMES = 3
_NAME = type.__dict__["__name__"].__get__


def find_holders(target, frame, job):
    """Return {(id of owner, name): text} of all that holds `target` among what the innermost functions reach in two steps."""
    if is_atom(target) or type(target) is tuple or issubclass(type(target), OPAQUE):
        return {}
    found, waiting, seen = {}, [], set()
    for _ in range(_MAX_FRAMES):
        if frame is None or not job.project.contains(frame):
            break
        waiting += [(value, 0) for value in list(frame.f_locals.values())[:_MAX_ATTRIBUTES]]
        function = _function_of(frame)
        if function is not None and _is_default(function, target):
            found[(id(function), "")] = f"a default of {function.__name__}()"
        for name, held in list(frame.f_globals.items()):
            if held is target:
                path = job.relative(frame.f_code.co_filename)
                found[(id(frame.f_globals), name)] = f"{name} of {path}"
        frame = frame.f_back
    for value, depth in waiting:
        if id(value) in seen or is_atom(value) or len(seen) > _MAX_LOOKED_AT:
            continue
        if issubclass(type(value), OPAQUE):
            continue
        seen.add(id(value))
        for name, text, held in _parts_of(value):
            if held is target:
                found[(id(value), name)] = text
            elif depth < _MAX_STEPS:
                waiting.append((held, depth + 1))
    return found


def _function_of(frame):
    """The function that a frame runs, if it is a global, or a method of its first argument."""
    code, found = frame.f_code, frame.f_globals.get(frame.f_code.co_name)
    if code.co_argcount:
        first = frame.f_locals.get(code.co_varnames[0])
        kind = first if type(first) is type else type(first)
        held = [NAMESPACE(above).get(code.co_name) for above in MRO(kind)]
        found = next((one for one in held if type(one) is types.FunctionType and one.__code__ is code), found)
    return found if type(found) is types.FunctionType and found.__code__ is code else None


def _is_default(function, target):
    defaults = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    return any(default is target for default in defaults)


def _parts_of(value):
    """(name, text, part) of the attributes or items of an object."""
    kind = type(value)
    if is_container(value) and issubclass(kind, dict):
        for key, held in list(dict.items(value))[:MAX_ITEMS]:
            yield id(key), f"an item of a dict, {text_of(key, 30)}", held
    elif is_container(value) or kind is tuple:
        for index, held in enumerate(list(value)[:MAX_ITEMS]):
            yield index, f"an item of a {kind.__name__}, [{index}]", held
    elif not issubclass(kind, OPAQUE):
        name_of_kind = _NAME(kind)
        for name, held in attributes(value)[:_MAX_ATTRIBUTES]:
            yield name, f"{name_of_kind}.{name}", held
