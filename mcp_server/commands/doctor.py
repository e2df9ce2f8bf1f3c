"""Check whether sandboxes work on this machine: find the Docker engine and the images, start a sandbox and test its limits.

Without an engine, bubblewrap is enough. Exit code 0 if all checks are fine, or if bubblewrap works.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict

import anyio

from mcp_server.settings import Settings
from sandbox.bubblewrap.backend import BubblewrapBackend
from sandbox.docker.backend import DockerBackend
from sandbox.docker.doctor import Check, examine
from sandbox.errors import BackendUnavailable

SETTINGS = ("runtime",)
_BUBBLEWRAP = "bubblewrap"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Nothing of its own."""


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Print each check; 0 when sandboxes can be made."""
    checks = anyio.run(_examine, args.environ, settings.runtime)
    print(as_json(checks) if args.json else as_text(checks))
    return 0 if _is_fine(checks) else 1


async def _examine(environ: Mapping[str, str], runtime: str) -> list[Check]:
    backend = DockerBackend(environ, runtime=runtime)
    return [*await examine(backend), await _try_bubblewrap(environ)]


async def _try_bubblewrap(environ: Mapping[str, str]) -> Check:
    try:
        found = await BubblewrapBackend(environ).probe()
    except BackendUnavailable as exc:
        return Check(_BUBBLEWRAP, ok=False, text=exc.message, fix=exc.hint)
    return Check(_BUBBLEWRAP, ok=True, text=f"{found} (taken where no engine answers)")


def _is_fine(checks: Sequence[Check]) -> bool:
    """True if all is well with Docker, or bubblewrap can do without it."""
    *of_docker, bubblewrap = checks
    return all(check.ok for check in of_docker) or bubblewrap.ok


def as_text(checks: Sequence[Check]) -> str:
    """One line a check, with what to do about those that failed below them."""
    width = max(len(check.name) for check in checks)
    lines: list[str] = []
    for check in checks:
        lines.append(f"{'ok  ' if check.ok else 'FAIL'}  {check.name:{width}}  {check.text}")
        if check.fix:
            lines.append(f"{'':6}{'':{width}}  → {check.fix}")
    return "\n".join(lines)


def as_json(checks: Sequence[Check]) -> str:
    """The same for programs."""
    return json.dumps({"ok": _is_fine(checks), "checks": [asdict(check) for check in checks]}, indent=2)
