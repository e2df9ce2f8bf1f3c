"""Limits for code that is run unasked."""

from __future__ import annotations

import sys

from .own import time


class Overtime(BaseException):
    """It took too long. Not an Exception, so that `except Exception` in that code does not swallow it."""


class Refused(BaseException):
    """It called what is not to be run unasked."""


def limited(call, seconds, refuses=None):
    """`call()`, ended by Overtime when it takes longer than `seconds` in Python code.

    With `refuses` it is ended by Refused when `refuses(code)` says so of a function that it calls. Raises those two, and what `call`
    raises. One C function that takes long is not ended.
    """
    deadline = time.perf_counter() + seconds

    def trace(frame, event, arg):
        if time.perf_counter() > deadline:
            raise Overtime()
        if event == "call" and refuses is not None and refuses(frame.f_code):
            raise Refused()
        return trace

    before = sys.gettrace()
    if before is not None:
        # Else that one would be called for `_run`: a pdb in pdb (`debug`) would stop there.
        sys.settrace(None)
    try:
        # call_tracing: trace functions work inside a trace function only by this.
        return sys.call_tracing(_run, (call, trace))
    finally:
        if before is not None:
            sys.settrace(before)


def _run(call, trace):
    sys.settrace(trace)
    try:
        return call()
    finally:
        sys.settrace(None)
