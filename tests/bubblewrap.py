"""Whether bubblewrap can make sandboxes on this machine."""

from __future__ import annotations

import anyio
import pytest

from sandbox.bubblewrap.backend import BubblewrapBackend
from sandbox.errors import BackendUnavailable


def why_not() -> str:
    """Why it can't; empty if it can."""
    try:
        anyio.run(BubblewrapBackend().probe)
    except BackendUnavailable as exc:
        return str(exc)
    return ""


REASON = why_not()
BUBBLEWRAP = pytest.param("bubblewrap", marks=pytest.mark.skipif(bool(REASON), reason=REASON or "it works"))
"""The backend as a parameter."""
