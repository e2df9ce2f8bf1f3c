"""The command line: settings from flags, then `PDBOX_*`, then defaults; one subcommand a module."""

from __future__ import annotations

import argparse
import gc
import importlib
import importlib.util
import os
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_origin

if TYPE_CHECKING:
    from mcp_server.settings import Settings

COMMANDS = {
    "serve": "serve MCP on stdin and stdout, or on HTTP",
    "demo": "debug a buggy sample through a real MCP client, visibly",
    "doctor": "check what works on this machine",
    "tools": "show the tools as a model sees them, with their sizes",
    "image": "build sandbox images",
    "sessions": "list or remove sandboxes",
}
_PREFIX = "setting "


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand; gives the exit code: 0 done, 1 it went wrong, 2 asked for wrongly."""
    if (foreign := _foreign_package()) is not None:
        print(f"pdbox: {foreign}", file=sys.stderr)
        return 1
    words = list(sys.argv[1:] if argv is None else argv)
    command = words[0] if words else "--help"
    if command in COMMANDS:
        return _run(command, words[1:])
    if command in ("-h", "--help"):
        print(_usage())
        return 0
    if command in ("-V", "--version"):
        from mcp_server.server import VERSION

        print(f"pdbox {VERSION}")
        return 0
    print(f"pdbox: no command {command!r}; there are: {', '.join(COMMANDS)}", file=sys.stderr)
    return 2


def _foreign_package() -> str | None:
    """What is wrong with where our packages come from. They have common names: another `tools` must never run here."""
    home = Path(__file__).resolve().parent.parent
    for name in ("mcp_server", "tools", "sandbox"):
        spec = importlib.util.find_spec(name)
        place = Path(spec.origin).resolve().parent if spec is not None and spec.origin is not None else None
        if place != home / name:
            return f"the package `{name}` is not pdbox's own but {place}; start it by its console script, in its own environment"
    return None


def _run(command: str, words: Sequence[str]) -> int:
    with _uncollected(), _unbuilt():
        from mcp_server.errors import one_line
        from sandbox.errors import InvalidArgument, PdboxError

        args = _arguments(command, words)
    # Only this module reads the environment; the others get what they need of it.
    args.environ = dict(os.environ)
    try:
        settings = _settings(vars(args), os.environ)
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


def _arguments(command: str, words: Sequence[str]) -> argparse.Namespace:
    module = importlib.import_module(f"mcp_server.commands.{command}")
    parser = argparse.ArgumentParser(
        f"pdbox {command}", description=module.__doc__, conflict_handler="resolve"
    )
    _add_settings(parser, explained=not {"-h", "--help"}.isdisjoint(words))
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=module.run)
    module.arguments(parser)
    return parser.parse_args(words)


@contextmanager
def _uncollected() -> Generator[None]:
    """Imports make objects by the hundred thousand, which all stay: looking for garbage in them is a tenth of the start."""
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        gc.enable()


@contextmanager
def _unbuilt() -> Generator[None]:
    """The protocol has models by the hundred, of which a server uses a few: each is built when it is first used.

    Building them all is a tenth of the start, too.
    """
    from pydantic import BaseModel

    BaseModel.model_config["defer_build"] = True
    try:
        yield
    finally:
        del BaseModel.model_config["defer_build"]


def _add_settings(parser: argparse.ArgumentParser, *, explained: bool) -> None:
    from mcp_server.settings import Settings, descriptions

    group = parser.add_argument_group(
        "settings", "each also as a variable, e.g. PDBOX_MAX_SESSIONS; lists there one a line"
    )
    texts = descriptions() if explained else {}
    for name, field in Settings.model_fields.items():
        options: dict[str, Any] = {"dest": _PREFIX + name, "default": None, "help": texts.get(name)}
        if field.annotation is bool:
            options["action"] = argparse.BooleanOptionalAction
        else:
            options["metavar"] = name.rsplit("_", 1)[-1].upper()
            if get_origin(field.annotation) is list:
                options["action"] = "append"
        group.add_argument(_flag(name), **options)


def _flag(name: str) -> str:
    return "--" + name.removesuffix("_s").replace("_", "-")


def _settings(args: Mapping[str, Any], environ: Mapping[str, str]) -> Settings:
    from pydantic import ValidationError

    from mcp_server.settings import Settings
    from sandbox.errors import InvalidArgument

    values: dict[str, Any] = {}
    for name, field in Settings.model_fields.items():
        variable = environ.get(f"PDBOX_{name.removesuffix('_s').upper()}")
        if (flag := args.get(_PREFIX + name)) is not None:
            values[name] = flag
        elif variable:
            values[name] = variable.splitlines() if get_origin(field.annotation) is list else variable
    try:
        return Settings.model_validate(values)
    except ValidationError as exc:
        error = exc.errors()[0]
        raise InvalidArgument(
            f"{_flag(str(error['loc'][0]))}: {error['msg']}, got {error['input']!r}."
        ) from exc


def _configure_logging(settings: Settings) -> None:
    """To stderr, and before `MCPServer`, which would otherwise choose a format of its own."""
    from mcp_server import logs
    from mcp_server.redaction import Redactor

    redactor = Redactor(settings.redact)
    redactor.learn(dict(pair.split("=", 1) for pair in settings.env if "=" in pair))
    logs.configure(settings.log_format, settings.log_level, redactor)


def _usage() -> str:
    lines = [f"  {name:10} {text}" for name, text in COMMANDS.items()]
    return "\n".join(
        ["usage: pdbox COMMAND [--help] …", "", "A Python debugger in a box, for MCP clients.", "", *lines]
    )


if __name__ == "__main__":
    sys.exit(main())
