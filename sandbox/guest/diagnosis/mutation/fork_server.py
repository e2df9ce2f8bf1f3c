"""Fork servers: processes that stop before the first call of a function, and from there run the test once for each change of it.

What the test does before that call, mostly the larger part of it, is done once for all changes of all functions: one
process runs the test, and leaves a server behind wherever it comes to a function for the first time. It has to fail there
as it does elsewhere: it could tell, for instance by the frames of its callers, that it is observed.
"""

from __future__ import annotations

import _socket
import array
import inspect
import marshal
import sys
from signal import ITIMER_REAL, getitimer, setitimer

from ...debugger.isolation.pristine import os, select, threading
from .child import fail_alike, limit_processor

_MAX_MESSAGE = 1 << 17
"""Bytes of the code of a change. A socket holds some of them."""
_MAX_OBJECTS = 200
"""Function objects of one function: one that each decorated one has may be there thousands of times."""
_MARKER = "what to call"
_ASYNCHRONOUS = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR | inspect.CO_ITERABLE_COROUTINE
_SAME = b"same"


class ForkServers:
    """Fork servers as their parent sees them, each before the first call of some functions that are changed together."""

    def __init__(self, groups):
        """`groups`: lists of function objects."""
        self.groups = [
            one for one in groups if 0 < len(one) <= _MAX_OBJECTS and not any(map(_is_asynchronous, one))
        ]
        self._pid = 0
        channels = [_make_channel() for _ in self.groups]
        self._channels, self.theirs = [ours for ours, _ in channels], [theirs for _, theirs in channels]
        """One for each group: the end to ask at, and that of the server."""
        self._ended, self.ending = os.pipe()
        self._places = {
            function: (channel, index)
            for group, channel in zip(self.groups, self._channels)
            for index, function in enumerate(group)
        }

    def wait(self, pid, seconds):
        """Wait for the end of the process that leaves them behind. False if the test did not fail there as elsewhere, or in time."""
        self._pid = pid
        for one in self.theirs:
            one.close()
        os.close(self.ending)
        poll = select.poll()
        poll.register(self._ended, select.POLLIN)
        return bool(poll.poll(1000 * seconds)) and os.read(self._ended, len(_SAME)) == _SAME

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
            channel.sendmsg([message], [rights], _socket.MSG_NOSIGNAL | _socket.MSG_DONTWAIT)
        except OSError:  # the test did not come to these functions
            return False
        return True

    def forget(self):
        """Close what a child has of the parent's."""
        for one in self._channels:
            one.close()
        os.close(self._ended)

    def end(self):
        """End them: each does so once nobody can ask it."""
        self.forget()
        os.kill(self._pid, 9)
        os.waitpid(self._pid, 0)


def _is_asynchronous(function):
    """True for coroutines: programs ask whether a function is one before they call it, and `Stops` would hide it."""
    return bool(function.__code__.co_flags & _ASYNCHRONOUS)


def _make_channel():
    """Two sockets that keep messages apart, made by no function that a program may have replaced, and without its time limit."""
    channel = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    for one in channel:
        one.settimeout(None)
    return channel


def fork(keeps_random):
    """Fork this process; with `keeps_random`, the child goes on with the same random numbers: a test may have chosen their seed."""
    numbers = getattr(sys.modules.get("random"), "_inst", None) if keeps_random else None
    state = None if numbers is None else numbers.getstate()
    pid = os.fork()
    if not pid and numbers is not None:
        numbers.setstate(state)
    return pid


class Stops:
    """The process that runs the unchanged test, and leaves a server behind at each first call."""

    is_waiting = False
    """Other than in a child with changed code, it is asked how the test fails."""

    def __init__(self, servers, guard, begin, fails, keeps_random):
        """`begin(writing)` hears in each child of a server where it reports; `fails`: how the test does elsewhere."""
        self._groups = [[(one, one.__code__) for one in group] for group in servers.groups]
        self._channels, self._ending = servers.theirs, servers.ending
        self._guard, self._begin, self._fails, self._keeps_random = guard, begin, fails, keeps_random
        self._reached, self._is_over = set(), False
        self._descriptors = _open_descriptors()
        for number, group in enumerate(self._groups):
            for function, code in group:
                function.__code__ = _calling(code, self._first_call_of(function, number))

    def tell(self, name, outcome, failed):
        """End this process, and tell whether the test has failed as elsewhere."""
        if failed is not None and fail_alike(failed, self._fails):
            os.write(self._ending, _SAME)
        os._exit(0)

    def tell_way(self, way):
        """Ignore how far the unchanged test comes."""

    def tell_made(self, path):
        """End this process: children would share the file that it is about to make."""
        os._exit(0)

    def _first_call_of(self, function, number):
        def call(args, kwargs):
            self._reach(number)
            return function(*args, **kwargs)

        return call

    def _reach(self, number):
        """Leave a server behind, once: the program may have copied the function meanwhile.

        A server puts back the code of other functions when they are called: to write to all of them takes memory.
        """
        group, channel = self._groups[number], self._channels[number]
        if number in self._reached:
            return
        self._reached.add(number)
        _restore(group)
        self._is_over = self._is_over or not self._is_alone()
        if self._is_over:
            return
        timer = getitimer(ITIMER_REAL)
        if self._fork():
            # A file of the program may have its number next.
            self._descriptors.discard(str(channel.fileno()))
            channel.close()
            return
        self._is_over = True
        limit_processor(0)  # it waits from now on
        os.close(self._ending)
        for one in self._channels:
            if one is not channel:
                one.close()
        self._serve(group, channel)
        setitimer(ITIMER_REAL, *timer)

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
        pid = fork(self._keeps_random)
        self._guard.may_fork = False
        return pid

    def _is_alone(self):
        """True if children would share nothing that is outside of their memory, and lack no thread."""
        if self._guard.has_changed or threading.active_count() > 1 or len(os.listdir("/proc/self/task")) > 1:
            return False
        return _open_descriptors() <= self._descriptors


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
    """Numbers of the open files, as texts; without that of the listing itself."""
    return {one for one in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{one}")}


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
