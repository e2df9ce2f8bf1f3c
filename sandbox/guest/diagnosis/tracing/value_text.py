"""Texts of values, made at the moment of an event and without calling code of the repository."""

from __future__ import annotations

import re

from ...debugger.inspection.safe_repr import show
from ...debugger.inspection.time_limit import Overtime, call_limited
from .. import failure

MAX_VALUE = 100
_DEPTH = 2
_EXPRESSION_S = 0.5
_MAX_FRAMES = 40
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]{4,16}")
_NAME = type.__dict__["__name__"].__get__


def text_of(value, limit=MAX_VALUE):
    """Short text of a value in one line."""
    try:
        return _ADDRESS.sub("", show(value, limit, _DEPTH))
    except Exception:  # even its class can't be asked for its name
        return f"<{_NAME(type(value))[:limit]}>"


def exception_text(exc):
    """Type and message of an exception: `KeyError: 'x'`."""
    args = failure.args_of(exc)
    if len(args) == 1 and type(args[0]) is str and not isinstance(exc, KeyError):
        message = " ".join(args[0][:400].strip().split("\n")[0].split())
    else:
        message = ", ".join([text_of(arg, 60) for arg in args[:3]])
    name = _NAME(type(exc))
    return (f"{name}: {message}" if message else name)[: 2 * MAX_VALUE]


class Expressions:
    """The expressions that are evaluated at each event."""

    def __init__(self, texts):
        self._compiled = [_compile(text) for text in texts]

    def evaluate(self, frame, **more):
        """Text of each expression in a frame, where the names in `more` are known too; its error if it fails."""
        if not self._compiled:
            return []
        scope = dict(more)
        scope.update(frame.f_locals)
        return [self._one(code, frame.f_globals, scope) for code in self._compiled]

    @staticmethod
    def _one(code, names, scope):
        if type(code) is str:
            return code
        if any(type(part) is type(code) for part in code.co_consts):  # its inner functions see globals only
            names, scope = {**names, **scope}, None
        try:
            return call_limited(lambda: text_of(eval(code, names, scope)), _EXPRESSION_S)
        except Overtime:
            return "!! took too long"
        except Exception as exc:
            return "!! " + exception_text(exc)
        except (SystemExit, GeneratorExit) as exc:
            return "!! " + type(exc).__name__


def _compile(text):
    try:
        return compile(text.strip(), "<expression>", "eval", 0, True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as exc:
        return "!! " + exception_text(exc)


class Places:
    """Lines of the repository that frames stand at."""

    def __init__(self, job):
        self._job = job

    def caller(self, frame):
        """[path, line] of the nearest frame of the repository above `frame`; None if there is none."""
        above = frame.f_back
        for _ in range(_MAX_FRAMES):
            if above is None:
                return None
            if self._job.project.contains(above):
                return self.of(above)
            above = above.f_back
        return None

    def of(self, frame):
        return [self._job.relative(frame.f_code.co_filename), frame.f_lineno or 0]
