"""Settings as flags and `PDBOX_*` variables: names, help texts and parsing."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast, get_args, get_origin

from pydantic import ByteSize, ValidationError
from pydantic.fields import FieldInfo

from mcp_server.settings import Settings, descriptions, group_of
from sandbox.errors import InvalidArgument

_DESTINATION = "setting "
_PREFIX = "PDBOX_"
_FOR_DEVELOPMENT = ("PDBOX_TEST_", "PDBOX_REQUIRE_", "PDBOX_FUZZ_")
_OTHERS = ("PDBOX_DOCKERD_LOG", "PDBOX_CASES", "PDBOX_ALL_CASES")
_OF_PROGRAMS = ("PDBOX_DEBUG", "PDBOX_REPORT", "PDBOX_JOIN", "PDBOX_SANDBOX", "PDBOX_CHILD")
"""Variables that programs in a sandbox find in their environment; pdbox itself may be one of them."""
_METAVARS: Mapping[Any, str] = {ByteSize: "SIZE", int: "N", float: "N", Path: "PATH"}
_METAVARS_OF_TEXT: Mapping[str, str] = {
    "entrypoint": "COMMAND",
    "debug_entrypoint": "COMMAND",
    "setup": "COMMAND",
    "env": "NAME=VALUE",
    "mount": "HOST:INSIDE",
    "allow_image": "PATTERN",
    "python": "VERSION",
    "oauth_issuer": "URL",
    "oauth_resource": "URL",
}


def add_options(parser: argparse.ArgumentParser, names: Iterable[str], *, is_explained: bool) -> None:
    """Add the flags of the settings `names`; `is_explained`: somebody reads the help, which takes time to make."""
    texts = descriptions() if is_explained else {}
    headings: dict[str, Any] = {}
    for name in names:
        field, title = Settings.model_fields[name], group_of(name).title
        heading = headings.get(title) or headings.setdefault(title, parser.add_argument_group(title))
        _add(heading, name, field, _help(field, texts[name]) if is_explained else None)


def _add(parser: Any, name: str, field: FieldInfo, text: str | None) -> None:
    options: dict[str, Any] = {"dest": _DESTINATION + name, "default": None, "help": text}
    if field.annotation is bool:
        # The opposite of a default is what people ask for; the other one can take a variable back.
        off, on = _opposite(name), _flag(name)
        shown, hidden = (off, on) if field.default else (on, off)
        parser.add_argument(shown, action="store_const", const=shown == on, **options)
        options["help"] = argparse.SUPPRESS
        parser.add_argument(hidden, action="store_const", const=hidden == on, **options)
        return
    if get_origin(field.annotation) is list:
        options["action"] = "append"
    parser.add_argument(_flag(name), metavar=_metavar(name, field), **options)


def _metavar(name: str, field: FieldInfo) -> str:
    if choices := _choices(field):
        return "{" + ",".join(choices) + "}"
    if name.endswith("_s"):
        return "SECONDS"
    kinds = [kind for kind in _kinds(field) if kind in _METAVARS]
    return _METAVARS[kinds[0]] if kinds else _METAVARS_OF_TEXT.get(name, name.rpartition("_")[2].upper())


def _kinds(field: FieldInfo) -> tuple[Any, ...]:
    """The annotation of a setting, and what it is made of."""
    return (*get_args(field.annotation), field.annotation)


def _choices(field: FieldInfo) -> Sequence[str]:
    return get_args(field.annotation) if get_origin(field.annotation) is Literal else ()


def _help(field: FieldInfo, text: str) -> str:
    default = field.default
    if default is True:
        text = f"Don't {text[0].lower()}{text[1:]}"
    elif isinstance(default, ByteSize):
        text = f"{text} (default: {default.human_readable().replace('.0', '')})"
    elif isinstance(default, (str, int, float)) and default is not False:
        text = (
            f"{text} (default: {default:g})" if isinstance(default, float) else f"{text} (default: {default})"
        )
    return text.replace(". (default", " (default").replace("%", "%%")


def read_settings(flags: Mapping[str, Any], environ: Mapping[str, str]) -> Settings:
    """The settings that `flags` (parsed arguments) give, then `environ`, then the defaults.

    Raises:
        InvalidArgument: naming the flag or the variable with its value.
    """
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for name, field in Settings.model_fields.items():
        variable = environ.get(_variable(name))
        if (flag := flags.get(_DESTINATION + name)) is not None:
            values[name], sources[name] = flag, _flag(name)
        elif variable:
            values[name] = variable.splitlines() if get_origin(field.annotation) is list else variable
            sources[name] = _variable(name)
    try:
        return Settings.model_validate(values)
    except ValidationError as exc:
        error = exc.errors()[0]
        name = str(error["loc"][0])
        raise InvalidArgument(f"{sources[name]}: {error['msg']}, got {error['input']!r}.") from exc


def paths_of(args: argparse.Namespace, names: Iterable[str]) -> list[tuple[str, str]]:
    """(flag, path) of each path that `args` were given among the settings `names`."""
    return [
        (_flag(name), path)
        for name in names
        if Path in _kinds(Settings.model_fields[name])
        for path in _values_of(args, name)
        if path
    ]


def flags_of(args: argparse.Namespace, names: Iterable[str]) -> list[str]:
    """The flags among the settings `names` that `args` were parsed from, for another command."""
    return [_word(name, value) for name in names for value in _values_of(args, name)]


def _values_of(args: argparse.Namespace, name: str) -> list[Any]:
    """The values that a setting was given; none if it was left out."""
    value: Any = getattr(args, _DESTINATION + name, None)
    if value is None:
        return []
    return cast("list[Any]", value) if isinstance(value, list) else [value]


def _word(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return _flag(name) if value else _opposite(name)
    return f"{_flag(name)}={value}"


def describe_unknown_variables(environ: Mapping[str, str]) -> list[str]:
    """A line for each `PDBOX_*` variable that is no setting, with the nearest one."""
    known = [_variable(name) for name in Settings.model_fields]
    lines: list[str] = []
    for name in sorted(environ):
        if not name.startswith(_PREFIX) or name in (*known, *_OTHERS, *_OF_PROGRAMS):
            continue
        if not name.startswith(_FOR_DEVELOPMENT):
            import difflib  # hardly ever needed

            ends = [one.removeprefix(_PREFIX) for one in known]
            near = difflib.get_close_matches(name.removeprefix(_PREFIX), ends, 1)
            lines.append(f"{name} is not a setting{f'; did you mean {_PREFIX}{near[0]}?' if near else '.'}")
    return lines


def _flag(name: str) -> str:
    return "--" + name.removesuffix("_s").replace("_", "-")


def _opposite(name: str) -> str:
    return "--no-" + _flag(name)[2:]


def _variable(name: str) -> str:
    return _PREFIX + name.removesuffix("_s").upper()
