"""The `finish` tool, which the operator adds to the list (`--finish`)."""

from __future__ import annotations

from sandbox.session.session import Session
from tools._tool import Sessions, Tool
from tools._truncation import Answer


class FinishAnswer(Answer):
    """Confirmation, without a score."""

    finished: bool = True


async def finish(session: Session, sessions: Sessions) -> FinishAnswer:
    """Finish the task: hand in your changes as they are now. It can be done once, and ends the session."""
    await sessions.finish(session)
    return FinishAnswer()


def render(answer: FinishAnswer) -> str:
    """Format the confirmation."""
    return "Finished. Your changes were handed in, and the session has ended."


TOOL = Tool(finish, render, title="Finish the task", group="files", destructive=True, rank=9)
