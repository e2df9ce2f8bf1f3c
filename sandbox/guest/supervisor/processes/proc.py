"""Facts about processes from /proc, where there is one (Linux)."""

from __future__ import annotations

import os

from ...protocol.signals import INTERRUPT, UPDATE


def process_ids() -> list[int]:
    """Ids of all visible processes; none without /proc."""
    return [int(name) for name in listing("/proc") if name.isdigit()]


def stat_fields(pid: int, task: str | None = None) -> list[bytes]:
    """Read the kernel's fields of a process or thread, from its state on; none when it has ended."""
    path = "/proc/%d/stat" % pid if task is None else "/proc/%d/task/%s/stat" % (pid, task)
    try:
        with open(path, "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return []


def parent_of(pid: int) -> int:
    """Process id of the parent, 0 if unknown."""
    fields = stat_fields(pid)
    return int(fields[1]) if len(fields) > 1 else 0


def runs(pid: int) -> bool:
    """True if a thread of the process runs or is ready to run."""
    return any(stat_fields(pid, task)[:1] == [b"R"] for task in tasks(pid))


def tasks(pid: int) -> list[str]:
    """Ids of the threads of a process."""
    return listing("/proc/%d/task" % pid)


def catches(pid: int, number: int) -> bool:
    """True if the process has a handler for the signal; assumed without /proc.

    gVisor does not show handlers. There a debugger is assumed to have those that each debugger has.
    """
    text = small_text("/proc/%d/status" % pid)
    if not text:
        return not os.path.isdir("/proc/self")
    mask = next((line.split()[1] for line in text.splitlines() if line.startswith("SigCgt:")), None)
    if mask is None:
        return number in (INTERRUPT, UPDATE)
    return bool(int(mask, 16) >> (number - 1) & 1)


def small_text(path: str) -> str:
    """Read a small file; "" when it can't be read."""
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def listing(path: str) -> list[str]:
    """List a folder; nothing when it can't be read."""
    try:
        return os.listdir(path)
    except OSError:
        return []


def link(path: str) -> str:
    """Read a link; "" when it can't be read."""
    try:
        return os.readlink(path)
    except OSError:
        return ""
