"""What the operator lets clients have."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sandbox.base import Lifetime, Limits


@dataclass(frozen=True)
class Policy:
    """What the operator allows; neither a client nor a repository can loosen it."""

    roots: tuple[Path, ...] = ()
    limits: Limits = Limits()
    lifetime: Lifetime = Lifetime()
    allow_network: bool = False
    """Clients may ask for a network."""
    setup_network: bool = False
    """Set-up commands and clones have a network; it is cut before the session is handed over."""
    mounts: tuple[tuple[str, str], ...] = ()
