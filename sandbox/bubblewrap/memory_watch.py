"""Limit on the memory of all processes of a sandbox together, where this user can make no control groups."""

from __future__ import annotations

import contextlib
import logging
import os
import select
import signal
import threading
from dataclasses import dataclass
from pathlib import Path

from sandbox.local_guests import start_time

log = logging.getLogger(__name__)

_PAGE = os.sysconf("SC_PAGE_SIZE")
_NEAR_S, _IDLE_S = 0.05, 0.5
"""Shortest and longest time between two checks."""
_FASTEST = 2 << 30
"""Bytes that a sandbox takes in a second, at most, as far as the time between two checks goes."""
_END_S = 1
_MAX_PROCESSES = 4096
_MAX_KILLS = 20
"""Kills in a row that do not help: then the sandbox ends."""


@dataclass
class WatchedSandbox:
    """A sandbox by its first process."""

    pid: int
    started: str
    """Start time of the process: its number may be another's later."""
    limit: int
    """Bytes that all processes together may use."""
    kills: int = 0


class MemoryWatch:
    """Kills the largest process of a sandbox that uses more memory than it may, as the kernel does for control groups.

    One thread watches all sandboxes of this server, and ends after the last of them. Shared memory counts once. What
    lies in files counts towards their file system's size instead.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sandboxes: list[WatchedSandbox] = []
        self._added = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, pid: int, started: str, limit: int) -> None:
        """Watch a sandbox until its first process ends."""
        with self._lock:
            self._sandboxes.append(WatchedSandbox(pid, started, limit))
            self._added.set()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="pdbox memory", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            with self._lock:
                self._sandboxes = [one for one in self._sandboxes if start_time(one.pid) == one.started]
                watched = self._sandboxes
                if not watched:
                    self._thread = None
                    return
                self._added.clear()
            self._added.wait(min(map(check, watched)))


def can_watch() -> bool:
    """True if the kernel tells the children of a process."""
    return Path(f"/proc/self/task/{threading.get_native_id()}/children").exists()


def check(sandbox: WatchedSandbox) -> float:
    """Measure a sandbox, and kill its largest process if it uses too much. Returns the seconds until the next check."""
    processes = _find_processes(sandbox.pid)
    used = sum(
        map(_resident, processes)
    )  # counts what processes share several times, but is cheap to ask for
    if used > sandbox.limit:
        sizes = {pid: _proportional(pid) for pid in processes}
        used = sum(sizes.values())
        if used > sandbox.limit:
            sandbox.kills += 1
            ends = sandbox.kills > _MAX_KILLS
            _kill(sandbox, sandbox.pid if ends else max(sizes, key=lambda pid: sizes[pid]), used)
            return _NEAR_S
    sandbox.kills = 0
    return min(_IDLE_S, max(_NEAR_S, (sandbox.limit - used) / _FASTEST))


def _find_processes(first: int) -> list[int]:
    """A process and its descendants. In a namespace of processes no other one takes in those that lose their parent."""
    found, known = [first], {first}
    for pid in found:
        for child in _children(pid):
            if child not in known and len(found) < _MAX_PROCESSES:
                known.add(child)
                found.append(child)
    return found


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                found += map(int, (thread / "children").read_text(encoding="ascii").split())
    return found


def _resident(pid: int) -> int:
    """Bytes of a process in memory, those that it shares included; 0 if it is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * _PAGE
    except OSError:
        return 0


def _proportional(pid: int) -> int:
    """Bytes of a process that are no files' contents, of those that it shares its part; 0 if it is gone."""
    wanted = ("Pss_Anon", "Pss_Shmem", "SwapPss")
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii", errors="replace")
    except PermissionError:  # it has changed what this user may know of it
        wanted = ("RssAnon", "RssShmem", "VmSwap")
        try:
            text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return 0
    except OSError:
        return 0
    fields = (line.split() for line in text.splitlines())
    return sum(int(words[1]) << 10 for words in fields if words and words[0].rstrip(":") in wanted)


def _kill(sandbox: WatchedSandbox, pid: int, used: int) -> None:
    """Kill a process of the sandbox, if it is still one."""
    with contextlib.suppress(OSError):
        descriptor = os.pidfd_open(pid)
        try:
            if start_time(sandbox.pid) == sandbox.started and pid in _find_processes(sandbox.pid):
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
                log.warning(
                    "a sandbox used %d MiB of memory, more than its %d: process %d was killed",
                    *(used >> 20, sandbox.limit >> 20, pid),
                )
                poll = select.poll()
                poll.register(descriptor, select.POLLIN)
                poll.poll(1000 * _END_S)  # until then its memory is not free
        finally:
            os.close(descriptor)
