"""Text of values within limits of time and size. Never runs code of the repository unasked."""

# Any class can occur.
# pyright: reportOptionalMemberAccess=false
from __future__ import annotations

import collections
import itertools

from ...paths import OURS
from ..isolation.pristine import os, threading
from . import arrays
from .attributes import attributes, container_base
from .time_limit import Refused, call_limited

_LENGTH = 400  # characters of a value in a stop
_NAME = 1000  # ... and of the name of anything
_ITEMS = 12
_DEPTH = 3
_COPIED = 1000  # items of a container that is copied to be shown
_REPR_S = 0.05
_REPR_CALLS = 64
"""Limit of calls of library functions in one `__repr__`. More calls do more than describe: Django's QuerySet
queries the database."""
_VIEWS = tuple(map(type, ({}.keys(), {}.values(), {}.items())))


def text_of(exc, limit=2000):
    """Return str() of an exception, at most so many characters. Never raises, even if the class does."""
    try:
        return call_limited(lambda: str(exc), _REPR_S)[:limit]
    except BaseException as failed:  # code of the user
        return f"<str() failed: {type(failed).__name__}>"


def shorten_name(name):
    """Cut a long name of a function, a test or a thread: the program chooses its length."""
    return name if len(name) <= _NAME else name[: _NAME - 1] + "…"


def show(value, limit=_LENGTH, depth=_DEPTH):
    """Return a value in one line of at most `limit` characters."""
    try:
        text = _show(value, depth, limit)
    except BaseException as failed:  # code of the user, or an object made to be hard to look at
        text = f"<{type(value).__name__} object, repr failed: {type(failed).__name__}>"
    text = text.replace("\r", "\\r").replace("\n", "\\n")
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _show(value, depth, limit):
    kind = type(value)
    if kind in (str, bytes, bytearray):
        return _string(value, limit)
    if kind is int:
        return _integer(value)
    if value is None or value is True or value is False or kind in (float, complex) or value is Ellipsis:
        return repr(value)
    if kind in _BRACKETS:
        return _sequence(value, kind, depth, limit)
    if kind is dict:
        return _mapping(value, depth, limit)
    if issubclass(kind, type):
        module, name = (
            type.__getattribute__(value, "__module__"),
            type.__dict__["__qualname__"].__get__(value),
        )
        return f"<class {module}.{name}>"
    return _instance(value, kind, depth, limit)


def _string(value, limit):
    if len(value) <= limit:
        return repr(value)
    return f"{value[: limit - 24]!r}… ({len(value)} long)"


def _integer(value):
    bits = value.bit_length()
    return repr(value) if bits < 2000 else f"<int of {bits} bits>"


_BRACKETS = {list: "[]", tuple: "()", set: "{}", frozenset: "{}"}


def _sequence(value, kind, depth, limit):
    """Show a `kind` or a subclass of it, without calling methods of the subclass."""
    size = kind.__len__(value)
    opening, closing = _BRACKETS.get(kind, "[]")
    if depth <= 0 and size:
        return f"{opening}…{closing}"
    parts, room = [], limit
    for item in kind.__iter__(value):
        if len(parts) >= _ITEMS or room <= 0:
            parts.append(f"… {size} items")
            break
        parts.append(_show(item, depth - 1, min(room, 200)))
        room -= len(parts[-1]) + 2
    if kind is tuple and size == 1:
        return f"({parts[0]},)"
    if not size and kind in (set, frozenset):
        return f"{kind.__name__}()"
    text = opening + ", ".join(parts) + closing
    return f"frozenset({text})" if kind is frozenset else text


def _mapping(value, depth, limit):
    size = dict.__len__(value)
    if depth <= 0 and size:
        return "{…}"
    parts, room = [], limit
    for key in list(itertools.islice(dict.__iter__(value), _ITEMS)):
        if room <= 0:
            break
        parts.append(f"{_show(key, depth - 1, 80)}: {_show(dict.get(value, key), depth - 1, min(room, 200))}")
        room -= len(parts[-1]) + 2
    if len(parts) < size:
        parts.append(f"… {size} items")
    return "{" + ", ".join(parts) + "}"


def _instance(value, kind, depth, limit):
    summary = _array(value, kind)
    if summary is not None:
        return summary
    written = getattr(kind, "__repr__", None)
    if written is object.__repr__ or _is_theirs(written):
        return _structure(value, kind, depth, limit)
    for base, write in _WRITTEN_IN_C:
        if written is base.__repr__:
            return write(value, kind, depth, limit)
    try:
        return call_limited(lambda: repr(value), _REPR_S, _Refusal())
    except Refused:
        return _contents(value, kind, depth, limit)


class _Refusal:
    """Decides for one `__repr__` which functions it may not call."""

    def __init__(self):
        self._left = _REPR_CALLS

    def __call__(self, code):
        if _is_of_repository(code.co_filename):
            return True
        self._left -= _PACKAGES in code.co_filename
        return self._left < 0


def _deque(value, kind, depth, limit):
    ends = "" if value.maxlen is None else f", maxlen={value.maxlen}"
    return f"{kind.__name__}({_sequence(value, collections.deque, depth, limit)}{ends})"


def _defaultdict(value, kind, depth, limit):
    made_by = value.default_factory
    factory = repr(made_by) if type(made_by) is type else _show(made_by, depth - 1, 80)
    return f"{kind.__name__}({factory}, {_mapping(value, depth, limit)})"


def _exception(value, kind, depth, limit):
    items = _sequence(BaseException.__dict__["args"].__get__(value), tuple, depth, limit)
    return kind.__name__ + (items[:-2] + ")" if items.endswith(",)") else items)


# These would go through all items of any number, and nothing can end them.
_WRITTEN_IN_C = (
    (dict, lambda value, kind, depth, limit: _mapping(value, depth, limit)),
    (list, lambda value, kind, depth, limit: _sequence(value, list, depth, limit)),
    (tuple, lambda value, kind, depth, limit: _sequence(value, tuple, depth, limit)),
    (collections.deque, _deque),
    (collections.defaultdict, _defaultdict),
    (
        collections.OrderedDict,
        lambda value, kind, depth, limit: f"{kind.__name__}({_mapping(value, depth, limit)})",
    ),
    (BaseException, _exception),
)


def _is_theirs(method):
    """True for a `__repr__` of the repository.

    It may print, change things or never end, so it runs only on request.
    """
    code = getattr(method, "__code__", None)
    if code is None or hasattr(method, "__wrapped__"):  # in C; or as `dataclass` makes it
        return False
    return _is_of_repository(code.co_filename)


def _is_of_repository(filename):
    # Cython's functions look as if they were written in Python.
    return (
        _PACKAGES not in filename
        and not filename.startswith((_LIBRARY, OURS, "<"))
        and filename[-4:] != ".pyx"
    )


_around = {}
"""Thread -> the objects around the one that is being shown: a parent in its child is not shown again."""
_PACKAGES = "-packages"
_LIBRARY = os.path.dirname(os.__file__)


def _structure(value, kind, depth, limit):
    name = kind.__qualname__
    around = _around.setdefault(threading.get_ident(), [])
    if depth <= 0 or any(each is value for each in around):
        return f"<{name}>"
    parts, room = [], limit
    found = attributes(value)
    shown = [each for each in found if each[0][:1] != "_"] or found
    around.append(value)
    try:
        for key, item in shown[:_ITEMS]:
            if room <= 0:
                break
            parts.append(f"{key}={_show(item, depth - 1, min(room, 120))}")
            room -= len(parts[-1])
    finally:
        around.pop()
        if not around:
            _around.pop(threading.get_ident(), None)
    if len(parts) < len(found):
        parts.append("…")
    return f"<{name}{' ' if parts else ''}{', '.join(parts)}>"


def _contents(value, kind, depth, limit):
    """Show a container with its items, another instance with its attributes."""
    plain = _plain(value, kind)
    if plain is None:
        return _structure(value, kind, depth, limit)
    return f"{kind.__qualname__}({_show(plain, depth, limit)})"


def _plain(value, kind):
    """Copy a container into a builtin one, which is shown without its `__repr__`.

    None for other or large values.
    """
    if kind in _VIEWS:
        return list(value) if len(value) <= _COPIED else None
    base = container_base(kind)
    if base is None or base.__len__(value) > _COPIED:
        return None
    if base is dict:
        return dict.copy(value)
    return (list if base is collections.deque else base)(base.__iter__(value))


def _array(value, kind):
    """Show an array, table or tensor by shape, type and head; None for other values."""
    if arrays.library(kind) is None:
        return None  # without the cost of a limit
    return call_limited(lambda: arrays.summary(value, kind, lambda item: _show(item, 1, 60)), 0.2)
