"""What stands in the place of a secret."""

from __future__ import annotations

MARK = "⟦redacted "
"""Begins every mask. No Python literal, no base64 and hardly any prose has it."""


def mask(kind: str, value: str) -> str:
    """What stands for `value`."""
    return f"{MARK}{kind}, {len(value)} chars⟧"
