"""Documents of a session besides its files, by URI. Clients read them as resources, models with `view`."""

from __future__ import annotations

import re
from urllib.parse import unquote

import anyio.to_thread

from sandbox.errors import InvalidArgument, NotFound
from sandbox.session.session import Session
from tools._text import without_overwritten

PREFIX = "pdbox://session/"
PATCH = "patch"
OUTPUT = "output"
TESTS = "tests"
SOURCE = "source/"

_MAX_LINE = 1000
"""Maximum characters of a line when a document is shown by lines."""
_MAX_CHARACTERS = 64 << 10
"""Maximum characters of all lines, more than any answer can have."""
_NUMBERED = re.compile(r"output/([0-9]{1,15})")


def uri_of(session: Session, name: str) -> str:
    """The URI of the document `name`, e.g. `patch` or `output/7`."""
    return f"{PREFIX}{session.handle}/{name}"


def hint(session: Session, name: str) -> str:
    """Hint for reading the whole document `name` with a tool."""
    return f"All of it: `view` {uri_of(session, name)}"


def output_hint(session: Session) -> str:
    """Hint for reading everything that the program has printed in this run."""
    return f"What this run printed: `view` {uri_of(session, OUTPUT)}"


def saved_output_hint(session: Session, number: int | None) -> str | None:
    """Hint for reading a saved output; None if it was not saved."""
    return hint(session, f"{OUTPUT}/{number}") if number is not None else None


def is_uri(path: str) -> bool:
    """True if `path` names a document rather than a file."""
    return path.startswith("pdbox:")


def name_in(session: Session, uri: str) -> str:
    """The name of the document of `session` with this `uri`.

    Raises:
        InvalidArgument: the URI is not one of this session.
    """
    own = uri_of(session, "")
    name = uri.partition("?")[0].removeprefix(own)
    if not uri.startswith(own) or not name:
        raise InvalidArgument(
            "This is no URI of the session of this call.", "Pass the session_id that the URI contains."
        )
    return unquote(name)


async def document(session: Session, name: str) -> str:
    """The text of the document `output`, `output/<number>` or `tests`. A patch may be too long for this function.

    Raises:
        NotFound: there is no document of that name.
    """
    if name == TESTS:
        return "".join(f"{outcome} {test}\n" for test, outcome in session.metadata.outcomes.items())
    if name == OUTPUT:
        return await session.output.whole()
    if (found := _NUMBERED.fullmatch(name)) is not None:
        return await session.output.whole(int(found[1]))
    raise NotFound(
        f"There is nothing called {name[:100]!r} to read.",
        "There are: output, output/<number>, patch, tests, source/<path>.",
    )


class Rows:
    """Lines of a document from row `start` on, limited to the size of an answer, and the total number of lines."""

    def __init__(self, start: int) -> None:
        self.shown: list[str] = []
        self.total = 0
        self._start = start
        self._left = _MAX_CHARACTERS
        self._rest = b""

    def take(self, piece: bytes) -> None:
        """Add the next piece of the document."""
        lines = (self._rest + piece).split(b"\n")
        self._rest = lines.pop()
        if max(map(len, lines), default=0) > _MAX_LINE:
            lines = [
                row.encode("utf-8", "surrogateescape")
                for line in lines
                for row in lines_of(line.decode("utf-8", "surrogateescape")) or [""]
            ]
        begin, self.total = max(0, self._start - 1 - self.total), self.total + len(lines)
        for line in lines[begin : begin + max(0, self._left)]:
            if self._left <= 0:
                break
            self._left -= len(line) + 1
            self.shown.append(line.decode("utf-8", "surrogateescape"))

    def end(self) -> None:
        """Add the last line, if it has no line end."""
        if self._rest:
            self.take(b"\n")


async def rows(session: Session, name: str, start: int) -> Rows:
    """Read the lines of a document from `start` on.

    Raises:
        NotFound: there is no document of that name.
    """
    found = Rows(start)
    if name == PATCH:
        await session.workspace.read_patch(found.take)
    else:  # a program may print a million lines
        text = await document(session, name)
        await anyio.to_thread.run_sync(
            lambda: found.take(without_overwritten(text).encode("utf-8", "surrogateescape"))
        )
    found.end()
    return found


def lines_of(text: str) -> list[str]:
    """Split a document into lines. Lines too long for an answer become several."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line[at : at + _MAX_LINE] for line in lines for at in range(0, max(len(line), 1), _MAX_LINE)]
