"""Bounded records in memory of the calls on a session and their answers."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import Any, cast
from weakref import WeakKeyDictionary

from mcp.types import CallToolResult, TextContent

from mcp_server.redaction.redactor import Redactor
from sandbox.session.session import Session
from tools._tool import SESSION_ID
from tools._truncation import Answer

MAX_BYTES = 128 << 10
"""Of one session's record; the oldest calls are dropped."""
_ANSWER = 300
_TEXT = 1000
_MAX_SEARCHED = 16 * _TEXT
"""Characters of a text that are searched for secrets: what is kept of it, and more than any secret has."""
_ITEMS = 20
_DEPTH = 3


@dataclass
class Ongoing:
    """A call under way. `session` is set once it is known that the caller may use it."""

    tool: str
    arguments: Mapping[str, Any]
    owner: str = ""
    handle: str | None = None
    """Of its session: as it was given, or as it was drawn for the one that is opened."""
    session: Session | None = None
    opened: Session | None = None
    """The session that it opened itself."""
    answer: Answer | None = None
    """Its answer as it was sent, as data."""
    at: float = field(default_factory=time.time)
    began: float = field(default_factory=time.perf_counter)
    ended: float = 0.0
    limit_s: float | None = None
    """Seconds from `began` in which its tool should answer."""

    @property
    def shown_arguments(self) -> dict[str, Any]:
        """Arguments without the session's handle, which is a secret."""
        return {name: value for name, value in self.arguments.items() if name != SESSION_ID}


class _Record:
    def __init__(self) -> None:
        self.lines: deque[str] = deque()
        self.size = 0
        self.number = 0

    def add(self, entry: dict[str, Any]) -> None:
        self.number += 1
        line = json.dumps({"number": self.number, **entry}) + "\n"  # ASCII: characters are bytes
        self.lines.append(line)
        self.size += len(line)
        while self.size > MAX_BYTES:
            self.size -= len(self.lines.popleft())


class Trajectories:
    """The records of all sessions; each goes with its session."""

    def __init__(self) -> None:
        self._records: WeakKeyDictionary[Session, _Record] = WeakKeyDictionary()

    def note(self, call: Ongoing, result: CallToolResult | None, redactor: Redactor) -> None:
        """Record a call that has been answered; `result` is None when it was cancelled."""
        if call.session is None:
            return
        record = self._records.get(call.session)
        if record is None:
            record = self._records[call.session] = _Record()
        record.add(
            {
                "at": datetime.fromtimestamp(call.at, UTC).isoformat(timespec="milliseconds"),
                "elapsed_ms": round(1000 * (call.ended - call.began), 1),
                "tool": call.tool,
                # Texts are clipped last: half a secret would not be recognized.
                "arguments": _clip(redactor.data(_thin(call.shown_arguments, _DEPTH))),
                "answer": "cancelled" if result is None else _shorten(result),
                "is_error": result is None or bool(result.is_error),
            }
        )

    def of(self, session: Session) -> str:
        """The record of `session` as JSON lines, the oldest call first."""
        record = self._records.get(session)
        return "".join(record.lines) if record is not None else ""


def _shorten(result: CallToolResult) -> str:
    text = next((block.text for block in result.content if isinstance(block, TextContent)), "")
    return text if len(text) <= _ANSWER else f"{text[:_ANSWER]}… ({len(text):,} characters)"


def _thin(value: Any, depth: int) -> Any:
    """Drop excess items, deep levels, huge numbers and the far ends of long texts from `value`."""
    if isinstance(value, str):
        return value if len(value) <= _TEXT else f"{value[:_MAX_SEARCHED]}… ({len(value):,} characters)"
    if isinstance(value, list):
        return [_thin(item, depth - 1) for item in cast(list[Any], value)[:_ITEMS]] if depth else "…"
    if isinstance(value, dict):
        pairs = islice(cast(dict[str, Any], value).items(), _ITEMS)
        return {_thin(name, 1): _thin(item, depth - 1) for name, item in pairs} if depth else "…"
    return value if not isinstance(value, int) or abs(value) < 1 << 64 else "…"


def _clip(value: Any) -> Any:
    """Cut the long texts that `_thin` left to their beginnings, and keep its note on their lengths."""
    if isinstance(value, str):
        return value if len(value) <= _TEXT else f"{value[:_TEXT]}…{value.rpartition('…')[2]}"
    if isinstance(value, list):
        return [_clip(item) for item in cast(list[Any], value)]
    if isinstance(value, dict):
        return {_clip(name): _clip(item) for name, item in cast(dict[str, Any], value).items()}
    return value
