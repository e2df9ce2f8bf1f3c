"""The `start_session` tool."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from sandbox.opening.request import SessionRequest
from tools._advice import advise
from tools._tool import Environment, Report, Sessions, Tool
from tools._truncation import Answer, Truncatable

_INSTRUCTIONS = (
    'Next: `eval` runs the tests. `pdb` with command="b file:line\\nc" debugs. '
    "Close it with `close_session`; it ends by itself after {} without a call."
)
_MAX_TEXT = 4096
"""Maximum characters of a path, a URL or a name."""


class StartAnswer(Answer):
    """The new session. `session_id` is a secret: everybody who has it can use the session."""

    session_id: str
    isolation: str
    image: str
    python: str
    workdir: str
    entrypoint: str | None
    debug_entrypoint: str | None
    expires_in_s: int
    instructions: str
    task: Annotated[str, Truncatable("both")] = ""
    """Text of the task."""
    notices: Annotated[list[str], Truncatable("head")]


async def start_session(
    sessions: Sessions,
    report: Report,
    repo: Annotated[
        str | None,
        Field(
            max_length=_MAX_TEXT,
            description='Folder, archive or git URL, e.g. "/home/me/shop"; "image:/testbed" is a folder of `image`.',
        ),
    ] = None,
    task: Annotated[str | None, Field(max_length=_MAX_TEXT, description="Task by name.")] = None,
    image: Annotated[
        str | None,
        Field(max_length=_MAX_TEXT, description='Image with a Python, e.g. "python:3.12".'),
    ] = None,
    python: Annotated[str | None, Field(max_length=_MAX_TEXT, description='Version, e.g. "3.12".')] = None,
    ref: Annotated[
        str | None,
        Field(max_length=_MAX_TEXT, description='Commit, branch or tag to check out, e.g. "v1.2".'),
    ] = None,
    entrypoint: Annotated[
        str | None, Field(description='How `eval` runs the tests, e.g. "python -m pytest -q".')
    ] = None,
    debug_entrypoint: Annotated[
        str | None,
        Field(description='What `pdb` debugs, e.g. "pytest tests/test_shop.py"; else entrypoint.'),
    ] = None,
    setup: Annotated[
        list[str] | None, Field(description='Shell commands run first, e.g. ["pip install -e ."].')
    ] = None,
    env: Annotated[Environment | None, Field(description='Environment, e.g. ["TZ=UTC"].')] = None,
    network: Annotated[bool, Field(description="Ask for network, if allowed.")] = False,
    resume: Annotated[
        str | None,
        Field(max_length=_MAX_TEXT, description="session_id of a lost session: gets its edits back."),
    ] = None,
) -> StartAnswer:
    """Open a sandbox with a copy of a Python repository and get its session_id.

    Without `repo` it is the one the server was started for. Everything happens in the copy: `diff` shows the changes.
    """
    request = SessionRequest(
        repo=repo,
        ref=ref,
        image=image,
        python=python,
        entrypoint=entrypoint,
        debug_entrypoint=debug_entrypoint,
        setup=tuple(setup) if setup is not None else None,
        env=env or {},
        network=network,
        task=task,
        resume=resume,
    )
    session = await sessions.open(request, report)
    info = await session.info()
    assert session.handle is not None  # only a session that was found again may have none
    return StartAnswer(
        session_id=session.handle,
        isolation=info.isolation,
        image=info.image,
        python=info.python,
        workdir=info.workdir,
        entrypoint=info.entrypoint,
        debug_entrypoint=info.debug_entrypoint,
        expires_in_s=round(info.expires_in_s),
        instructions=advise(_INSTRUCTIONS.format(_duration(info.expires_in_s))),
        task=session.instruction,
        notices=info.notices,
    )


def _duration(seconds: float) -> str:
    return f"{round(seconds / 60)} min" if seconds >= 120 else f"{round(seconds)} s"


def render(answer: StartAnswer) -> str:
    """Format the facts about the session, then the next steps."""
    lines = [
        f"session_id: {answer.session_id}",
        f"isolation: {answer.isolation}",
        f"image: {answer.image}" if answer.image else "",
        f"python: {answer.python}, repository in {answer.workdir}",
        f"entrypoint: {answer.entrypoint or 'none: give one to `eval`'}",
        f"debug_entrypoint: {answer.debug_entrypoint or advise('none: give `entrypoint` to `pdb`')}",
        *(f"note: {notice}" for notice in answer.notices),
        answer.instructions,
        f"\nYour task:\n{answer.task}" if answer.task else "",
    ]
    return "\n".join(line for line in lines if line)


TOOL = Tool(
    start_session,
    render,
    title="Start a session",
    group="sessions",
    open_world=True,
    wide=lambda arguments: True,
    slow=True,
    rank=0,
)
