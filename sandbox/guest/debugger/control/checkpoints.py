"""Checkpoints of the program: copies of the process, made by fork, to which it can go back.

At a checkpoint the process forks. The child goes on as the program, on the same channel, and the parent waits as it
is. To go back, the child leaves a message in a file that both share and ends; the parent reads that and forks again.
So the process that the supervisor has started stays where it is: it passes signals on to the child and ends as the
child does.
"""

# Several functions of `os` and `_signal` are there on some systems only.
# pyright: reportAttributeAccessIssue=false, reportOptionalCall=false
from __future__ import annotations

import _random
import _signal  # pyright: ignore[reportMissingImports] # functions that no program replaces
import json
import stat
import sys

from ..isolation.descriptors import hold
from ..isolation.pristine import os, threading

MOST = 8
_MAX_MESSAGE = 16 << 20
_OWN_TIMERS = ("SIGALRM", "SIGVTALRM", "SIGPROF")
_ENCODE = json.JSONEncoder().encode
_DECODE = json.JSONDecoder().decode  # not `json.loads`, which the program may replace
_GETSTATE, _SETSTATE = _random.Random.getstate, _random.Random.setstate
_SIGNALS = _signal.valid_signals() if hasattr(_signal, "valid_signals") else set()
_block = getattr(_signal, "pthread_sigmask", None)
_wait_for_signal = getattr(_signal, "sigwait", None)
_handler_of, _handle = _signal.getsignal, _signal.signal


class Refused(Exception):
    """There can be no checkpoint here; the text says why."""


class Checkpoint:
    """A stop to which the program can go back."""

    def __init__(self, number, text, message_fd):
        self.number, self.text, self.message_fd = number, text, message_fd


class Checkpoints:
    """The checkpoints of this run that the process stems from, the oldest first."""

    def __init__(self):
        self.forking = False
        """True while the process forks for a checkpoint: that is no child of the program."""
        self._taken = []
        self._deleted = set()
        self._next = 1

    def all(self):
        """The checkpoints that can be gone back to."""
        return [one for one in self._taken if one.number not in self._deleted]

    def find(self, number):
        """The checkpoint with a number; None if there is none."""
        return next((one for one in self.all() if one.number == number), None)

    def delete(self, number):
        """Forget a checkpoint. Its process waits on, as the program stems from it."""
        self._deleted.add(number)

    def take(self, text):
        """Make a checkpoint: (it, None) at once, and (it, message) each time that the program comes back to it.

        Raises Refused.
        """
        self._refuse()
        checkpoint = Checkpoint(self._next, text, hold(os.memfd_create("checkpoint")))
        self._next += 1
        self._taken.append(checkpoint)
        files, generator, message = _open_files(), _state_of_random(), None
        stock = _handler_of(_signal.SIGCHLD)
        before = _block(_signal.SIG_BLOCK, _SIGNALS)
        _handle(_signal.SIGCHLD, _signal.SIG_DFL)  # ignored, it would lose the child's status
        while True:
            child = self._fork()
            if not child:
                break
            message = _wait(child, checkpoint.message_fd)
            _restore(files)
        if stock is not None:
            _handle(_signal.SIGCHLD, stock)
        _restore_random(generator)
        if message is not None:
            self._next, self._deleted = message.pop("next"), set(message.pop("deleted"))
        _block(_signal.SIG_SETMASK, before)
        return checkpoint, message

    def go_back(self, checkpoint, message):
        """End this process, whose ancestor goes on at the checkpoint with `message`. Raises Refused."""
        message = dict(message, next=self._next, deleted=sorted(self._deleted))
        data = _ENCODE(message).encode("ascii")
        if len(data) > _MAX_MESSAGE:
            raise Refused("Unable to go back: there are too many breakpoints or lines")
        os.pwrite(checkpoint.message_fd, data, 0)
        os._exit(0)

    def _fork(self):
        self.forking = True
        try:
            return os.fork()
        finally:
            self.forking = False

    def _refuse(self):
        if not hasattr(os, "memfd_create") or not sys.platform.startswith("linux"):
            raise Refused("Unable to make a checkpoint: this system or Python has no memfd_create")
        if len(self._taken) >= MOST:
            raise Refused(f"Unable to make a checkpoint: a run has {MOST} at most; go back to one before")
        count = _count_threads()
        if threading.current_thread() is not threading.main_thread() or count != 1:
            raise Refused(f"Unable to make a checkpoint: the process has {count} threads, and a fork one")
        if _has_children():
            raise Refused("Unable to make a checkpoint: the program has child processes, which a fork loses")


def _count_threads():
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return threading.active_count()


def _has_children():
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


# -- in the process that waits


def _wait(child, message_fd):
    """Pass signals on until the child has ended. Returns its message; ends as the child did if there is none."""
    dropped = {getattr(_signal, name) for name in _OWN_TIMERS}
    while True:
        number = _wait_for_signal(_SIGNALS)
        if number == _signal.SIGCHLD:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                return _read(message_fd) or _end_as(status)
        elif number not in dropped:
            os.kill(child, number)


def _read(message_fd):
    data = os.pread(message_fd, os.fstat(message_fd).st_size, 0)
    os.ftruncate(message_fd, 0)
    return _DECODE(data.decode("ascii")) if data else None


def _end_as(status):
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number != _signal.SIGKILL:
            _handle(number, _signal.SIG_DFL)
        os.kill(os.getpid(), number)
        _block(_signal.SIG_UNBLOCK, [number])
        os._exit(128 + number)
    os._exit(os.WEXITSTATUS(status))


def _open_files():
    """(descriptor, file, offset, size or None) of open files; the size of those that have no name any more."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            about = os.fstat(int(name))
            if stat.S_ISREG(about.st_mode):
                size = None if about.st_nlink else about.st_size
                found.append((int(name), about.st_ino, os.lseek(int(name), 0, os.SEEK_CUR), size))
        except OSError:
            continue  # the one that lists them
    return found


def _restore(files):
    """Restore the offsets of open files, and the length of temporary ones: output that a test runner captures."""
    for fd, inode, offset, size in files:
        try:
            if os.fstat(fd).st_ino == inode:
                os.lseek(fd, offset, os.SEEK_SET)
                if size is not None:
                    os.ftruncate(fd, size)
        except OSError:
            continue  # closed, or only for reading


def _state_of_random():
    """State of the random module's generator, which Python seeds anew in a fork."""
    generator = getattr(sys.modules.get("random"), "_inst", None)
    if not isinstance(generator, _random.Random):
        return None
    return generator, _GETSTATE(generator), getattr(generator, "gauss_next", None)


def _restore_random(state):
    if state is not None:
        generator, numbers, following = state
        _SETSTATE(generator, numbers)
        generator.gauss_next = following
