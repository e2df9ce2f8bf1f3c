"""List or remove sandboxes of yours, whichever server started them."""

from __future__ import annotations

import argparse
import json
import time

import anyio

from mcp_server.backends import opened
from mcp_server.server import owner_of
from mcp_server.settings import Settings
from sandbox.base import Backend, Found
from sandbox.errors import SandboxLost


def arguments(parser: argparse.ArgumentParser) -> None:
    """`list` or `reap`."""
    parser.add_argument(
        "action", choices=["list", "reap"], help="reap removes all of them, also those in use"
    )


def run(args: argparse.Namespace, settings: Settings) -> int:
    """List or reap, then print what was found."""
    found = anyio.run(_found, settings, args.action == "reap")
    if args.json:
        print(
            json.dumps(
                [{"place": one.place, "age_s": _age_s(one), "image": one.image} for one in found], indent=2
            )
        )
    else:
        done = "removed " if args.action == "reap" else ""
        print(
            "\n".join(
                f"{done}{one.place}  {_age_s(one) // 60} min old  {one.image}".rstrip() for one in found
            )
            or "no sessions"
        )
    return 0


async def _found(settings: Settings, remove: bool) -> list[Found]:
    async with opened(settings) as backend:
        found = sorted(await backend.find(owner_of()), key=lambda one: one.created)
        if remove:
            for one in found:
                await _remove(backend, one)
        return found


async def _remove(backend: Backend, found: Found) -> None:
    try:
        sandbox = await backend.adopt(found)
    except SandboxLost:
        return  # it went by itself meanwhile
    await sandbox.aclose()


def _age_s(found: Found) -> int:
    return max(0, round(time.time() - found.created))
