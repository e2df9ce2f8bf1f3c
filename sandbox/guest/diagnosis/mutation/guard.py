"""Keeps changed code from changing anything but its own process and files of its own.

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


class Guard:
    """Lets a process change files in a folder, and those that it makes itself in the repository, alone.

    `tell(path)` hears of each of these before it is made: whoever ends the process has to remove it. `tell_changed()` hears
    once that something is changed.
    """

    def __init__(self, folder, root, tell, tell_changed):
        """`folder`, `root`: real paths."""
        self._folder, self._root, self._tell, self._tell_changed = folder + os.sep, root, tell, tell_changed
        self._made = []
        self.has_changed = False
        """True once it has let something through."""
        self.may_fork = False

    def stand(self):
        """Forbid all other changes, and to start or end processes, until this process ends."""
        sys.addaudithook(self._check)

    def _check(self, event, args):
        if event == "open":
            path, mode, flags = args
            is_writing = any(one in mode for one in "wax+") if mode else (flags or 0) & _WRITING
            changed = [(path, -1)] if is_writing else []
        elif event == "os.fork" and self.may_fork:
            changed = []
        elif event in _OF_PROCESSES:
            raise PermissionError(f"{event} by changed code")
        else:
            found = _OF_PATHS.get(event, ())
            changed = [(args[path], -1 if base is None else args[base]) for path, base in found]
        for path, base in changed:
            if not self._allows(event, path, base):
                raise PermissionError(f"{event} by changed code: {path!r}")
            if not self.has_changed:
                self.has_changed = True
                self._tell_changed()

    def _allows(self, event, path, base):
        if type(path) is int:
            return True
        name = os.fsdecode(path)
        if name in (os.devnull, ":memory:", ""):
            return True
        if type(base) is int and base >= 0:
            name = os.path.join(f"/proc/self/fd/{base}", name)
        folder, last = os.path.split(os.path.abspath(name))
        real = os.path.join(os.path.realpath(folder), last)
        if os.path.islink(real):
            real = os.path.realpath(real)
        if event == "os.mkdir" and os.path.lexists(real):
            return True  # it fails
        if real + os.sep == self._folder:
            return event == "open"  # of a file without a name
        if any((real + os.sep).startswith(one) for one in (self._folder, *self._made)):
            return True
        if not real.startswith(self._root) or os.path.lexists(real):
            return False
        self._made.append(real + os.sep)
        self._tell(real)
        return True


def open_files(folder):
    """Yield (descriptor, True if it reads, too) of each file in a folder that this process has open for writing."""
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
            yield int(number), bool(flags & os.O_RDWR)
