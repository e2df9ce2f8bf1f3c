"""Fork servers: processes that stop before the first call of a function, and from there run the test once for each change of it.

What the test does before that call, mostly the larger part of it, is done once for all changes of all functions: one
process runs the test, and leaves a server behind wherever it comes to a function for the first time.
"""

from __future__ import annotations

import _socket
import array
import inspect
import marshal
import sys

from ...debugger.isolation.pristine import os, threading
from .child import limit_processor

_MAX_MESSAGE = 1 << 17
"""Bytes of the code of a change. A socket holds some of them."""
_MARKER = "what to call"
_ASYNCHRONOUS = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class ForkServers:
    """Fork servers as their parent sees them, each before the first call of some functions that are changed together."""

    def __init__(self, groups):
        """`groups`: lists of function objects."""
        self.groups = [one for one in groups if one and not any(map(_is_asynchronous, one))]
        self._pid = 0
        self._channels = [_make_channel() for _ in self.groups]
        self._places = {
            function: (channel, index)
            for group, (channel, _) in zip(self.groups, self._channels)
            for index, function in enumerate(group)
        }

    def enter(self):
        """Be the process that leaves them behind; returns the server's ends of all channels."""
        self.forget()
        return [theirs for _, theirs in self._channels]

    def leave(self, pid):
        """Be the parent of that process."""
        self._pid = pid
        for _, theirs in self._channels:
            theirs.close()

    def ask(self, changed, writing):
        """Ask for a child with the new code of functions, [(function, code)], that reports into a pipe. False if none can be had."""
        places = [self._places[function] for function, _ in changed if function in self._places]
        if len(places) < len(changed) or len({channel for channel, _ in places}) > 1:
            return False
        channel = places[0][0]
        message = marshal.dumps([(index, code) for (_, index), (_, code) in zip(places, changed)])
        if len(message) > _MAX_MESSAGE:
            return False
        rights = _socket.SOL_SOCKET, _socket.SCM_RIGHTS, array.array("i", [writing])
        try:
            channel.sendmsg([message], [rights], _socket.MSG_NOSIGNAL)
        except OSError:  # the test did not come to these functions
            return False
        return True

    def forget(self):
        """Close what another child has of them."""
        for ours, _ in self._channels:
            ours.close()

    def end(self):
        """End them: each does so once nobody can ask it."""
        self.forget()
        os.kill(self._pid, 9)
        os.waitpid(self._pid, 0)


def _is_asynchronous(function):
    """True for coroutines: programs ask whether a function is one before they call it, and `Stops` would hide it."""
    return bool(function.__code__.co_flags & _ASYNCHRONOUS)


def _make_channel():
    """Two sockets that keep messages apart, made by no function that a program may have replaced."""
    return _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)


def fork():
    """Fork this process. The child goes on with the same random numbers: a test may have chosen their seed."""
    numbers = getattr(sys.modules.get("random"), "_inst", None)
    state = None if numbers is None else numbers.getstate()
    pid = os.fork()
    if not pid and numbers is not None:
        numbers.setstate(state)
    return pid


class Stops:
    """The process that runs the unchanged test, and leaves a server behind at each first call."""

    is_waiting = True
    """As of the report of a child whose test has not passed."""

    def __init__(self, groups, channels, guard, begin):
        """`begin(writing)` hears in each child of a server where it reports."""
        self._groups = [[(one, one.__code__) for one in group] for group in groups]
        self._channels, self._guard, self._begin = channels, guard, begin
        self._descriptors = _open_descriptors()
        for number, group in enumerate(self._groups):
            for function, code in group:
                function.__code__ = _calling(code, self._first_call_of(function, number))

    def tell(self, name, outcome, failed):
        """End this process: the test has ended."""
        os._exit(0)

    def tell_made(self, path):
        """End this process: children would share the file that it is about to make."""
        os._exit(0)

    def _first_call_of(self, function, number):
        def call(args, kwargs):
            self._reach(number)
            return function(*args, **kwargs)

        return call

    def _reach(self, number):
        """Leave a server behind."""
        group, channel = self._groups[number], self._channels[number]
        _restore(group)
        if not self._is_alone():
            os._exit(0)
        if self._fork():
            channel.close()
            return
        limit_processor(0)  # it waits from now on
        for one in self._channels:
            if one is not channel:
                one.close()
        for one in self._groups:
            _restore(one)
        self._serve(group, channel)

    def _serve(self, group, channel):
        """Fork a child for each change that is asked for. Returns in each of these, with changed functions."""
        children = set()
        while True:
            changed, writing = _receive(channel)
            pid = self._fork()
            if not pid:
                break
            os.close(writing)
            children.add(pid)
            children.difference_update([one for one in children if os.waitpid(one, os.WNOHANG)[0]])
        channel.close()
        for index, code in changed:
            group[index][0].__code__ = code
        self._begin(writing)

    def _fork(self):
        self._guard.may_fork = True
        pid = fork()
        self._guard.may_fork = False
        return pid

    def _is_alone(self):
        """True if children would share nothing that is outside of their memory."""
        if self._guard.has_changed or threading.active_count() > 1:
            return False
        added = _open_descriptors() - self._descriptors
        return not any(os.path.exists(f"/proc/self/fd/{one}") for one in added)


def _restore(group):
    for function, code in group:
        function.__code__ = code


def _receive(channel):
    """([(index, code)] of functions, descriptor to report into). The process ends when no more can come."""
    try:
        message, rights, _, _ = channel.recvmsg(_MAX_MESSAGE, _socket.CMSG_SPACE(4))
        [(_, _, data)] = rights
        [writing] = array.array("i", data)
        return marshal.loads(message), writing
    except (OSError, ValueError):
        os._exit(0)


def _open_descriptors():
    return set(os.listdir("/proc/self/fd"))


def _calling(code, call):
    """Code with the parameters of another one that calls `call(arguments, keyword arguments)`."""
    names = list(code.co_varnames)
    own = "_" * (1 + max(map(len, names), default=0))  # longer than any of these
    positional = names[: code.co_argcount]
    keywords = names[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    rest = names[code.co_argcount + code.co_kwonlyargcount :]
    starred = [f"*{rest.pop(0)}"] if code.co_flags & inspect.CO_VARARGS else []
    mapping = [f"**{rest.pop(0)}"] if code.co_flags & inspect.CO_VARKEYWORDS else []
    only = code.co_posonlyargcount
    parameters = [*positional[:only], *(["/"] if only else []), *positional[only:], *starred]
    parameters += [*(["*"] if keywords and not starred else []), *keywords, *mapping]
    given = ", ".join([*(f"{name!r}: {name}" for name in keywords), *mapping])
    free = [f"{own}{index}" for index in range(len(code.co_freevars))]
    text = f"""\
def around({", ".join(free)}):
    def made({", ".join(parameters)}):
        if 0: {", ".join(free) or "pass"}
        {own} = {_MARKER!r}
        return {own}(({"".join(one + ", " for one in [*positional, *starred])}), {{{given}}})
"""
    around = next(
        one for one in compile(text, "", "exec", dont_inherit=True).co_consts if hasattr(one, "co_consts")
    )
    made = next(one for one in around.co_consts if hasattr(one, "co_consts"))
    constants = tuple(call if one == _MARKER else one for one in made.co_consts)
    more = {"co_qualname": code.co_qualname} if hasattr(code, "co_qualname") else {}
    return made.replace(
        co_consts=constants,
        co_filename=code.co_filename,
        co_firstlineno=code.co_firstlineno,
        co_name=code.co_name,
        **more,
    )
