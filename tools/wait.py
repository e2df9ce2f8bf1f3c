"""The `wait` tool."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from sandbox.session.session import Session
from tools._stop import StopAnswer, answer, render
from tools._tool import TakesEmpty, Tool


async def wait(
    session: Session,
    within_s: float | None,
    timeout_s: Annotated[float, Field(gt=0, le=3600, description="How long to wait, e.g. 30.")] = 30,
    interrupt: Annotated[
        bool, Field(description="Stop the program where it is now, e.g. true for an endless loop.")
    ] = False,
    stdin: Annotated[
        str | None,
        TakesEmpty(),
        Field(description='Text for its standard input, newline included, e.g. "yes\\n"; "\\u0004" ends it.'),
    ] = None,
) -> StopAnswer:
    """Wait for a program that `pdb` left `running` or `waiting_for_input`; interrupt it, or answer what it reads.

    Answers like `pdb`, with what the program printed meanwhile. After a call of another tool that answered `running`, gives
    the answer of that call.
    """
    timeout_s = min(timeout_s, within_s or timeout_s)
    stop = await session.debugger.wait(timeout_s=timeout_s, interrupt=interrupt, stdin=stdin)
    return answer(stop, session)


TOOL = Tool(
    wait,
    render,
    title="Wait for the program",
    group="debug",
    slow=True,
    continues=lambda arguments: True,
    aliases={"timeout": "timeout_s"},
)
