"""Word that the program goes on: left where the supervisor looks when it has to know. Sent, it would wake the supervisor at each step.

It is one number, twice that of the request that the program goes on for, and one more when it steps.
"""

from __future__ import annotations

import os

SIZE = 8


class Left:
    """The debugger's side. Raises ImportError, OSError or ValueError where memory can't be shared."""

    def __init__(self, fd: int) -> None:
        import mmap

        # Not the descriptor: the program may close it, and open another file under its number.
        self._memory = mmap.mmap(fd, SIZE)

    def leave(self, number: int, steps: bool) -> None:
        """The program goes on for request `number`."""
        self._memory[:] = (2 * number + steps).to_bytes(SIZE, "little")


class Seen:
    """The supervisor's side: a file without a name, in the folder `home` at first. Raises OSError."""

    def __init__(self, home: str) -> None:
        path = os.path.join(home, "word")
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        os.unlink(path)
        # Written, not only made long: where there is no more space, whoever writes to its memory first would be killed for it.
        try:
            os.write(self.fd, bytes(SIZE))
        except OSError:
            os.close(self.fd)
            raise

    def look(self) -> tuple:
        """(number of the request, whether it steps), as last told. The program may write what it likes."""
        # Not mapped: the program may cut it off, and reading it there would kill us.
        try:
            told = int.from_bytes(os.pread(self.fd, SIZE, 0), "little")
        except OSError:  # the run is over
            told = 0
        return told >> 1, bool(told & 1)

    def close(self) -> None:
        """Let go of it."""
        fd, self.fd = self.fd, -1
        os.close(fd)
