"""Lets one request have the files to itself, until another request needs them."""

from __future__ import annotations

import threading

from ..errors import GuestError


class SoleUse:
    """Counts the requests that may use files. One of them may put other files in their place meanwhile.

    It gives way as soon as another request arrives, which waits until the files are as they were. So nobody ever
    sees the other files.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._users = 0
        self._give_way = None

    def enter(self) -> None:
        """Count one more request. The one that has the files to itself is told to give way."""
        with self._changed:
            self._users += 1
            give_way = self._give_way
        if give_way is not None:
            give_way()

    def leave(self) -> None:
        """Count one request less."""
        with self._changed:
            self._users -= 1

    def wait(self, is_cancelled) -> None:
        """Wait until no other request has the files to itself. Raises GuestError (cancelled)."""
        # Without the lock: for a request that has entered, it can only change to None.
        while self._give_way is not None:
            with self._changed:
                self._changed.wait_for(lambda: self._give_way is None, 0.1)
            if is_cancelled():
                raise GuestError("cancelled", "The request was cancelled.")

    def take(self, give_way) -> bool:
        """Have the files for the one request that has entered, until `release`. False: others use them.

        `give_way()` is called, in another thread and perhaps several times, when the files are needed.
        """
        with self._changed:
            if self._users > 1 or self._give_way is not None:
                return False
            self._give_way = give_way
            return True

    def release(self) -> None:
        """Let the requests that wait go on."""
        with self._changed:
            self._give_way = None
            self._changed.notify_all()
