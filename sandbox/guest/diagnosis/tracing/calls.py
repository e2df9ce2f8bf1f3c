"""The calls of traced functions, the expressions at traced lines, and calls line by line."""

from __future__ import annotations

import re

from ...debugger.inspection.attributes import attributes, is_code
from .identities import Identities
from .listener import Listener
from .value_text import Expressions, Places, exception_text, text_of

_MAX_ARGUMENTS = 8
_MAX_YIELDS = 3
_MAX_SELF = 60
_MAX_VARIABLES = 12
_MAX_STEPS = 3000
_MAX_ATTRIBUTES = 50
_MAX_HOLDERS = 3
_VARIABLE_ARGUMENTS, _KEYWORD_ARGUMENTS, _GENERATOR, _COROUTINE = 0x4, 0x8, 0x20, 0x180
_WORD = re.compile(r"[^\W\d]\w*")


class _Call:
    __slots__ = ("arguments", "frame_id", "function", "line", "number", "story", "variables", "yields")

    def __init__(self, number, function, frame):
        self.number = number
        """0 if it is only counted."""
        self.function, self.frame_id = function, id(frame)
        self.arguments = ()
        """(name, object, text) of those that may change."""
        self.yields = 0
        self.story = False
        self.variables, self.line = {}, 0


class Calls(Listener):
    """Writes down the events of an engine, as long as there is time for it."""

    def __init__(self, job, targets, files, sources, process):
        super().__init__(process)
        self._process, self._targets, self._files, self._sources = process, targets, files, sources
        self._expressions = Expressions(job.settings.get("expressions") or ())
        self._places, self._identities = Places(job), Identities()
        self._suspended = {}
        self.hits = {}
        """[path, line] -> number of times that it ran."""
        self.cut = ""
        self._steps = 0

    def test(self, name, outcome=None):
        """Write down the beginning or the end of a test."""
        number = self._files.new_number()
        self._files.end(number, {"e": "test", "n": number, "name": name[:500], "outcome": outcome})

    # Calls

    def _begin(self, thread, frame, _):
        function = self._targets.function_of(frame.f_code)
        if function is None:
            return
        function.calls += 1
        story = function.calls in function.stories
        is_told = (function.is_called or story) and not self._process.cut
        call = _Call(self._files.new_number() if is_told else 0, function, frame)
        call.story = story and is_told
        parent = thread.innermost
        thread.calls.append(call)
        self._suspended.pop(id(frame), None)  # of a frame that is gone
        if not is_told:
            return
        event = {
            "e": "call",
            "n": call.number,
            "p": parent,
            "f": function.number,
            "i": function.calls,
            "t": thread.number,
            "at": self._places.caller(frame),
            "args": self._arguments(call, frame),
        }
        if frame.f_code.co_flags & (_GENERATOR | _COROUTINE | 0x200):
            event["k"] = "coroutine" if frame.f_code.co_flags & _COROUTINE else "generator"
        self._files.begin(call.number, event)

    def _arguments(self, call, frame):
        code, values = frame.f_code, frame.f_locals
        shown, kept = [], []
        for name, written in list(_parameters(code))[:_MAX_ARGUMENTS]:
            if name not in values:
                continue
            value = values[name]
            limit = _MAX_SELF if name in ("self", "cls") and not shown else 100
            text, number = text_of(value, limit), self._identities.number(value)
            shown.append([written, text, number])
            if number:
                kept.append((name, value, text, limit))
        call.arguments = kept
        return shown

    def _go_on(self, thread, frame, _):
        call = self._suspended.pop(id(frame), None)
        if call is not None:
            thread.calls.append(call)

    def _pause(self, thread, frame, value):
        call = self._pop(thread, frame)
        if call is None:
            return
        self._suspended[id(frame)] = call
        call.yields += 1
        is_generator = frame.f_code.co_flags & _GENERATOR
        if call.number and is_generator and call.yields <= _MAX_YIELDS:
            text = [text_of(value), self._identities.number(value)]
            self._files.end(call.number, {"e": "yield", "n": call.number, "v": text})

    def _return(self, thread, frame, value):
        call = self._pop(thread, frame)
        if call is None or not call.number:
            return
        event = {"e": "end", "n": call.number, "v": [text_of(value), self._identities.number(value)]}
        held = self._holder(call, value)
        if held:
            event["is"] = held
        self._end(call, frame, event, {"result": value})

    def _raise(self, thread, frame, exc):
        call = self._pop(thread, frame)
        if call is None or not call.number:
            return
        event = {"e": "end", "n": call.number, "x": exception_text(exc)}
        if type(exc) is GeneratorExit:
            event["x"] = "closed"
        self._end(call, frame, event, {})

    def _end(self, call, frame, event, more):
        if call.story:
            self._step(call, frame, 0)
        if call.yields:
            event["y"] = call.yields
        changed = []
        for name, value, before, limit in call.arguments:
            text = text_of(value, limit)
            if text != before:
                changed.append([name, text])
        if changed:
            event["ch"] = changed
        values = self._expressions.evaluate(frame, **more)
        if values:
            event["ex"] = values
        self._files.end(call.number, event)

    def _holder(self, call, value):
        """The attributes of arguments that hold the same object as the result: `self.lines, self.saved`."""
        if not self._identities.number(value):
            return ""
        found = [
            f"{name}.{attribute}"[:80]
            for name, owner, _, _ in call.arguments
            for attribute, held in attributes(owner)[:_MAX_ATTRIBUTES]
            if held is value
        ]
        return ", ".join(found[:_MAX_HOLDERS])

    @staticmethod
    def _pop(thread, frame):
        stack = thread.calls
        for position in range(len(stack) - 1, -1, -1):
            if stack[position].frame_id == id(frame):
                call = stack[position]
                del stack[position:]
                return call
        return None

    # Lines

    def _line(self, thread, frame, line):
        call = thread.calls[-1] if thread.calls else None
        if call is None or call.frame_id != id(frame):
            return
        if line in call.function.lines:
            self._hit(thread, frame, call, line)
        if call.story:
            self._step(call, frame, line)

    def _hit(self, thread, frame, call, line):
        place = self._places.of(frame)
        key = (place[0], line)
        self.hits[key] = self.hits.get(key, 0) + 1
        if self._process.cut:
            return
        number = self._files.new_number()
        event = {
            "e": "hit",
            "n": number,
            "p": thread.innermost,
            "t": thread.number,
            "at": place,
            "i": self.hits[key],
        }
        values = self._expressions.evaluate(frame)
        if values:
            event["ex"] = values
        else:
            event["ch"] = self._variables_at(frame, line)
        self._files.begin(number, event)

    def _variables_at(self, frame, line):
        """Variables that a line names."""
        text, values = self._sources.line(frame.f_code.co_filename, line), frame.f_locals
        named = [(name, values[name]) for name in dict.fromkeys(_WORD.findall(text)) if name in values]
        shown = [(name, value) for name, value in named if not is_code(value)]
        return [[name, text_of(value)] for name, value in shown[:_MAX_VARIABLES]]

    def _step(self, call, frame, line):
        """Write down the line that has run before `line`, with the variables that it has changed."""
        now = {}
        values = frame.f_locals
        for name in list(values)[:_MAX_VARIABLES]:
            if type(name) is str and name[:1] not in "@.":
                now[name] = text_of(values[name])
        before, last = call.variables, call.line
        call.variables, call.line = now, line
        if not last:
            return
        changed = [[name, text] for name, text in now.items() if before.get(name) != text]
        changed += [[name, ""] for name in before if name not in now]
        self._steps += 1
        if self._steps <= _MAX_STEPS:
            text = self._sources.line(frame.f_code.co_filename, last)[:80]
            step = {"e": "step", "n": call.number, "q": self._steps, "l": last, "s": text, "ch": changed}
            self._files.end(call.number, step)
        elif not self.cut:
            self.cut = "only the first %d lines were kept" % _MAX_STEPS


def _parameters(code):
    """(name, name as it is written) of each parameter."""
    count = code.co_argcount + code.co_kwonlyargcount
    for name in code.co_varnames[:count]:
        yield name, name
    for flag, stars in ((_VARIABLE_ARGUMENTS, "*"), (_KEYWORD_ARGUMENTS, "**")):
        if code.co_flags & flag:
            yield code.co_varnames[count], stars + code.co_varnames[count]
            count += 1
