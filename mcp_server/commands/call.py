"""Call one tool and print its answer. The session stays open between calls, until `close_session` or it was idle for 30 minutes.

Without --url, a server is started for the call, for the repository of the working directory or --repo.
"""

from __future__ import annotations

import argparse
import difflib
import json
import sys
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import anyio
import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import TextContent, Tool

from mcp_server.commands.install import console_script
from mcp_server.options import flags_of
from mcp_server.settings import Settings
from sandbox.errors import InvalidArgument, SandboxError

SETTINGS = (
    "repo",
    "root",
    "task",
    "entrypoint",
    "debug_entrypoint",
    "setup",
    "env",
    "backend",
    "runtime",
    "unsafe_no_isolation",
    "image",
    "python",
    "network",
    "setup_network",
    "profile",
    "tools_from",
    "log_level",
)
TAKES_VALUES = True
"""Has the command line take words between options."""
USAGE = "pdbox call TOOL [NAME=VALUE …] [OPTIONS]"
EPILOG = (
    "For example: pdbox call eval; pdbox call pdb command='b shop/order.py:31 ;; c'; pdbox call view path=shop/order.py "
    "name=total; pdbox call close_session. Values are text, numbers, true or false as the tool takes them; lists are JSON, or "
    "the name several times. `pdbox tools` lists tools and arguments. Exit code: 1 if the tool fails, 2 for a wrong call."
)
_TOKEN_LINE = "It has one line: a token, or a principal's name and its token."


def arguments(parser: argparse.ArgumentParser) -> None:
    """The tool, its arguments, and the server."""
    parser.add_argument("tool", metavar="TOOL", help="name of the tool")
    parser.add_argument("values", nargs="*", metavar="NAME=VALUE", help="its arguments")
    add_server_arguments(parser)


def add_server_arguments(parser: argparse.ArgumentParser) -> None:
    """The server that is called."""
    server = parser.add_argument_group("a server that is running")
    server.add_argument("--url", help="of the server, such as http://127.0.0.1:8717/mcp?session=NAME")
    server.add_argument("--token-file", type=Path, metavar="PATH", help="file with the bearer token for it")


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Call the tool; 1 if it says that it failed."""
    outcome = anyio.run(_call, args)
    if outcome.is_error:
        print(outcome.text, file=sys.stderr)
    elif args.json:
        data = {"text": outcome.text} if outcome.data is None else outcome.data
        print(json.dumps(data, indent=2, ensure_ascii=False))
    else:
        print(outcome.text)
    return 1 if outcome.is_error else 0


async def _call(args: argparse.Namespace) -> Outcome:
    async with connect(args, data=args.json) as connection:
        return await connection.call(args.tool, args.values)


@dataclass(frozen=True)
class Outcome:
    """The answer of a tool."""

    text: str
    data: Mapping[str, Any] | None
    is_error: bool


class Connection:
    """An open connection to a server, and its tools."""

    def __init__(self, client: Client, tools: Iterable[Tool]) -> None:
        self._client = client
        self.tools = {tool.name: tool for tool in tools}

    async def call(self, name: str, words: Iterable[str]) -> Outcome:
        """Call a tool with arguments as people write them: NAME=VALUE.

        Raises:
            InvalidArgument: the tool or an argument is not there, or a value is not of its kind.
        """
        if name not in self.tools:
            raise InvalidArgument(f"There is no tool {name!r}.", _nearest(name, self.tools))
        return await self.send(name, parse(self.tools[name], words))

    async def send(self, name: str, values: dict[str, Any]) -> Outcome:
        """Call a tool with `values`."""
        result = await self._client.call_tool(name, values, progress_callback=_show_progress)
        text = "\n".join(block.text for block in result.content if isinstance(block, TextContent))
        return Outcome(text, result.structured_content, bool(result.is_error))


async def _show_progress(progress: float, total: float | None, message: str | None) -> None:
    if message and sys.stderr.isatty():
        print(f"… {message}", file=sys.stderr, flush=True)


@asynccontextmanager
async def connect(args: argparse.Namespace, *, data: bool) -> AsyncGenerator[Connection]:
    """Connect to the server that `args` name, or to one of our own that keeps its sessions.

    Raises:
        InvalidArgument: the token file can't be used.
        SandboxError: the server can't be reached, or ends.
    """
    failure: Exception | None = None
    try:
        async with _client(args, data=data) as client:
            connection = Connection(client, (await client.list_tools()).tools)
            try:
                yield connection
            except (InvalidArgument, MCPError) as exc:
                failure = exc  # raised below: the client's task group would wrap it
    except* (OSError, MCPError, httpx2.HTTPError) as group:
        failure = failure or _first(group)
    if isinstance(failure, InvalidArgument):
        raise failure
    if failure is not None:
        server = args.url or "The server of this call"
        raise SandboxError(f"{server} can't be reached, or it ended: {failure}.") from failure


def _first(error: Exception) -> Exception:
    found: Exception = error
    while isinstance(found, ExceptionGroup):
        found = cast("ExceptionGroup[Exception]", found).exceptions[0]
    return found


@asynccontextmanager
async def _client(args: argparse.Namespace, *, data: bool) -> AsyncGenerator[Client]:
    if args.url is None:
        if args.token_file is not None:
            raise InvalidArgument(
                "--token-file is given without --url.", "It is for a server that is running."
            )
        flags = ["--transport", "stdio", "--keep-sessions", "--answers", "both" if data else "text"]
        server = StdioServerParameters(
            command=console_script(), args=["serve", *flags, *flags_of(args, SETTINGS)], env=args.environ
        )
        async with Client(stdio_client(server, sys.stderr)) as client:
            yield client
        return
    headers = {"Authorization": f"Bearer {read_token(args.token_file)}"} if args.token_file else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=None) as http,
        Client(streamable_http_client(_url(args.url, data=data), http_client=http)) as client,
    ):
        yield client


def _url(text: str, *, data: bool) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise InvalidArgument(f"--url {text} is no URL of a server.", "It is like http://127.0.0.1:8717/mcp.")
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    query.setdefault("answers", "both" if data else "text")
    return urlunsplit(parts._replace(query=urlencode(query)))


def read_token(path: Path) -> str:
    """The token in a file, alone or behind a principal's name as in the server's own file.

    Raises:
        InvalidArgument: it can't be read, or has no token, or several.
    """
    try:
        lines = path.expanduser().read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as exc:
        raise InvalidArgument(f"--token-file {path} can't be read.", _TOKEN_LINE) from exc
    found = [line.split() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    if len(found) != 1 or len(found[0]) > 2:
        raise InvalidArgument(f"--token-file {path} has not one token.", _TOKEN_LINE)
    return found[0][-1]


def parse(tool: Tool, words: Iterable[str]) -> dict[str, Any]:
    """Arguments of `tool` from NAME=VALUE, by its input schema.

    Raises:
        InvalidArgument: one that the tool has not, that is missing, or a value of another kind.
    """
    known: Mapping[str, Any] = tool.input_schema.get("properties", {})
    texts: dict[str, list[str]] = {}
    for word in words:
        name, found, value = word.partition("=")
        if not found:
            raise InvalidArgument(f"{word!r} is not of the form NAME=VALUE.", _takes(tool.name, known))
        if name not in known:
            raise InvalidArgument(f"`{tool.name}` has no argument {name!r}.", _takes(tool.name, known))
        texts.setdefault(name, []).append(value)
    for name in tool.input_schema.get("required", []):
        if name not in texts:
            raise InvalidArgument(f"`{tool.name}` needs {name}=….", _takes(tool.name, known))
    return {name: _value(name, known[name].get("type"), values) for name, values in texts.items()}


def _value(name: str, kind: object, texts: list[str]) -> Any:
    if kind == "array":
        return _parse_list(name, texts)
    if len(texts) > 1:
        raise InvalidArgument(f"{name} is given {len(texts)} times.", "It takes one value.")
    if kind == "string":
        return texts[0]
    try:
        value: Any = json.loads(texts[0])
    except (ValueError, RecursionError):
        value = texts[0]
    accepted = _KINDS.get(str(kind))
    if accepted and (not isinstance(value, accepted) or (kind != "boolean" and isinstance(value, bool))):
        raise InvalidArgument(f"{name} takes {_WORDS[str(kind)]}, not {texts[0]!r}.")
    return value


_KINDS: Mapping[str, tuple[type, ...]] = {
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
}
_WORDS = {
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "object": "a JSON object",
}


def _parse_list(name: str, texts: list[str]) -> list[Any]:
    """One JSON list, or each text as an item; those that are JSON objects as such."""
    if len(texts) == 1 and texts[0].lstrip().startswith("["):
        try:
            return json.loads(texts[0])
        except (ValueError, RecursionError) as exc:
            raise InvalidArgument(f"{name} takes a JSON list, not {texts[0]!r}.") from exc
    try:
        return [json.loads(text) if text.lstrip().startswith("{") else text for text in texts]
    except (ValueError, RecursionError):
        return texts


def _takes(tool: str, known: Mapping[str, Any]) -> str:
    return f"`{tool}` takes {', '.join(known) or 'no arguments'}."


def _nearest(name: str, names: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, names, 1)
    return f"Did you mean {near[0]}?" if near else f"There are: {', '.join(names)}."
