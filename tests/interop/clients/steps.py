"""What a client is told to do, and what it prints: one line of JSON. Standard library only, since it runs beside each client."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SESSION = "$SESSION"
Answer = Any
"""The structured content where a client shows it, else the text."""


@dataclass(frozen=True)
class Plan:
    """The server to reach, and the calls to make there."""

    transport: str
    command: Sequence[str]
    env: Mapping[str, str]
    url: str
    era: str
    calls: Sequence[tuple[str, Mapping[str, Any]]]

    def next_call(self, answers: Sequence[Answer]) -> tuple[str, dict[str, Any]] | None:
        """The call after those answered; None when all are made. `wait` is called as long as its answer is `running`."""
        at = 0
        for answer in answers:
            at += not (self.calls[at][0] == "wait" and is_running(answer))
        if at == len(self.calls):
            return None
        tool, arguments = self.calls[at]
        return tool, {
            name: session_of(answers[0]) if value == SESSION else value for name, value in arguments.items()
        }

    async def make_calls(self, call: Callable[[str, dict[str, Any]], Awaitable[Answer]]) -> list[Answer]:
        """All calls, one after the other."""
        answers: list[Answer] = []
        while (following := self.next_call(answers)) is not None:
            answers.append(await call(*following))
        return answers


def read_plan() -> Plan:
    """The plan is the only argument, as JSON."""
    return Plan(**json.loads(sys.argv[1]))


def is_running(answer: Answer) -> bool:
    """True if `wait` has to be called once more."""
    return answer["state"] == "running" if isinstance(answer, Mapping) else "running: `" in answer


def session_of(answer: Answer) -> str:
    """The handle in the answer of `start_session`."""
    if isinstance(answer, Mapping):
        return answer["session_id"]
    found = re.search(r"session_id: (\S+)", answer)
    if found is None:
        raise ValueError(f"no session_id in {answer!r}")
    return found[1]


def report(tools: Sequence[str], answers: Sequence[Answer], protocol: str | None = None) -> None:
    """Tell the test what was seen."""
    print(json.dumps({"tools": list(tools), "answers": list(answers), "protocol": protocol}))
