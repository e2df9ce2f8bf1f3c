"""Configuration files of MCP clients: their places, and pdbox's entry in them. Each has a template in `manifests/clients`."""

from __future__ import annotations

import json
import os
import re
import stat
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from sandbox.errors import Conflict, SandboxError

Scope = Literal["user", "project"]
Data = dict[str, Any]

TEMPLATES = Path(__file__).resolve().parents[2] / "manifests" / "clients"
NAME = "pdbox"
_WORKSPACE = "${workspaceFolder}"
_EXAMPLE = "/path/to/repository"
_REMOTE = ("url", "serverUrl", "httpUrl", "headers", "type")
"""Fields of an entry for a server over HTTP, which an entry with a command must not have."""


@dataclass(frozen=True)
class Machine:
    """The facts that places of files depend on."""

    platform: str
    """`sys.platform`."""
    environ: Mapping[str, str]
    home: Path
    here: Path
    """The project."""

    def folder(self, variable: str, default: Path) -> Path:
        """The folder that a variable names, else `default`."""
        named = Path(self.environ.get(variable, "").strip())
        return named if named.is_absolute() else default

    @property
    def config(self) -> Path:
        """Folder in which desktop programs keep their configuration."""
        if self.platform == "win32":
            return self.folder("APPDATA", self.home / "AppData" / "Roaming")
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        return self.folder("XDG_CONFIG_HOME", self.home / ".config")


@dataclass(frozen=True)
class McpClient:
    """A client whose configuration file is known."""

    title: str
    template: str
    user: Callable[[Machine], Path]
    program: str = ""
    """The command that starts it; empty if it has none."""
    project: str = ""
    """Its file in a project; empty if it has none."""

    @property
    def default_scope(self) -> Scope:
        """`project` for an editor that names the open project in its project's file only, so that no entry is of one project alone."""
        return "project" if _WORKSPACE in self._template_args() else "user"

    def file(self, machine: Machine, scope: Scope) -> Path:
        """The file that holds the entries of `scope`."""
        return machine.here / self.project if scope == "project" else self.user(machine)

    def is_found(self, machine: Machine, which: Callable[[str], str | None]) -> bool:
        """True if its program or the folder of its configuration is on this machine."""
        file = self.user(machine)
        own = file.exists() if file.parent == machine.home else file.parent.is_dir()
        return own or bool(self.program and which(self.program))

    def entry(self, command: str, options: list[str], scope: Scope, repo: str | None) -> Data:
        """The entry: the server's `command`, `serve` and its `options`. None as `repo`: the options name one."""
        usual = self._template_args()[2:]
        if repo is not None and usual and not (scope == "project" and usual == [_WORKSPACE]):
            usual = [repo]
        args = ["serve", *(["--repo", *usual] if usual and repo is not None else []), *options]
        return {**self._template_entry(), "command": command, "args": args}

    def needs_repo(self, scope: Scope) -> bool:
        """True if the client starts the server elsewhere than in the project, and can't name the project."""
        usual = self._template_args()[2:]
        return usual == [_EXAMPLE] or (scope == "user" and usual == [_WORKSPACE])

    @property
    def path(self) -> tuple[str, str]:
        """The keys that lead to the entry."""
        (key,) = self._read_template()
        return key, NAME

    @property
    def is_toml(self) -> bool:
        """True if the file is TOML, not JSON."""
        return self.template.endswith(".toml")

    def _template_args(self) -> list[str]:
        return self._template_entry()["args"]

    def _template_entry(self) -> Data:
        (servers,) = self._read_template().values()
        return servers[NAME]

    def _read_template(self) -> Data:
        text = (TEMPLATES / self.template).read_text("utf-8")
        return tomllib.loads(text) if self.is_toml else json.loads(text)


CLIENTS: Mapping[str, McpClient] = {
    "claude-code": McpClient(
        "Claude Code",
        "claude-code.mcp.json",
        lambda machine: machine.folder("CLAUDE_CONFIG_DIR", machine.home) / ".claude.json",
        program="claude",
        project=".mcp.json",
    ),
    "claude-desktop": McpClient(
        "Claude Desktop",
        "claude-desktop.json",
        lambda machine: machine.config / "Claude" / "claude_desktop_config.json",
    ),
    "codex": McpClient(
        "Codex",
        "codex.config.toml",
        lambda machine: machine.folder("CODEX_HOME", machine.home / ".codex") / "config.toml",
        program="codex",
        project=".codex/config.toml",
    ),
    "cursor": McpClient(
        "Cursor",
        "cursor.mcp.json",
        lambda machine: machine.home / ".cursor" / "mcp.json",
        program="cursor",
        project=".cursor/mcp.json",
    ),
    "gemini-cli": McpClient(
        "Gemini CLI",
        "gemini-cli.settings.json",
        lambda machine: machine.home / ".gemini" / "settings.json",
        program="gemini",
        project=".gemini/settings.json",
    ),
    "vscode": McpClient(
        "VS Code",
        "vscode.mcp.json",
        lambda machine: machine.config / "Code" / "User" / "mcp.json",
        program="code",
        project=".vscode/mcp.json",
    ),
    "windsurf": McpClient(
        "Windsurf",
        "windsurf.mcp_config.json",
        lambda machine: machine.home / ".codeium" / "windsurf" / "mcp_config.json",
        program="windsurf",
    ),
    "zed": McpClient(
        "Zed",
        "zed.settings.json",
        # On macOS, too, Zed has its settings where Linux has them.
        lambda machine: (
            (
                machine.config / "Zed"
                if machine.platform == "win32"
                else machine.folder("XDG_CONFIG_HOME", machine.home / ".config") / "zed"
            )
            / "settings.json"
        ),
        program="zed",
    ),
}


class ConfigFile:
    """A client's configuration file, which keeps all that is not pdbox's entry."""

    def __init__(self, path: Path, client: McpClient) -> None:
        """Read the file; one that is not there is empty.

        Raises:
            Conflict: it can't be changed without losing something of it.
            SandboxError: it can't be read.
        """
        self.path = path
        self._client = client
        try:
            self._text = path.read_bytes().decode("utf-8-sig")
        except FileNotFoundError:
            self._text = ""
        except UnicodeDecodeError as exc:
            raise Conflict(f"{path} is not UTF-8 text.") from exc
        except OSError as exc:
            raise SandboxError(f"{path} can't be read: {exc.strerror}.") from exc
        self._data = self._parse(self._text)

    def entry(self) -> Data | None:
        """The entry that is there."""
        key, name = self._client.path
        return self._servers(key).get(name)

    def put(self, entry: Data) -> bool:
        """Enter `entry`, keeping other fields of one that is there; False if nothing changes."""
        old = self.entry() or {}
        kept = old if "command" in old else {name: old[name] for name in old if name not in _REMOTE}
        return self._change({**entry, **kept, "command": entry["command"], "args": entry["args"]})

    def remove(self) -> bool:
        """Remove the entry; False if there is none."""
        return self.entry() is not None and self._change(None)

    def _servers(self, key: str) -> Data:
        servers: Any = self._data.get(key, {})
        if not isinstance(servers, dict) or not isinstance(cast("Data", servers).get(NAME, {}), dict):
            raise Conflict(f"{self.path} has something else than servers at {key!r}.")
        return cast("Data", servers)

    def _change(self, entry: Data | None) -> bool:
        key, name = self._client.path
        if entry == self.entry():
            return False
        wanted = {**self._data, key: {**self._servers(key)}}
        if entry is None:
            del wanted[key][name]
        else:
            wanted[key][name] = entry
        text = self._toml(wanted[key].get(name)) if self._client.is_toml else self._json(wanted)
        found = self._parse(text)
        if {**found, key: found.get(key, {})} != wanted:
            raise Conflict(f"{self.path} has the entry in a form that can't be changed here.")
        _replace(self.path, text)
        return True

    def _parse(self, text: str) -> Data:
        try:
            if self._client.is_toml:
                return tomllib.loads(text)
            data: Any = json.loads(text, object_pairs_hook=_unique) if text.strip() else {}
        except RecursionError as exc:
            raise Conflict(f"{self.path} is nested too deeply.") from exc
        except ValueError as exc:
            kind = (
                "TOML" if self._client.is_toml else "plain JSON (comments and trailing commas would be lost)"
            )
            raise Conflict(f"{self.path} is not {kind}: {exc}.") from exc
        if not isinstance(data, dict):
            raise Conflict(f"{self.path} is not a JSON object.")
        return cast("Data", data)

    def _json(self, data: Data) -> str:
        indent = re.search(r"^([ \t]+)\S", self._text, re.MULTILINE)
        text = json.dumps(data, indent=indent[1] if indent else 2, ensure_ascii=False)
        return text + ("\n" if not self._text or self._text.endswith("\n") else "")

    def _toml(self, entry: Data | None) -> str:
        """Put the lines of the entry's table in place of those that are there, else at the end; its subtables stay with it."""
        prefix = ".".join(self._client.path)
        lines = self._text.splitlines(keepends=True)
        own = [number for number, header in _tables(lines) if header == prefix]
        below = {number for number, header in _tables(lines) if f"{header}.".startswith(f"{prefix}.")}
        block: list[str] = []
        if entry is not None:
            inner = {header.removeprefix(f"{prefix}.").partition(".")[0] for _, header in _tables(lines)}
            block = toml_lines(prefix, {name: value for name, value in entry.items() if name not in inner})
        dropped = below if entry is None else set(own)
        ranges = _ranges(lines, dropped)
        at = own[0] if own and entry is not None else len(lines)
        before = [line for number, line in enumerate(lines) if number < at and number not in ranges]
        after = [line for number, line in enumerate(lines) if number >= at and number not in ranges]
        if block and before and not before[-1].endswith("\n"):
            before[-1] += "\n"
        if block and before and before[-1].strip():
            before.append("\n")
        if block and after and after[0].strip():
            block.append("\n")
        return "".join([*before, *block, *after])


def snippet(client: McpClient, entry: Data) -> str:
    """A whole configuration file with nothing but the entry."""
    key, name = client.path
    if client.is_toml:
        return "".join(toml_lines(f"{key}.{name}", entry))
    return json.dumps({key: {name: entry}}, indent=2, ensure_ascii=False) + "\n"


def toml_lines(header: str, values: Data) -> list[str]:
    """The lines of a TOML table."""
    return [f"[{header}]\n", *(f"{name} = {_toml_value(value)}\n" for name, value in values.items())]


def _toml_value(value: Any) -> str:
    if isinstance(value, dict):
        pairs = cast("Data", value)
        return (
            "{ " + ", ".join(f"{json.dumps(name)} = {_toml_value(one)}" for name, one in pairs.items()) + " }"
        )
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return "[" + ", ".join(_toml_value(one) for one in items) + "]"
    return json.dumps(value, ensure_ascii=False, default=str)


def _tables(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Line and name of each table's header. In a string of several lines it may be text: the result is parsed and compared."""
    for number, line in enumerate(lines):
        header = line.partition("#")[0].strip()
        if header.startswith("[") and header.endswith("]"):
            yield number, header.strip("[]").replace('"', "").replace(" ", "")


def _ranges(lines: list[str], headers: set[int]) -> set[int]:
    """Numbers of the lines of the tables with these headers, without the comments above the next one."""
    starts = [*(number for number, _ in _tables(lines)), len(lines)]
    found: set[int] = set()
    for start in headers:
        end = next(one for one in starts if one > start)
        while end < len(lines) and lines[end - 1].lstrip()[:1] in ("", "#"):
            end -= 1
        found.update(range(start, end))
    return found


def _unique(pairs: list[tuple[str, Any]]) -> Data:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key occurs twice in an object")
    return found


def _replace(path: Path, text: str) -> None:
    """Write a file as a whole or not at all, with the mode of the one that is there; through a link.

    Raises:
        SandboxError: it can't be written.
    """
    real = path.resolve()
    try:
        real.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(prefix=f".{real.name}.", dir=real.parent)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
                file.write(text)
            if real.exists():
                Path(temporary).chmod(stat.S_IMODE(real.stat().st_mode))
            Path(temporary).replace(real)
        except BaseException:
            with suppress(OSError):
                Path(temporary).unlink()
            raise
    except OSError as exc:
        raise SandboxError(f"{path} can't be written: {exc.strerror}.") from exc
