"""The `view` tool."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import BaseModel, Field

from sandbox.errors import InvalidArgument
from sandbox.session import Session
from tools import _documents as documents
from tools._budget import Answer, Grows
from tools._text import numbered, plural
from tools._tool import Tool


class Mark(BaseModel):
    """A breakpoint in the shown lines."""

    id: int
    line: int
    condition: str | None = None
    enabled: bool = True


class ViewAnswer(Answer):
    """Lines `start` to `end` of a file. `current` is the line where the program has stopped."""

    path: str
    start: int
    end: int
    total_lines: int
    lines: Annotated[list[str], Grows("head", unit="lines")]
    breakpoints: list[Mark] = Field(default_factory=list[Mark])
    current: int | None = None
    read_only: bool = False

    def settled(self) -> Self:
        end = self.start + len(self.lines) - 1
        marks = [mark for mark in self.breakpoints if mark.line <= end]
        return self.model_copy(update={"end": end, "breakpoints": marks})


async def view(
    session: Session,
    path: Annotated[str, Field(description='File, relative to the repository, e.g. "shop/pricing.py".')],
    start: Annotated[int | None, Field(ge=1, description="First line, e.g. 40.")] = None,
    end: Annotated[
        int | None, Field(ge=-1, description="Last line, e.g. 80; -1 is the end of the file.")
    ] = None,
) -> ViewAnswer:
    """Show a file with line numbers: `B` marks breakpoints, `>` the line where the program has stopped."""
    if documents.is_uri(path):
        name = documents.name_in(session, path)
        if not name.startswith(documents.SOURCE):
            return await _document(session, name, start, end)
        path = name.removeprefix(documents.SOURCE)
    file, marks = await session.workspace.read_marked(path)
    first, last = _range(file.path, len(file.lines), start, end)
    here = marks.frame
    return ViewAnswer(
        path=file.path,
        start=first,
        end=last,
        total_lines=len(file.lines),
        lines=file.lines[first - 1 : last],
        breakpoints=[
            Mark(id=point.id, line=point.line, condition=point.condition, enabled=point.enabled)
            for point in marks.breakpoints
            if first <= point.line <= last and point.state != "lost"
        ],
        current=here.line if here is not None and here.path == file.path else None,
        read_only=file.read_only,
    )


async def _document(session: Session, name: str, start: int | None, end: int | None) -> ViewAnswer:
    lines = documents.lines_of(await documents.document(session, name))
    uri = documents.uri_of(session, name)
    first, last = _range(uri, len(lines), start, end)
    shown = lines[first - 1 : last]
    return ViewAnswer(path=uri, start=first, end=last, total_lines=len(lines), lines=shown, read_only=True)


def _range(path: str, total: int, start: int | None, end: int | None) -> tuple[int, int]:
    first, last = start or 1, total if end in (None, -1) else min(end or total, total)
    if first > max(total, 1):
        raise InvalidArgument(f"{path} has {plural(total, 'line')}; start={first} is beyond its end.")
    if end not in (None, -1) and (end or 0) < first:
        raise InvalidArgument(
            f"end={end} is before start={first}.", "Lines count from 1; both ends are shown."
        )
    return first, last


def render(answer: ViewAnswer) -> str:
    """A heading, then the numbered lines."""
    mark = " (read-only)" if answer.read_only else ""
    if not answer.total_lines:
        return f"{answer.path}{mark} is empty."
    head = f"{answer.path}{mark}, lines {answer.start}-{answer.end} of {answer.total_lines}"
    marked = {mark.line for mark in answer.breakpoints}
    body = numbered(answer.lines, answer.start, current=answer.current, marked=marked)
    notes = [_note(mark) for mark in sorted(answer.breakpoints, key=lambda mark: mark.line)]
    rest = [f"Go on with start={answer.end + 1}."] if answer.omitted else []
    return "\n".join([head, body, *notes, *rest])


def _note(mark: Mark) -> str:
    condition = f", if {mark.condition}" if mark.condition else ""
    return f"B {mark.line}: breakpoint {mark.id}{condition}{'' if mark.enabled else ', disabled'}"


TOOL = Tool(
    view,
    render,
    title="Show a file",
    group="files",
    rank=1,
    read_only=True,
    idempotent=True,
    wide=lambda arguments: arguments["start"] is not None or arguments["end"] is not None,
)
