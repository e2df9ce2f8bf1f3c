"""The `diff` tool."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from sandbox.session import Session
from sandbox.workspace import FileChange
from tools import _documents as documents
from tools._budget import Answer, Grows, Omitted
from tools._patch import changes
from tools._text import fenced
from tools._tool import Tool


class DiffAnswer(Answer):
    """All changes since the session began, as a patch for `git apply` (empty in format "summary")."""

    files: Annotated[list[FileChange], Grows("head")]
    patch: Annotated[str, Grows("head")]


async def diff(
    session: Session,
    format: Annotated[  # noqa: A002  (the name clients see)
        Literal["patch", "full", "summary"],
        Field(description='"full" cuts later than "patch"; "summary" only counts lines.'),
    ] = "patch",
) -> DiffAnswer:
    """Show everything changed in the repository since the session began, as a unified diff."""
    found = await session.workspace.diff()
    answer = DiffAnswer(files=found.files, patch="" if format == "summary" else found.text).without(
        Omitted(
            field="patch",
            count=0 if format == "summary" else found.omitted_bytes,
            unit="bytes",
            hint="They are too many.",
        )
    )
    more = 'Format "full" has more. ' if format == "patch" else ""
    return answer.reachable(patch=more + documents.hint(session, documents.PATCH))


def render(answer: DiffAnswer) -> str:
    """What changed, then the patch."""
    if not answer.files:
        return "Nothing has changed since the session began."
    return fenced(changes(answer.files), answer.patch, "diff") if answer.patch else changes(answer.files)


TOOL = Tool(
    diff,
    render,
    title="Show all changes",
    group="files",
    rank=4,
    read_only=True,
    idempotent=True,
    wide=lambda arguments: arguments["format"] == "full",
)
