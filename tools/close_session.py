"""The `close_session` tool."""

from __future__ import annotations

from typing import Annotated

from sandbox.errors import PdboxError, SandboxError, SandboxLost
from sandbox.session.session import Session
from sandbox.session.workspace import FileChange
from tools._patch import MAX_PATCH, changes, digest
from tools._text import fence
from tools._tool import Sessions, Tool
from tools._truncation import Answer, Omitted, SourceText, Truncatable


class CloseAnswer(Answer):
    """Changes when the sandbox was removed; `files` is null if they are unknown, for the `reason`."""

    files: Annotated[list[FileChange] | None, Truncatable("head")]
    changed: int = 0
    """Number of changed files, including those left out of `files`."""
    reason: str = ""
    patch_shown: bool = False
    """True if `diff` has shown the patch, and nothing has changed since; it is not given again."""
    patch: Annotated[
        str,
        Truncatable("head", "It is gone with the sandbox; `diff` before closing gives more."),
        SourceText(is_patch=True),
    ]


async def close_session(session: Session, sessions: Sessions) -> CloseAnswer:
    """End a session and remove its sandbox; gives what was changed, with the patch unless `diff` has shown it."""
    found, reason = None, ""
    try:
        found = await session.while_answering(lambda: session.workspace.diff(MAX_PATCH))
    except SandboxLost as exc:
        reason = await sessions.abandon(session, f"Its patch could not be read: {exc.message}")
        return CloseAnswer(files=None, reason=reason, patch="")
    except PdboxError as exc:
        if not session.closing:
            session.closing = True
            raise SandboxError(
                f"The session is still open, because its patch is not available: {exc.message}",
                "Save what you need with `bash` or `view`; `close_session` once more closes it without the patch.",
            ) from exc
        reason = f"Its patch is not available: {exc.message}"
    await sessions.close(session)
    if found is None:
        return CloseAnswer(files=None, reason=reason, patch="")
    is_shown = session.shown_patch == digest(found)
    return CloseAnswer(
        files=found.files, changed=found.total, patch="" if is_shown else found.text, patch_shown=is_shown
    ).with_omitted(
        Omitted(field="files", count=found.total - len(found.files), unit="items"),
        Omitted(field="patch", count=0 if is_shown else found.omitted_bytes + found.cut_bytes, unit="bytes"),
    )


def render(answer: CloseAnswer) -> str:
    """Format the confirmation, then the changes."""
    if answer.files is None:
        return f"Closed. {answer.reason}"
    if not answer.changed:
        return "Closed. Nothing had been changed."
    head = f"Closed. {changes(answer.files, answer.changed)}"
    return (
        f"{head}\nThe patch is the one that `diff` gave."
        if answer.patch_shown
        else fence(head, answer.patch, "diff")
    )


TOOL = Tool(
    close_session,
    render,
    title="Close a session",
    group="sessions",
    destructive=True,
    continues=lambda arguments: True,
    idempotent=True,
    rank=2,
    wide=lambda _: True,
)
