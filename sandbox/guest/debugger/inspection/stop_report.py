"""Describes a stop as data."""

# Answers are JSON data.
# pyright: reportCallIssue=false, reportArgumentType=false
from __future__ import annotations

import linecache
import sys
from itertools import islice

from ...protocol import stop_keys
from ..isolation.pristine import os, threading
from . import safe_repr, tasks
from .failure import Failure, frames_of
from .time_limit import call_limited
from .variable_changes import Memory

AROUND = 2  # lines of source above and below the current one
_HIDING = "__tracebackhide__"
_HIDING_S = 0.05
_MAX_CHAIN = 16
_CHANGES = 1600  # characters of changed variables
_CHANGE, _OLD, _CHANGE_AT_LEAST = 400, 200, 60
_MAX_NOTES = 16
_MAX_MESSAGE, _MAX_READ = 1200, 1 << 20
_LEFT_OUT = "\n…\n"
_TRACEBACK, _OF_HEAD = "Traceback (most recent call last)", 4
"""Words of a message that holds a traceback; of so many parts of it one is for its beginning."""
_MAX_CHAINED = 400
_MAX_STEPS = 2000  # frames that an exception behind the shown one has passed


class Report:
    """Describes stops, one object per session. A further prompt in the same stop reports only what is new."""

    def __init__(self, session):
        self._session = session
        self._fresh = False
        self._shown = None
        self._reason = None
        self._memory = Memory()
        self._loaded = {}  # file of the repository -> stamp when it was first seen; None for other files
        self._modules = 0
        self._stale = set()
        self._paths = {}  # co_filename -> path in the report

    def begin(self, debugger):
        """Start a new stop."""
        self._fresh = True
        self._reason = debugger.stop_reason

    def forget_values(self):
        """Forget the known values, so that the next prompt reports all of them as new."""
        self._memory = Memory()

    def describe_prompt(self, debugger):
        """Return the keys of a prompt.

        All of them if the program has run since the last one or the frame has changed.
        """
        frame = debugger.curframe
        if not hasattr(debugger, "session") and frame is not None:
            # A pdb.Pdb that the program itself has made, on our channel: it does not announce its stops.
            place = (id(debugger), id(frame), frame.f_lasti)
            if self._shown is None or self._shown[:1] != (id(debugger),):
                nested = self._session.debugger().nested  # the debugger of `debug`
                self._fresh, self._reason = True, "step" if nested else "set_trace"
            shown = place
        else:
            shown = (None, id(frame), frame.f_lineno if frame is not None else 0)
        answer = {"stopped": self._fresh}
        if self._fresh or shown != self._shown:
            answer.update(self._place(debugger))
            if self._fresh:
                answer.update(self._news(debugger))
        self._shown, self._fresh = shown, False
        return answer

    def state(self, debugger):
        """Return everything about the current stop."""
        self._look_at(list(self._loaded))
        answer = self._place(debugger)
        answer.update(self._news(debugger, peek=True))
        return answer

    def _place(self, debugger):
        frame = debugger.curframe
        if frame is None:
            return dict.fromkeys(stop_keys.PLACE)
        line = _line(debugger, frame)
        here = self._frame(frame, line)
        inside = self._session.project.contains(frame)
        return {
            "frame": here,
            "stopped_frame": self._stopped_frame(debugger),
            "project_frame": None if inside else self._project_frame(debugger),
            "source": self._source(frame, line),
        }

    def _stopped_frame(self, debugger):
        """Return the frame of the stop if another frame is selected."""
        index = getattr(debugger, "stopped_index", debugger.curindex)
        return None if index == debugger.curindex else self._frame(*debugger.stack[index])

    def _project_frame(self, debugger):
        for frame, line in reversed(debugger.stack[: debugger.curindex + 1]):
            if self._session.project.contains(frame):
                return self._frame(frame, line)
        return None

    def _frame(self, frame, line):
        return self._place_of(frame.f_code, line)

    def _place_of(self, code, line):
        name = code.co_filename
        path = self._paths.get(name)
        if path is None:
            path = self._paths[name] = self._session.relative(_absolute(name))
        return {"path": path, "line": line or 0, "function": safe_repr.shorten_name(code.co_name)}

    def _source(self, frame, line):
        name = frame.f_code.co_filename
        lines = linecache.getlines(name, frame.f_globals)
        if not lines or not line:
            return None
        start = max(1, line - AROUND)
        shown = [text.rstrip("\r\n")[:500] for text in lines[start - 1 : line + AROUND]]
        return {"start": start, "lines": shown, "current": line}

    def _news(self, debugger, peek=False):
        frame = debugger.curframe
        thread = threading.current_thread()
        raised = getattr(debugger, "raised", None)
        returned = getattr(debugger, "returned", None)
        test = self._session.test
        changed = _shorten(self._memory.changes(frame)) if frame is not None and not peek else []
        news = {
            "reason": self._reason,
            "breakpoint": getattr(debugger, "hit", None),
            "thread": {
                "id": thread.ident or 0,
                "name": safe_repr.shorten_name(str(thread.name)),
                "main": thread is threading.main_thread(),
            },
            "task": self._task(),
            "changed": changed,
            "exception": exception(raised, self._raised_at) if raised is not None else None,
            "return_value": safe_repr.show(returned[0]) if returned is not None else None,
            "test": test and safe_repr.shorten_name(test),
            "stale": self._stale_files(frame),
        }
        if self._reason == "post_mortem" and raised is not None and frame is not None and not peek:
            news.update(self._failure(raised, debugger), changed=[])
        return news

    def _raised_at(self, exc):
        """Return the innermost place in the repository that an exception has passed; None if there is none, or too many frames."""
        passed = list(islice(frames_of(exc), _MAX_STEPS + 1))
        inside = [each for each in passed if self._session.project.contains(each[0])]
        return self._frame(*inside[-1]) if inside and len(passed) <= _MAX_STEPS else None

    def _failure(self, raised, debugger):
        frame = debugger.curframe
        line = _line(debugger, frame)
        try:
            return Failure(self._session, raised).describe(frame, line, self._place_of)
        except Exception as exc:  # objects of the program that are hard to look at
            self._session.notices.add(f"This failure could not be described: {type(exc).__name__}")
            return {}

    @staticmethod
    def _task():
        task = tasks.current()
        return None if task is None else tasks.name_of(task)

    def _stale_files(self, frame):
        """Return the files of the repository that have changed on disk since the program loaded them.

        A stop checks only the current file and those already known as stale: there may be hundreds.
        """
        self._see_modules()
        shown = {frame.f_code.co_filename} if frame is not None else set()
        self._look_at(self._stale | shown)
        return sorted(self._session.relative(path) for path in self._stale)

    def _see_modules(self):
        if len(sys.modules) == self._modules:
            return
        for module in list(sys.modules.values()):
            path = getattr(module, "__file__", None) if type(module) is type(os) else None
            if isinstance(path, str) and path not in self._loaded:
                self._loaded[path] = _stamp(path) if self._session.project.has(path) else None
        self._modules = len(sys.modules)

    def _look_at(self, paths):
        for path in paths:
            stamp = self._loaded.get(path)
            if stamp is not None and _stamp(path) != stamp:
                self._stale.add(path)
            else:
                self._stale.discard(path)


def _shorten(changes):
    """Shorten the values of changed variables so that all of them have a share of the answer."""
    room = _CHANGES
    for change in changes:
        is_same = change["old"] == change["value"]
        for key, limit in (("value", _CHANGE), ("old", _OLD), ("detail", _OLD)):
            text = change[key]
            if text is None:
                continue
            limit = max(_CHANGE_AT_LEAST, min(limit, room))
            if len(text) > limit:
                change[key] = text[: limit - 1] + "…"
            room -= len(change[key])
        if is_same:
            change["old"] = change["value"]
    return changes


def _stamp(path):
    try:
        status = os.stat(path)
    except OSError:
        return (0, 0)
    return status.st_mtime_ns, status.st_size


def _absolute(name):
    return name if name[:1] == "<" else os.path.abspath(name)


def _line(debugger, frame):
    stack = debugger.stack
    if stack and stack[debugger.curindex][0] is frame:
        return stack[debugger.curindex][1]
    return frame.f_lineno


def is_hidden(frame, exc):
    """True if pytest hides the frame by `__tracebackhide__`.

    A function there is called with the exception.
    """
    described = getattr(sys.modules.get("_pytest._code"), "ExceptionInfo", None)
    try:
        scopes = [scope for scope in (frame.f_locals, frame.f_globals) if _HIDING in scope]
        marker = scopes[0][_HIDING] if scopes else False
        if not callable(marker):
            return bool(marker)
        if described is None:
            return False
        info = described.from_exc_info((type(exc), exc, exc.__traceback__))
        return bool(call_limited(lambda: marker(info), _HIDING_S))
    except BaseException:  # code of the program
        return False


def exception(exc, raised_at=lambda _: None):
    """Return an exception with its chain. `raised_at(exc)`: the place where one of these was raised, or None."""
    chain = [
        {
            "type": _name(each),
            "message": _message(each, _MAX_CHAINED),
            "relation": relation,
            "raised_at": raised_at(each),
        }
        for relation, each in list(chain_of(exc))[1:]
    ]
    return {"type": _name(exc), "message": _message(exc), "chain": chain}


def chain_of(exc):
    """Yield (relation, exception) for an exception and those behind it."""
    seen, relation = set(), None
    while exc is not None and id(exc) not in seen and len(seen) <= _MAX_CHAIN:
        yield relation, exc
        seen.add(id(exc))
        relation, following = "cause", exc.__cause__
        if following is None and not exc.__suppress_context__:
            relation, following = "context", exc.__context__
        exc = following


def _message(exc, limit=_MAX_MESSAGE):
    """Return the message of an exception and the notes added to it."""
    notes = object.__getattribute__(exc, "__dict__").get("__notes__")  # without code of the program
    added = [note for note in notes[:_MAX_NOTES] if type(note) is str] if type(notes) is list else []
    text = "\n".join([safe_repr.text_of(exc, _MAX_READ)] + added)
    if len(text) <= limit or _TRACEBACK not in text:
        return text[:limit]
    # That of another process, or of the test's own runner: what has failed is at its end.
    room = limit - len(_LEFT_OUT)
    head, tail = text[: room // _OF_HEAD], text[len(text) - room + room // _OF_HEAD :]
    return (head.rpartition("\n")[0] or head) + _LEFT_OUT + (tail.partition("\n")[2] or tail)


def _name(exc):
    kind = type(exc)
    module = kind.__module__
    name = kind.__qualname__
    return safe_repr.shorten_name(name if module in ("builtins", "__main__") else f"{module}.{name}")
