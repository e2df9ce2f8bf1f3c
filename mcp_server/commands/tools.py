"""List the tools as a model sees them: names, descriptions, parameters (`?`: optional), and how many characters that takes."""

from __future__ import annotations

import argparse
import json
from typing import Any

from mcp_server import custom_tools, profiles
from mcp_server.server import describe_tools
from mcp_server.settings import Settings

SETTINGS = ("profile", "tools_from", "answers")


def arguments(parser: argparse.ArgumentParser) -> None:
    """It has none but `--json`, which prints the result of `tools/list`."""


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Print the list."""
    custom_tools.load(settings.tools_from)
    data = settings.answers != "text"
    profile = settings.profile
    print(as_json(profile, data=data) if args.json else as_text(profile, data=data))
    return 0


def as_json(profile: str = profiles.DEBUG, *, data: bool) -> str:
    """The result of `tools/list`, without `data` for `manifests/tools.json`."""
    return json.dumps({"tools": describe_tools(profile, data=data)}, indent=2, ensure_ascii=False)


def as_text(profile: str, *, data: bool) -> str:
    """Format each tool with its parameters, then the size of the whole list."""
    shown, output = sizes(profile)
    tools = describe_tools(profile, data=data)
    lines: list[str] = []
    for tool in tools:
        lines += [
            f"{tool['name']}  ({_annotations(tool)})",
            *(f"    {line}" for line in tool["description"].splitlines()),
        ]
        for name, schema in tool["inputSchema"].get("properties", {}).items():
            need = "" if name in tool["inputSchema"].get("required", []) else "?"
            lines.append(f"      {name}{need}: {schema.get('description', '')}")
        lines.append("")
    total = f"{len(tools)} tools; {shown:,} characters of names, descriptions and input schemas"
    return "\n".join([*lines, f"{total}; {output:,} of output schemas" if data else total])


def sizes(profile: str = profiles.DEBUG) -> tuple[int, int]:
    """Characters that a model is shown, and those of the output schemas where answers have data."""
    tools = describe_tools(profile, data=True)
    shown = sum(
        len(tool["name"] + tool["description"] + _dump_compact(tool["inputSchema"])) for tool in tools
    )
    return shown, sum(len(_dump_compact(tool["outputSchema"])) for tool in tools)


def _dump_compact(schema: dict[str, Any]) -> str:
    return json.dumps(schema, ensure_ascii=False, separators=(",", ":"))


def _annotations(tool: dict[str, Any]) -> str:
    hints = {
        "readOnlyHint": "read-only",
        "destructiveHint": "destructive",
        "idempotentHint": "idempotent",
        "openWorldHint": "open world",
    }
    return ", ".join(word for name, word in hints.items() if tool["annotations"].get(name)) or "no hints"
