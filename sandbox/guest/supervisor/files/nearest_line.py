"""The most similar line of a file, for an edit whose text is not in it.

It is searched for here because hostile text makes that slow: only its own session waits for it.
"""

from __future__ import annotations

import difflib
import time

from .read_write import read_file

_TIME_LIMIT_S = 2.0
_MAX_LINES = 20_000
_WIDTH = 200
_ALIKE = 0.75


def nearest(args: dict, payload: bytes, call) -> tuple[dict, bytes]:
    """{path} + a line -> {"line", "text"}: the most similar line of the file; {} if none, or out of time."""
    data = read_file({"path": args.get("path")}, b"", call)[1]
    lines = [
        line.strip()[:_WIDTH] for line in data.decode("utf-8", "replace").split("\n", _MAX_LINES)[:_MAX_LINES]
    ]
    matcher = difflib.SequenceMatcher(
        None, "", payload.decode("utf-8", "replace").strip()[:_WIDTH], autojunk=False
    )
    deadline, best, alike = time.monotonic() + _TIME_LIMIT_S, None, _ALIKE
    for number, line in enumerate(lines, 1):
        matcher.set_seq1(line)
        # From the cheapest to the dearest, as difflib.get_close_matches does it.
        if matcher.real_quick_ratio() < alike or matcher.quick_ratio() < alike:
            continue
        if time.monotonic() > deadline or call.cancelled.is_set():
            break
        ratio = matcher.ratio()
        if ratio > alike or (best is None and ratio >= alike):
            best, alike = number, ratio
    return ({} if best is None else {"line": best, "text": lines[best - 1][:120]}), b""


OPS = {"files.nearest": nearest}
