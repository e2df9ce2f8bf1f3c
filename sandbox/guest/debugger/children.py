"""Children of the program: forked ones join the debugger by themselves, other Pythons are shown the way to it.

A fork has all of us in it already: it only needs a channel of its own. Who starts another program does it through a few functions of the
standard library; where that looks like it comes to a Python, the environment gets what `hooks/_pdbox_debug.py` needs to ask whether it is
to be debugged, and takes out again. Without breakpoints it gets what `hooks/_pdbox_join.py` needs to find us at a `breakpoint()`.
"""

# Functions of the standard library are replaced.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import _socket
import bdb
import os
import re
import struct
import sys

from .descriptors import Descriptor
from .frames import OURS
from .import_hooks import AfterImport

VARIABLE = "PDBOX_DEBUG"
JOIN = "PDBOX_JOIN"
UNSEEN = "The program starts a Python with -I, -E or -S: it runs undisturbed, breakpoints are not hit in it."
_CONNECT_S = 2
_RETURN_S = 20
_HOOKS = OURS + "hooks"
_PYTHONS = re.compile(r"(python|pypy)[\d.]*t?$")
_SHELLS = re.compile(r"(ba|da|z|k|a)?sh$")
_STARTERS = frozenset("env timeout nice nohup time xargs setsid stdbuf make tox nox uv uvx".split())
_IN_SHELL = re.compile(r"(^|[\s;&|(/'\"])(python[\d.]*|pytest|make|tox|nox|uv|\S+\.(py|sh))([\s'\");&|]|$)")
_UNSEEN = re.compile(r"-[a-zA-Z]*[IES]")
_WITH_VALUE = ("-X", "-W")


def install(session, address, interrupts):
    """See children from now on; `address` (a unix socket) is where they reach the supervisor, None where they can't.

    So does a process whose connection was closed by the program.
    """
    os.register_at_fork(after_in_child=lambda: _forked(session, address))
    if address is None:
        return
    session.channel.reconnect = lambda: _returned(address, interrupts)
    _watch_os(session, address)
    if "_posixsubprocess" in sys.modules:
        _watch_fork_exec(session, address, sys.modules["_posixsubprocess"])
    else:
        hook = {"_posixsubprocess": lambda module: _watch_fork_exec(session, address, module)}
        sys.meta_path.insert(0, AfterImport(hook))


# -- forks


def _forked(session, address):
    session.gate.forked()
    with session.gate:
        session.forked(None if address is None else lambda: _connected(address))
        if session.table:
            session.channel.ready()
        if session.child and address is not None:
            _trace_processes()


def _connected(address):
    """A descriptor that the supervisor has been told of; None when there is nobody."""
    points = [point for point in bdb.Breakpoint.bpbynumber if point]
    counts = ",".join("%d:%d:%d" % (point.number, point.hits, point.ignore) for point in points)
    channel = _asked(address, "fork\0%d\0%s" % (os.getpid(), counts))
    return None if channel is None else channel.detach()


def _returned(address, interrupts):
    """A descriptor in place of the one that was closed; None when there is nobody who takes us back."""
    channel = _asked(address, "back\0%d" % os.getpid())
    if channel is None:
        return None
    try:
        _timeout(channel, _socket.SO_RCVTIMEO, _RETURN_S)
        # Who closes the one descriptor closes the other one as well.
        welcome, ancillary, _, _ = channel.recvmsg(1, _socket.CMSG_SPACE(4))
        for _, _, data in ancillary:
            interrupts.dump_to(Descriptor(int.from_bytes(data[:4], sys.byteorder)))
        _timeout(channel, _socket.SO_RCVTIMEO, 0)
        if welcome:
            return channel.detach()
    except OSError:
        pass  # it is busy, or going away
    channel.close()
    return None


def _asked(address, text):
    question = text.encode("ascii")
    channel = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    channel.setblocking(True)  # the program may have set a default timeout
    try:
        # Never longer than this: whoever is the parent may wait for us.
        _timeout(channel, _socket.SO_SNDTIMEO, _CONNECT_S)
        channel.connect(address)
        channel.sendall(struct.pack(">I", len(question)) + question)
        _timeout(channel, _socket.SO_SNDTIMEO, 0)
    except OSError:
        channel.close()
        return None
    return channel


def _timeout(channel, option, seconds):
    channel.setsockopt(_socket.SOL_SOCKET, option, struct.pack("ll", seconds, 0))


def _trace_processes():
    """A fork from inside an evaluation has no trace events, as the evaluation has none: `multiprocessing` gets them back."""
    module = sys.modules.get("multiprocessing.process")
    if module is None:
        return
    bootstrap = module.BaseProcess._bootstrap

    def _bootstrap(self, *args, **kwargs):
        return sys.call_tracing(lambda: bootstrap(self, *args, **kwargs), ())

    module.BaseProcess._bootstrap = _bootstrap


# -- other programs


def _watch_fork_exec(session, address, module):
    stock = module.fork_exec

    def fork_exec(args, executables, *rest):
        way = _way(session, executables, args)
        if way:
            rest = rest[:3] + (_listed(_environment(rest[3], way, address)),) + rest[4:]
        return stock(args, executables, *rest)

    fork_exec.__doc__ = stock.__doc__
    module.fork_exec = fork_exec
    user = sys.modules.get("subprocess")
    if user is not None and getattr(user, "_fork_exec", None) is stock:
        user._fork_exec = fork_exec


def _watch_os(session, address):
    stock_execv, stock_execve, stock_system = os.execv, os.execve, os.system

    def execv(path, args):
        way = _way(session, [path], args)
        if way:
            stock_execve(path, args, _environment(None, way, address))
        stock_execv(path, args)

    def execve(path, args, env):
        way = _way(session, [path], args)
        if way:
            env = _environment(env, way, address)
        stock_execve(path, args, env)

    def system(command):
        way = _way(session, ["/bin/sh"], ["sh", "-c", command])
        if not way:
            return stock_system(command)
        # It has no argument for the environment: the process's own is changed meanwhile, `os.environ` is not.
        added = _added(os.environb, way, address)
        for name, value in added.items():
            os.putenv(name, value)
        try:
            return stock_system(command)
        finally:
            for name in added:
                if name in os.environb:
                    os.putenv(name, os.environb[name])
                else:
                    os.unsetenv(name)

    for name, replacement in (("execv", execv), ("execve", execve), ("system", system)):
        replacement.__doc__ = getattr(os, name).__doc__
        setattr(os, name, replacement)
    for name in ("posix_spawn", "posix_spawnp"):
        if hasattr(os, name):
            setattr(os, name, _posix_spawn(session, address, getattr(os, name)))


def _posix_spawn(session, address, stock):
    def posix_spawn(path, argv, env, **options):
        way = _way(session, [path], argv)
        if way:
            env = _environment(env, way, address)
        return stock(path, argv, env, **options)

    posix_spawn.__doc__, posix_spawn.__name__ = stock.__doc__, stock.__name__
    return posix_spawn


def _environment(env, way, address):
    """`env` (a mapping, a list of assignments, or None for our own) with the way to us; names and values are bytes."""
    if env is None:
        names = dict(os.environb)
    elif hasattr(env, "items"):
        names = {os.fsencode(name): os.fsencode(value) for name, value in env.items()}
    else:
        names = dict(entry.split(b"=", 1) for entry in env)
    names.update(_added(names, way, address))
    return names


def _added(names, way, address):
    before = names.get(b"PYTHONPATH", b"")
    # An empty entry would be the current folder, so none is made.
    path = os.fsencode(_HOOKS) + (os.pathsep.encode() + before if before else b"")
    return {b"PYTHONPATH": path, way.encode(): os.fsencode(address)}


def _listed(names):
    return [name + b"=" + value for name, value in names.items()]


def _way(session, executables, args):
    """How what is started is to find us: the variable that tells it; None where it never comes to a Python that we could be in."""
    try:
        if not session.channel.open:
            return None
        words = [os.fsdecode(word) for word in args]
        kind = next(filter(None, (_kind(os.fsdecode(path)) for path in executables)), None)
    except (TypeError, ValueError):
        return None  # refused by who starts it
    way = VARIABLE if any(bdb.Breakpoint.bpbynumber[1:]) else JOIN
    if kind == "python" and _is_unseen(words[1:]):
        if way == VARIABLE:
            session.tell(UNSEEN)
        return None
    if kind == "shell" and len(words) > 2 and words[1] == "-c" and not _IN_SHELL.search(words[2]):
        return None
    return kind and way


def _kind(path):
    """What the program at `path` is; None when it isn't there, or nothing that would start a Python."""
    name = os.path.basename(path)
    if path == sys.executable or _PYTHONS.match(name):
        return "python" if os.path.exists(path) else None
    if _SHELLS.match(name) or name in _STARTERS:
        return "shell" if os.path.exists(path) else None
    try:
        with open(path, "rb") as file:
            first = file.readline(128)
    except OSError:
        return None  # not there; the next one is tried
    return "script" if first.startswith(b"#!") and re.search(rb"python|sh\b|env ", first) else None


def _is_unseen(words):
    """Whether a Python with these arguments reads no environment, or no `sitecustomize`."""
    words = iter(words)
    for word in words:
        if word in _WITH_VALUE:
            next(words, None)
        elif not word.startswith("-") or word[1:2] in ("", "-", "c", "m"):
            return False
        elif not word.startswith(_WITH_VALUE) and _UNSEEN.match(word):
            return True
    return False
