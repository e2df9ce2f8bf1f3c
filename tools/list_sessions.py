"""The `list_sessions` tool."""

from __future__ import annotations

from typing import Annotated

from tools._advice import advise
from tools._text import plural
from tools._tool import OwnSession, Sessions, Tool
from tools._truncation import Answer, Truncatable


class ListAnswer(Answer):
    """Sessions of the caller, oldest first; then those of other servers, newest first."""

    sessions: Annotated[list[OwnSession], Truncatable("head")]


async def list_sessions(sessions: Sessions) -> ListAnswer:
    """List your sessions with state, age and place, e.g. after losing a session_id."""
    return ListAnswer(sessions=await sessions.list_own())


def render(answer: ListAnswer) -> str:
    """Format one line per session whose handle is known here, and one for all others."""
    own = [_line(session.session_id, session) for session in answer.sessions if session.session_id]
    others = [session for session in answer.sessions if not session.session_id]
    head = f"{plural(len(own), 'session')}:" if own else advise("No sessions. `start_session` opens one.")
    return "\n".join([head, *own, *([_summary(others)] if others else [])])


def _line(name: str, session: OwnSession) -> str:
    details = ", ".join(word for word in (session.state, session.image, session.isolation) if word)
    return f"  {name}: {details}, {_age(session)} old, in {session.place}"


def _summary(others: list[OwnSession]) -> str:
    newest = min(others, key=lambda session: session.age_s)
    return (
        f"{plural(len(others), 'session')} of other servers, the newest {_age(newest)} old; "
        "only the calls that opened them gave their session_id."
    )


def _age(session: OwnSession) -> str:
    return f"{int(session.age_s // 60)} min"


TOOL = Tool(list_sessions, render, title="List sessions", group="sessions", read_only=True, idempotent=True)
