"""Models of the guest's answer to `diagnose`: all of it comes from the program's own interpreter."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from sandbox.session.guest_data import GuestData, Number

Text = Annotated[str, Field(max_length=1000)]
Path = Annotated[str, Field(max_length=1 << 12)]


class Place(GuestData):
    """A line of the repository."""

    path: Path = ""
    line: Number = 0
    function: Text = ""
    text: Text = ""


class Failure(GuestData):
    """Exception that ended the test, and the innermost line of the repository that it passed."""

    type: Text
    message: Text = ""
    path: Path = ""
    line: Number = 0


class Suspect(Place):
    """A function with the line that sets the failing test apart from passing ones."""

    score: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.0
    passing: Number = 0
    """Number of passing tests that ran the line."""
    more: Annotated[list[Number], Field(max_length=16)] = []
    """Further lines of the function with the same score."""


class FailingTest(Failure):
    """Another test that fails."""

    test: Text


class Spectrum(GuestData):
    """Lines that ran in the failing test and in few passing ones."""

    passed: Number = 0
    failed: Number = 0
    """Number of tests that fail alike: the test itself, and its other parameters."""
    others: Number = 0
    """Number of tests that fail otherwise, which do not count."""
    failing: Annotated[list[FailingTest], Field(max_length=3)] = []
    """The first of them."""
    cut: Text = ""
    plain: Failure | None = None
    suspects: Annotated[list[Suspect], Field(max_length=100)] = []
    problems: Annotated[list[Text], Field(max_length=20)] = []


class Alias(GuestData):
    """An object that two names hold, and that was changed through one of them.

    `parted`: instead, the name `through` was set to another object at `changed`, and `name` keeps the old one.
    `places`: instead, one expression put it into so many places of a container, and `name` is empty.
    `of_peers`: several objects hold it as the same attribute.
    """

    stored: Place
    given: Place | None = None
    """Place at which it was given as an argument, if it was stored in a function called there."""
    name: Text
    changed: Place
    through: Text
    kind: Text = ""
    parted: bool = False
    of_peers: bool = False
    places: Number = 0
    score: Annotated[float, Field(allow_inf_nan=False)] = 0.0


class Argument(GuestData):
    """An argument that differs between two calls of a function."""

    name: Text
    then: Text
    now: Text


class Kept(GuestData):
    """State that one call of a function wrote and a later call of it read.

    Without a function, different ones did: a global of a module, or of an object that a test has called methods of.
    """

    written: Place
    read: Place
    name: Text
    function: Text = ""
    value: Text = ""
    """Plain value that was written and that before it, or the arguments of the change."""
    shared_at: Number = 0
    """Line, in the file of `written`, of the class attribute that it is; 0 if it is none."""
    writers: Annotated[list[Place], Field(max_length=10)] = []
    """Functions that changed the global before it was read, the last first; a helper's caller in its place."""
    others: Annotated[list[Place], Field(max_length=10)] = []
    """Further functions of the same file that set or change it."""
    held: Place | None = None
    """Place at which the object that has the state became that of `holder`, which outlives calls."""
    holder: Text = ""
    was: Text = ""
    """Type of the value before, if the written one has another."""
    arguments: Annotated[list[Argument], Field(max_length=10)] = []
    """Those of `function` that differ between the call that wrote and the one that read."""
    passed_by: Annotated[list[Place], Field(max_length=10)] = []
    """Methods of the same object that were called between the write and the read, changed something, and left it."""
    score: Annotated[float, Field(allow_inf_nan=False)] = 0.0


class Link(Place):
    """One step from the failure back to where a value came from."""

    name: Text = ""
    value: Text = ""
    refused: bool = False
    """True for a function whose call failed before it began."""


class ObjectClass(Place):
    """The class of an object; `function` is its qualified name."""

    last: Number = 0
    """Line before its first method."""


class Found(Place):
    """First appearance of a value, or a change that put it into an object."""

    name: Text = ""
    value: Text
    is_change: bool = False


class Written(Place):
    """The last write of an attribute that the failing line reads."""

    name: Text = ""
    value: Text = ""


class CaughtException(Place):
    """An exception that the program caught at this place."""

    type: Text
    message: Text = ""
    raised: Place
    """The innermost line of the repository that it passed."""


class Alike(Place):
    """A function with the same code as the function `of`, but for names and literals."""

    of: Text = ""


class Call(Place):
    """A call of the failing test, with the line of its definition; depth 0 for those that no other one told has made."""

    depth: Number = 0
    called_at: Number = 0
    """Line of the test, or of the program, that led to it; 0 if it is not recorded."""
    calls: Number = 0
    """Number of calls of the function."""
    suspect_line: Number = 0
    score: Annotated[float, Field(allow_inf_nan=False)] = 0.0
    arguments: Text = ""
    result: Text = ""
    lines: Annotated[list[tuple[Number, Text]], Field(max_length=100)] = []
    """Lines of the function with what was set or decided there last."""


class Signal(GuestData):
    """A sign of a fault; its kind tells of which places and values (`tools/_signals.py`)."""

    kind: Text
    name: Text = ""
    value: Text = ""
    other: Text = ""
    """A second value."""
    holder: Text = ""
    """Name under which the caller has the first value: `self.debug`, `kwargs['debug']`."""
    places: Annotated[list[Place], Field(min_length=1, max_length=5)]


class Difference(GuestData):
    """The first part that differs in two compared values."""

    place: Text
    """As in source, `['body'][2]`, of a text with the number of the character."""
    actual: Text
    expected: Text
    is_ordered: bool = True
    """False if nothing tells which of them is the expected one: they are the left and the right side then."""


class Helper(Place):
    """A function that a suspect one has called, with the place of that call; or one that has called it."""

    by: Place
    results: Annotated[list[Text], Field(max_length=3)] = []
    """The first different plain values that it has returned to that line."""


class ReadAttribute(Place):
    """The last write of an attribute that one of the functions of the failure has read."""

    name: Text
    value: Text = ""
    read: Place
    maker: Place | None = None
    """The line that made the object, if its constructor wrote it."""


class Recording(GuestData):
    """Findings from the recorded values of the failing test."""

    failed: Failure | None = None
    differs: Text = ""
    """The failure of the recorded run if it is another one: then there is nothing else."""
    events: Number = 0
    cut: Text = ""
    difference: Difference | None = None
    aliases: Annotated[list[Alias], Field(max_length=20)] = []
    kept: Annotated[list[Kept], Field(max_length=20)] = []
    chain: Annotated[list[Link], Field(max_length=50)] = []
    chain_end: Text = ""
    chain_of_value: bool = False
    """True if the chain leads by way of a wrong part of the compared values."""
    chain_class: ObjectClass | None = None
    """Class of the object that the chain ends at."""
    values: Annotated[list[Found], Field(max_length=10)] = []
    caught: Annotated[list[CaughtException], Field(max_length=10)] = []
    written: Annotated[list[Written], Field(max_length=10)] = []
    attributes: Annotated[list[ReadAttribute], Field(max_length=20)] = []
    signals: Annotated[list[Signal], Field(max_length=20)] = []
    alike: Annotated[list[Alike], Field(max_length=10)] = []
    calls: Annotated[list[Call], Field(max_length=50)] = []
    """Those that matter most, in order."""
    helpers: Annotated[list[Helper], Field(max_length=200)] = []
    """Functions that suspect ones have called, the most suspect first."""
    callers: Annotated[list[Helper], Field(max_length=200)] = []
    """Lines that have called suspect functions, with the place of the called one."""
    functions: Number = 0
    """Number of functions that the test has called."""
    ran: Annotated[list[Place], Field(max_length=100)] = []
    """The first of these, the most suspect first, with the line that each begins at; not `plain` ones, nor `__eq__` and the like."""
    plain: Annotated[list[Place], Field(max_length=200)] = []
    """Those that only set or return an attribute, or hand on what they are given."""
    suspects: Annotated[list[Suspect], Field(max_length=100)] = []
    """The spectrum's suspects in a better order."""
    problems: Annotated[list[Text], Field(max_length=20)] = []
    """Parts of the analysis that have failed."""


class Parting(Place):
    """A line at which a failing run and a passing one part, with a value in both."""

    name: Text = ""
    here: Text = ""
    there: Text = ""
    next_here: Number = 0
    """The line that the failing run goes on with; 0 if its function ends."""
    next_there: Number = 0


class OnlyCall(Place):
    """A function that only one of the runs called, and the line that called it."""

    called: Place


class Comparison(GuestData):
    """The failing run beside a passing one."""

    against: Text
    against_outcome: Text = ""
    against_failed: Failure | None = None
    outcome: Text = ""
    failed: Failure | None = None
    functions: Number = 0
    """Number of functions that both called."""
    cut: Text = ""
    paths: Annotated[list[Parting], Field(max_length=10)] = []
    values: Annotated[list[Parting], Field(max_length=10)] = []
    """Values that differ although what they are made of is the same."""
    inputs: Annotated[list[Parting], Field(max_length=10)] = []
    only_here: Annotated[list[OnlyCall], Field(max_length=10)] = []
    only_there: Annotated[list[OnlyCall], Field(max_length=10)] = []
    problems: Annotated[list[Text], Field(max_length=20)] = []


class CodeChange(Place):
    """A change of one place in the code with which the failing test passes."""

    change: Text
    broken: Number = 0
    """Number of other passing tests that fail with it, of those that ran."""
    breaks: Annotated[list[Text], Field(max_length=2)] = []
    """The first of them."""
    ran: Number = 0
    mended: Number = 0
    """Number of other failing tests that pass with it."""
    fails_at: Text = ""
    """Path and line in tests at which the test fails then, if it only comes further; "" if it passes."""
    only_here: bool = False
    """True if no passing test runs its line: that none fails with it says less."""
    hollow: bool = False
    """True if it leaves out all that a function does: tests that want back what they give pass with it, whatever is wrong."""
    forced: bool = False
    """True if it only decides a condition, or leaves something out: with it the test passes wherever the failure is on its way."""
    computed_by: Place | None = None
    """The function whose kept result it computes anew."""


class StateUse(Place):
    """A line that uses the state that changes are about."""

    is_written: bool = False


class State(GuestData):
    """An attribute, or a global, that most changes are about."""

    name: Text
    uses: Annotated[list[StateUse], Field(max_length=40)] = []
    """In the file of the best change, or of a function whose call that leaves out; in others, if there are few."""


class Mutation(GuestData):
    """Small changes of the code, each tried alone."""

    problem: Text = ""
    """Why none was tried."""
    tried: Number = 0
    passing: Number = 0
    """Number of those with which the test passes."""
    others: Number = 0
    """Number of other passing tests that ran with those."""
    failing: Number = 0
    """Number of other failing tests that did."""
    cut: Text = ""
    changes: Annotated[list[CodeChange], Field(max_length=20)] = []
    """The first ones mend the largest share of the other failing tests, less the share of those passing that they break."""
    further: Annotated[list[CodeChange], Field(max_length=20)] = []
    """Changes with which the test comes further, if it passes with none that breaks no other test."""
    state: State | None = None
    beside: Annotated[list[State], Field(max_length=3)] = []
    """Further attributes and globals that the best change, and the next ones of its file, name."""
    problems: Annotated[list[Text], Field(max_length=20)] = []


class Diagnosis(GuestData):
    """Findings about the cause of a failing test."""

    spectrum: Spectrum | None = None
    recording: Recording | None = None
    mutation: Mutation | None = None
    comparison: Comparison | None = None
    notes: Annotated[list[Text], Field(max_length=20)] = []
