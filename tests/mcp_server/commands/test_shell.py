"""`pdbox shell`: a prompt for tools and for pdb."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

import pytest
from mcp.types import Tool

from mcp_server.commands.shell import complete, split
from sandbox.errors import InvalidArgument
from tests.bubblewrap import LOCAL
from tests.e2e.client import PDBOX

TOOLS = {
    name: Tool(
        name=name, input_schema={"properties": {argument: {"type": "string"} for argument in arguments}}
    )
    for name, arguments in {"view": ["path", "start"], "eval": [], "pdb": ["command"]}.items()
}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("view path='a b.py' start=3", ["view", "path=a b.py", "start=3"]),
        ("eval", ["eval"]),
        ("p view", None),
        ("!view = 'it''s'", None),
        ("evaluate()", None),
    ],
)
def test_a_line_that_begins_with_a_tool_calls_it_and_others_are_for_pdb(
    line: str, words: list[str] | None
) -> None:
    assert split(line, TOOLS) == words


def test_a_missing_quotation_mark_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="No closing quotation"):
        split("view path='a", TOOLS)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("v", ["view "]),
        ("view ", ["path=", "start="]),
        ("view path=a s", ["start="]),
        ("view path=a p", []),
        ("p x", []),
    ],
)
def test_tools_and_their_arguments_are_completed(line: str, found: list[str]) -> None:
    assert complete(line, TOOLS) == found


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with one program."""
    folder = tmp_path / "repo"
    folder.mkdir()
    (folder / "app.py").write_text("def double(x):\n    y = x * 2\n    return y\n\n\nprint(double(3))\n")
    return folder


def test_tools_and_commands_of_pdb_reach_one_session(repo: Path) -> None:
    lines = [
        "help",
        "listdir",
        "b app.py:3",
        "c",
        "p y + 1",
        "view path=nope.py",
        "view pth=x",
        "close_session",
    ]
    flags = [*LOCAL, "--entrypoint", "python app.py"]
    done = subprocess.run(
        [PDBOX, "shell", *flags],
        cwd=repo,
        input="\n".join(lines),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0
    for said in ("tools: ", "app.py", "stopped at app.py:3 in double", "\n7\n", "Closed."):
        assert said in done.stdout
    assert done.stderr.startswith("No such file or folder: nope.py.\n`view` has no argument 'pth'.")


def test_ctrl_c_interrupts_the_call_and_the_prompt_goes_on(repo: Path, tmp_path: Path) -> None:
    terminal, own = pty.openpty()
    env = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), "TERM": "dumb"}
    flags = [*LOCAL, "--entrypoint", "python app.py"]
    # What runs in the background of a shell without job control has SIGINT ignored.
    as_in_terminal = ["setsid", "--ctty", "env", "--default-signal=INT"]
    command = [*as_in_terminal, str(PDBOX), "shell", *flags]
    with subprocess.Popen(command, cwd=repo, stdin=own, stdout=own, stderr=own, env=env) as shell:
        os.close(own)
        shown = ""

        def wait_for(text: str) -> None:
            nonlocal shown
            while text not in shown:
                shown += os.read(terminal, 65536).decode(errors="replace")
            shown = shown.partition(text)[2]

        wait_for("pdbox> ")
        os.write(terminal, b"bash command='sleep 300' timeout_s=600\n")
        wait_for("…")  # progress: the call is under way
        os.write(terminal, b"\x03")
        wait_for("interrupted")
        wait_for("pdbox> ")
        os.write(terminal, b"listdir\n")
        wait_for("app.py")
        wait_for("pdbox> ")
        os.write(terminal, b"close_session\n")
        wait_for("Closed.")
        wait_for("pdbox> ")
        os.write(terminal, b"\x04")
        assert shell.wait(120) == 0
    os.close(terminal)
    assert "listdir" in (tmp_path / "state" / "pdbox" / "shell_history").read_text("utf-8")
