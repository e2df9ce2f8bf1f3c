"""Ends a guest in a container that stays: `python -I -S clean_up.py MARK HOME...`.

MARK is part of the guest's own command line and of the environment of all that it has started.
"""

import os
import shutil
import signal
import sys
import time

_GRACE_S = 1.0


def main():
    """End the guest and what it left, then remove its folders."""
    mark, homes = sys.argv[1].encode(), sys.argv[2:]
    guests = [pid for pid in others() if mark in read(pid, "cmdline")]
    send(guests, signal.SIGTERM)
    end = time.monotonic() + _GRACE_S
    while time.monotonic() < end and any(read(pid, "cmdline") for pid in guests):
        time.sleep(0.01)
    for _ in range(3):  # one of them may start another meanwhile
        left = [pid for pid in others() if mark in read(pid, "cmdline") or is_child(pid, mark)]
        send(left, signal.SIGKILL)
    for home in homes:
        shutil.rmtree(home, ignore_errors=True)


def others():
    """Return the ids of all processes but this one."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]


def is_child(pid, mark):
    """Return True for a process that the guest of `mark` has started, or a child of one."""
    return any(entry.startswith(b"PDBOX_CHILD=" + mark + b".") for entry in read(pid, "environ").split(b"\0"))


def read(pid, name):
    """Read a file of a process; empty if it is gone, or another user's."""
    try:
        with open("/proc/%d/%s" % (pid, name), "rb") as file:
            return file.read()
    except OSError:
        return b""


def send(pids, number):
    """Send a signal to all of them that there still are."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:
            pass


main()
