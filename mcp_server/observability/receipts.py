"""Receipts of the answers to requests over HTTP; on stdio there are none."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Protocol


class Receipt(Protocol):
    """Tells whether an answer was lost on its way to the client."""

    def is_lost(self) -> bool:
        """True if the connection ended before the client had the answer."""
        ...


current_receipt: ContextVar[Receipt | None] = ContextVar("receipt of the answer", default=None)
