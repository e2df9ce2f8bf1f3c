"""Sets the debugger up, becomes invisible, and runs the program."""

from __future__ import annotations

import atexit
import gc
import sys
import threading

from .control import child_processes
from .control.channel import Channel, Closed
from .control.interrupt import Gate, Interrupts
from .isolation import descriptors, signals, stdin, subinterpreters
from .isolation.shadowed_modules import unload
from .pdb import breakpoint_hooks, run_target
from .pdb.session import Session
from .runners import unittest_hooks


def prepare(numbers, loaded):
    """Connect to the supervisor and wait for `launch`.

    Returns the function that runs the program in a namespace.
    """
    gate = Gate()
    channel = Channel(numbers[0], gate)
    try:
        message = channel.receive()
    except Closed:
        sys.exit(1)
    session = Session(channel, gate, message)
    interrupts = Interrupts(session)
    dump = descriptors.hold(numbers[1]) if len(numbers) > 1 else None
    options = message.get("options") or {}

    def start(scope):
        target = message["target"]
        _set_orig_argv(target)
        before = len(sys.path)
        run_target.set_argv_and_path(target)
        subinterpreters.install(session, sys.path[: len(sys.path) - before])
        unload(loaded)
        breakpoint_hooks.install(session)
        unittest_hooks.install(session)
        child_processes.install(session, options.get("children"))
        descriptors.protect()
        if not options.get("child"):
            stdin.watch(session.input_wanted)
            _line_buffer_stdout()
        session.main_debugger.at_prompt = True  # until the program itself runs
        atexit.register(_withdraw, session)  # the first one registered is the last one called
        session.engine.start()
        interrupts.install()
        if dump is not None:
            interrupts.dump_to(dump)
        signals.protect()
        session.dump_again = interrupts.enable_dump
        # The program's garbage collections need not walk through our objects: that would cost it time.
        if hasattr(gc, "freeze"):  # PyPy has none
            gc.freeze()
        exit_code = run_target.run(session, target, scope, not options.get("child"))
        if exit_code:
            sys.exit(exit_code)

    return start


def _withdraw(session):
    """Disarm the engine after the program's last function, so that finalizers run as without us."""
    session.engine.abandon()
    if hasattr(gc, "unfreeze"):
        gc.unfreeze()  # `__main__` is among it


def join(fd, loaded, started):
    """Return the session of a program at its first `breakpoint()`, or None if the supervisor refuses it.

    `started` is the `Watch` that directs the program's children to us.
    """
    gate = Gate()
    channel = Channel(fd, gate)
    try:
        session = Session(channel, gate, channel.receive())
    except Closed:
        return None
    interrupts = Interrupts(session)
    unload(loaded)
    breakpoint_hooks.install(session)
    child_processes.install(session, started.address, started)
    descriptors.protect()
    atexit.register(_withdraw, session)
    session.engine.start()
    subinterpreters.install(session, None)
    if threading.current_thread() is threading.main_thread():  # other threads can't install signal handlers
        interrupts.install()
        signals.protect()
    return session


def _set_orig_argv(target):
    # Reloaders use it to start the program again.
    argv = getattr(sys, "orig_argv", None)
    if argv is not None:
        ours = next((i for i, word in enumerate(argv) if word.endswith("launch.py")), len(argv))
        argv[ours:] = run_target.describe(target)


def _line_buffer_stdout():
    """Line-buffer stdout, so that output arrives when it is printed and not at the program's end."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(line_buffering=True)
