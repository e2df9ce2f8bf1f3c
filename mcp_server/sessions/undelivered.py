"""Answers that did not reach their client, kept for its next call if that is the same: so the call is carried out once.

A client whose connection breaks can't know whether its call was carried out, and frameworks repeat it. The server can't know
everything either: what a proxy has read counts as delivered, and two equal calls may both be meant. So an answer is given again only
where the connection was lost before the answer was written or read, or where the client has given both calls the same key.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import anyio

from mcp_server.observability.receipts import Receipt, current_receipt
from sandbox.session.session import Session
from tools._tool import SESSION_ID
from tools._truncation import Answer

CALL_KEY = "pdbox/call_key"
"""Of the `_meta` of a call: the same in a repetition, another one in any other call."""
GRACE_S = 1.0
"""Time for a call to end once its connection is lost, before it is cancelled."""
_AGAIN = "this call was carried out before, and its answer did not arrive; this is that answer."
_MAX_KEY = 200


@dataclass(eq=False)
class _LastCall:
    tool: str
    arguments: dict[str, Any]
    key: str | None
    receipt: Receipt | None
    done: anyio.Event = field(default_factory=anyio.Event)
    answer: Answer | None = None

    def is_repeated_by(self, other: _LastCall) -> bool:
        if (self.tool, self.arguments) != (other.tool, other.arguments):
            return False
        if self.key is not None and self.key == other.key:
            return True
        return self.receipt is not None and self.receipt.is_lost()


class UndeliveredAnswers:
    """The last call of each session that changed something, with its answer."""

    def __init__(self) -> None:
        self._last: WeakKeyDictionary[Session, _LastCall] = WeakKeyDictionary()

    async def run_once(
        self,
        session: Session,
        tool: str,
        arguments: Mapping[str, Any],
        meta: Mapping[str, Any] | None,
        work: Callable[[], Awaitable[Answer]],
    ) -> Answer:
        """Carry out a call; if it was carried out before, and its answer got lost, return that one."""
        given = {name: value for name, value in arguments.items() if name != SESSION_ID}
        call = _LastCall(tool, given, _key_of(meta), current_receipt.get())
        last = self._last.pop(session, None)
        if last is not None and last.is_repeated_by(call):
            await last.done.wait()
            if last.answer is not None:
                last.receipt = call.receipt
                self._last[session] = last
                return last.answer.model_copy(update={"notice": f"{_AGAIN} {last.answer.notice}".strip()})
        self._last[session] = call
        try:
            call.answer = await work()
        finally:
            call.done.set()
        return call.answer


def _key_of(meta: Mapping[str, Any] | None) -> str | None:
    key = (meta or {}).get(CALL_KEY)
    return key if isinstance(key, str) and 0 < len(key) <= _MAX_KEY else None
