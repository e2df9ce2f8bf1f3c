"""Limits and permissions that the operator sets for clients."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sandbox.image_names import AllowedImages
from sandbox.opening.kept_setups import KeptSetups
from sandbox.spec import Lifetime, Limits


@dataclass(frozen=True)
class Sources:
    """Extra sources of packages and repositories for set-up commands and clones."""

    index_url: str | None = None
    """Package index of pip and uv instead of PyPI."""
    ca_bundle: bytes = b""
    """Certificates (PEM) that are trusted besides the system's."""


@dataclass(frozen=True)
class Policy:
    """Permissions set by the operator. Neither a client nor a repository can extend them."""

    roots: tuple[Path, ...] = ()
    limits: Limits = Limits()
    lifetime: Lifetime = Lifetime()
    allow_network: bool = False
    """True if clients may request a network."""
    setup_network: bool = False
    """True if set-up commands and clones have a network. It is removed before the session is handed over."""
    sources: Sources = Sources()
    mounts: tuple[tuple[str, str], ...] = ()
    setups: KeptSetups | None = None
    """Results of set-up commands to start with; None: the commands run each time."""
    images: AllowedImages = AllowedImages()
    """Images that may be pulled, besides pdbox's own. Images that are present are always allowed."""
