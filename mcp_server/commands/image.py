"""Build or list the images that sandboxes are started from: pdbox-sandbox:<python>, with git, make and pytest."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence

import anyio

from mcp_server.settings import Settings
from sandbox.docker import images
from sandbox.docker.backend import DockerBackend
from sandbox.docker.engine import Engine

SETTINGS = ()


def arguments(parser: argparse.ArgumentParser) -> None:
    """`build` and `list`."""
    parser.add_argument(
        "action",
        choices=["build", "list"],
        help="`build` makes one from python:<python>-slim; without a registry, on Debian as root, from Debian's packages "
        f"(Python {', '.join(images.suites())})",
    )
    build = parser.add_argument_group("build")
    build.add_argument(
        "--python",
        action="append",
        metavar="VERSION",
        dest="pythons",
        help=f"such as 3.12; repeatable (default: {images.DEFAULT})",
    )
    build.add_argument(
        "--base", metavar="IMAGE", help="start from this image, which has a Python and apt-get"
    )
    build.add_argument(
        "--suite", help="use packages of this Debian suite, whether or not a registry can be reached"
    )
    build.add_argument(
        "--missing",
        action="store_true",
        help="leave alone what is present, unless another version of pdbox made it in another way",
    )


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Build or list; 0 when done."""
    engine = Engine.connect(args.environ)
    try:
        if args.action == "list":
            names = [images.reference(tag) for tag in engine.tags(images.REPOSITORY)]
            text = "\n".join(names) or "There are no images yet; `pdbox image build` makes one."
            print(_as_json(names) if args.json else text)
        else:
            names = _build(engine, args)
            anyio.run(_compile, args.environ, names, settings.runtime)
            if args.json:
                print(_as_json(names))
    finally:
        engine.close()
    return 0


def _build(engine: Engine, args: argparse.Namespace) -> list[str]:
    """Give the names of the images that are there now."""
    report = _say if args.json else print
    names: list[str] = []
    pythons: list[str] = args.pythons or [python_of_suite(args.suite)]
    for python in pythons:
        image = engine.image(images.reference(python)) if args.missing else None
        if image is not None and images.is_current(image):
            names.append(image.reference)
            report(f"{image.reference} is present")
            continue
        if image is not None:
            _say(f"{image.reference} is out of date: this version of pdbox makes it in another way.")
        began = time.monotonic()
        name = images.make(engine, python, _say, base=args.base, suite=args.suite)
        names.append(name)
        report(f"{name} is ready ({time.monotonic() - began:.0f} s)")
    return names


async def _compile(environ: Mapping[str, str], names: Sequence[str], runtime: str) -> None:
    """So that the first session needn't."""
    backend = DockerBackend(environ, runtime=runtime)
    async with backend.lifespan():
        for name in names:
            if not await backend.compile(name):
                _say(f"{name}: each session will compile pdbox's part of it anew")


def _as_json(names: Sequence[str]) -> str:
    return json.dumps({"images": names}, indent=2)


def python_of_suite(suite: str | None) -> str:
    """The Python of a suite that was named without one."""
    return next((python for python, name in images.suites().items() if name == suite), images.DEFAULT)


def _say(line: str) -> None:
    print(f"  {line}", file=sys.stderr, flush=True)
