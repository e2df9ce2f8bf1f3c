"""A prompt for the tools: TOOL NAME=VALUE …, or a command of pdb. The session stays open after it, as with `pdbox call`.

A line that begins with no tool goes to pdb, which starts the program if none runs. Ctrl-C interrupts a call, Ctrl-D leaves.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError
from pathlib import Path

from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp.types import Tool

from mcp_server.commands import call
from mcp_server.commands.call import Connection, Outcome
from mcp_server.settings import Settings
from sandbox.errors import InvalidArgument
from sandbox.user_folders import state_folder

try:
    import readline
except ImportError:  # Windows
    readline = None

SETTINGS = call.SETTINGS
EPILOG = (
    "For example: eval; then b shop/order.py:31; then c; then p lines; then rewrite path=shop/order.py old_code=… new_code=…. "
    "`help` lists the tools, `help COMMAND` is pdb's. Tab completes names of tools and arguments."
)
_PROMPT = "pdbox> "
_HISTORY = 1000


def arguments(parser: argparse.ArgumentParser) -> None:
    """The server, as of `pdbox call`."""
    call.add_server_arguments(parser)


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Read lines until the end."""
    with start_blocking_portal() as portal:
        connecting = call.connect(args, data=args.json)
        with portal.wrap_async_context_manager(connecting) as connection:
            history = _prepare(connection.tools, args.environ)
            try:
                while _serve_line(portal, connection, as_json=args.json):
                    pass
            finally:
                _save(history)
    return 0


def _serve_line(portal: BlockingPortal, connection: Connection, *, as_json: bool) -> bool:
    """Read and answer a line; False at the end. Ctrl-C gives a new line, or interrupts the call."""
    try:
        line = input(_PROMPT if sys.stdin.isatty() else "").strip()
    except KeyboardInterrupt:
        print()
        return True
    except EOFError:
        return False
    try:
        _answer(portal, connection, line, as_json=as_json)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
    return True


def _answer(portal: BlockingPortal, connection: Connection, line: str, *, as_json: bool) -> None:
    if line == "help":
        print("tools:", ", ".join(connection.tools), "\nAll else is for pdb; `help COMMAND` is pdb's help.")
        return
    if not line:
        return
    try:
        outcome = _send(portal, connection, line)
    except InvalidArgument as exc:
        print(exc, file=sys.stderr)
        return
    if outcome.is_error:
        print(outcome.text, file=sys.stderr)
    else:
        is_data = as_json and outcome.data is not None
        print(json.dumps(outcome.data, ensure_ascii=False) if is_data else outcome.text)


def _send(portal: BlockingPortal, connection: Connection, line: str) -> Outcome:
    """Call the tool of the line, or pdb with it.

    Raises:
        KeyboardInterrupt: the call was interrupted.
    """
    words = split(line, connection.tools)
    if words is None:
        future = portal.start_task_soon(connection.send, "pdb", {"command": line})
    else:
        future = portal.start_task_soon(connection.call, words[0], words[1:])
    try:
        return future.result()
    except CancelledError as exc:
        raise KeyboardInterrupt from exc
    finally:
        future.cancel()  # which interrupts the program, too; a call that has ended stays as it is


def split(line: str, tools: Mapping[str, Tool]) -> list[str] | None:
    """The words of a line that calls a tool; None if it is for pdb.

    Raises:
        InvalidArgument: a quotation mark is missing.
    """
    if line.split(None, 1)[0] not in tools:
        return None
    try:
        return shlex.split(line)
    except ValueError as exc:
        raise InvalidArgument(f"{exc}.", "Quote a value with spaces: command='p x'.") from exc


def complete(line: str, tools: Mapping[str, Tool]) -> list[str]:
    """Continuations of the last word of a line: tools, then arguments of the tool that were not given."""
    words = line.split(" ")
    if len(words) == 1:
        return [f"{name} " for name in tools if name.startswith(words[0])]
    if words[0] not in tools:
        return []
    given = {word.partition("=")[0] for word in words[1:-1]}
    known: Sequence[str] = list(tools[words[0]].input_schema.get("properties", {}))
    return [f"{name}=" for name in known if name not in given and name.startswith(words[-1])]


def _prepare(tools: Mapping[str, Tool], environ: Mapping[str, str]) -> Path | None:
    """Set up history and completion where there is a terminal; gives the file of the history."""
    if readline is None or not sys.stdin.isatty():
        return None
    lines = readline

    def completer(_: str, state: int) -> str | None:
        found = complete(lines.get_line_buffer()[: lines.get_endidx()], tools)
        return found[state] if state < len(found) else None

    lines.set_completer(completer)
    lines.set_completer_delims(" ")
    # macOS has libedit in the place of readline.
    lines.parse_and_bind("bind ^I rl_complete" if "libedit" in (lines.__doc__ or "") else "tab: complete")
    folder = state_folder(environ)
    if folder is None:
        return None
    file = folder / "shell_history"
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.touch(0o600)
        lines.read_history_file(file)
    except OSError:
        return None
    return file


def _save(file: Path | None) -> None:
    if readline is None or file is None:
        return
    readline.set_history_length(_HISTORY)
    try:
        readline.write_history_file(file)
    except OSError as exc:
        print(f"pdbox: the history can't be saved: {exc.strerror}", file=sys.stderr)
