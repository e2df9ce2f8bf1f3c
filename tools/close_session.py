"""The `close_session` tool."""

from __future__ import annotations

from typing import Annotated

from sandbox.errors import SandboxError
from sandbox.session import Session
from sandbox.workspace import FileChange
from tools._budget import Answer, Grows
from tools._patch import changes
from tools._text import fenced
from tools._tool import Sessions, Tool


class CloseAnswer(Answer):
    """What had been changed when the sandbox was removed; `files` is null if it was gone already."""

    files: Annotated[list[FileChange] | None, Grows("head")]
    patch: Annotated[str, Grows("head", "It is gone with the sandbox; `diff` before closing gives more.")]


async def close_session(session: Session, sessions: Sessions) -> CloseAnswer:
    """End a session and remove its sandbox; gives the patch of what was changed, for the last time."""
    try:
        found = await session.workspace.diff()
    except SandboxError:
        found = None  # a dead sandbox is no reason to keep its session
    await sessions.close(session)
    return CloseAnswer(files=found.files if found else None, patch=found.text if found else "")


def render(answer: CloseAnswer) -> str:
    """That it is gone, and what it leaves."""
    if answer.files is None:
        return "Closed. Its sandbox was gone already."
    if not answer.files:
        return "Closed. Nothing had been changed."
    return fenced(f"Closed. {changes(answer.files)}", answer.patch, "diff")


TOOL = Tool(
    close_session,
    render,
    title="Close a session",
    group="sessions",
    destructive=True,
    idempotent=True,
    rank=2,
    wide=lambda _: True,
)
