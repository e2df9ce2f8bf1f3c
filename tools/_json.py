"""JSON text of a client: too much of it is refused before it is decoded."""

from __future__ import annotations

from sandbox.transport.json_values import has_more_values

MAX_VALUES = 10_000
"""Maximum number of values in one request, more than any tool needs.

Decoding and checking a value takes microseconds, during which no other request is served.
"""


def has_too_many_values(text: bytes) -> bool:
    """True if JSON text has more than `MAX_VALUES` values."""
    return has_more_values(text, MAX_VALUES)
