from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from mcp_server.cli import COMMANDS, main
from mcp_server.commands.tools import as_json
from mcp_server.settings import Group, Settings, descriptions
from tests.e2e.client import PDBOX

HOME = Path(__file__).parents[2]
FIELDS = Settings.model_fields.items()
WORDS = {
    "call": ["eval"],
    "image": ["list"],
    "sessions": ["list"],
    "tasks": ["list"],
    "score": ["task", "patch"],
    "replay": ["x"],
    "export": ["x", "--format=atif"],
    "report": ["x"],
}
"""Words that a command can't do without."""


def test_manifest_is_what_the_server_lists() -> None:
    manifest = (HOME / "manifests" / "tools.json").read_text("utf-8")
    assert manifest == as_json(data=False) + "\n", "run `make manifests`"


def test_every_setting_is_explained_in_one_group() -> None:
    assert set(descriptions()) == set(Settings.model_fields)
    groups = {name: [one for one in field.metadata if isinstance(one, Group)] for name, field in FIELDS}
    assert [name for name, found in groups.items() if len(found) != 1] == []


def test_settings_stand_in_groups_with_defaults_and_choices_in_the_help_of_serve(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["serve", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    for said in (
        "connection of clients: --transport {stdio,http,sse} ",
        "--memory SIZE Memory of one sandbox, such as 512MiB (default: 2GiB) ",
        "--session-ttl SECONDS Time without a call after which a session ends (default: 1800) ",
        "--no-redact Don't mask ",
        "--redact-names Mask values by their names",
        "--env NAME=VALUE Environment variable ",
    ):
        assert said in shown


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - {"serve"}))
def test_other_commands_show_only_the_settings_that_they_use(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    assert "--max-sessions" not in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main([command, *WORDS.get(command, []), "--max-sessions=3"])
    assert "--max-sessions" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "PDBOX_MAX_SESSION",
            "pdbox: PDBOX_MAX_SESSION is not a setting; did you mean PDBOX_MAX_SESSIONS?\n",
        ),
        ("PDBOX_FOOBAR", "pdbox: PDBOX_FOOBAR is not a setting.\n"),
        ("PDBOX_MAX_SESSIONS", ""),
        ("PDBOX_REQUIRE_DOCKER", ""),
        ("PDBOX_DEBUG", ""),
    ],
)
def test_an_unknown_variable_is_named_with_the_nearest_setting(name: str, said: str) -> None:
    done = run(["tools"], **{name: "1"})
    assert (done.returncode, done.stderr.decode()) == (0, said)


def run(words: list[str], **env: str) -> subprocess.CompletedProcess[bytes]:
    """The console script in a process of its own."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("PDBOX_")}
    return subprocess.run(
        [PDBOX, *words], stdin=subprocess.DEVNULL, capture_output=True, env={**own, **env}, timeout=120
    )


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "ascii"])
def test_streams_of_other_encodings_get_what_they_can_show(encoding: str) -> None:
    text = run(["tools"], PYTHONIOENCODING=encoding)
    assert (text.returncode, text.stderr) == (0, b"")
    assert b"start_session" in text.stdout
    data = run(["tools", "--json"], PYTHONIOENCODING=encoding)
    assert (data.returncode, data.stderr) == (0, b"")
    assert json.loads(data.stdout.decode(encoding)) == json.loads(as_json(data=False))
    refused = run(["serve", "--repo", "/→/no"], PYTHONIOENCODING=encoding)
    assert (refused.returncode, refused.stderr) == (
        2,
        b"pdbox: No such folder: /?/no. --repo and --root take folders that exist.\n",
    )


@pytest.mark.parametrize(
    ("words", "closed"),
    [(["tools"], "stdout"), (["serve", "--help"], "stdout"), (["doctor"], "stdout"), (["tools"], "both")],
)
def test_a_closed_pipe_ends_without_a_traceback(words: list[str], closed: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    stderr = writing if closed == "both" else subprocess.PIPE
    env = {**os.environ, "DOCKER_HOST": "unix:///nonexistent"}
    done = subprocess.run([PDBOX, *words], stdout=writing, stderr=stderr, env=env, timeout=120)
    os.close(writing)
    assert (done.returncode, done.stderr or b"") == (141, b"")


def test_a_terminal_without_a_client_is_told_what_to_do() -> None:
    terminal, own = pty.openpty()
    flags = ["--backend", "process", "--unsafe-no-isolation"]
    with subprocess.Popen([PDBOX, "serve", *flags], stdin=own, stdout=own, stderr=subprocess.PIPE) as served:
        os.close(own)
        assert served.stderr is not None
        said = served.stderr.readline().decode()
        served.terminate()
    os.close(terminal)
    assert said.startswith("pdbox: waiting for an MCP client on stdin, which is a terminal.")
    assert "pdbox demo" in said


def test_commands_run_with_python_m() -> None:
    done = subprocess.run([sys.executable, "-m", "pdbox", "--version"], capture_output=True, check=True)
    assert done.stdout.startswith(b"pdbox ")


@pytest.mark.docker
@pytest.mark.parametrize("words", [["doctor"], ["sessions", "list"], ["image", "list"], ["tools"]])
def test_json_is_one_object_wherever_the_flag_stands(words: list[str]) -> None:
    for given in ([*words, "--json"], [words[0], "--json", *words[1:]]):
        done = run(given)
        assert isinstance(json.loads(done.stdout), dict), done.stderr


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
        (
            ["serve", "--answers", "json"],
            2,
            "--answers: Input should be 'text', 'structured' or 'both', got 'json'.",
        ),
        (
            ["serve", "--profile", "debug_x"],
            2,
            "There is no profile or tool 'debug_x'. Profiles: debug, rewrite",
        ),
        (["serve", "--answer-within", "0"], 2, "--answer-within: Input should be greater than 0, got '0'."),
        (["serve", "--env", "A"], 2, "'A' is not of the form --env NAME=VALUE."),
        (["serve", "--ca-bundle", "/nowhere"], 2, "--ca-bundle /nowhere can't be read: No such file"),
        (["serve", "--in-place", "--repo", "/tmp", "--pool", "1"], 2, "--in-place and --pool are given."),
        (["serve", "--container", "a", "--repo", "/tmp"], 2, "--container and --repo are given."),
        (["serve", "--container", "a", "--in-place"], 2, "--container and --in-place are given."),
        (["serve", "--container", "a", "--runtime", "runsc"], 2, "--container and --runtime are given."),
        (
            ["serve", "--backend", "bubblewrap", "--runtime", "runsc"],
            2,
            "--runtime and --backend bubblewrap are given. Only Docker has runtimes.",
        ),
        (["serve", "--workdir", "/testbed"], 2, "--workdir is given without --container."),
        (["serve", "--ca-bundle", __file__], 2, "There is no certificate in --ca-bundle"),
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
    assert "PDBOX_MAX_SESSIONS: " in capsys.readouterr().err
    assert main(["serve", "--repo", "/nowhere", "--max-sessions", "3"]) == 2
    assert "/nowhere" in capsys.readouterr().err


def test_tools_tells_its_size(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tools"]) == 0
    assert "15 tools; " in capsys.readouterr().out.splitlines()[-1]
    assert main(["tools", "--json"]) == 0
    tools = json.loads(capsys.readouterr().out)["tools"]
    assert len(tools) == 15 and not any("outputSchema" in tool for tool in tools)


def test_tools_are_shown_as_the_settings_say(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tools", "--json", "--answers", "both"]) == 0
    assert all("outputSchema" in tool for tool in json.loads(capsys.readouterr().out)["tools"])
    assert main(["tools", "--answers", "structured"]) == 0
    assert capsys.readouterr().out.rstrip().endswith("of output schemas")
    assert main(["tools", "--profile", "eval,pdb"]) == 0
    assert "2 tools; " in capsys.readouterr().out.splitlines()[-1]


@pytest.mark.parametrize(
    "file", sorted((HOME / "manifests" / "clients").glob("*.json")), ids=lambda path: path.name
)
def test_client_snippets_are_json_and_start_or_reach_the_server(file: Path) -> None:
    (servers,) = json.loads(file.read_text("utf-8")).values()
    if "url" in servers["pdbox"]:
        assert servers["pdbox"]["url"] == f"http://127.0.0.1:{Settings().port}/mcp"
        return
    assert servers["pdbox"]["command"] == "pdbox"
    assert servers["pdbox"]["args"][:2] in (["serve"], ["serve", "--repo"])


def test_backends_and_parsers_are_not_imported_before_they_are_needed() -> None:
    code = "import sys, mcp_server.commands.serve, mcp_server.transports.stdio; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=HOME, capture_output=True, text=True, check=True)
    assert {
        "docker",
        "requests",
        "sandbox.docker.backend",
        "sandbox.process",
        "mcp_server.trajectories.recorder",
        "mcp_server.transports.http",
        "pathspec",
        "tomllib",
    }.isdisjoint(done.stdout.split())
