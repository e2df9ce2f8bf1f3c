"""Sandboxes that were started ahead of their sessions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from sandbox.backend import Sandbox
from sandbox.spec import SandboxSpec
from sandbox.transport.connection import GuestConnection


@dataclass(frozen=True)
class Ready:
    """A sandbox that was started ahead, and the connection to it."""

    sandbox: Sandbox
    connection: GuestConnection


Take = Callable[[SandboxSpec], Awaitable[Ready | None]]
"""Callback that returns a ready sandbox matching a specification in everything but its owner."""
