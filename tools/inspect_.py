"""The `inspect` tool; the module is not called `inspect`, which would hide the standard library's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Self

from pydantic import BaseModel, Field

from sandbox.session.debugger import Part
from sandbox.session.session import Session
from tools._text import plural
from tools._tool import Tool
from tools._truncation import Answer, Truncatable, Variables

_REST = "Page with `start` and `count`, or look at one of them alone."


class Child(BaseModel):
    """A part of the value, `level` steps down, followed by its own parts."""

    name: str
    type: str
    repr: str
    length: int | None = None
    level: int = 1


class InspectAnswer(Answer):
    """A value and its parts from number `start` on, of `total`; `next` is the start of the next page."""

    expression: str
    type: str
    repr: Annotated[str, Truncatable("head", "Look at a part of it, e.g. `text[1000:2000]`.")]
    length: int | None
    start: int
    total: int
    children: Annotated[list[Child], Truncatable("head", _REST), Variables(("repr",))]
    next: int | None = None

    def after_truncation(self) -> Self:
        reached = self.start + sum(child.level == 1 for child in self.children)
        return self.model_copy(update={"next": reached if reached < self.total else None})


async def inspect_(
    session: Session,
    expression: Annotated[
        str, Field(min_length=1, description='Expression to look at, e.g. "order.items" or "locals()".')
    ],
    frame: Annotated[
        int,
        Field(ge=0, le=10_000, description="Frames outwards from the current one, e.g. 1 for the caller."),
    ] = 0,
    start: Annotated[int, Field(ge=0, le=1 << 53, description="First part to show, e.g. 50.")] = 0,
    count: Annotated[int, Field(ge=1, le=200, description="How many parts to show, e.g. 20.")] = 50,
    depth: Annotated[int, Field(ge=1, le=3, description="Levels of parts, e.g. 2.")] = 1,
) -> InspectAnswer:
    """Look into a value where the program has stopped: its type, size and parts, one page at a time.

    Shows attributes instead of calling a `__repr__` of the repository; arrays and tables by shape, type and head.
    """
    found = await session.debugger.inspect(expression, frame=frame, start=start, count=count, depth=depth)
    return InspectAnswer(
        expression=found.expression,
        type=found.type,
        repr=found.repr,
        length=found.length,
        start=found.start,
        total=found.total,
        children=list(_flatten(found.children, 1)),
    ).after_truncation()


def _flatten(parts: Sequence[Part], level: int) -> Iterator[Child]:
    for part in parts:
        yield Child(name=part.name, type=part.type, repr=part.repr, length=part.length, level=level)
        yield from _flatten(part.children, level + 1)
        if part.children and len(part.children) < part.total:
            more = f"… {part.total - len(part.children):,} more"
            yield Child(name="…", type="", repr=more, level=level + 1)


def render(answer: InspectAnswer) -> str:
    """Format the value in one line, then one line per part."""
    size = "" if answer.length is None else f", length {answer.length:,}"
    head = f"{answer.expression}: {answer.type}{size}"
    lines = [f"{'  ' * child.level}{_line(child)}" for child in answer.children]
    return "\n".join([head, f"= {answer.repr}", *lines, *_pages(answer)])


def _line(child: Child) -> str:
    if not child.type:
        return child.repr
    size = "" if child.length is None else f", length {child.length:,}"
    return f"{child.name} = {child.repr} ({child.type}{size})"


def _pages(answer: InspectAnswer) -> list[str]:
    shown = sum(child.level == 1 for child in answer.children)
    if answer.start and not shown:
        return [f"It has {plural(answer.total, 'part')}; start={answer.start} is beyond the last."]
    if shown == answer.total:
        return []
    position = f"Parts {answer.start}-{answer.start + shown - 1} of {answer.total:,}." if shown else ""
    return [f"{position} Go on with start={answer.next}." if answer.next is not None else position]


TOOL = Tool(
    inspect_,
    render,
    title="Look into a value",
    group="debug",
    rank=2,
    continues=lambda arguments: True,
    wide=lambda arguments: arguments["count"] != 50 or arguments["depth"] > 1,
)
