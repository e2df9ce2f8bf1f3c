"""Session metadata: stored in the sandbox, so that the next server finds it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from pydantic import field_validator

from sandbox.session.guest_data import GuestData, Number, validate

_MAX_WORDS = 1 << 14
_MAX_OUTCOMES = 2 << 20
"""Maximum bytes of JSON for the outcomes of earlier test runs, which the sandbox holds in memory."""
_MAX_NOTICES = 64


@dataclass(frozen=True)
class SessionMetadata:
    """Session metadata stored in the sandbox, for the next server that takes the session over."""

    env: dict[str, str] = field(default_factory=dict[str, str])
    entrypoint: str | None = None
    debug_entrypoint: str | None = None
    notices: tuple[str, ...] = ()
    outcomes: dict[str, str] = field(default_factory=dict[str, str])
    """Test id to outcome, as last run."""
    untested_rewrites: Number = 0
    """Number of rewrites since the last test run that was counted."""
    failed_rewrites: Number = 0
    """Number of rewrites after which a test run failed."""

    @property
    def first_failing(self) -> str | None:
        """The first test that failed when it was last run."""
        return next(iter(self.failing), None)

    @property
    def failing(self) -> list[str]:
        """Ids of the tests that failed when they last ran."""
        return [name for name, outcome in self.outcomes.items() if outcome in ("failed", "error")]


def parse_metadata(data: dict[str, Any]) -> SessionMetadata:
    """Check metadata from a sandbox.

    Raises:
        ProtocolViolation: it is malformed.
    """
    return validate(_Stored, {"metadata": data}).metadata


class _Stored(GuestData):
    metadata: SessionMetadata

    @field_validator("metadata")
    @classmethod
    def _check_bounds(cls, metadata: SessionMetadata) -> SessionMetadata:
        """Limit the size: programs in the sandbox can forge the metadata."""
        words = (*metadata.notices, metadata.entrypoint or "", metadata.debug_entrypoint or "")
        if any(len(word) > _MAX_WORDS for word in words) or len(metadata.notices) > _MAX_NOTICES:
            raise ValueError("too long")
        return metadata


def latest_outcomes(outcomes: dict[str, str]) -> dict[str, str]:
    """Return the last of `outcomes` that fit into _MAX_OUTCOMES."""
    left, kept = _MAX_OUTCOMES, len(outcomes)
    for name in reversed(outcomes):
        left -= len(json.dumps(name)) + 16
        if left < 0:
            break
        kept -= 1
    return dict(islice(outcomes.items(), kept, None))
