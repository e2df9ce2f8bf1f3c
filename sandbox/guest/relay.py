"""Joins stdin and stdout to the supervisor's socket: `python -I -u relay.py SOCKET...`, the first that there is.

Ends when either side ends.
"""

import ctypes
import os
import socket
import sys
import threading

_CHUNK = 1 << 18
_PR_SET_DUMPABLE = 4


def main():
    """Copy in both directions until one ends."""
    protect()
    sock = connect(sys.argv[1:])
    threading.Thread(target=send, args=(sock,), daemon=True).start()
    receive(sock)
    # The other thread may block in a read of stdin forever, and nothing is left to do.
    os._exit(0)


def protect():
    """Keep programs from attaching to this process: no filter of the supervisor's is on it."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def connect(places):
    """Connect to the first socket of `places` that there is."""
    for path in places:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.connect(path)
            return sock
        except OSError as exc:
            refusal = exc
            sock.close()
    sys.exit(f"no supervisor at {' or '.join(places)}: {refusal}")


def send(sock):
    """Copy stdin to the socket, and end the process with it."""
    try:
        while True:
            data = os.read(0, _CHUNK)
            if not data:
                break
            sock.sendall(data)
    except OSError:
        pass  # the supervisor is gone: the other direction ends as well
    os._exit(0)


def receive(sock):
    """Copy the socket to stdout."""
    try:
        while True:
            data = sock.recv(_CHUNK)
            if not data:
                return
            view = memoryview(data)
            while view:
                view = view[os.write(1, view) :]
    except OSError:
        return  # the reader of our stdout is gone


if __name__ == "__main__":
    main()
