"""Follow a command line to the Python program in it that is to be debugged, and that program to its children.

Every interpreter that the command starts, or that the program starts while there are breakpoints, loads
`hooks/sitecustomize.py`, which asks here if it is to be debugged (`protocol/attach_question.py`). A fork of
the program only announces itself. So does a Python that reaches a `breakpoint()` while there are no
breakpoints.
"""

from __future__ import annotations

import array
import itertools
import os
import re
import socket
import struct
import threading

from ...hooks._pdbox_attach import VARIABLE
from ...paths import LAUNCHER
from ...protocol.attach_question import (
    CHANNEL,
    DUMP,
    FORGET,
    FORK,
    JOIN,
    LENGTH,
    MAX_QUESTION,
    NO,
    PASS,
    parse_counts,
)
from .hooks_path import hooks_environment, with_hooks
from .match import Question, choose, choose_child

UNSEEN = (
    "A Python that is started with -I, -E or -S, with a PYTHONPATH of its own or in an empty environment can't be seen: "
    "give its own command line as the entry point."
)
_ASK_S = 5.0
_numbers = itertools.count(1)
_MAX_ASKERS = 64


class Following:
    """Answers the interpreters of one run.

    Calls `listener.on_chosen(socket, pid, chosen)` for the first that is to be debugged, unless `chosen` is
    given. Then, for each child, `wants_child(now_or_never)` asks if there may be one more, and
    `on_child(socket, pid, text, target, counts)` hands it over.
    """

    def __init__(self, text: str, state, dump_fd: int, listener, chosen: str | None = None) -> None:
        self.chosen = chosen
        """Command line of the program that is debugged."""
        self.helpers: list = []
        """Command lines of the interpreters that asked before and were refused."""
        self._text = text
        self._workdir = state.workdir
        self._dump_fd = dump_fd
        self._listener = listener
        self._over = False
        self._choosing = threading.Lock()
        self._askers = threading.BoundedSemaphore(_MAX_ASKERS)
        # Next to the supervisor's socket: it is removed with our other files, and its name is short enough.
        self.path = os.path.join(state.home, "f%d" % next(_numbers))
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind(self.path)
        self._socket.listen(512)

    def command(self, words: list) -> list:
        """Put our hooks in front of each PYTHONPATH that `words` assign, which would replace them."""
        return [with_hooks(word) for word in words]

    def environment(self, env: dict) -> dict:
        """Add to `env` the variables that interpreters need to ask us."""
        return dict(env, **hooks_environment(env, VARIABLE, self.path))

    def serve(self) -> None:
        """Answer until `stop`."""
        while True:
            try:
                asking, _ = self._socket.accept()
            except OSError:
                if self._over:
                    break  # `_shut`
                raise
            if self._over:
                asking.close()
                break
            # Each in its own thread: one that asks slowly, or never, delays no other.
            if not self._askers.acquire(blocking=False):
                asking.close()
                continue
            try:
                threading.Thread(target=self._answer, args=(asking,), name="asked", daemon=True).start()
            except RuntimeError:  # no thread can be started while a program forks without end
                self._askers.release()
                asking.close()
        self._socket.close()
        try:
            os.unlink(self.path)
        except OSError:
            pass  # the program has removed it

    def stop(self) -> None:
        """Make `serve` end, without waiting."""
        self._over = True
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as last:
            last.setblocking(False)
            try:
                last.connect(self.path)
            except BlockingIOError:
                pass  # many are asking already: one of them wakes `accept`
            except OSError:
                # The program has removed our socket. If this does not wake `accept`, a thread keeps waiting.
                self._shut()

    def _shut(self) -> None:
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # not on this system

    def _answer(self, asking: socket.socket) -> None:
        taken = False
        try:
            asking.settimeout(_ASK_S)
            fields = _fields(asking)
            if fields[0] == FORK:
                taken = self._take_fork(asking, fields)
            elif fields[0] == JOIN:
                taken = self._take_joining(asking, fields)
            else:
                taken = self._decide(asking, _question(fields))
        except (OSError, ValueError, IndexError):
            pass  # it is gone, or it is not one of ours
        finally:
            self._askers.release()
            if not taken:
                asking.close()

    def _take_fork(self, asking: socket.socket, fields: list) -> bool:
        if not self._listener.wants_child(now_or_never=True):
            return False
        counts, pid = parse_counts(fields[2]), _pid_of(asking, int(fields[1]))
        self._hand_over(asking, pid, None, None, counts)
        return True

    def _take_joining(self, asking: socket.socket, fields: list) -> bool:
        if not self._listener.wants_child(now_or_never=True):
            return False
        pid = _pid_of(asking, int(fields[1]))
        text = Question((), pid, fields[2], fields[3:] or ["python"]).text()
        self._hand_over(asking, pid, text, {"mode": "joined"}, None)
        return True

    def _decide(self, asking: socket.socket, question: Question) -> bool:
        with self._choosing:
            if self.chosen is None:
                return self._choose(asking, question)
        chosen = choose_child(question, self._workdir)
        if chosen is None or not self._listener.wants_child():
            asking.sendall(LENGTH.pack(PASS if chosen is None else FORGET))
            return False
        self._invite(asking, chosen)
        pid = _pid_of(asking, question.pid)
        self._hand_over(asking, pid, question.text(), chosen.target, None)
        return True

    def _hand_over(self, asking: socket.socket, pid: int, text: str | None, target, counts) -> None:
        asking.settimeout(None)
        self._listener.on_child(asking, pid, text, target, counts)

    def _choose(self, asking: socket.socket, question: Question) -> bool:
        chosen = choose(question, self._text, self._workdir)
        if chosen is None:
            asking.sendall(LENGTH.pack(NO))
            if len(self.helpers) < 20:
                self.helpers.append(question.text())
            return False
        self._invite(asking, chosen)
        self.chosen = question.text()
        self._listener.on_chosen(asking, _pid_of(asking, question.pid), chosen)
        return True

    def _invite(self, asking: socket.socket, chosen) -> None:
        words = chosen.options + [LAUNCHER, CHANNEL, DUMP]
        answer = b"\0".join(os.fsencode(word) for word in words)
        descriptors = array.array("i", [self._dump_fd]).tobytes()
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)]
        asking.sendmsg([LENGTH.pack(len(answer))], ancillary)
        asking.sendall(answer)
        asking.settimeout(None)


def _fields(asking: socket.socket) -> list:
    size = LENGTH.unpack(_exactly(asking, LENGTH.size))[0]
    if size > MAX_QUESTION:
        raise ValueError("a question of %d bytes" % size)
    return [os.fsdecode(field) for field in _exactly(asking, size).split(b"\0")]


def _question(fields: list) -> Question:
    if len(fields) < 4 or not re.match(r"\d+\.\d+$", fields[0]) or not fields[1].isdigit():
        raise ValueError("no question")
    version = tuple(int(number) for number in fields[0].split("."))
    return Question(version, int(fields[1]), fields[2], fields[3:])


def _exactly(asking: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = asking.recv(size - len(data))
        if not more:
            raise ConnectionResetError("it said too little")
        data += more
    return data


def _pid_of(asking: socket.socket, told: int) -> int:
    """Process id of the other end as the system knows it: in its own namespace it may have another."""
    kind = getattr(socket, "SO_PEERCRED", None)
    if kind is None:
        return told
    known = struct.unpack("3i", asking.getsockopt(socket.SOL_SOCKET, kind, struct.calcsize("3i")))[0]
    # gVisor gives the process that calls, so an interrupt would be sent to the supervisor.
    return told if known == os.getpid() else known
