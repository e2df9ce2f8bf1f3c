"""Limit on the memory of all processes of a sandbox together, where this user can make no control groups."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import select
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sandbox.local_guests import start_time

log = logging.getLogger(__name__)

_PAGE = os.sysconf("SC_PAGE_SIZE")
_NEAR_S, _IDLE_S = 0.05, 0.5
"""Shortest and longest time between two checks."""
_FASTEST = 2 << 30
"""Bytes that a sandbox takes in a second, at most, as far as the time between two checks goes."""
_FILE_BYTES = 2 << 10
"""Memory of the kernel for a file without contents, at most: 0.8 KiB with a short name, up to 1.8 KiB with a long one."""
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
    """Bytes that all processes and the files themselves, without their contents, may use together."""
    kills: int = 0


class MemoryWatch:
    """Kills the largest process of a sandbox that uses more memory than it may, as the kernel does for control groups.

    One thread watches all sandboxes of this server, and ends after the last of them. Shared memory counts once. What
    lies in files counts towards their file system's size instead, but not the files themselves: they count here. No kill
    frees these, so a sandbox ends that has too many.
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
    files = _count_files(sandbox.pid) * _FILE_BYTES
    processes = _find_processes(sandbox.pid)
    # Counts what processes share several times, but is cheap to ask for.
    used = files + sum(map(_resident, processes))
    if used > sandbox.limit:
        sizes = {pid: _proportional(pid) for pid in processes}
        used = files + sum(sizes.values())
        if used > sandbox.limit:
            sandbox.kills += 1
            ends = sandbox.kills > _MAX_KILLS or files > sandbox.limit
            killed = sandbox.pid if ends else max(sizes, key=lambda pid: sizes[pid])
            _kill(sandbox, killed, used, files)
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


def _count_files(pid: int) -> int:
    """Inodes in use; a link to a file and a kilobyte of extended attributes count as one, too; 0 if it is gone."""
    try:
        mounts = Path(f"/proc/{pid}/mountinfo").read_bytes()
    except OSError:
        return 0
    count = 0
    for device, path in _find_file_systems(mounts):
        with contextlib.suppress(OSError):
            # Not kept open: to close the last reference to many files takes seconds.
            descriptor = os.open(b"/proc/%d/root%b" % (pid, path), os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                # Another one if a program has put a link above it just now.
                if os.fstat(descriptor).st_dev == device:
                    status = os.statvfs(descriptor)
                    count += status.f_files - status.f_ffree
            finally:
                os.close(descriptor)
    return count


def _find_file_systems(mounts: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield device and path of each file system in memory that a sandbox can write to."""
    for line in mounts.splitlines():
        mount, _, rest = line.partition(b" - ")
        _, _, device, _, path, options, *_ = mount.split(b" ")
        if rest.startswith(b"tmpfs ") and b"rw" in options.split(b","):
            major, _, minor = device.partition(b":")
            name = re.sub(rb"\\([0-7]{3})", lambda found: bytes([int(found[1], 8)]), path)
            yield os.makedev(int(major), int(minor)), name


def _kill(sandbox: WatchedSandbox, pid: int, used: int, files: int) -> None:
    """Kill a process of the sandbox, if it is still one."""
    with contextlib.suppress(OSError):
        descriptor = os.pidfd_open(pid)
        try:
            if start_time(sandbox.pid) == sandbox.started and pid in _find_processes(sandbox.pid):
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
                log.warning(
                    "a sandbox used %d MiB of memory, %d of them for the number of its files, more than its %d: "
                    "process %d was killed%s",
                    *(used >> 20, files >> 20, sandbox.limit >> 20, pid),
                    ", and with it the sandbox" if pid == sandbox.pid else "",
                )
                poll = select.poll()
                poll.register(descriptor, select.POLLIN)
                poll.poll(1000 * _END_S)  # until then its memory is not free
        finally:
            os.close(descriptor)
