"""`pdbox call`: one tool from a shell, with a session that stays open between calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mcp.types import Tool

from mcp_server.cli import main
from mcp_server.commands.call import parse, read_token
from sandbox.errors import InvalidArgument
from tests.bubblewrap import LOCAL
from tests.e2e.served import serving

APP = "def double(x):\n    y = x * 2\n    return y\n\n\nprint(double(3))\n"
SCHEMA = {
    "properties": {
        "path": {"type": "string"},
        "start": {"type": "integer"},
        "timeout_s": {"type": "number"},
        "regex": {"type": "boolean"},
        "tests": {"type": "array", "items": {"type": "string"}},
        "edits": {"type": "array", "items": {"type": "object"}},
        "options": {"type": "object"},
        "any": {},
    },
    "required": ["path"],
}
TOOL = Tool(name="sample", input_schema=SCHEMA)


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("path=12", "12"),
        ("path=a=b", "a=b"),
        ("path=", ""),
        ("start=12", 12),
        ("timeout_s=0.5", 0.5),
        ("timeout_s=3", 3),
        ("regex=false", False),
        ("tests=test_a.py::test_b[1-2]", ["test_a.py::test_b[1-2]"]),
        ('tests=["a", "b"]', ["a", "b"]),
        ('edits={"new_code": "x"}', [{"new_code": "x"}]),
        ('options={"a": 1}', {"a": 1}),
        ("any=text", "text"),
        ("any=[1]", [1]),
    ],
)
def test_values_are_of_the_kinds_that_the_tool_takes(word: str, value: Any) -> None:
    name = word.partition("=")[0]
    found = parse(TOOL, [word] if name == "path" else ["path=x", word])
    assert found[name] == value and type(found[name]) is type(value)


def test_a_name_several_times_is_a_list() -> None:
    assert parse(TOOL, ["path=x", "tests=a", "tests=b"])["tests"] == ["a", "b"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "`sample` needs path=…."),
        (["x"], "'x' is not of the form NAME=VALUE. `sample` takes path, start,"),
        (["path=x", "pth=y"], "`sample` has no argument 'pth'. `sample` takes path, start,"),
        (["path=x", "path=y"], "path is given 2 times."),
        (["path=x", "start=1.5"], "start takes a whole number, not '1.5'."),
        (["path=x", "start=true"], "start takes a whole number, not 'true'."),
        (["path=x", "timeout_s=soon"], "timeout_s takes a number, not 'soon'."),
        (["path=x", "regex=1"], "regex takes true or false, not '1'."),
        (["path=x", "options=[]"], "options takes a JSON object, not '[]'."),
        (["path=x", "tests=[a"], "tests takes a JSON list, not '[a'."),
        (["path=x", "start=" + "[" * 100_000], "start takes a whole number"),
    ],
)
def test_arguments_that_the_tool_does_not_take_are_refused(words: list[str], said: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        parse(TOOL, words)
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize("text", ["secret\n", "# mine\nalice secret\n"])
def test_a_token_stands_alone_or_behind_its_principal(text: str, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(text)
    assert read_token(file) == "secret"


@pytest.mark.parametrize("text", ["", "alice one\nbob two\n", "a b c\n"])
def test_a_file_without_one_token_is_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(text)
    with pytest.raises(InvalidArgument, match="has not one token"):
        read_token(file)


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory: a repository with one program."""
    folder = tmp_path / "repo"
    folder.mkdir()
    (folder / "app.py").write_text(APP)
    monkeypatch.chdir(folder)
    return folder


def test_a_program_stays_stopped_between_calls(repo: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def call(*words: str) -> tuple[int, str, str]:
        code = main(["call", *LOCAL, *words])
        shown = capfd.readouterr()
        return code, shown.out, shown.err

    try:
        code, text, _ = call("pdb", "entrypoint=python app.py", "command=b app.py:3 ;; c")
        assert code == 0 and text.startswith("stopped at app.py:3 in double")
        code, text, _ = call("pdb", "command=p y", "--json")
        assert (code, json.loads(text)["reply"].strip()) == (0, "6")
        code, text, error = call("view", "path=nope.py")
        assert (code, text) == (1, "") and error == "No such file or folder: nope.py.\n"
        code, text, error = call("vieww", "path=app.py")
        assert (code, text, error) == (2, "", "pdbox: There is no tool 'vieww'. Did you mean view?\n")
        code, text, error = call("wait", "timeout_s=soon")
        assert (code, text, error) == (2, "", "pdbox: timeout_s takes a number, not 'soon'.\n")
    finally:
        assert call("close_session")[0] == 0


def test_a_server_that_does_not_start_is_a_failure(repo: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["call", "listdir", *LOCAL, "--repo", "nowhere"]) == 1
    error = capfd.readouterr().err
    assert "No such folder: nowhere." in error and "Traceback" not in error


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--url", "http://127.0.0.1:1/mcp"], 1, "http://127.0.0.1:1/mcp can't be reached"),
        (["--url", "127.0.0.1:1"], 2, "--url 127.0.0.1:1 is no URL of a server."),
        (["--token-file", "x"], 2, "--token-file is given without --url."),
        (["--url", "http://127.0.0.1:1/mcp", "--token-file", "/nowhere"], 2, "/nowhere can't be read."),
    ],
)
def test_a_server_that_is_not_there_is_one_line(
    words: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["call", "listdir", *words]) == code
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


def test_a_running_server_is_called_with_a_token_in_a_session_of_a_name(
    repo: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    tokens = tmp_path / "tokens"
    tokens.touch(0o600)
    tokens.write_text("alice 0123456789abcdef0123456789abcdef\n")
    with serving(*LOCAL, "--repo", str(repo), "--token-file", str(tokens)) as server:
        words = ["--url", f"{server.base}/mcp?session=mine"]
        assert main(["call", "listdir", *words]) == 1
        assert "can't be reached" in capfd.readouterr().err
        words += ["--token-file", str(tokens)]
        assert main(["call", *words, "pdb", "entrypoint=python app.py", "command=b app.py:3 ;; c"]) == 0
        assert capfd.readouterr().out.startswith("stopped at app.py:3 in double")
        assert main(["call", "pdb", *words, "command=p y", "--json"]) == 0
        assert json.loads(capfd.readouterr().out)["reply"].strip() == "6"
