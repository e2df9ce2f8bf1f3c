"""Stops at exceptions that a test runner or the interpreter has caught."""

from __future__ import annotations

from ..inspection import safe_repr
from ..isolation.own_frames import is_ours
from . import backports

_NAMED = 5  # members of an exception group


class PostMortem:
    """Stops where an exception was raised, if `enabled`."""

    def __init__(self, stops, debuggers, notices, my_code, enabled):
        self.enabled = enabled
        self._stops = stops
        self._debuggers = debuggers
        self._notices = notices
        self._my_code = my_code

    def stop(self, exc, reason="post_mortem"):
        """Stop at the innermost repository frame of an exception. Returns when the program shall continue."""
        chosen = self._my_code.choose_exception(exc)
        traceback = chosen.__traceback__
        while traceback is not None and is_ours(traceback.tb_frame):
            traceback = traceback.tb_next
        if not self.enabled or traceback is None or _was_shown(chosen):
            return
        inside = backports.members(exc)
        if inside:
            self._notices.hold(_describe_group(inside))
        debugger = self._debuggers.current()
        debugger.raised, debugger.whole_exception = chosen, exc
        try:
            self._stops.outside(debugger, None, reason, lambda: debugger.interaction(None, chosen))
        finally:
            debugger.whole_exception = None

    def pass_over(self, exc):
        """Take an exception as shown: it has been told otherwise."""
        _was_shown(self._my_code.choose_exception(exc))

    def has_shown(self, exc):
        """True if a stop has shown this exception."""
        return exc is not None and _is_marked(self._my_code.choose_exception(exc))


def _describe_group(inside):
    texts = [f"{type(each).__name__}: {safe_repr.text_of(each)}" for each in inside[:_NAMED]]
    if len(inside) > _NAMED:
        texts.append("…")
    return (
        f"An exception group of {len(inside)} ({'; '.join(texts)}):"
        " `exceptions` lists them, `exceptions N` goes to one."
    )


def _was_shown(exc):
    """Mark an exception as shown. Returns True if it was shown before.

    It passes several hooks. Its id would not do: by then it may belong to another exception.
    """
    known = _is_marked(exc)
    try:
        exc.__dict__["_pdbox_seen"] = True
    except (AttributeError, TypeError):
        return False
    return known


def _is_marked(exc):
    try:
        return exc.__dict__.get("_pdbox_seen", False)
    except (AttributeError, TypeError):
        return False
