"""The failure of a test as data, taken without calling code of the program."""

from __future__ import annotations

import re
from itertools import takewhile

from .events import is_atom

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{4,}")
_PATH = re.compile(r"[^\s'\"(]*/[^\s'\"]*")
_DIGITS = re.compile(r"\d+")
_MAX_MESSAGE = 300
# Not `exc.args`: a class may define it.
_ARGS = vars(BaseException)["args"].__get__
traceback_of = vars(BaseException)["__traceback__"].__get__
cause_of = vars(BaseException)["__cause__"].__get__


def describe(exc, job):
    """Describe an exception as {type, message, path, line}; the place is the innermost in the repository."""
    frame = innermost(exc, job)
    return {
        "type": type(exc).__name__[:200],
        "message": message_of(exc),
        "path": job.relative(frame[0].f_code.co_filename) if frame else "",
        "line": frame[1] if frame else 0,
    }


def args_of(exc):
    """Arguments of an exception."""
    args = _ARGS(exc)
    return args if type(args) is tuple else ()


def message_of(exc):
    """Message of an exception, if it has one that needs no code of the program.

    Addresses and the numbers in paths are masked: they differ between two runs.
    """
    texts = [str(arg) for arg in args_of(exc) if is_atom(arg)]
    text = _ADDRESS.sub("0x…", " ".join(texts)[: 4 * _MAX_MESSAGE])
    return _PATH.sub(lambda path: _DIGITS.sub("…", path.group()), text)[:_MAX_MESSAGE]


def origin_of(exc, job):
    """(the first exception in the chain of explicit causes, `raise … from …`, (frame, line) of each frame from the test to it).

    The frames are those in the repository. A cause that was raised elsewhere, in another thread for instance, ends the chain.
    """
    found, seen = frames_of(exc, job), set()
    while id(exc) not in seen:
        seen.add(id(exc))
        cause = cause_of(exc)
        inner = frames_of(cause, job) if cause is not None else []
        outer = [frame for frame, _ in found]
        if not inner or inner[0][0] not in outer:
            break
        exc, found = cause, [*found[: outer.index(inner[0][0])], *inner]
    return exc, found


def innermost(exc, job):
    """(frame, line) of the innermost frame in the repository that an exception has passed; else None."""
    found = frames_of(exc, job)
    return found[-1] if found else None


def way_in_tests(exc, job):
    """[path, first line of the function, line] of the frames in tests that an exception has passed, up to the first one elsewhere.

    The outermost comes first.
    """
    tested = takewhile(lambda one: job.is_test_code(one[0].f_code.co_filename), frames_of(exc, job))
    return [
        [job.relative(frame.f_code.co_filename), frame.f_code.co_firstlineno, line] for frame, line in tested
    ]


def frames_of(exc, job):
    """(frame, line) of each frame in the repository that an exception has passed, outermost first."""
    found, step = [], traceback_of(exc)
    while step is not None:
        if job.project.contains(step.tb_frame):
            found.append((step.tb_frame, step.tb_lineno))
        step = step.tb_next
    return found
