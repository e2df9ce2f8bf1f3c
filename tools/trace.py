"""The `trace` tool: one run shown call by call, without a stop."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from sandbox.host_files import in_thread
from sandbox.session.session import Session
from sandbox.session.test_command import PYTEST
from tools._tool import Report, Tool
from tools._truncation import LIMIT, WIDE_LIMIT, Answer, Truncatable

_EVENTS = 1000
_TIMEOUT_S, _MAX_TIMEOUT_S = 120.0, 3600.0
_MAX_NAMES = 10_000
"""Characters of names in one text; a longer one is refused as a name."""
_RESERVE = 200
"""Characters for a notice."""


class TraceAnswer(Answer):
    """Outcome of a traced run, and its events as text."""

    outcome: str
    trace: Annotated[str, Truncatable("both", "Name fewer functions.")]


async def trace(
    session: Session,
    report: Report,
    of: Annotated[
        list[str],
        Field(
            description='"Cart.add", "shop/cart.py": calls; "Cart.lines": changes; "a.py:40": values there; "net#2": that call by lines.'
        ),
    ],
    test: Annotated[str | None, Field(description="Test id; else the diagnosed one.")] = None,
    entrypoint: Annotated[str | None, Field(description="Or a command.")] = None,
    expressions: Annotated[list[str], Field(description='Shown too: ["len(self.lines)"].')] = [],  # noqa: B006  (pydantic copies it)
    max_events: Annotated[int | None, Field(description="Kept: 1000.")] = None,
    timeout_s: Annotated[float | None, Field(description="Default 120.")] = None,
) -> TraceAnswer:
    """Run a test without a stop and show calls with arguments and results, a line each."""
    # With what it needs, so that the server starts without that.
    from sandbox.session.trace import MAX_EVENTS
    from tools._trace import render_outcome, render_trace

    if not (test or entrypoint):
        last, outcomes = session.diagnosed, session.metadata.outcomes
        test = last if last and outcomes.get(last) != "passed" else session.metadata.first_failing
    command = entrypoint or session.entrypoint or session.debug_entrypoint
    if test is not None and (not command or command == test):
        command = PYTEST if "::" in test else f"python -m unittest {test}"
    of = [name for one in of for name in split_names(one)]
    report("running it with a trace")
    found = await session.trace(
        command=command or PYTEST,
        test=test,
        of=of,
        expressions=expressions,
        max_events=max(2, min(max_events or _EVENTS, MAX_EVENTS)),
        timeout_s=max(1.0, min(timeout_s or _TIMEOUT_S, _MAX_TIMEOUT_S)),
    )
    outcome = render_outcome(found.outcome)[:1000]
    limit = _limit(max_events) - _RESERVE - len(outcome)
    text = await in_thread(render_trace, found, expressions, limit)
    return TraceAnswer.model_construct(outcome=outcome, trace=text)


def split_names(text: str) -> Iterator[str]:
    """The names in a text, between commas that are not in brackets."""
    if len(text) > _MAX_NAMES:
        yield text
        return
    depth, start = 0, 0
    for index, character in enumerate(f"{text},"):
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth <= 0:
            if name := text[start:index].strip():
                yield name
            start = index + 1
    if rest := text[start:].strip():  # of a bracket that is not closed
        yield rest


def _limit(max_events: object) -> int:
    return WIDE_LIMIT if isinstance(max_events, int) and max_events > _EVENTS else LIMIT


def render(answer: TraceAnswer) -> str:
    """Format the outcome, then the events."""
    return f"{answer.outcome}\n{answer.trace}"


TOOL = Tool(
    trace,
    render,
    title="Show the calls of a run",
    group="debug",
    rank=2,
    slow=True,
    wide=lambda arguments: _limit(arguments.get("max_events")) > LIMIT,
    aliases={"function": "of", "location": "of", "timeout": "timeout_s"},
)
