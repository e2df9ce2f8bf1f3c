"""Libraries that make something of their own of our input schemas take every tool, and their arguments arrive."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.bubblewrap import UNSAFE
from tests.e2e.client import PDBOX
from tests.interop.environments import Environments
from tests.interop.program import finished
from tests.interop.task import SAMPLE
from tools._catalog import catalog

CLIENTS = Path(__file__).with_name("clients")
PATIENCE_S = 900
LIBRARIES = {
    "semantic-kernel": "semantic_kernel_client.py",
    "dspy": "dspy_client.py",
    "autogen": "autogen_client.py",
    "google-genai": "google_genai_client.py",
    "openai-agents": "openai_agents_client.py",
}
# Strict mode has no schema for a tool without arguments, which stays as it is.
WITHOUT_ARGUMENTS = {"list_sessions"}


@pytest.mark.parametrize("library", LIBRARIES)
def test_library_converts_every_tool_and_hands_arguments_on(
    library: str, environments: Environments, tmp_path: Path, runtime: str
) -> None:
    # As strict schemas have it: all arguments are given, those that the model does not want are empty.
    arguments = {
        "command": "echo $GREETING $NAME",
        "env": ["GREETING=hello", "NAME=a=b"],
        "cwd": "",
        "timeout_s": 60,
        "session_id": "",
    }
    plan = {
        "transport": "stdio",
        "command": [str(PDBOX), "serve", "--repo", str(SAMPLE), *UNSAFE],
        "env": {"XDG_RUNTIME_DIR": runtime},
        "url": "",
        "era": "strict" if library == "openai-agents" else "auto",
        "calls": [("bash", arguments)],
    }
    program = [environments.python(library), CLIENTS / LIBRARIES[library], json.dumps(plan)]
    done = finished(program, PATIENCE_S, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-4000:]
    seen = json.loads(done.stdout)
    assert seen["answers"] == ["exit code 0, output:\n```\nhello a=b\n```"]
    assert set(catalog()) - set(seen["tools"]) <= WITHOUT_ARGUMENTS
