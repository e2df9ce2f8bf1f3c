from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mcp_server.cli import COMMANDS, main
from mcp_server.commands.tools import as_json
from mcp_server.settings import Settings, descriptions

HOME = Path(__file__).parents[2]


def test_manifest_is_what_the_server_lists() -> None:
    manifest = (HOME / "manifests" / "tools.json").read_text("utf-8")
    assert manifest == as_json() + "\n", "run `make manifests`"


def test_every_setting_is_explained() -> None:
    assert set(descriptions()) == set(Settings.model_fields)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([command, "--help"])
    assert caught.value.code == 0
    assert f"usage: pdbox {command}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["nonsense"], 2, "no command 'nonsense'; there are: serve"),
        (["serve", "--repo", "/nowhere"], 2, "No such folder: /nowhere."),
        (["serve", "--backend", "process"], 2, "without any isolation. Add --unsafe-no-isolation"),
        (
            ["serve", "--max-sessions", "0"],
            2,
            "--max-sessions: Input should be greater than or equal to 1, got '0'.",
        ),
        (["serve", "--env", "A"], 2, "'A' is not of the form --env NAME=VALUE."),
    ],
)
def test_what_is_asked_for_wrongly_is_one_line(
    words: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == code
    error = capsys.readouterr().err
    assert error.startswith("pdbox: ") and said in error
    assert error.count("\n") == 1


def test_flags_win_over_variables_over_defaults(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PDBOX_MAX_SESSIONS", "0")
    assert main(["serve", "--repo", "/nowhere"]) == 2
    assert "--max-sessions" in capsys.readouterr().err
    assert main(["serve", "--repo", "/nowhere", "--max-sessions", "3"]) == 2
    assert "/nowhere" in capsys.readouterr().err


def test_tools_tells_its_size(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tools"]) == 0
    assert "13 tools; " in capsys.readouterr().out.splitlines()[-1]
    assert main(["tools", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["tools"]) == 13


@pytest.mark.parametrize(
    "file", sorted((HOME / "manifests" / "clients").glob("*.json")), ids=lambda path: path.name
)
def test_client_snippets_are_json_and_start_or_reach_the_server(file: Path) -> None:
    (servers,) = json.loads(file.read_text("utf-8")).values()
    if "url" in servers["pdbox"]:
        assert servers["pdbox"]["url"] == f"http://127.0.0.1:{Settings().port}/mcp"
        return
    assert servers["pdbox"]["command"] == "pdbox"
    assert servers["pdbox"]["args"][:2] == ["serve", "--repo"]


def test_backends_and_parsers_are_not_imported_before_they_are_needed() -> None:
    code = "import sys, mcp_server.commands.serve, mcp_server.stdio; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=HOME, capture_output=True, text=True, check=True)
    assert {
        "docker",
        "requests",
        "sandbox.docker",
        "sandbox.process",
        "mcp_server.http",
        "pathspec",
        "tomllib",
    }.isdisjoint(done.stdout.split())
