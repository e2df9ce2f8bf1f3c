"""A connection that has one request after the other served, with and without a thread to read on."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from sandbox.guest.protocol.frames import FrameSocket
from sandbox.guest.supervisor.connection import Connection, Workers


class FewThreads(Workers):
    """Workers that find no thread for the first jobs."""

    def __init__(self, missing: int) -> None:
        super().__init__()
        self._missing = missing

    def submit(self, job: Callable[[], None]) -> None:
        if self._missing:
            self._missing -= 1
            raise RuntimeError("can't start new thread")
        super().submit(job)


@pytest.mark.parametrize("missing", [0, 1])
def test_without_a_thread_to_read_on_a_request_is_refused_and_the_next_one_served(missing: int) -> None:
    removed: list[Connection] = []
    is_removed = threading.Event()
    served: list[threading.Thread] = []

    def answer(call: Any, args: dict[str, Any], payload: bytes) -> tuple[dict[str, Any], bytes]:
        served.append(threading.current_thread())
        return {"ok": {"of": call.operation.name}}, payload

    def remove(connection: Connection) -> None:
        removed.append(connection)
        is_removed.set()

    server = SimpleNamespace(
        state=None,
        workers=FewThreads(missing),
        begin=lambda operation: True,
        finish=lambda operation: None,
        remove_connection=remove,
        answer=answer,
    )
    ours, theirs = socket.socketpair()
    connection, client = Connection(server, FrameSocket(theirs)), FrameSocket(ours)
    reader = threading.Thread(target=connection.read)
    reader.start()
    for number in range(3):
        client.send({"id": number, "op": "view"})
        found = client.receive()
        assert found is not None
        if number < missing:
            assert found[0]["error"]["code"] == "conflict"
        else:
            assert found[0] == {"id": number, "ok": {"of": "view"}}
    reader.join()
    assert served[0] is reader and len(served) == 3 - missing
    assert not removed
    ours.shutdown(socket.SHUT_WR)
    assert client.receive() is None
    assert is_removed.wait(60)
    ours.close()
    assert removed == [connection]
