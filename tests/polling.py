"""Pauses of tests that ask again and again whether something has happened."""

from __future__ import annotations

import anyio


async def pause(seconds: float = 0.05) -> None:
    """Leave the processor to what is waited for, before it is asked again."""
    await anyio.sleep(seconds)
