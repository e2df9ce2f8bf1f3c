"""The command line: settings from flags, then `PDBOX_*`, then defaults; one subcommand a module."""

from __future__ import annotations

import argparse
import codecs
import gc
import importlib
import importlib.util
import io
import json
import os
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp_server.settings import Settings

COMMANDS = {
    "serve": "serve an MCP client on stdin and stdout, or several over HTTP",
    "install": "enter pdbox into the configuration of an MCP client",
    "demo": "show a debugging session: a client finds and fixes a bug in a sample",
    "doctor": "check whether sandboxes work on this machine",
    "call": "call one tool; the session stays open between calls",
    "shell": "call tools and pdb at a prompt",
    "tools": "list the tools as a model sees them",
    "tasks": "import, list, show or verify tasks: repositories with a bug and hidden tests",
    "score": "score a patch for a task, in a fresh sandbox",
    "image": "build or list the images that sandboxes are started from",
    "sessions": "list or remove the sandboxes of all your servers",
    "clean": "remove what servers that are gone left on this machine, and what was kept to save time",
    "export": "write recorded sessions as ATIF or as chat messages",
    "report": "write a recorded session as an HTML page",
    "replay": "make the calls of a recorded session again, and find the first answer that differs",
}
_CLOSED_PIPE = 141
_JSON_ESCAPES = "pdbox.json"
"""Error handler of streams: characters that the encoding lacks are written as JSON escapes them."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand; gives the exit code: 0 done, 1 it went wrong, 2 asked for wrongly, 141 nobody reads what it prints."""
    _encode_all_text("replace")
    code = _CLOSED_PIPE
    try:
        try:
            code = _main(list(sys.argv[1:] if argv is None else argv))
        finally:
            # Now: at the end of the interpreter nobody could catch what comes of it.
            sys.stdout.flush()
    except* BrokenPipeError:  # alone, or out of a task group
        _discard_output()
        code = _CLOSED_PIPE
    return code


def _main(words: list[str]) -> int:
    if (foreign := _find_foreign_package()) is not None:
        print(f"pdbox: {foreign}", file=sys.stderr)
        return 1
    command = words[0] if words else "--help"
    if command in COMMANDS:
        return _run(command, words[1:])
    if command in ("-h", "--help"):
        print(_usage())
        return 0
    if command in ("-V", "--version"):
        from mcp_server import __version__

        print(f"pdbox {__version__}")
        return 0
    print(f"pdbox: no command {command!r}; there are: {', '.join(COMMANDS)}", file=sys.stderr)
    return 2


def _encode_all_text(errors: str) -> None:
    """Have no character fail that the encoding of our streams lacks, such as `→` in cp1252."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=errors)


def _escape_as_json(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


def _discard_output() -> None:
    null = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            os.dup2(null, stream.fileno())
    os.close(null)


def _find_foreign_package() -> str | None:
    """Describe a package that is not ours. Ours have common names, and another `tools` must never run here."""
    home = Path(__file__).resolve().parent.parent
    for name in ("mcp_server", "tools", "sandbox"):
        spec = importlib.util.find_spec(name)
        place = Path(spec.origin).resolve().parent if spec is not None and spec.origin is not None else None
        if place != home / name:
            return f"the package `{name}` is not pdbox's own but {place}; start it by its console script, in its own environment"
    return None


def _run(command: str, words: Sequence[str]) -> int:
    with _pause_collector():
        from mcp_server.errors import one_line
        from mcp_server.options import describe_unknown_variables, read_settings
        from sandbox.errors import InvalidArgument, PdboxError

        args = _parse_arguments(command, words)
    if args.json:
        codecs.register_error(_JSON_ESCAPES, _escape_as_json)
        _encode_all_text(_JSON_ESCAPES)
    # Only this module reads the environment; the others get what they need of it.
    args.environ = dict(os.environ)
    for line in describe_unknown_variables(os.environ):
        print(f"pdbox: {line}", file=sys.stderr)
    try:
        settings = read_settings(vars(args), os.environ)
        _configure_logging(settings)
        return args.run(args, settings)
    except InvalidArgument as exc:
        print(f"pdbox: {one_line(exc)}", file=sys.stderr)
        return 2
    except PdboxError as exc:
        print(f"pdbox: {one_line(exc)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


class _Parser(argparse.ArgumentParser):
    def print_help(self, file: Any = None) -> None:
        """Print the help. argparse itself would ignore a closed pipe when the text is longer than the buffer."""
        print(self.format_help(), end="", file=file or sys.stdout)


def _parse_arguments(command: str, words: Sequence[str]) -> argparse.Namespace:
    from mcp_server.options import add_options

    module = importlib.import_module(f"mcp_server.commands.{command}")
    parser = _Parser(
        f"pdbox {command}",
        usage=getattr(module, "USAGE", None),
        description=module.__doc__,
        epilog=getattr(module, "EPILOG", None),
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=module.run)
    module.arguments(parser)
    add_options(parser, module.SETTINGS, is_explained=not {"-h", "--help"}.isdisjoint(words))
    # Options may stand between NAME=VALUE words, which argparse would not take by itself.
    is_mixed = getattr(module, "TAKES_VALUES", False)
    return parser.parse_intermixed_args(words) if is_mixed else parser.parse_args(words)


@contextmanager
def _pause_collector() -> Generator[None]:
    """Import without garbage collections: imports make objects by the hundred thousand, which all stay.

    Buys 95 of 748 ms CPU on a server start; a bare SDK server takes 655, and our start may be 1.1 times that.
    """
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        gc.enable()


def _configure_logging(settings: Settings) -> None:
    """To stderr, and before `MCPServer`, which would otherwise choose a format of its own."""
    from mcp_server.observability import logs
    from mcp_server.redaction.redactor import Redactor

    redactor = Redactor(settings.redact, settings.redact_names)
    redactor.learn(dict(pair.split("=", 1) for pair in settings.env if "=" in pair))
    logs.configure(settings.log_format, settings.log_level, redactor)


def _usage() -> str:
    commands = [f"  {name:10} {text}" for name, text in COMMANDS.items()]
    lines = [
        "usage: pdbox COMMAND [OPTIONS]",
        "",
        "A Python debugger in a sandbox, for MCP clients. A client starts `pdbox serve`; the other commands are for you.",
        "",
        *commands,
        "",
        "`pdbox COMMAND --help` explains the options of a command; `pdbox --version` prints the version.",
    ]
    return "\n".join(lines)
