# ruff: noqa: INP001 - loaded by name from here, never as a part of a package
"""Frames and captured output of a failing test, made without calling code of the program.

Frames are `[path, line, function, times]`. A number stands for so many frames of libraries, and is followed by the
last of them. Which of the others belong to the repository is decided where the reports are read. Exceptions that the
last one was raised from come after the frames, as `[path, line, function, 1, type]`.
"""

import os

MAX_FRAMES = 30
MAX_OUTPUT = 2500
_FIRST_FRAMES = 10
_MAX_WALKED = 20000
_MAX_PATH = 200
_MAX_NAME = 80
_MAX_LINE = 300
_MAX_READ = 1 << 17
FOREIGN_FOLDERS = ("site-packages", "dist-packages", ".venv", "venv", ".tox", ".nox", "node_modules", ".eggs")
_LIBRARY = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_START = os.getcwd()
_join, _SEPARATOR = os.path.join, os.sep  # a test may replace those of the module


_MAX_CAUSES = 3
_cause, _context, _suppress, _traceback = (
    vars(BaseException)[name].__get__
    for name in ("__cause__", "__context__", "__suppress_context__", "__traceback__")
)
_name = vars(type)["__name__"].__get__


def frames_of_error(error):
    """Return the frames of an exception, and the place of each that it was raised from."""
    return frames_of(_traceback(error)) + causes_of(error)


def causes_of(error):
    """Return the places of the exceptions that `error` was raised from or after, the nearest first."""
    found = []
    while len(found) < _MAX_CAUSES:
        cause = _cause(error)
        error = _context(error) if cause is None and not _suppress(error) else cause
        if error is None:
            break
        frames = frames_of(_traceback(error))
        own = [entry for entry, before in zip(frames, [None] + frames) if type(entry) is type(before) is list]
        own += [entry for entry in frames[:1] if type(entry) is list and not own]
        found.append((own[-1][:3] if own else ["", 0, ""]) + [1, _name(type(error))[:_MAX_NAME]])
    return found


def frames_of(traceback):
    """Return the frames of a traceback, the outermost first."""
    steps, walked = [], 0
    while type(traceback).__name__ == "traceback" and walked < _MAX_WALKED:
        code = traceback.tb_frame.f_code
        steps.append((code.co_filename, traceback.tb_lineno, code.co_name))
        traceback = traceback.tb_next
        walked += 1
    return fold_frames(steps)


def fold_frames(steps):
    """Fold frames of libraries and repeated frames in a list of (path, line, function)."""
    known, folded, last, foreign = {}, [], None, 0
    for step in steps:
        path, line, name = step
        if path not in known:
            known[path] = _is_foreign(path)
        if known[path]:
            foreign += 1
        elif step == last and not foreign:
            folded[-1][3] += 1
            continue
        else:
            foreign = 0
        entry = [_join(_START, path)[-_MAX_PATH:], line or 0, name[:_MAX_NAME], 1]
        if foreign > 1:
            folded[-2:] = [foreign, entry]
        elif foreign:
            folded += [1, entry]
        else:
            folded.append(entry)
        last = step
    return _shorten(folded)


def _shorten(folded):
    if len(folded) <= MAX_FRAMES:
        return folded
    tail = folded[_FIRST_FRAMES - MAX_FRAMES :]
    left_out = folded[_FIRST_FRAMES : _FIRST_FRAMES - MAX_FRAMES]
    count = sum(entry if isinstance(entry, int) else entry[3] for entry in left_out)
    return folded[:_FIRST_FRAMES] + [count, ["", 0, "", 1]] + tail


def _is_foreign(path):
    if path[:1] == "<" or path.startswith((_LIBRARY, _HERE)):
        return True
    return any(part in FOREIGN_FOLDERS for part in path.split(_SEPARATOR)[:-1])


def output_of(parts):
    """Return captured output as one bounded text. `parts` are (name or "", text)."""
    texts = []
    for name, text in parts:
        folded = fold_lines(text)
        if folded:
            texts.append("[%s]\n%s" % (name, folded) if name else folded)
    return _cut_middle("\n".join(texts))


def fold_lines(text):
    """Write a line that occurs several times in a row once, with their number."""
    if len(text) > _MAX_READ:
        text = text[: _MAX_READ // 2] + "\n" + text[-_MAX_READ // 2 :]
    folded, last, times = [], None, 0
    for line in text.strip("\n").split("\n") + [None]:
        if line == last and line is not None:
            times += 1
            continue
        if last is not None:
            folded.append(last[:_MAX_LINE] + (" \u2026 \u00d7%d" % times if times > 1 else ""))
        last, times = line, 1
    return "\n".join(folded)


def _cut_middle(text):
    if len(text) <= MAX_OUTPUT:
        return text
    head, tail = text[: MAX_OUTPUT // 3], text[-2 * MAX_OUTPUT // 3 :]
    head, tail = head[: head.rfind("\n") + 1] or head + "\n", tail[tail.find("\n") + 1 :]
    return "%s[\u2026 %d characters left out \u2026]\n%s" % (head, len(text) - len(head) - len(tail), tail)
