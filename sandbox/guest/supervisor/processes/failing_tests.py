"""Failing tests as the host gets them: the path from the test down to its failure as lines of text, and its output.

The reports name files, lines and functions. Their sources are read here, where no program can have replaced the
functions that read them.
"""

from __future__ import annotations

import json
import os
import re

from ...paths import FOREIGN_FOLDERS
from ..errors import GuestError
from ..files.workspace import open_regular

_MAX_RAW = 4 << 20
"""Bytes of frames and output that are kept of all failing tests of a run."""
_MAX_DETAILS = 600_000
"""Bytes that the frames and the output of all failing tests may take in the answer."""
_MAX_FRAMES = 60
_MAX_LINES = 24
_MAX_LINE = 200
_MAX_STATEMENT = 12
"""Lines of a statement."""
_MAX_SOURCE_LINE = 1000
_MAX_SOURCE = 1 << 20
_MAX_FILES = 100
_MAX_OUTPUT = 4000
_OF_RUNNER = re.compile(r"/(unittest|_pytest|twisted/trial|numpy/testing|django/test)/")
_LITERAL = re.compile(r"""\"(?:\\.|[^"\\])*\"|'(?:\\.|[^'\\])*'""")
_LIBRARY = re.compile(r".*/(?:site-packages|dist-packages|python3\.\d+)/")
_STACK_LINE = re.compile(r'  File "([^"\n]{1,500})", line (\d{1,9}) in ([^\n]{1,200})')


class Details:
    """Frames and output of failing tests, as they were reported, in bounded memory."""

    def __init__(self) -> None:
        self._left = _MAX_RAW

    def take(self, message: dict) -> dict:
        """The valid part of `frames` and `output` of a report, if there is memory for it."""
        frames = [entry for entry in map(_check_entry, _list(message.get("frames"))) if entry is not None]
        output = message.get("output")
        details = {"frames": frames, "output": output[:_MAX_OUTPUT] if isinstance(output, str) else ""}
        self._left -= len(json.dumps(details))
        return {name: value for name, value in details.items() if value} if self._left > 0 else {}


def stack_frames(text: str) -> list:
    """Frames of a stack that faulthandler wrote, the outermost first."""
    found = [[path, int(line), name, 1, ""] for path, line, name in _STACK_LINE.findall(text)]
    return found[::-1][-_MAX_FRAMES:]


def _list(value: object) -> list:
    return value[:_MAX_FRAMES] if isinstance(value, list) else []


def _check_entry(entry: object):
    """`entry` if it is a frame or a number of frames; else None."""
    if isinstance(entry, int):
        return max(0, min(entry, 1 << 31))
    if not isinstance(entry, list) or len(entry) not in (4, 5):
        return None
    path, line, name, times, kind = [*entry, ""][:5]
    texts, numbers = (path, name, kind), (line, times)
    if not all(isinstance(text, str) and "\0" not in text for text in texts):
        return None
    if not all(isinstance(number, int) for number in numbers):
        return None
    return [path[:1000], max(0, line), name[:200], max(1, times), kind[:200]]


class FrameLines:
    """Writes frames as `shop/order.py:31 in total: return sum(prices)`, with those of libraries folded."""

    def __init__(self, workspace) -> None:
        self._workspace = workspace
        self._inside: dict = {}
        self._sources: dict = {}

    def describe(self, tests: list) -> None:
        """Replace the reported frames in `tests` by lines, as many as fit into an answer; the first tests win.

        Those of tests marked as "whole" need not begin at the test, and may be the same for thousands of tests.
        """
        left = _MAX_DETAILS
        shared: dict = {}
        for test in tests:
            frames, is_whole = test.pop("frames", None), test.pop("whole", False)
            if frames and is_whole:
                if id(frames) not in shared:
                    shared[id(frames)] = self.lines(frames, "")
                test["frames"] = shared[id(frames)]
            elif frames:
                test["frames"] = self.lines(frames, test["id"])
            size = len(json.dumps([test.get("frames"), test.get("output")]))
            if size <= left:
                left -= size
            else:
                test.pop("output", None)
                test["frames"] = test.get("frames", [])[-1:]

    def lines(self, frames: list, test: str) -> list:
        """One line for each frame of the repository, from `test` down to the failure.

        A line for each exception that the last one was raised from follows.
        """
        steps = self._steps([entry for entry in frames if isinstance(entry, int) or not entry[4]])
        steps = steps[_first_step(steps, test) :]
        if steps and steps[-1][0] is None and _OF_RUNNER.search("/" + steps[-1][2]):
            steps.pop()  # `assertEqual` of unittest, and the like
        if not any(inside for inside, *_ in steps):
            return []
        texts = [self._write(step, step is steps[-1]) for step in steps]
        if len(texts) > _MAX_LINES:
            left_out = "… %d lines left out …" % (len(texts) - _MAX_LINES)
            texts[_MAX_LINES // 3 : len(texts) - 2 * _MAX_LINES // 3] = [left_out]
        return texts + [
            self._write_cause(entry) for entry in frames if not isinstance(entry, int) and entry[4]
        ]

    def _write_cause(self, entry: list) -> str:
        path, line, name, _, kind = entry
        inside = self._place(path)
        text = f"raised after {kind}"
        return text if inside is None else text + " at " + self._write((inside, 1, path, line, name), False)

    def _steps(self, frames: list) -> list:
        """(path in the workspace or None, number of frames, path, line, function), with foreign ones merged."""
        steps: list = []
        folded = 0
        for entry in frames:
            if isinstance(entry, int):
                folded = entry
                continue
            path, line, name, times = entry[:4]
            inside = self._place(path)
            count = max(times, folded)
            folded = 0
            if inside is None and steps and steps[-1][0] is None:
                count += steps.pop()[1]
            steps.append((inside, count, path, line, name))
        return steps

    def _place(self, path: str):
        """The path in the workspace; None for code of libraries."""
        if path not in self._inside:
            try:
                real = os.path.realpath(path) if path[:1] == "/" else ""
            except (OSError, ValueError):  # no path: half of a surrogate pair, or too long
                real = ""
            inside = self._workspace.relative(real) if real and self._workspace.holds(real) else None
            if inside is not None and FOREIGN_FOLDERS.intersection(inside.split(os.sep)[:-1]):
                inside = None
            self._inside[path] = inside
        return self._inside[path]

    def _write(self, step: tuple, is_last: bool) -> str:
        inside, count, path, line, name = step
        if inside is None:
            text = "… %d %s of libraries" % (count, "frame" if count == 1 else "frames")
            return (
                text + ", to %s:%d in %s" % (_LIBRARY.sub("", path), line, name) if is_last and line else text
            )
        text = "%s:%d" % (inside, line) + (f" in {name}" if name else "")
        source = self._source(inside, line)
        text += ": " + source if source else ""
        return _cut(text) + (" … ×%d" % count if count > 1 else "")

    def _source(self, inside: str, line: int) -> str:
        if inside not in self._sources:
            self._sources[inside] = self._read(inside) if len(self._sources) < _MAX_FILES else []
        lines = self._sources[inside]
        return _statement(lines, line - 1) if 0 < line <= len(lines) else ""

    def _read(self, inside: str) -> list:
        try:
            with os.fdopen(open_regular(self._workspace.locate(inside), inside), "rb", 0) as file:
                data = file.read(_MAX_SOURCE) or b""
        except (GuestError, OSError):
            return []  # hidden, or gone
        return data.decode("utf-8", "backslashreplace").split("\n")


def _first_step(steps: list, test: str) -> int:
    """Index of the test itself among `steps`, or of the first frame of the repository."""
    name = test.partition("[")[0].partition(" ")[0].replace("::", ".").rpartition(".")[2]
    path = test.partition("::")[0]
    for fits in (
        lambda step: step[0] is not None and step[4] == name,
        lambda step: step[0] == path,
        lambda step: step[0] is not None,
    ):
        for index, step in enumerate(steps):
            if fits(step):
                return index
    return 0


def _statement(lines: list, index: int) -> str:
    """The line at `index`, with those after it until its brackets are closed, as one line."""
    first = text = lines[index].strip()
    for more in lines[index + 1 : index + _MAX_STATEMENT]:
        if len(text) > _MAX_LINE or not _open_brackets(text):
            return text
        more = more.strip()
        text += ("" if text[-1:] in "([{" or more[:1] in ")]}" else " ") + more
    return first if _open_brackets(text) else text


def _open_brackets(text: str) -> bool:
    code = _LITERAL.sub("", text[:_MAX_SOURCE_LINE])
    return sum(map(code.count, "([{")) > sum(map(code.count, ")]}"))


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_LINE else text[: _MAX_LINE - 1] + "…"
