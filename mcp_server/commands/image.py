"""build sandbox images"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence

import anyio

from mcp_server.settings import Settings
from sandbox import images
from sandbox.docker import DockerBackend
from sandbox.engine import Engine


def arguments(parser: argparse.ArgumentParser) -> None:
    """`build` and `list`."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="build|list")
    build = actions.add_parser(
        "build",
        help="make pdbox-sandbox:<python>",
        description="Make pdbox-sandbox:<python>: from python:<python>-slim where a registry can be reached, else, on "
        f"Debian as root, from packages (Python {', '.join(images.suites())}).",
    )
    build.add_argument(
        "--python",
        action="append",
        metavar="VERSION",
        dest="pythons",
        help=f"such as 3.12; repeatable; {images.DEFAULT} if left out",
    )
    build.add_argument("--base", metavar="IMAGE", help="build on this image, which has a Python and apt-get")
    build.add_argument("--suite", help="don't try a registry; bootstrap this Debian suite")
    build.add_argument("--missing", action="store_true", help="leave alone what is there already")
    actions.add_parser("list", help="show the images that are present")


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Build or list; 0 when done."""
    engine = Engine.connect(args.environ)
    try:
        if args.action == "list":
            for tag in engine.tags(images.REPOSITORY):
                print(images.reference(tag))
        else:
            anyio.run(_compile, args.environ, _build(engine, args))
    finally:
        engine.close()
    return 0


def _build(engine: Engine, args: argparse.Namespace) -> list[str]:
    """Give the names of the images that are there now."""
    names: list[str] = []
    pythons: list[str] = args.pythons or [settled(args.suite)]
    present = engine.tags(images.REPOSITORY)
    for python in pythons:
        if args.missing and python in present:
            names.append(images.reference(python))
            print(f"{names[-1]} is there")
            continue
        began = time.monotonic()
        name = images.make(engine, python, _say, base=args.base, suite=args.suite)
        names.append(name)
        print(f"{name} is ready ({time.monotonic() - began:.0f} s)")
    return names


async def _compile(environ: Mapping[str, str], names: Sequence[str]) -> None:
    """So that the first session needn't."""
    backend = DockerBackend(environ)
    async with backend.session():
        for name in names:
            if not await backend.compile(name):
                _say(f"{name}: each session will compile pdbox's part of it anew")


def settled(suite: str | None) -> str:
    """The Python of a suite that was named without one."""
    return next((python for python, name in images.suites().items() if name == suite), images.DEFAULT)


def _say(line: str) -> None:
    print(f"  {line}", file=sys.stderr, flush=True)
