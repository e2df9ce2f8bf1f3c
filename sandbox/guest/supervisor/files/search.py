"""Search for lines that match a pattern.

Expressions and globs that may take forever are matched in another process, which can be killed.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
import time

from ..errors import GuestError
from .globs import compile_glob
from .ignore_rules import RuleSet
from .match_cost import variable_repeats
from .required_text import required_texts
from .workspace import Workspace, escape_path, open_regular, path_of, workspace_of

MAX_FILE = 32 << 20
MAX_CONTEXT = 50
MAX_RESULTS = 5000
_WIDTH = 300
_BINARY_SIGN = 8192
_FIRST = 1 << 16
"""Bytes of a file that are read at once, without a look at its size; memory for more takes longer to get."""
_OPEN = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
_WIDE = (b"\xff\xfe", b"\xfe\xff")
_DEADLINE_S = 10.0
_COUNTING_S = 2.0
"""Time limit for counting the rest once all shown matches have been found."""
_MAX_STEPS = 50_000_000
"""Limit for one line in the supervisor itself: about a second of matching."""
_NAMES = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*(?:\|[^\W\d]\w*(?:\.[^\W\d]\w*)*)*\Z")
_DEFINITION = (
    r"^\s*(?:async\s+def|def|class|type)\s+(?:NAME)\b"
    r"|^\s*(?:\w+\s*,\s*)*(?:self\.|cls\.)?(?:NAME)\s*(?:,[^=]*)?(?::[^=]*)?=(?!=)"
)
_SURE_STARS = 3
"""A glob with more stars may take forever on a path."""


def search(args: dict, payload: bytes, call) -> tuple[dict, bytes]:
    """{pattern, regex, ignore_case, definitions, path, glob, context, max_results} -> {"matches": [{path,
    line, text, before, after}], "omitted": n, "omitted_files": n, "complete": bool, "searched": n, "skipped": n}.

    `definitions`: the pattern is a name, and only lines of Python match that define it. No line is in the context
    of two matches. `skipped` files are binary, or over 32 MiB. `omitted` is exact when `complete`, else the time
    was over after `searched` files, and there are at least that many; `omitted_files` have no other match.
    Raises GuestError: invalid for a regular expression that is broken or takes over 10 s on a line, not_found,
    path.
    """
    workspace = workspace_of(call.state)
    job = _Job(args)
    workspace.locate(job.path)
    try:
        return _Search(job, workspace, job.max_line(), call.cancelled.is_set).run(), b""
    except _TooRisky:
        return _in_own_process(args, workspace, call), b""


class _TooRisky(Exception):
    """The pattern may take forever on a line."""


class _Job:
    """Checked arguments of a search."""

    def __init__(self, args: dict) -> None:
        pattern = args.get("pattern")
        if not isinstance(pattern, str) or not pattern:
            raise GuestError("invalid", "The pattern is empty.")
        self.path = path_of({"path": args.get("path") or "."})
        self.context = max(0, min(int(args.get("context") or 0), MAX_CONTEXT))
        self.max_results = max(1, min(int(args.get("max_results") or 100), MAX_RESULTS))
        self.glob = compile_glob(args["glob"]) if args.get("glob") else None
        self._stars = str(args.get("glob") or "").count("*")
        self._regex = bool(args.get("regex", True))
        self._flags = re.IGNORECASE if args.get("ignore_case") else 0
        self._pattern = pattern
        self._is_sure = False
        if args.get("definitions"):
            self._search_definitions(pattern)
        self.compiled = self._compile()
        self.required = self._required()

    def _search_definitions(self, pattern: str) -> None:
        """Search for lines that define the name or the names `pattern`, by default in Python files."""
        name = re.sub(r"^(?:async\s+)?(?:def|class)\s+", "", pattern.strip())
        self._is_sure = _NAMES.match(name) is not None  # then no part of the expression can run away
        if self._is_sure:
            name = "|".join(dict.fromkeys(one.rpartition(".")[2] for one in name.split("|")))
        elif not self._regex:
            name = re.escape(name)
        self._pattern, self._regex = _DEFINITION.replace("NAME", name), True
        if self.glob is None:
            self.glob = compile_glob("*.{py,pyi}")

    def _required(self) -> list[str]:
        flags = self.compiled.flags
        texts = required_texts(self._pattern, flags) if self._regex else [self._pattern]
        if flags & re.IGNORECASE:
            texts = [text.lower() for text in texts]
        return texts if all(text.isascii() and "\n" not in text for text in texts) else []

    @property
    def is_plain(self) -> bool:
        """True if the pattern is a text, and the lines with it are those that match."""
        return self.required == [self._pattern] and not self.ignores_case

    @property
    def ignores_case(self) -> bool:
        """True if other case is found, too."""
        return bool(self.compiled.flags & re.IGNORECASE)

    def _compile(self):
        if not self._regex:
            return re.compile(re.escape(self._pattern), self._flags)
        import warnings

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # `[[` and the like: a future meaning does not matter here
                return re.compile(self._pattern, self._flags)
        except re.error as exc:
            where = " at position %d" % exc.pos if exc.pos is not None else ""
            raise GuestError(
                "invalid",
                f"The regular expression {self._pattern[:200]!r} is broken: {exc.msg}{where}.",
                "Escape signs such as ( [ { . * + ? | \\ with a backslash, or search for literal text with regex=false.",
            ) from exc
        except (OverflowError, RecursionError, MemoryError) as exc:
            raise GuestError(
                "invalid", f"The regular expression is too large: {exc}.", "Search for something simpler."
            ) from exc

    def max_line(self):
        """Length up to which a line is sure to be matched soon; None for any length.

        Raises _TooRisky.
        """
        if self._stars > _SURE_STARS:
            raise _TooRisky  # a file may have a hostile name
        if self._is_sure or not self._regex:
            return None
        repeats = variable_repeats(self._pattern)
        if repeats is None:
            raise _TooRisky
        return None if repeats == 0 else int(_MAX_STEPS ** (1.0 / (repeats + 1)))


class _Search:
    """Search in this process."""

    def __init__(self, job: _Job, workspace: Workspace, max_line, is_cancelled) -> None:
        self._job = job
        self._workspace = workspace
        self._max_line = max_line
        self._is_cancelled = is_cancelled
        self._deadline = time.monotonic() + _DEADLINE_S
        self._matches: list[dict] = []
        self._omitted = self._omitted_files = self._searched = self._skipped = 0
        self._last_path = ""
        self._required = [text.encode("ascii") for text in job.required]
        self._one = self._required[0] if len(self._required) == 1 and not job.ignores_case else None

    def run(self) -> dict:
        is_complete = True
        for path, full in self._candidates():
            data = self._read(full)
            if data is None:
                self._skipped += 1
            elif self._may_match(data):
                if not self._look_through(path, data):
                    is_complete = False
                    break
            elif self._searched % 16 == 0 and not self._may_go_on():
                is_complete = False
                break
            self._searched += 1
        return {
            "matches": self._matches,
            "omitted": self._omitted,
            "omitted_files": self._omitted_files,
            "complete": is_complete,
            "searched": self._searched,
            "skipped": self._skipped,
        }

    def _candidates(self):
        job, workspace = self._job, self._workspace
        real = workspace.locate(job.path)
        if not os.path.isdir(real):
            os.close(open_regular(real, job.path))
            yield os.path.normpath(job.path), real
            return
        glob = job.glob
        for inside, full in workspace.regular_files(job.path, workspace.rules):
            if glob is None or glob(inside):
                yield inside, full

    def _read(self, full: str):
        """Content of a regular file, None if it is not text."""
        try:
            # If it has become a link or a pipe meanwhile, it is neither followed nor waited for.
            fd = os.open(full, _OPEN)
        except OSError:
            return None  # gone, or not readable for us
        try:
            data = os.read(fd, _FIRST)
            if len(data) == _FIRST:
                if os.fstat(fd).st_size > MAX_FILE:
                    return None
                data = _read_on(fd, data)
        except OSError:
            return None
        finally:
            os.close(fd)
        return None if data.find(b"\0", 0, _BINARY_SIGN) >= 0 and not data.startswith(_WIDE) else data

    def _look_through(self, path: str, data: bytes) -> bool:
        """Collect the matches of one file. False when the time is over."""
        if self._job.is_plain and len(self._matches) >= self._job.max_results and not data.startswith(_WIDE):
            self._omitted += _count_lines(data, self._required[0])
            self._omitted_files += path != self._last_path
            return self._may_go_on()
        text = decode_text(data)
        file, self._last_path = _File(escape_path(path), text), path
        find, max_line = self._job.compiled.search, self._max_line
        for count, (number, line) in enumerate(self._lines(text)):
            if max_line is not None and len(line) > max_line:
                raise _TooRisky
            found = find(line[:-1] if line.endswith("\r") else line)
            if found is not None:
                self._take(file, number, line, found)
            if count % 512 == 511 and not self._may_go_on():
                return False
        return self._may_go_on()

    def _may_match(self, data: bytes) -> bool:
        """False if the bytes of a file show that no line matches."""
        if self._one is not None:
            return self._one in data or data.startswith(_WIDE)
        if not self._required or data.startswith(_WIDE):
            return True
        if self._job.ignores_case:
            if not data.isascii():
                return True  # other letters may be the same as a required one
            data = data.lower()
        return any(text in data for text in self._required)

    def _lines(self, text: str):
        """(index, line) of those that can match."""
        if len(self._job.required) != 1 or (self._job.ignores_case and not text.isascii()):
            lines = text.split("\n")
            if lines[-1] == "":
                lines.pop()
            yield from enumerate(lines)
            return
        (wanted,) = self._job.required
        searched = text.lower() if self._job.ignores_case else text
        index = counted = 0
        at = searched.find(wanted)
        while at >= 0:
            start, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
            end = len(text) if end < 0 else end
            index += text.count("\n", counted, start)
            counted = start
            yield index, text[start:end]
            at = searched.find(wanted, end)

    def _take(self, file: _File, index: int, line: str, found) -> None:
        if len(self._matches) >= self._job.max_results:
            self._omitted += 1
            self._omitted_files += file.last is None
            file.last = file.last or {}
            return
        if len(self._matches) == self._job.max_results - 1:
            self._deadline = min(self._deadline, time.monotonic() + _COUNTING_S)
        before, after = file.context(index, self._job.context)
        match = {
            "path": file.path,
            "line": index + 1,
            "text": _cut(line, found.start(), found.end()),
            "before": before,
            "after": after,
        }
        file.last = match
        self._matches.append(match)

    def _may_go_on(self) -> bool:
        if self._is_cancelled():
            raise GuestError("cancelled", "The search was cancelled.")
        return time.monotonic() < self._deadline


class _File:
    """A file with matches."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.last: dict | None = None
        """The last match."""
        self._text = text
        self._lines: list | None = None

    def context(self, index: int, size: int) -> tuple[list, list]:
        """Lines around line `index`. Those that are shown with the match before it are left out."""
        if not size:
            return [], []
        if self._lines is None:
            self._lines = self._text.split("\n")
            if self._lines[-1] == "":
                self._lines.pop()
        first = max(0, index - size)
        if self.last:
            del self.last["after"][index - self.last["line"] :]
            first = max(first, self.last["line"] + len(self.last["after"]))
        lines = self._lines
        before, after = lines[first:index], lines[index + 1 : index + 1 + size]
        return [_cut(line, 0, 0) for line in before], [_cut(line, 0, 0) for line in after]


def _count_lines(data: bytes, text: bytes) -> int:
    count, at = 0, data.find(text)
    while at >= 0:
        count += 1
        end = data.find(b"\n", at)
        at = data.find(text, end) if end >= 0 else -1
    return count


def _read_on(fd: int, first: bytes) -> bytes:
    pieces, left = [first], MAX_FILE - len(first)
    while left > 0:
        piece = os.read(fd, min(left, 1 << 20))
        if not piece:
            break
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def decode_text(data: bytes) -> str:
    """Text of `data`, which is not binary."""
    if data.startswith(_WIDE):
        return data.decode("utf-16", "replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _cut(line: str, start: int, end: int) -> str:
    """At most 300 characters of `line` around a match."""
    line = line.rstrip("\r")
    if len(line) <= _WIDTH:
        return line
    room = max(0, _WIDTH - (end - start))
    first = max(0, min(start - room // 2, len(line) - _WIDTH))
    last = first + _WIDTH
    return ("…" if first else "") + line[first:last] + ("…" if last < len(line) else "")


def _runs_away() -> GuestError:
    return GuestError(
        "invalid",
        "Matching one line took longer than %d s, and the search was ended: the expression or the glob runs away."
        % _DEADLINE_S,
        "Use a simpler one, without repeats inside of repeats, or regex=false.",
    )


def _in_own_process(args: dict, workspace: Workspace, call) -> dict:
    """Search in another process, which can be ended at any time."""
    package_root = os.path.abspath(__file__)
    for _ in __name__.split("."):
        package_root = os.path.dirname(package_root)
    code = (
        "import sys, importlib; sys.path.insert(0, sys.argv[1]); importlib.import_module(sys.argv[2]).work()"
    )
    argv = [sys.executable, "-I", "-S", "-X", "utf8", "-c", code, package_root, __name__]
    # With an empty environment: nothing of the session gets in.
    with tempfile.TemporaryFile() as job, tempfile.TemporaryFile() as answer:
        request = {
            "args": args,
            "root": workspace.root,
            "home": workspace.home,
            "rules": workspace.rules.given,
        }
        job.write(json.dumps(request).encode("ascii"))
        job.seek(0)
        child = call.state.children.spawn(argv, workspace.root, {}, job.fileno(), answer.fileno(), 2)
        call.on_cancel(child.kill_tree)
        status = child.wait(_DEADLINE_S + 1)
        if status is None:
            child.kill_tree()
            raise _runs_away()
        if call.cancelled.is_set():
            raise GuestError("cancelled", "The search was cancelled.")
        answer.seek(0)
        data = answer.read()
    if status != (0, None) or not data:
        raise GuestError(
            "invalid", f"The search ended early ({status}).", "Use a simpler regular expression."
        )
    result = json.loads(data.decode("ascii"))
    if "error" in result:
        raise GuestError(**result["error"])
    return result


def work() -> None:
    """Entry point of that process: reads the job from stdin, writes the answer to stdout."""
    request = json.loads(sys.stdin.buffer.read().decode("ascii"))
    workspace = Workspace(request["root"], request["home"])
    workspace.rules = RuleSet(request["rules"])
    try:
        result = _Search(_Job(request["args"]), workspace, None, lambda: False).run()
    except GuestError as exc:
        result = {"error": exc.as_dict()}
    sys.stdout.buffer.write(json.dumps(result).encode("ascii"))


OPS = {"files.search": search}
