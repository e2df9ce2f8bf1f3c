"""Receipts of the answers to requests over HTTP; on stdio there are none."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Protocol


class Receipt(Protocol):
    """Tells when an answer is written, and whether it was lost on its way to the client."""

    def is_lost(self) -> bool:
        """True if the connection ended before the client had the answer."""
        ...

    def when_written(self, work: Callable[[], None]) -> None:
        """Do `work` once the answer is written, or will not be any more; at once if it is a part of a stream."""
        ...


current_receipt: ContextVar[Receipt | None] = ContextVar("receipt of the answer", default=None)
