"""`pdbox install`: pdbox's entry in the files of MCP clients, and all else in them as it was."""

from __future__ import annotations

import json
import stat
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from mcp_server.cli import main
from mcp_server.commands.client_files import CLIENTS, TEMPLATES, Machine
from tests.e2e.client import PDBOX


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, beside an empty home."""
    (tmp_path / "home").mkdir()
    folder = tmp_path / "project"
    folder.mkdir()
    for name in ("XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def home(project: Path) -> Path:
    """The user's."""
    return project.parent / "home"


def entry(file: Path, client: str) -> Any:
    """pdbox's entry, read as the client reads it."""
    text = file.read_text("utf-8")
    data = tomllib.loads(text) if file.suffix == ".toml" else json.loads(text)
    return data[
        "servers" if client == "vscode" else "context_servers" if client == "zed" else KEYS[file.suffix]
    ]["pdbox"]


KEYS = {".json": "mcpServers", ".toml": "mcp_servers"}
PLACES = [
    ("claude-code", "user", "home/.claude.json", []),
    ("claude-code", "project", "project/.mcp.json", []),
    ("claude-desktop", "user", "home/.config/Claude/claude_desktop_config.json", ["--repo", "HERE"]),
    ("codex", "user", "home/.codex/config.toml", []),
    ("codex", "project", "project/.codex/config.toml", []),
    ("cursor", "user", "home/.cursor/mcp.json", ["--repo", "HERE"]),
    ("cursor", "project", "project/.cursor/mcp.json", ["--repo", "${workspaceFolder}"]),
    ("gemini-cli", "user", "home/.gemini/settings.json", []),
    ("gemini-cli", "project", "project/.gemini/settings.json", []),
    ("vscode", "user", "home/.config/Code/User/mcp.json", ["--repo", "HERE"]),
    ("vscode", "project", "project/.vscode/mcp.json", ["--repo", "${workspaceFolder}"]),
    ("windsurf", "user", "home/.codeium/windsurf/mcp_config.json", ["--repo", "HERE"]),
    ("zed", "user", "home/.config/zed/settings.json", ["--repo", "HERE"]),
]


@pytest.mark.parametrize(("client", "scope", "place", "repo"), PLACES)
def test_an_entry_goes_where_the_client_reads_it_and_out_again(
    client: str, scope: str, place: str, repo: list[str], project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = project.parent / place
    words = ["install", "--client", client, "--scope", scope]
    assert main([*words, "--", "--answer-within", "50"]) == 0
    found = entry(file, client)
    assert found["command"] == str(PDBOX)
    expected = [word.replace("HERE", str(project)) for word in repo]
    assert found["args"] == ["serve", *expected, "--answer-within", "50"]
    assert capsys.readouterr().out == f"pdbox is entered in {file}; restart {CLIENTS[client].title}\n"
    before = file.stat()
    assert main([*words, "--", "--answer-within", "50"]) == 0
    assert capsys.readouterr().out == f"pdbox is already in {file}\n"
    assert file.stat().st_ino == before.st_ino
    assert main(["install"]) == 0
    assert f"{client:14}  entered in {file}\n" in capsys.readouterr().out
    assert main([*words, "--remove"]) == 0
    with pytest.raises(KeyError):
        entry(file, client)
    capsys.readouterr()
    assert main([*words, "--remove"]) == 0
    assert capsys.readouterr().out == f"pdbox is not in {file}\n"


@pytest.mark.parametrize(
    ("platform", "desktop", "code", "zed"),
    [
        ("linux", "/h/.config/Claude", "/h/.config/Code/User", "/h/.config/zed"),
        (
            "darwin",
            "/h/Library/Application Support/Claude",
            "/h/Library/Application Support/Code/User",
            "/h/.config/zed",
        ),
        (
            "win32",
            "/h/AppData/Roaming/Claude",
            "/h/AppData/Roaming/Code/User",
            "/h/AppData/Roaming/Zed",
        ),
    ],
)
def test_each_system_has_its_own_folders(platform: str, desktop: str, code: str, zed: str) -> None:
    machine = Machine(platform, {}, Path("/h"), Path("/p"))
    found = [CLIENTS[name].user(machine).parent for name in ("claude-desktop", "vscode", "zed")]
    assert found == [Path(desktop), Path(code), Path(zed)]


def test_variables_move_the_files_of_their_clients() -> None:
    environ = {"CLAUDE_CONFIG_DIR": "/c", "CODEX_HOME": "/x", "XDG_CONFIG_HOME": "/g"}
    machine = Machine("linux", environ, Path("/h"), Path("/p"))
    found = [CLIENTS[name].user(machine) for name in ("claude-code", "codex", "zed")]
    assert found == [Path("/c/.claude.json"), Path("/x/config.toml"), Path("/g/zed/settings.json")]


def test_every_client_has_a_template_and_a_row_of_the_readme() -> None:
    readme = (TEMPLATES / "README.md").read_text("utf-8")
    for name, client in CLIENTS.items():
        assert f"| `{name}` | `{client.template}` |" in readme
    templates = {file.name for file in TEMPLATES.iterdir()} - {"README.md", "http.mcp.json"}
    assert templates == {client.template for client in CLIENTS.values()}


def test_all_else_in_a_json_file_stays_with_its_mode_indent_and_link(home: Path) -> None:
    real = home / "dotfiles.json"
    real.write_text(
        '{\n\t"oauth": "ünïcode",\n\t"mcpServers": {\n\t\t"other": {"url": "x"}\n\t},\n\t"n": 1.50\n}'
    )
    real.chmod(0o600)
    link = home / ".claude.json"
    link.symlink_to(real)
    assert main(["install", "--client", "claude-code"]) == 0
    text = real.read_text("utf-8")
    assert '\n\t"oauth": "ünïcode",\n' in text and text.endswith("}")
    data = json.loads(text)
    assert list(data) == ["oauth", "mcpServers", "n"] and data["n"] == 1.5
    assert data["mcpServers"]["other"] == {"url": "x"}
    assert link.is_symlink() and stat.S_IMODE(real.stat().st_mode) == 0o600
    assert sorted(file.name for file in home.iterdir()) == [".claude.json", "dotfiles.json"]


def test_fields_that_were_added_to_the_entry_stay_and_those_of_a_remote_server_go(home: Path) -> None:
    file = home / ".claude.json"
    file.write_text('{"mcpServers": {"pdbox": {"command": "old", "args": [], "env": {"DOCKER_HOST": "x"}}}}')
    assert main(["install", "--client", "claude-code"]) == 0
    assert entry(file, "claude-code") == {
        "type": "stdio",
        "command": str(PDBOX),
        "args": ["serve"],
        "env": {"DOCKER_HOST": "x"},
    }
    file.write_text('{"mcpServers": {"pdbox": {"type": "http", "url": "http://x/mcp", "timeout": 5}}}')
    assert main(["install", "--client", "claude-code"]) == 0
    assert entry(file, "claude-code") == {
        "type": "stdio",
        "command": str(PDBOX),
        "args": ["serve"],
        "timeout": 5,
    }


TOML = """\
model = "m" # mine

[mcp_servers.pdbox]
command = "old"
args = [
  "serve",
]
env = { A = "b" }

[mcp_servers.pdbox.tools.bash]
approval_mode = "prompt"

# of the other one
[mcp_servers.other]
command = "x"
"""


def test_all_else_in_a_toml_file_stays_as_it_is_written(home: Path) -> None:
    file = home / ".codex" / "config.toml"
    file.parent.mkdir()
    file.write_text(TOML)
    assert main(["install", "--client", "codex"]) == 0
    text = file.read_text("utf-8")
    head, tail = TOML.partition("[mcp_servers.pdbox]\n")[0], TOML[TOML.index("\n[mcp_servers.pdbox.tools") :]
    assert text.startswith(head) and text.endswith(tail)
    found = entry(file, "codex")
    assert (found["command"], found["args"], found["env"]) == (str(PDBOX), ["serve"], {"A": "b"})
    assert found["tools"] == {"bash": {"approval_mode": "prompt"}}
    assert main(["install", "--client", "codex", "--remove"]) == 0
    assert file.read_text("utf-8").split() == (head + TOML[TOML.index("# of the other") :]).split()


@pytest.mark.parametrize(
    ("client", "place", "text"),
    [
        ("zed", ".config/zed/settings.json", '// theme\n{"theme": "x",}'),
        ("claude-code", ".claude.json", '{"a": 1, "a": 2}'),
        ("claude-code", ".claude.json", '{"mcpServers": []}'),
        ("claude-code", ".claude.json", "[]"),
        ("claude-code", ".claude.json", "[" * 100_000),
        ("codex", ".codex/config.toml", "a = "),
        ("codex", ".codex/config.toml", 'mcp_servers = { pdbox = { command = "x" } }\n'),
    ],
)
def test_a_file_that_would_lose_something_is_left_alone_and_the_text_to_paste_is_printed(
    client: str, place: str, text: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = home / place
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    assert main(["install", "--client", client]) == 1
    shown = capsys.readouterr()
    assert "Nothing was changed. Put the entry into the file by hand" in shown.err
    assert shown.err.startswith(f"pdbox: {file} ") and shown.err.count("\n") == 1
    assert str(PDBOX) in shown.out
    assert file.read_text("utf-8") == text


def test_print_changes_nothing(project: Path, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["install", "--client", "codex", "--print"]) == 0
    assert tomllib.loads(capsys.readouterr().out)["mcp_servers"]["pdbox"]["command"] == str(PDBOX)
    assert main(["install", "--client", "zed", "--print", "--json", "--repo", "."]) == 0
    data = json.loads(capsys.readouterr().out)
    assert json.loads(data["text"])["context_servers"]["pdbox"]["args"] == ["serve", "--repo", str(project)]
    assert [*home.iterdir(), *project.iterdir()] == []


def test_clients_are_found_by_their_folders_also_without_an_entry(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / ".codeium" / "windsurf").mkdir(parents=True)
    assert main(["install", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)["clients"]}
    assert set(rows) == set(CLIENTS)
    assert (rows["windsurf"]["found"], rows["windsurf"]["entries"]) == (True, [])
    assert not rows["claude-desktop"]["found"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--client", "zed", "--scope", "project"], "Zed has no configuration of a project."),
        (["--client", "codex", "--", "--record", "calls"], "--record calls is relative."),
        (["--client", "codex", "--", "--repo", "."], "--repo . is relative."),
        (["--client", "codex", "--repo", "nowhere"], "No such folder: nowhere."),
    ],
)
def test_what_would_fail_when_the_client_starts_it_is_refused(
    words: list[str], said: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["install", *words]) == 2
    assert said in capsys.readouterr().err
    assert list(home.iterdir()) == []


def test_an_option_that_serve_lacks_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["install", "--client", "codex", "--", "--nonsense"])
    assert caught.value.code == 2
    assert "unrecognized arguments: --nonsense" in capsys.readouterr().err


def test_a_client_that_needs_a_repository_is_told_one_outside_of_a_home(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(home)
    assert main(["install", "--client", "windsurf"]) == 2
    assert "Windsurf needs to be told the repository. --repo names it." in capsys.readouterr().err
    assert main(["install", "--client", "windsurf", "--", "--task", "shop_discount"]) == 0
    file = home / ".codeium" / "windsurf" / "mcp_config.json"
    assert entry(file, "windsurf")["args"] == ["serve", "--task", "shop_discount"]
