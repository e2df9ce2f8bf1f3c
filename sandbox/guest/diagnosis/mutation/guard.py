"""Keeps changed code from changing anything but its own process and temporary files.

Not a wall: the sandbox is that. A changed condition may lead a program to remove or write files that it would not touch.
"""

from __future__ import annotations

import sys

from ...debugger.isolation.pristine import os

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_OF_PATHS = {
    "os.chmod": ((0, 2),),
    "os.chown": ((0, 3),),
    "os.link": ((1, 3),),
    "os.mkdir": ((0, 2),),
    "os.remove": ((0, 1),),
    "os.removexattr": ((0, None),),
    "os.rename": ((0, 2), (1, 3)),
    "os.rmdir": ((0, 1),),
    "os.setxattr": ((0, None),),
    "os.symlink": ((1, 2),),
    "os.truncate": ((0, None),),
    "os.utime": ((0, 3),),
    "sqlite3.connect": ((0, None),),
}
"""Event -> indexes of each path that it changes, and of the folder that the path is relative to."""
_OF_PROCESSES = (
    "os.exec",
    "os.fork",
    "os.forkpty",
    "os.kill",
    "os.killpg",
    "os.posix_spawn",
    "os.system",
    "pty.spawn",
    "subprocess.Popen",
)


def forbid_changes(folder):
    """Let this process change no files outside of `folder`, and start or end no process, until it ends."""
    inside = os.path.realpath(folder) + os.sep

    def check(event, args):
        if event == "open":
            path, mode, flags = args
            is_writing = any(one in mode for one in "wax+") if mode else (flags or 0) & _WRITING
            changed = [(path, -1)] if is_writing else []
        elif event in _OF_PROCESSES:
            raise PermissionError(f"{event} by changed code")
        else:
            found = _OF_PATHS.get(event, ())
            changed = [(args[path], -1 if base is None else args[base]) for path, base in found]
        for path, base in changed:
            if not _is_allowed(path, base, inside):
                raise PermissionError(f"{event} by changed code: {path!r}")

    sys.addaudithook(check)


def _is_allowed(path, base, inside):
    if type(path) is int:
        return True
    name = os.fsdecode(path)
    if type(base) is int and base >= 0:
        name = os.path.join(f"/proc/self/fd/{base}", name)
    return name in (os.devnull, ":memory:", "") or os.path.realpath(name).startswith(inside)


def holds_files_open(folder):
    """True if a file in `folder` is open for writing: changed code could write to it unseen."""
    inside = os.path.realpath(folder) + os.sep
    for number in os.listdir("/proc/self/fd"):
        try:
            if not os.readlink(f"/proc/self/fd/{number}").startswith(inside):
                continue
            with open(f"/proc/self/fdinfo/{number}", encoding="ascii") as file:
                flags = int(dict(line.split(":", 1) for line in file if ":" in line)["flags"], 8)
        except (OSError, KeyError, ValueError):
            continue
        if flags & (os.O_WRONLY | os.O_RDWR):
            return True
    return False
