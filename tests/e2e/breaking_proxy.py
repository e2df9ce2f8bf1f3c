"""A TCP proxy that breaks the connection of one request, with the server's answer lost."""

from __future__ import annotations

import re
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Literal
from urllib.parse import urlsplit

When = Literal["asked", "answered"]


class BreakingProxy:
    """Forwards connections; the first request in which `pattern` is found gets no answer."""

    def __init__(self, target: str, pattern: bytes, when: When) -> None:
        """`when`: break once the request was sent on, or once its answer has come; it is not read."""
        parts = urlsplit(target)
        self._target = (parts.hostname, parts.port)
        self._pattern = re.compile(pattern)
        self._when = when
        self.broken = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}{parts.path}"

    def accept(self) -> None:
        """Serve until the listener is closed."""
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._forward, args=(client,), daemon=True).start()

    def close(self) -> None:
        """Take no more connections."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _forward(self, client: socket.socket) -> None:
        with client, socket.create_connection(self._target) as server, suppress(OSError):
            other = {client: server, server: client}
            while True:
                for ready in select.select([client, server], [], [])[0]:
                    data = ready.recv(1 << 16)
                    if not data:
                        return
                    if ready is server or self.broken or not self._pattern.search(data):
                        other[ready].sendall(data)
                        continue
                    self.broken += 1
                    if self._when == "asked":
                        # With the end of the connection in one packet: the answer may be written within a millisecond.
                        server.sendall(data, socket.MSG_MORE)
                    else:
                        server.sendall(data)
                        select.select([server], [], [])
                    return


@contextmanager
def breaking(target: str, pattern: bytes, when: When) -> Iterator[BreakingProxy]:
    """A running proxy in front of `target`."""
    proxy = BreakingProxy(target, pattern, when)
    thread = threading.Thread(target=proxy.accept, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.close()
        thread.join()
