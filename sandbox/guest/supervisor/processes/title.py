"""Name and command line of the supervisor, as `ps` shows them. Its own command line has the source of a program in it."""

from __future__ import annotations

import ctypes

_PR_SET_NAME = 15


def set_title(title: str) -> None:
    """Show `title` as our command line and "pdbox" as our name, where the kernel lets us (Linux)."""
    start, end = _find_arguments()
    # The kernel shows all bytes up to `end`, unless the last one is not zero: then it shows those up to the first zero.
    text = title.encode().ljust(end - start - 1, b"\0") + b"."
    if len(text) != end - start:
        return
    ctypes.memmove(start, text, len(text))
    ctypes.CDLL(None).prctl(_PR_SET_NAME, b"pdbox", 0, 0, 0)


def _find_arguments() -> tuple[int, int]:
    """Return where our arguments begin and end in memory; (0, 0) if that is unknown."""
    try:
        with open("/proc/self/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        with open("/proc/self/cmdline", "rb") as file:
            size = len(file.read())
        start, end = (
            int(fields[45]),
            int(fields[46]),
        )  # arg_start and arg_end in proc(5), whose fields begin at 3
    except (OSError, IndexError, ValueError):
        return 0, 0
    return (start, end) if 0 < size == end - start else (0, 0)
