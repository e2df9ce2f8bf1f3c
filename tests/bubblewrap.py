"""Detection of a bubblewrap that works on this machine; the backend that tests without containers use."""

from __future__ import annotations

import os

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

UNSAFE = ["--backend", "process", "--unsafe-no-isolation"]
"""Flags for tests in which a program meets this machine: its files, process ids or network."""
LOCAL_BACKEND = os.environ.get("PDBOX_TEST_LOCAL") or ("process" if REASON else "bubblewrap")
"""The one that users without Docker get; `process` where bubblewrap does not work."""
LOCAL = UNSAFE if LOCAL_BACKEND == "process" else ["--backend", LOCAL_BACKEND]
"""Its flags of `pdbox serve`."""
