"""The supervisor: sets itself up, serves until its time is over, and takes everything with it when it goes."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import sys
import tempfile
import threading

from ..protocol.codes import TERMINATED
from ..protocol.frames import FramePipe
from ..protocol.signals import STOP
from . import syscall_filter
from .files.sole_use import SoleUse
from .processes.before_edits import Outcomes
from .processes.output import OutputReader
from .processes.process_tree import Children
from .processes.saved_outputs import SavedOutputs
from .processes.title import set_title
from .program.breakpoints import Breakpoints
from .server import Server

_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36


class Supervisor:
    """State that all operations share."""

    def __init__(self, config: dict) -> None:
        self.config = config
        self.home: str = config["home"]
        self.workdir: str = os.path.realpath(config["workdir"])
        self.meta = None
        self.touched = 0
        """Counts operations that may have changed files."""
        self.unedited_until = 0
        """Value of `touched` up to which nobody has edited a file."""
        self.workspace = None
        """Made by the first operation on files (`workspace_of`)."""
        self.children = Children(reap_all=bool(config.get("reap_all")))
        self.output = OutputReader()
        self.saved_outputs = SavedOutputs(os.path.join(self.home, "output"))
        self.outcomes = Outcomes()
        """Outcomes of tests before the first edit."""
        self.sole_use = SoleUse()
        self.reported_tests: set = set()
        """Ids of tests, as `eval` gave them, that are not words to a shell."""
        self.executed_lines = None
        """Lines that the failing test of the last diagnosis has run (`ExecutedLines`)."""
        self.breakpoints = Breakpoints(self.workdir)
        self.loading = threading.RLock()
        """Held by threads that import our modules.

        Until 3.11.2 and 3.12, two that import at once may find a module half loaded (gh-83065).
        """
        self._program = None

    @property
    def program(self):
        """The debugged program."""
        return self._program or self.load_program()

    @property
    def program_runs(self) -> bool:
        """True if the debugged program runs now, so that it may load files at any time."""
        return self._program is not None and self._program.is_running

    def load_program(self):
        """Load `program`, which is half of all our code: a connection is greeted before that."""
        with self.loading:
            if self._program is None:
                from .program.program import Program

                self._program = Program(self)
            return self._program


def main(config: dict) -> None:
    """Serve until a request ends the session, or its time is over. Never returns."""
    # In a place that stays, those that look for what is left know it by its home.
    set_title("pdbox supervisor" + (" " + config["home"] if config.get("remove_home") else ""))
    _protect()
    if config.get("filter_calls"):
        syscall_filter.install()
    if config.get("user_bin"):
        os.environ["PATH"] = config["user_bin"] + os.pathsep + os.environ.get("PATH", os.defpath)
    if config.get("remove_home"):
        tempfile.tempdir = config["home"]  # so that temporary files go with it, even if we are killed
    stream = _take_stdio() if config.get("stdio") else None
    state = Supervisor(config)
    server = Server(state, config)
    _end_on_signals(server)
    server.listen(config["socket"])
    if stream is not None:
        server.connect(stream, greeting=True)
    # While the other side reads the greeting. The upload of the repository is requested at once, so it goes
    # first.
    server.load("files.extract")
    server.load("files.read_write")
    state.load_program()
    server.workers.keep_spare()
    _end(state, server, *server.wait())


def _end(state: Supervisor, server: Server, code: str, reason: str) -> None:
    server.say_goodbye(code, reason, timeout=0.5)
    state.children.kill_everything()
    state.children.wait_all(1.0)
    if os.path.lexists(state.config["socket"]):
        os.unlink(state.config["socket"])
    if state.config.get("remove_home"):
        shutil.rmtree(state.home, ignore_errors=True)
    sys.stderr.flush()
    os._exit(0)  # worker threads may still wait for something


def _protect() -> None:
    """Keep other processes from reading our memory, and become the parent of their orphans."""
    if not sys.platform.startswith("linux"):
        return
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _take_stdio() -> FramePipe:
    """Take the connection on stdin and stdout, and redirect both: nothing else may write into our frames."""
    read_fd, write_fd = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.close(null)
    return FramePipe(read_fd, write_fd)


def _end_on_signals(server: Server) -> None:
    # The system may deliver a signal to any thread. Python runs handlers in the main thread, which would
    # sleep on. So a dedicated thread reads the bytes that C code writes at once. The handlers do nothing;
    # SIG_IGN would be inherited by the programs that we start.
    read_fd, write_fd = os.pipe()
    os.set_blocking(write_fd, False)
    signal.set_wakeup_fd(write_fd, warn_on_full_buffer=False)
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    if os.getpid() == 1:
        # What the first process has no handler for is kept from it by the kernel, so `pkill python` does not end
        # the session. SIGINT has one, of Python.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        numbers = (STOP,)
    for number in numbers:
        signal.signal(number, lambda number, frame: None)
    threading.Thread(target=_watch, args=(read_fd, server), name="signals", daemon=True).start()


def _watch(read_fd: int, server: Server) -> None:
    while True:
        received = os.read(read_fd, 64)
        if signal.SIGTERM in received or STOP in received:
            server.stop(TERMINATED, "SIGTERM")
