"""The `diff` tool."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from sandbox.session.session import Session
from sandbox.session.workspace import FileChange
from tools import _session_uris as documents
from tools._patch import MAX_PATCH, changes, digest
from tools._text import fence
from tools._tool import Tool
from tools._truncation import LIMIT, Answer, Omitted, SourceText, Truncatable

_SHORT = 3 * LIMIT // 4
"""Characters of a patch that is sure not to be cut."""


class DiffAnswer(Answer):
    """All changes since the session began, as a patch for `git apply` (empty in format "summary")."""

    files: Annotated[list[FileChange], Truncatable("head")]
    changed: int = 0
    """Number of changed files, including those left out of `files`."""
    patch: Annotated[str, Truncatable("head"), SourceText(is_patch=True)]


async def diff(
    session: Session,
    format: Annotated[  # noqa: A002  (the name clients see)
        Literal["patch", "full", "summary"],
        Field(description='"full" cuts later than "patch"; "summary" only counts lines.'),
    ] = "patch",
) -> DiffAnswer:
    """Show everything changed in the repository since the session began, as a unified diff."""
    found = await session.workspace.diff(MAX_PATCH)
    with_patch = format != "summary"
    if format == "full" or (with_patch and len(found.text) <= _SHORT):
        session.shown_patch = digest(found)
    answer = DiffAnswer(
        files=found.files, changed=found.total, patch=found.text if with_patch else ""
    ).with_omitted(
        Omitted(field="files", count=found.total - len(found.files), unit="items"),
        Omitted(
            field="patch",
            count=found.omitted_bytes * with_patch,
            unit="bytes",
            hint="They are of files too large for a patch.",
        ),
        Omitted(field="patch", count=found.cut_bytes * with_patch, unit="bytes"),
    )
    more = 'Format "full" has more. ' if format == "patch" else ""
    return answer.with_hints(patch=more + documents.hint(session, documents.PATCH))


def render(answer: DiffAnswer) -> str:
    """Format the list of changed files, then the patch."""
    if not answer.changed:
        return "Nothing has changed since the session began."
    head = changes(answer.files, answer.changed)
    return fence(head, answer.patch, "diff") if answer.patch else head


TOOL = Tool(
    diff,
    render,
    title="Show all changes",
    group="files",
    rank=4,
    read_only=True,
    idempotent=True,
    continues=lambda arguments: True,
    wide=lambda arguments: arguments["format"] == "full",
)
