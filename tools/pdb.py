"""The `pdb` tool."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from sandbox.session.session import Session
from tools._stop import StopAnswer, answer, render
from tools._tool import Tool

_AT_A_STOP = re.compile(
    r"\s*(a|args|bt|d|down|l|list|ll|locals|longlist|n|next|p|pp|r|return|s|step|u|unt|until|up|w|whatis|where)\b"
)


async def pdb(
    session: Session,
    within_s: float | None,
    command: Annotated[
        str,
        Field(
            description='pdb commands, one a line, e.g. "b shop/pricing.py:6, rate > 1\\nc" or "p order.total".'
        ),
    ],
    entrypoint: Annotated[
        str | None,
        Field(
            description="What to debug; starts it if it is another one than now, or at a post-mortem stop, "
            'e.g. "pytest tests/test_shop.py::test_total", "python app.py 3".'
        ),
    ] = None,
    timeout_s: Annotated[
        float,
        Field(gt=0, le=3600, description="How long to wait for the next stop; nothing is killed then."),
    ] = 30,
    expect_stop: Annotated[
        int | None, Field(ge=0, description="Refuse unless this is still the current stop number.")
    ] = None,
) -> StopAnswer:
    """Send commands to a real pdb in a Python program that stays alive between calls.

    The first command starts the program (the session's, or `entrypoint`). All of pdb works: b, tbreak,
    condition, c, n, s, r, unt, up, down, w, l, p, !statement, run, q; also `p await f()`, `w tasks`; `watch self.total`
    stops `c` where that changes; `checkpoint`, then `restart 1`. A failing test or exception stops post
    mortem with path, test, locals; in tests, steps stay in the repository (`s all` leaves it). Answers with place, reply,
    output, source, changed locals. `running`: no stop in timeout_s: `wait` goes on, `q` ends it. Breakpoints
    stop in child Pythons: `processes` lists them, `process 2` turns to one.
    """
    stop = await session.debugger.command(
        command, entrypoint=entrypoint, timeout_s=timeout_s, expect_stop=expect_stop, running_after_s=within_s
    )
    return answer(stop, session)


def _continues(arguments: Mapping[str, Any]) -> bool:
    """True if the commands begin with a look around, or a step: those of a program that is new go somewhere first."""
    return arguments["entrypoint"] is None and _AT_A_STOP.match(arguments["command"]) is not None


TOOL = Tool(
    pdb,
    render,
    title="Debug with pdb",
    group="debug",
    slow=True,
    continues=_continues,
    aliases={"timeout": "timeout_s"},
)
