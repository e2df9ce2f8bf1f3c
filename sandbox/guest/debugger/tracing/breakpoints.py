"""Breakpoints as data, for the engine and for the supervisor."""

# The debugger is set later.
# pyright: reportOptionalMemberAccess=false
from __future__ import annotations

import bdb
import linecache

from ..isolation.pristine import os
from ..isolation.stdlib_pdb import COMMAND_TABLES
from . import source_lines

_SILENT = "_pdbcmd_silence_frame_status"


class _Wanted(dict):
    """Dict from co_filename to {line: [Breakpoint]} of that file, or None. Filled as code turns up."""

    def __init__(self, by_file):
        super().__init__()
        self._by_file = by_file
        self._folders = {}  # absolute folder -> its real path

    def __missing__(self, filename):
        found = None
        if self._by_file and filename[:1] != "<":
            # Real paths are compared: a program started through a link has other names.
            found = self._by_file.get(self._real(filename))
        self[filename] = found
        return found

    def _real(self, filename):
        """Cache `os.path.realpath` by folder, since it looks at every folder of the path."""
        folder, slash, name = filename.rpartition("/")
        if filename[:1] != "/" or name in ("", ".", "..") or os.path.islink(filename):
            return os.path.realpath(filename)
        real = self._folders.get(folder)
        if real is None:
            real = self._folders[folder] = os.path.realpath(folder + slash)
        return os.path.join(real, name)


class Table:
    """The breakpoints of `bdb`, by file and by code object."""

    def __init__(self, workdir):
        self._workdir = os.path.realpath(workdir)
        self.wanted = _Wanted({})
        # id(code) -> (code, {line: [Breakpoint]}). By id, since equal code objects of two files compare equal.
        self._codes = {}
        self._conditions = {}
        self._armed = ()
        self._sent = []
        self._debugger = None
        self.rearm = lambda: None
        """Function of the engine to call when the places to stop at have changed."""

    def begin(self, debugger):
        """Take the debugger whose command lists belong to the breakpoints."""
        self._debugger = debugger

    # -- for the engine

    def refresh(self):
        """Read `bdb`'s tables again, and rearm the engine if the places to stop at have changed."""
        points = [point for point in bdb.Breakpoint.bpbynumber if point]
        armed = tuple((id(point), point.file, point.line) for point in points)
        if armed == self._armed:
            return
        self._armed = armed
        by_file = {}
        for point in points:
            by_file.setdefault(os.path.realpath(point.file), {}).setdefault(point.line, []).append(point)
        self.wanted = _Wanted(by_file)
        self._codes = {}
        self.rearm()

    def __bool__(self):
        return bool(self._armed)

    def lines(self, code):
        """Return {line: [Breakpoint]} of this code object without nested ones. Empty for most."""
        in_file = self.wanted[code.co_filename]
        if in_file is None:
            return {}
        known = self._codes.get(id(code))
        if known is None:
            known = self._codes[id(code)] = (code, self._match(code, in_file))
        return known[1]

    def _match(self, code, in_file):
        own, found = None, {}
        for line, points in in_file.items():
            for point in points:
                if point.funcname:
                    # By name: the first line of that function, for every caller.
                    if code.co_name == point.funcname and self._contains(code, line):
                        point.func_first_executable_line = source_lines.first_line(code)
                        found.setdefault(point.func_first_executable_line, []).append(point)
                    continue
                own = source_lines.lines_of_code(code) if own is None else own
                if line in own:
                    found.setdefault(line, []).append(point)
        return found

    def _contains(self, code, line):
        # pdb keeps the line of the `def` (of its first decorator), or from 3.13 on the first line that runs.
        # After an edit, other lines may precede that one.
        return code.co_firstlineno <= line <= max(source_lines.lines_of_code(code), default=line)

    def effective(self, points, frame):
        """Decide as `bdb.effective`: (breakpoint to stop at, delete it if temporary), or (None, None)."""
        for point in points:
            if not point.enabled or bdb.Breakpoint.bpbynumber[point.number] is not point:
                continue
            point.hits += 1
            if not point.cond:
                if point.ignore > 0:
                    point.ignore -= 1
                    continue
                return point, True
            try:
                # Compiled once: bdb compiles the text at each hit, ten times slower.
                holds = eval(self.condition(point.cond), frame.f_globals, frame.f_locals)
                if holds:
                    if point.ignore > 0:
                        point.ignore -= 1
                        continue
                    return point, True
            except (
                BaseException
            ) as exc:  # the condition is code of the user: as in bdb, when it fails we stop
                self.failed = (
                    f"the condition of breakpoint {point.number} raised {type(exc).__name__}: {_text(exc)}"
                )
                return point, False
        return None, None

    def test(self, points):
        """Return (breakpoint, compiled condition, its text) if a single condition decides, else None."""
        if len(points) != 1 or not points[0].cond or points[0].temporary:
            return None
        try:
            return points[0], self.condition(points[0].cond), points[0].cond
        except Exception:  # of the compiler, for example if the condition is nested too deeply
            return None  # `effective` reports it

    @staticmethod
    def holds(test, frame):
        """Return False, and count a hit, if the condition of `test` does not hold.

        Otherwise `effective` decides.

        The fast path for a condition in a hot loop. Both engines have it in their callbacks, too, without the call.
        """
        point, code, text = test
        if point.enabled and not point.ignore and point.cond is text:
            try:
                if not eval(code, frame.f_globals, frame.f_locals):
                    point.hits += 1
                    return False
            except BaseException:  # code of the user; `effective` evaluates it again and reports the error
                pass
        return True

    failed = None  # notice about a condition that could not be evaluated, which is a reason to stop

    def condition(self, text):
        """Return the compiled condition. Raises the compiler's errors."""
        code = self._conditions.get(text)
        if code is None:
            code = self._conditions[text] = compile(text, "<condition>", "eval")
        return code

    # -- for the supervisor

    def restore(self, wanted):
        """Fill `bdb`'s tables from `wanted` (dicts of `export`), with the same numbers."""
        bdb.Breakpoint.next = 1
        bdb.Breakpoint.bplist = {}
        bdb.Breakpoint.bpbynumber = [None]
        for name in ("breaks",) + COMMAND_TABLES:
            getattr(self._debugger, name).clear()
        for data in sorted(wanted, key=lambda data: data["id"]):
            self._restore_one(self._debugger, data)

    def _restore_one(self, debugger, data):
        if data.get("state") in ("lost", "pending") or data["id"] < 1:
            return
        numbers = bdb.Breakpoint.bpbynumber
        numbers.extend([None] * (data["id"] - len(numbers)))
        bdb.Breakpoint.next = data["id"]
        path = data["path"]
        if not os.path.isabs(path):
            path = os.path.join(self._workdir, path)
        path = debugger.canonic(path)
        debugger.breaks.setdefault(path, [])
        if data["line"] not in debugger.breaks[path]:
            debugger.breaks[path].append(data["line"])
        point = bdb.Breakpoint(
            path,
            data["line"],
            bool(data.get("temporary")),
            data.get("condition") or None,
            data.get("function") or None,
        )
        point.enabled = data.get("enabled", True)
        point.ignore = data.get("ignore", 0)
        point.hits = data.get("hits", 0)
        if data.get("commands"):
            debugger.define_commands(point.number, data["commands"])

    def reserve(self, number):
        """Reserve numbers below this one: those of deleted breakpoints are not used again."""
        numbers = bdb.Breakpoint.bpbynumber
        numbers.extend([None] * (number - len(numbers)))
        bdb.Breakpoint.next = len(numbers)

    @staticmethod
    def next_number():
        """Return the number of the next breakpoint."""
        return len(bdb.Breakpoint.bpbynumber)

    def export(self):
        """Return the whole table, one dict per breakpoint."""
        return [self._data(point) for point in bdb.Breakpoint.bpbynumber if point]

    def changes(self):
        """Refresh, and return the whole table if it has changed since the last call, else None."""
        self.refresh()
        now = [self._signature(point) for point in bdb.Breakpoint.bpbynumber if point]
        if now == self._sent:
            return None
        self._sent = now
        return self.export()

    def _signature(self, point):
        number = point.number
        commands = self._commands(number)
        return number, point.file, point.line, point.cond, point.ignore, point.hits, point.enabled, commands

    def _commands(self, number):
        """Return the commands of a breakpoint as they were typed; [] if it has none."""
        debugger = self._debugger
        commands = ["silent" if line == _SILENT else line for line in debugger.commands.get(number, ())]
        if "commands_silent" in COMMAND_TABLES and debugger.commands_silent.get(number):
            commands.insert(0, "silent")
        return commands

    def _data(self, point):
        return {
            "id": point.number,
            "path": relative(point.file, self._workdir),
            "line": point.line,
            "function": point.funcname,
            "condition": point.cond or None,
            "ignore": point.ignore,
            "hits": point.hits,
            "temporary": bool(point.temporary),
            "enabled": bool(point.enabled),
            "commands": self._commands(point.number),
            "text": linecache.getline(point.file, point.line).strip(),
            "scope": source_lines.scope_of(point.file, point.line),
            "state": "ok",
        }


def relative(path, root):
    """Return `path` relative to `root` if it lies inside, else unchanged."""
    real = os.path.realpath(path) if path[:1] != "<" else path
    if real.startswith(root + os.sep):
        return real[len(root) + 1 :]
    return path


def _text(exc):
    try:
        return str(exc)
    except BaseException:  # an exception of the user whose __str__ fails
        return "?"
