"""Describes a failure: the call path to it, the failing test, and the variables of the frame shown."""

# Answers are JSON data.
# pyright: reportCallIssue=false, reportArgumentType=false
from __future__ import annotations

import dis
import linecache
import re
import sys
import types
from itertools import islice

from ..isolation.own_frames import is_ours
from . import called_functions, preparation, safe_repr
from .attributes import attributes, is_code, locals_of
from .called_functions import NAME, resolve
from .time_limit import Allowance

_TRACEBACK = vars(BaseException)["__traceback__"].__get__  # without code of the program
_MAX_FRAMES = 20000  # of a traceback
_MAX_ROWS = 12  # of the call path
_LAST_ROWS = 8
_PERIODS = 8  # frames of a part that repeats
_MAX_LINE = 160
_LONGEST = 2000
"""Lines below the failing one among which the end of its function is looked for."""
_MAX_TEXT = 120
TEST_LINES = 25
_TEST_HEAD, _TEST_BELOW, _MAX_BELOW = 5, 2, 16
"""Lines of the beginning of a long test; below its failing statement; below its failing line at most."""
_FEW_MORE = 3
"""Lines that are shown rather than counted at the end of a test."""
_SHORT_DOCSTRING = 3
"""Lines of a docstring of a test that is shown."""
_DOCSTRING = re.compile(r"\s*[rRuU]?(\"\"\"|''')")
_ABOVE, _FUNCTION, _BELOW = 6, 12, 3
_WHOLE = 20
"""Lines of a function that is shown whole: the rest of it would be asked for next."""
_VARIABLES, _OTHERS = 1200, 400  # characters, in all and of those that the failing line doesn't name
_NAMED_VALUE, _NAMED_OBJECT, _VALUE = 300, 160, 100
_PLAIN = frozenset(map(id, (str, bytes, int, float, complex, list, tuple, dict, set, frozenset)))
_UNCHANGING = frozenset(map(id, (str, bytes, int, float, complex, bool, tuple, frozenset, type, type(None))))
"""Types of which it tells nothing that two names have the same object."""
_VARIABLE_NAME = 80
_VALUE_DEPTH = 6
_VALUES_S = 0.3


class Failure:
    """The frames from the test or script to the place where an exception was raised."""

    def __init__(self, session, exc):
        self._session = session
        self.frames = self._relevant(list(frames_of(exc)))

    def _relevant(self, frames):
        """Drop the frames before the first one of the repository, and those of assertion methods at the end."""
        inside = [self._session.project.contains(frame) for frame, _ in frames]
        if True not in inside:
            return []
        end = len(frames)
        while not inside[end - 1] and _is_of_assertion(frames[end - 1][0]):
            end -= 1
        return frames[inside.index(True) : end]

    def describe(self, shown, line, where):
        """Return the keys of a stop in the frame `shown` at `line`. `where(code, line)` names a place."""
        test = self._test_frame()
        found = {"call_path": self._call_path(where), "test_source": []}
        if test is not None and test[0] is shown:
            found["test_source"], found["source"] = _source_to(shown, line)
        else:
            found["source"] = _source_around(shown, line)
            if test is not None:
                head, tail = _source_to(*test)
                found["test_source"] = head + [tail] if tail else []
        found["locals"], found["locals_omitted"] = _variables(shown, line)
        found["called"] = self._called(shown, line, test, where) + self._preparation(test, where)
        return found

    def _called(self, frame, line, test, where):
        """Return the functions of the repository that have returned: those of the failing line, of lines of the test that
        lead to it, and then, of its other lines, those in the same file.

        The short ones have their source.
        """
        behind = [each for each, _ in self.frames]
        if frame not in behind or any(map(self._session.project.contains, behind[behind.index(frame) + 1 :])):
            return []  # the path goes on into one of them
        text, above, code = _statement(frame, line), [], frame.f_code
        if test is not None and test[0] is frame:
            lines = _lines(frame)
            above = called_functions.statements(lines[_start_of(frame, lines, line) : line - 1])
        leading = [text] + called_functions.leading_to(code, above, text)
        found = list(called_functions.named_in(frame, leading))
        others = called_functions.named_in(frame, above[::-1])
        found += [each for each in others if each not in found and each.co_filename == code.co_filename]
        codes = (each for each in found if each is not code)
        return list(islice(self._described(codes, called_functions.SOURCE, where), called_functions.MAX))

    def _preparation(self, test, where):
        """Return what prepared the test, `setUp` and fixtures, as far as it is short, with its source."""
        codes = preparation.named_in(test[0]) if test is not None else ()
        found = self._described(codes, preparation.SOURCE, where)
        return list(islice((row for row in found if row["lines"]), preparation.MAX))

    def _described(self, codes, room, where):
        """Yield the functions of the repository, with their source as far as there is room for it."""
        for code in codes:
            if self._session.project.has(code.co_filename):
                lines, first = called_functions.source_of(code)
                size = sum(map(len, lines)) + 8 * len(lines)
                lines, room = (lines, room - size) if size <= room else ([], room)
                yield dict(where(code, first), lines=lines)

    def _test_frame(self):
        """Return (frame, line) of the running test, or None."""
        if not self._session.test or not self.frames:
            return None
        name = re.split(r"[^\w]", re.sub(r"[\[(].*", "", self._session.test, flags=re.DOTALL).strip())[-1]
        named = [each for each in self.frames if each[0].f_code.co_name == name]
        found = (named or self.frames)[0]
        return None if found[0].f_code.co_name == "<module>" else found

    def _call_path(self, where):
        rows, skipped = [], 0
        for index, (frame, line) in enumerate(self.frames):
            if index == len(self.frames) - 1 or self._session.project.contains(frame):
                rows.append((skipped, frame.f_code, line, frame))
                skipped = 0
            else:
                skipped += 1
        if len(rows) < 2:
            return []
        folded = _fold_recursion(rows)
        if len(folded) > _MAX_ROWS:
            left_out = folded[_MAX_ROWS - _LAST_ROWS : -_LAST_ROWS]
            folded = folded[: _MAX_ROWS - _LAST_ROWS] + folded[-_LAST_ROWS:]
            (skipped, code, line, frame), times = folded[-_LAST_ROWS]
            skipped += sum([(row[0] + 1) * count for row, count in left_out])
            folded[-_LAST_ROWS] = (skipped, code, line, frame), times
        return [
            dict(
                where(code, line),
                text=_line_of(frame, line).strip()[:_MAX_TEXT],
                skipped=skipped,
                repeated=times,
            )
            for (skipped, code, line, frame), times in folded
        ]


def frames_of(exc):
    """Yield (frame, line) of each frame of the program that an exception has passed, the outermost first."""
    traceback, count = _TRACEBACK(exc), 0
    while traceback is not None and count < _MAX_FRAMES:
        if not is_ours(traceback.tb_frame):
            yield traceback.tb_frame, traceback.tb_lineno
        traceback, count = traceback.tb_next, count + 1


def _is_of_assertion(frame):
    """True for frames that test frameworks leave out of their own reports."""
    if "__unittest" in frame.f_globals:
        return True
    marker = frame.f_locals.get("__tracebackhide__") if type(frame.f_locals) is dict else None
    return marker is True or "__tracebackhide__" in frame.f_code.co_varnames


def _fold_recursion(rows):
    """Return [(row, times)]: of a part that repeats, its rows once."""
    keys = [row[:3] for row in rows]
    folded, start = [], 0
    while start < len(rows):
        period, times = _repetition(keys, start)
        folded += [(row, times) for row in rows[start : start + period]]
        start += period * times
    return folded


def _repetition(keys, start):
    for period in range(1, _PERIODS + 1):
        part, times = keys[start : start + period], 1
        while keys[start + period * times : start + period * (times + 1)] == part:
            times += 1
        if times > 2:
            return period, times
    return 1, 1


def _lines(frame):
    return linecache.getlines(frame.f_code.co_filename, frame.f_globals)


def _line_of(frame, line):
    lines = _lines(frame)
    return lines[line - 1] if line and 0 < line <= len(lines) else ""


def _statement(frame, line):
    """Return the line, with those that its open brackets go on to."""
    text = ""
    for number in range(line, line + called_functions.MAX_STATEMENT):
        text += _line_of(frame, number)
        if called_functions.is_closed(text):
            break
    return text


def _statement_end(lines, line):
    """Return the last line of the statement at a line; 0 if that is too far down."""
    text = ""
    for number in range(line, min(line + _MAX_BELOW, len(lines)) + 1):
        text += lines[number - 1]
        if called_functions.is_closed(text):
            return number
    return 0


def _piece(lines, start, end, current, last=0):
    """Return the lines `start` to `end` of a file as they are sent. `last`: the last line of their function."""
    shown = [text.rstrip("\r\n")[:_MAX_LINE] for text in lines[start - 1 : end]]
    return {"start": start, "lines": shown, "current": current, "more": max(0, last - end)}


def _start_of(frame, lines, line):
    """Return the line of the `def` of a function, without its decorators; 1 for a module."""
    return called_functions.start_of(frame.f_code, lines, line)


def _source_to(frame, line):
    """Return ([head], rest) of a test up to `line`, and a few lines below it.

    The head is separate if the middle has to be left out, or a long docstring, of which nothing is shown.
    """
    lines = _lines(frame)
    if not lines or not line:
        return [], None
    start, last = _start_of(frame, lines, line), _end_of(frame, lines, line)
    end = min((_statement_end(lines, line) or last) + _TEST_BELOW, line + _MAX_BELOW, last)
    end = last if last - end <= _FEW_MORE else end
    docstring = _long_docstring(lines, start, line)
    if not docstring and line - start < TEST_LINES:
        return [], _piece(lines, start, end, line, last)
    head = min(docstring.start - start, TEST_LINES // 2) if docstring else _TEST_HEAD
    first = max(line - TEST_LINES + head + 1, docstring.stop)
    return [_piece(lines, start, start + head - 1, 0)], _piece(lines, first, end, line, last)


def _long_docstring(lines, start, line):
    """Return the numbers of the lines of a function's docstring, if it is long; an empty range if not.

    The function begins at `start`, and `line` is one of its statements.
    """
    for number in range(start + 1, line):
        if lines[number - 2].rstrip().endswith(":"):
            opened = _DOCSTRING.match(lines[number - 1])
            if opened and opened[1] not in lines[number - 1][opened.end() :]:
                closing = (each for each in range(number + 1, line) if opened[1] in lines[each - 1])
                end = next(closing, number)
                return range(number, end + 1 if end - number >= _SHORT_DOCSTRING else number)
            break
    return range(0)


def _source_around(frame, line):
    lines = _lines(frame)
    if not lines or not line:
        return None
    start, last = _start_of(frame, lines, line), _end_of(frame, lines, line)
    if frame.f_code.co_name == "<module>":
        return _piece(lines, max(start, line - _ABOVE), min(line + _BELOW, last), line)
    if last - start < _WHOLE:
        return _piece(lines, start, last, line)
    if line - start > _FUNCTION:
        start = max(start, line - _ABOVE)
    return _piece(lines, start, min(line + _BELOW, last), line, last)


def _end_of(frame, lines, line):
    """Return the last line that belongs to the code of the frame, as its indentation shows.

    Lines up to the end of the statement at `line`, and to the last one with code, are inside: a text in quotes may go on at the
    left margin.
    """
    if frame.f_code.co_name == "<module>":
        return len(lines)
    indent = _indent(lines[_start_of(frame, lines, line) - 1])
    coded = (one for _, one in dis.findlinestarts(frame.f_code) if one and one <= len(lines))
    end = max(line, _statement_end(lines, line), *coded)
    for number in range(end + 1, min(line + _LONGEST, len(lines)) + 1):
        text = lines[number - 1]
        if text.strip():
            if _indent(text) <= indent and text.strip()[:1] not in ")]}":
                break
            end = number
    return end


def _indent(text):
    return len(text) - len(text.lstrip())


def _variables(frame, line):
    """Return ([{name, value}], number of those left out): the names in the line first, within a budget.

    Of what a test case has set up, what the frame uses, if it uses any of that.
    """
    variables = list(_expanded(locals_of(frame)))
    named = _named(variables, frame.f_globals, _statement(frame, line))
    others = [(name, value) for name, value in variables if name not in named and not is_code(value)]
    known = _names_in(frame.f_code)
    used = [one for one in others if "." not in one[0] or one[0].partition(".")[2] in known]
    set_up = {name for name, _ in variables if "." in name}
    of_use = {".".join(name.split(".")[:2]) for name, _ in [*named.items(), *used]}
    found = [*named.items(), *(others if set_up.isdisjoint(of_use) else used)]
    rows, room, allowance, told = [], _VARIABLES, Allowance(_VALUES_S), {}
    for number, (name, value) in enumerate(found):
        if number == len(named):
            room = min(room, _OTHERS)
        limit = _VALUE
        if name in named:
            limit = _NAMED_VALUE if id(type(value)) in _PLAIN else _NAMED_OBJECT
        name = name if len(name) <= _VARIABLE_NAME else name[: _VARIABLE_NAME - 1] + "…"
        same = told.setdefault(id(value), name)
        if same != name and id(type(value)) not in _UNCHANGING:
            text = "the same object as %s" % same
        elif allowance.is_over():
            text = "<%s>" % type(value).__name__
        else:
            text = safe_repr.show(value, min(limit, room), _VALUE_DEPTH)
        room -= len(name) + len(text) + 5
        if room < 0:
            break
        rows.append({"name": name, "value": text})
    return rows, len(named) + len(others) - len(rows)


def _names_in(code):
    """Names of globals and attributes in code, also in that of its comprehensions and inner functions."""
    found = {*code.co_names}
    for one in code.co_consts:
        if isinstance(one, types.CodeType):
            found |= _names_in(one)
    return found


def _expanded(variables):
    """Yield (name, value); of a test case what it has set up, as its `repr` only says which test runs."""
    for name, value in variables:
        if not _is_test_case(value):
            yield name, value
            continue
        for attribute, held in attributes(value):
            if attribute[:1] != "_" and type(held) is not types.MethodType:
                yield "%s.%s" % (name, attribute), held


def _named(variables, scope, text):
    """Return {name: value} of the variables, and attributes of variables, that a line of source names."""
    known, found = dict(variables), {}
    for token in NAME.findall(text):
        name, value, _ = resolve(token, known, scope)
        if name and not _is_test_case(value) and not is_code(value):
            found[name] = value
    return found


def _is_test_case(value):
    """True for a unittest.TestCase, whose `repr` says which test runs, and not what it has set up."""
    known = getattr(sys.modules.get("unittest.case"), "TestCase", None)
    return known is not None and known in type.__dict__["__mro__"].__get__(type(value))
