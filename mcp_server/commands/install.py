"""Enter pdbox into the configuration of an MCP client, or list the clients that are known and found on this machine.

All else in the client's file stays as it is, and so do fields that were added to pdbox's entry, such as `env`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path

from mcp_server.commands import serve
from mcp_server.commands.client_files import CLIENTS, ConfigFile, Data, Machine, McpClient, Scope, snippet
from mcp_server.options import add_options, paths_of
from mcp_server.settings import Settings
from sandbox.errors import Conflict, InvalidArgument, NotFound

SETTINGS = ("repo",)
USAGE = "pdbox install [--client NAME] [OPTIONS] [-- OPTIONS OF pdbox serve]"
EPILOG = "For example: pdbox install --client claude-desktop --repo ~/src/shop -- --answer-within 50"
_SOURCES = ("--repo", "--root", "--task", "--tasks", "--container", "--in-place")
_ELSEWHERE = "The client may start the server in any folder: give an absolute path."


def arguments(parser: argparse.ArgumentParser) -> None:
    """The client, and what to do with its file."""
    parser.add_argument(
        "--client",
        choices=CLIENTS,
        metavar="NAME",
        help=f"one of {', '.join(CLIENTS)}; without it they are listed",
    )
    parser.add_argument(
        "--scope",
        choices=["user", "project"],
        help="`user`: for all projects; `project`: in a file of the current folder (default: user; project for "
        f"{' and '.join(name for name, client in CLIENTS.items() if client.default_scope == 'project')})",
    )
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--print", action="store_true", help="print the entry and change nothing")
    action.add_argument("--remove", action="store_true", help="remove the entry")
    parser.add_argument(
        "options", nargs="*", metavar="OPTIONS", help="options that the client starts `pdbox serve` with"
    )


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Enter, remove, print or list."""
    machine = Machine(sys.platform, args.environ, Path.home(), Path.cwd())
    if args.client is None:
        _list(machine, as_json=args.json)
        return 0
    client = CLIENTS[args.client]
    scope: Scope = args.scope or client.default_scope
    if scope == "project" and not client.project:
        raise InvalidArgument(f"{client.title} has no configuration of a project.", "Leave out --scope.")
    file = client.file(machine, scope)
    if args.remove:
        is_changed = ConfigFile(file, client).remove()
        _say(args, file, is_changed, f"removed from {file}" if is_changed else f"not in {file}", client)
        return 0
    entry = _entry(client, scope, args.options, settings.repo)
    if args.print:
        text = snippet(client, entry)
        print(json.dumps({"file": str(file), "text": text}, indent=2) if args.json else text.rstrip("\n"))
        return 0
    try:
        is_changed = ConfigFile(file, client).put(entry)
    except Conflict as exc:
        if not args.json:
            print(snippet(client, entry).rstrip("\n"))
        exc.hint = "Nothing was changed. Put the entry into the file by hand; `--print` prints it."
        raise
    _say(args, file, is_changed, f"{'entered' if is_changed else 'already'} in {file}", client)
    return 0


def _say(args: argparse.Namespace, file: Path, is_changed: bool, text: str, client: McpClient) -> None:
    if args.json:
        print(json.dumps({"client": args.client, "file": str(file), "changed": is_changed}, indent=2))
    else:
        print(f"pdbox is {text}" + (f"; restart {client.title}" if is_changed else ""))


def _entry(client: McpClient, scope: Scope, options: list[str], repo: Path | None) -> Data:
    """The entry, with the repository that is given, else the one that the client is in, else the current folder.

    Raises:
        InvalidArgument: `serve` would refuse an option, or there is no repository for a client that needs one.
    """
    _check_options(options)
    if any(option.partition("=")[0] in _SOURCES for option in options):
        return client.entry(console_script(), options, scope, None)
    if repo is None and client.needs_repo(scope) and serve.working_directory() is None:
        raise InvalidArgument(f"{client.title} needs to be told the repository.", "--repo names it.")
    folder = (repo.expanduser() if repo else Path.cwd()).absolute()
    if not folder.is_dir():
        raise InvalidArgument(f"No such folder: {repo}.", "--repo takes a folder that exists.")
    if repo is not None:
        return client.entry(console_script(), ["--repo", str(folder), *options], scope, None)
    return client.entry(console_script(), options, scope, str(folder))


def _check_options(options: list[str]) -> None:
    parser = argparse.ArgumentParser("pdbox serve", usage=serve.USAGE, add_help=False)
    serve.arguments(parser)
    add_options(parser, serve.SETTINGS, is_explained=False)
    for flag, path in paths_of(parser.parse_args(options), serve.SETTINGS):
        if not Path(path).expanduser().is_absolute():
            raise InvalidArgument(f"{flag} {path} is relative.", _ELSEWHERE)


def console_script() -> str:
    """The absolute path of the console script. Clients on a desktop have no shell's PATH.

    Raises:
        NotFound: there is none.
    """
    beside = shutil.which("pdbox", path=str(Path(sys.executable).parent))
    named = shutil.which("pdbox")
    if named and beside and Path(named).resolve() == Path(beside).resolve():
        # The link of a tool installer, which stays when its environment moves.
        return str(Path(named).absolute())
    if beside is None:
        raise NotFound(
            "pdbox has no command in this environment.", "Install it: uv tool install, or pipx install."
        )
    return str(Path(beside).absolute())


def _list(machine: Machine, *, as_json: bool) -> None:
    rows = [_row(name, client, machine) for name, client in CLIENTS.items()]
    if as_json:
        print(json.dumps({"clients": rows}, indent=2))
        return
    for row in rows:
        entries = ", ".join(row["entries"])
        state = f"entered in {entries}" if entries else "found" if row["found"] else "not found"
        print(f"{row['name']:14}  {state}" + (f"  ({row['error']})" if row["error"] else ""))
    print("\n`pdbox install --client NAME` enters pdbox, `--print` shows the text, `--remove` takes it out.")


def _row(name: str, client: McpClient, machine: Machine) -> Data:
    scopes: tuple[Scope, ...] = ("user", "project") if client.project else ("user",)
    entries: list[str] = []
    error = ""
    for scope in scopes:
        file = client.file(machine, scope)
        try:
            if ConfigFile(file, client).entry() is not None:
                entries.append(str(file))
        except Conflict as exc:
            error = exc.message
    return {
        "name": name,
        "title": client.title,
        "found": client.is_found(machine, shutil.which),
        "entries": entries,
        "error": error,
    }
