"""Sessions with a program that never ends by itself, for tests of transports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio

from tests.e2e.client import Session
from tests.e2e.served import serving
from tests.polling import pause

ENDLESS = "n = 0\nwhile True:\n    n += 1\n"


def over_http(repo: Path, backend: list[str]) -> Any:
    return serving("--repo", str(repo), "--entrypoint", "python app.py", *backend)


async def opened(client: Session) -> dict[str, Any]:
    """A new session, as `list_sessions` has it."""
    handle = (await client.call("start_session"))["session_id"]
    return next(
        one for one in (await client.call("list_sessions"))["sessions"] if one["session_id"] == handle
    )


async def begun(client: Session) -> str:
    """A new session, whose program is in its endless loop."""
    handle = (await opened(client))["session_id"]
    stop = await client.call("pdb", command="b 3\nc", session_id=handle)
    await client.call("pdb", command="clear 1", session_id=handle)
    assert stop["state"] == "stopped"
    return handle


async def until(client: Session, handle: str, state: str) -> None:
    """Wait until that session is in `state`."""
    with anyio.fail_after(60):
        while True:
            listed = (await client.call("list_sessions"))["sessions"]
            if next(one["state"] for one in listed if one["session_id"] == handle) == state:
                return
            await pause()


async def long_call(client: Session, handle: str) -> None:
    await client.call("pdb", command="c", timeout_s=300, session_id=handle)
