"""Children of the program run undisturbed; that breakpoints are not hit in them is said once, when there are any.

Forks are seen by the interpreter's own hook. What `subprocess` and `multiprocessing` start else goes through one function of the standard
library, from Python 3.13 on mostly through another one; these are watched. Nothing of us is in the environment that children get.
"""

# Functions of the standard library are replaced.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import bdb
import os
import re
import sys

from .import_hooks import AfterImport

TEXT = "The program starts Python child processes: they run undisturbed, breakpoints are not hit in them."
_IN_SHELL = re.compile(r"(^|[\s;&|(/])(python[\d.]*|pytest)(\s|$)")
_PYTHON = re.compile(r"(python|pypy)[\d.]*t?$")


def install(session):
    """Watch for children from now on."""
    os.register_at_fork(before=lambda: _tell(session), after_in_child=session.forked)
    hooks = {"_posixsubprocess": _watch_fork_exec, "subprocess": _watch_posix_spawn}
    for name, hook in hooks.items():
        if name in sys.modules:
            hook(session, sys.modules[name])
    later = {name: _bound(hook, session) for name, hook in hooks.items() if name not in sys.modules}
    sys.meta_path.insert(0, AfterImport(later))


def _bound(hook, session):
    return lambda module: hook(session, module)


def _watch_fork_exec(session, module):
    stock = module.fork_exec

    def fork_exec(args, executables, *rest):
        _started(session, executables, args)
        return stock(args, executables, *rest)

    fork_exec.__doc__ = stock.__doc__
    module.fork_exec = fork_exec
    user = sys.modules.get("subprocess")
    if user is not None and getattr(user, "_fork_exec", None) is stock:
        user._fork_exec = fork_exec


def _watch_posix_spawn(session, module):
    stock = getattr(getattr(module, "Popen", None), "_posix_spawn", None)
    if stock is None:
        return  # Windows, or a module of the program

    def _posix_spawn(self, args, executable, *rest):
        _started(session, [executable], args)
        return stock(self, args, executable, *rest)

    module.Popen._posix_spawn = _posix_spawn


def _started(session, executables, args):
    if _breakpoints(session) and (_starts_python(executables) or _shell_starts_python(args)):
        _tell(session)


def _tell(session):
    if _breakpoints(session):
        session.tell(TEXT)


def _breakpoints(session):
    return session.channel.open and any(bdb.Breakpoint.bpbynumber[1:])


def _starts_python(executables):
    """Whether one of these, of which the first that is there will be run, is a Python or a script for one."""
    for path in executables:
        try:
            path = os.fsdecode(path)
            if path == sys.executable or _PYTHON.match(os.path.basename(path)):
                return True
            with open(path, "rb") as file:
                first = file.readline(128)
            return first.startswith(b"#!") and b"python" in first
        except (OSError, TypeError, ValueError):
            continue  # not there; the next one is tried
    return False


def _shell_starts_python(args):
    """Whether it is `sh -c` with something that looks like one."""
    try:
        words = [os.fsdecode(word) for word in args[:3]]
    except (TypeError, ValueError):
        return False  # refused by who starts it
    return len(words) == 3 and words[1] == "-c" and _IN_SHELL.search(words[2]) is not None
