"""The snippets for agent frameworks start or reach a server that exists, and those whose client is here find its tools."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest

from mcp_server.settings import Settings
from tests.e2e.client import PDBOX
from tests.interop.conftest import Served
from tests.interop.environments import Environments
from tests.interop.program import finished
from tests.interop.task import SAMPLE
from tools._catalog import catalog

FOLDER = Path(__file__).parents[2] / "manifests" / "frameworks"
SNIPPETS = sorted(FOLDER.glob("*.py"))
REPO, URL = "/path/to/repository", f"http://127.0.0.1:{Settings().port}/mcp"
ENVIRONMENTS = {
    "agno_tools": "agno",
    "autogen_tools": "autogen",
    "dspy_tools": "dspy",
    "google_adk_tools": "google-adk",
    "google_genai_tools": "google-genai",
    "langchain_tools": "langchain",
    "llama_index_tools": "llama-index",
    "openai_agents_tools": "openai-agents",
    "pydantic_ai_tools": "pydantic-ai",
    "semantic_kernel_tools": "semantic-kernel",
}
PATIENCE_S = 900


@pytest.mark.parametrize("file", SNIPPETS, ids=lambda file: file.stem)
def test_a_snippet_compiles_and_names_a_command_and_a_url_that_exist(file: Path) -> None:
    tree = ast.parse(file.read_text("utf-8"))
    compile(tree, str(file), "exec")
    lists = [_texts(node) for node in ast.walk(tree) if isinstance(node, ast.List)]
    (words,) = [words for words in lists if words[:1] == ["serve"]]
    flags = {f"--{name.removesuffix('_s').replace('_', '-')}" for name in Settings.model_fields}
    assert {word for word in words if word.startswith("-")} <= flags
    assert words[1:3] == ["--repo", REPO]
    assert {"pdbox", URL} <= set(_texts(tree))


def test_each_snippet_is_explained() -> None:
    table = (FOLDER / "README.md").read_text("utf-8")
    files = [str(file.relative_to(FOLDER)) for file in FOLDER.rglob("*.py")]
    assert [file for file in files if f"`{file}`" not in table] == []


@pytest.mark.docker
@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_snippet_lists_the_tools_of_the_server(
    name: str, transport: str, environments: Environments, served: Served, tmp_path: Path
) -> None:
    text = (FOLDER / f"{name}.py").read_text("utf-8")
    program = tmp_path / f"{name}.py"
    program.write_text(text.replace(REPO, str(SAMPLE)).replace(URL, served.url("http")), "utf-8")
    python = environments.python(ENVIRONMENTS[name])
    # Clients pass the path on to the servers that they start, and little else.
    env = {**os.environ, "PATH": f"{PDBOX.parent}{os.pathsep}{os.environ['PATH']}"}
    done = finished([str(python), str(program), transport], PATIENCE_S, tmp_path, env)
    assert done.returncode == 0, done.stderr[-4000:]
    # Semantic Kernel sorts them.
    assert sorted(done.stdout.split()[-len(catalog()) :]) == sorted(catalog())


def _texts(tree: ast.AST) -> list[str]:
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
