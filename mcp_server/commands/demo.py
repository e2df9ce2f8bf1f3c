"""Show a debugging session: an MCP client finds and fixes a bug in a sample repository, in a sandbox.

The command fails if any step does not give what it should.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from mcp import Client, StdioServerParameters
from mcp.types import TextContent

from mcp_server.backends import candidates
from mcp_server.settings import Settings
from sandbox.errors import NotFound, PdboxError

_HOME = Path(__file__).resolve().parents[2]
SAMPLE = _HOME / "manifests" / "tasks" / "shop_discount" / "environment" / "repo"
TEST = "tests/test_order.py::test_discount_counts_all_pieces_of_a_product"
_GUILTY = 'groupby(lines, key=attrgetter("sku"))'
_FIXED = 'groupby(sorted(lines, key=attrgetter("sku")), key=attrgetter("sku"))'
_TIMEOUT_S = 1800
"""The first session may have to build its image."""

Data = Mapping[str, Any]
Check = Callable[[Data], bool]


class StepFailed(PdboxError):
    """A step did not come out as it should."""


@dataclass(frozen=True)
class Step:
    """One call with its purpose and its expected result."""

    purpose: str
    tool: str
    arguments: Data
    holds: Check
    expected: str


def _in_total(data: Data) -> bool:
    return data["state"] == "stopped" and data["frame"]["function"] == "total"


STEPS = (
    Step(
        "Open a sandbox with a copy of the sample.",
        "start_session",
        {},
        lambda data: bool(data["session_id"]),
        "a session",
    ),
    Step(
        "Which tests fail?",
        "eval",
        {},
        lambda data: (data["failed"], data["passed"]) == (1, 3),
        "1 failed, 3 passed",
    ),
    Step(
        "What does the code do?",
        "view",
        {"path": "shop/order.py", "start": 18, "end": 31},
        lambda data: len(data["lines"]) == 14,
        "14 lines",
    ),
    Step(
        "Stop in the code under test, where the merged lines are priced.",
        "pdb",
        {"entrypoint": f"pytest {TEST}", "command": "b shop/order.py:31\nc"},
        _in_total,
        "a stop in total",
    ),
    Step(
        "The bolts were ordered as 60 and 40. Were they merged?",
        "pdb",
        {"command": "p [(line.sku, line.quantity) for line in products]"},
        lambda data: "('bolt', 60), ('nut', 8), ('bolt', 40)" in data["reply"],
        "bolts twice",
    ),
    Step(
        "No: groupby only joins neighbours. Sort first.",
        "rewrite",
        {"path": "shop/order.py", "old_code": _GUILTY, "new_code": _FIXED},
        lambda data: data["syntax_error"] is None and "+" in data["diff"],
        "a diff",
    ),
    Step(
        "Look again: the breakpoint is still there.",
        "pdb",
        {"command": "c"},
        _in_total,
        "a stop in total",
    ),
    Step(
        "And the merged lines now?",
        "pdb",
        {"command": "p [(line.sku, line.quantity) for line in products]"},
        lambda data: "[('bolt', 100), ('nut', 8)]" in data["reply"],
        "bolts once",
    ),
    Step(
        "Do the tests pass?", "eval", {}, lambda data: (data["failed"], data["passed"]) == (0, 4), "4 passed"
    ),
    Step(
        "What was changed?",
        "diff",
        {},
        lambda data: [file["path"] for file in data["files"]] == ["shop/order.py"],
        "one file",
    ),
    Step("Remove the sandbox.", "close_session", {}, lambda data: len(data["files"] or ()) == 1, "the patch"),
)


SETTINGS = ("backend", "runtime", "unsafe_no_isolation", "image", "python", "log_level")


def arguments(parser: argparse.ArgumentParser) -> None:
    """It has none but the settings."""


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Run all steps; 0 if each came out as it should."""
    if not SAMPLE.is_dir():
        raise NotFound(f"The sample is not in this installation: {SAMPLE}.", "Run the demo from a clone.")
    candidates(settings)
    plain = args.json or bool(args.environ.get("NO_COLOR")) or not sys.stdout.isatty()
    transcript = Transcript(quiet=args.json, plain=plain)
    failure = anyio.run(_debug, _server(settings, args.environ), transcript)
    if args.json:
        print(json.dumps({"ok": failure is None, "steps": transcript.records}, indent=2, ensure_ascii=False))
    if failure is not None:
        raise failure
    transcript.say("The bug is found, mended and tested; nothing was changed on this machine.")
    return 0


def _server(settings: Settings, environ: Mapping[str, str]) -> StdioServerParameters:
    flags = ["--backend", settings.backend, "--repo", str(SAMPLE), "--log-level", settings.log_level]
    flags += ["--answers", "both"]  # people are shown the text; what it should say is checked in the data
    flags += ["--unsafe-no-isolation"] if settings.unsafe_no_isolation else []
    flags += ["--runtime", settings.runtime] if settings.runtime else []
    flags += ["--image", settings.image] if settings.image else []
    flags += ["--python", settings.python] if settings.python else []
    # From the folder that holds our packages: that works installed and in a clone. Clients pass little of the environment.
    return StdioServerParameters(
        command=sys.executable, args=["-m", "pdbox", "serve", *flags], env=dict(environ), cwd=_HOME
    )


@dataclass
class Transcript:
    """The printed text, also kept for `--json`."""

    quiet: bool
    plain: bool
    records: list[Data] = field(default_factory=list[Data])

    def say(self, text: str) -> None:
        if not self.quiet:
            print(text, flush=True)

    def step(self, number: int, step: Step, text: str, data: Data) -> None:
        self.records.append({"tool": step.tool, "arguments": step.arguments, "text": text, "data": data})
        given = ", ".join(
            f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in step.arguments.items()
        )
        self.say(f"{self._bold(f'{number}. {step.purpose}')}\n   {step.tool}({given})\n")
        self.say("\n".join(f"     {line}".rstrip() for line in text.splitlines()) + "\n")

    def progress(self, message: str) -> None:
        if not self.quiet:
            print(f"   … {message}", file=sys.stderr, flush=True)

    def _bold(self, text: str) -> str:
        return text if self.plain else f"\033[1m{text}\033[0m"


async def _debug(server: StdioServerParameters, transcript: Transcript) -> StepFailed | None:
    async with Client(server, read_timeout_seconds=_TIMEOUT_S) as client:
        tools = (await client.list_tools()).tools
        transcript.say(
            f"Connected (MCP {client.protocol_version}): {', '.join(tool.name for tool in tools)}\n"
        )
        for number, step in enumerate(STEPS, 1):
            if (failure := await _run_step(client, number, step, transcript)) is not None:
                return failure
    return None


async def _run_step(client: Client, number: int, step: Step, transcript: Transcript) -> StepFailed | None:
    last = ""

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        nonlocal last
        if message and message != last:
            transcript.progress(message)
            last = message

    result = await client.call_tool(step.tool, dict(step.arguments), progress_callback=on_progress)
    text = "\n".join(block.text for block in result.content if isinstance(block, TextContent))
    data: Data = result.structured_content or {}
    transcript.step(number, step, text, data)
    if result.is_error or not step.holds(data):
        # Given back, not raised: the client's task group would wrap it.
        return StepFailed(f"Step {number} ({step.tool}) should have given {step.expected}.")
    return None
