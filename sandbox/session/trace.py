"""Models of the guest's answer to `trace`: all of it comes from the program's own interpreter."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from sandbox.session.guest_data import GuestData, Number

MAX_EVENTS = 5000
"""Maximum number of events that are kept of a run."""
Text = Annotated[str, Field(max_length=1000)]
Path = Annotated[str, Field(max_length=1 << 12)]
Place = tuple[Path, Number]
Shown = tuple[Text, Number]
"""Text of a value, and the number of the object; 0 if it can't change."""
Named = Annotated[list[tuple[Text, Text]], Field(max_length=100)]


class Failure(GuestData):
    """Exception that ended a test or the program, and the innermost line of the repository that it passed."""

    text: Text = ""
    test: Text = ""
    path: Path = ""
    line: Number = 0


class Outcome(GuestData):
    """End of a run, and the outcomes of its tests."""

    counts: Annotated[dict[Literal["passed", "failed", "skipped"], Number], Field(max_length=3)] = {}
    failures: Annotated[list[Failure], Field(max_length=10)] = []
    exception: Failure | None = None
    exit_code: Number | None = None
    signal: Text | None = None
    timed_out: bool = False


class Event(GuestData):
    """A call with its end, the beginning or end of a test, a line that was hit, or a change of a watched place."""

    kind: Literal["call", "test", "hit", "change"] = Field(alias="e")
    number: Number = Field(alias="n")
    parent: Number = Field(default=0, alias="p")
    """Number of the traced call in which it happened."""
    function: Number = Field(default=0, alias="f")
    count: Number = Field(default=0, alias="i")
    """Number of the call among those of its function; of the hit among those of its line."""
    thread: Number = Field(default=0, alias="t")
    place: Place | None = Field(default=None, alias="at")
    """Line of the caller, or the line that was hit or made the change."""
    coroutine: Literal["generator", "coroutine", ""] = Field(default="", alias="k")
    arguments: Annotated[list[tuple[Text, Text, Number]], Field(max_length=50)] = Field(
        default=[], alias="args"
    )
    value: Shown | None = Field(default=None, alias="v")
    error: Text = Field(default="", alias="x")
    held_as: Text = Field(default="", alias="is")
    """Attribute of an argument that holds the result."""
    changed: Named = Field(default=[], alias="ch")
    """Arguments that the call has changed; variables at a hit."""
    expressions: Annotated[list[Text], Field(max_length=50)] = Field(default=[], alias="ex")
    yields: Number = Field(default=0, alias="y")
    yielded: Annotated[list[Shown], Field(max_length=10)] = []
    steps: Annotated[list[tuple[Number, Text, Named]], Field(max_length=5000)] = []
    """Line, its text, and the variables that it has changed, of a call that is told line by line."""
    name: Text = ""
    """Name of the test, or of what has changed."""
    outcome: Text | None = None
    how: Literal["set", "in place", "deleted", "first seen", "shared", ""] = ""
    """Kind of a change; `shared`: another name has been given to the same object."""
    before: Text = ""
    """Value before a change; the other name of an object that is shared."""
    detail: Text = ""
    """Parts that a change in place has changed: `[1] = 5`."""
    source: Text = Field(default="", alias="s")
    function_name: Text = Field(default="", alias="in")
    called_from: Place | None = Field(default=None, alias="by")
    others: Annotated[list[Text], Field(max_length=10)] = Field(default=[], alias="same")
    """Other holders of the same object."""


class Trace(GuestData):
    """Events of a traced run."""

    outcome: Outcome = Outcome()
    differs: Outcome | None = None
    """Outcome of a plain run, if it is another one."""
    functions: Annotated[list[tuple[Text, Path, Number, Number, bool]], Field(max_length=2000)] = []
    """(name, path, first line, calls, True if its calls are told)."""
    hits: Annotated[list[tuple[Path, Number, Number]], Field(max_length=1000)] = []
    """(path, line, number of times that it ran)."""
    watched: Annotated[list[tuple[Text, Number, Number]], Field(max_length=1000)] = []
    """(name, number of places that had it, number of changes)."""
    threads: Number = 0
    events: Annotated[list[Event], Field(max_length=4 * MAX_EVENTS)] = []
    missing: Annotated[list[Text], Field(max_length=50)] = []
    cut: Text = ""
    notes: Annotated[list[Text], Field(max_length=20)] = []
