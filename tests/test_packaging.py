"""The source distribution, what it says of itself, and an installation of it with nothing else."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mcp_server.tasks.importing import trees

ROOT = Path(__file__).resolve().parent.parent
UV = Path(sys.executable).with_name("uv")
README = (ROOT / "README.md").read_text("utf-8")
TARGETS = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)


def test_the_readme_is_short_and_begins_with_what_a_user_does() -> None:
    assert len(README.splitlines()) <= 150
    assert max(map(len, README.splitlines())) <= 120
    assert (
        README.index("uv tool install") < README.index("pdbox install --client") < README.index("make test")
    )


@pytest.mark.parametrize("file", ["README.md", "CONTRIBUTING.md"])
def test_commands_that_are_spoken_of_exist(file: str) -> None:
    text = (ROOT / file).read_text("utf-8")
    said = re.findall(r"(?:^ {4}|`)make ([a-z]+)", text, re.MULTILINE)
    assert said
    assert set(said) <= set(TARGETS)


def test_the_demo_needs_no_packages_of_the_tests() -> None:
    plan = subprocess.run(
        ["make", "--dry-run", "--always-make", "demo"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "scripts/install.sh .venv\n" in plan.stdout
    assert "install.sh .venv dev" not in plan.stdout


@pytest.mark.docker
def test_make_docker_finds_the_engine_that_answers() -> None:
    script = ROOT / "scripts" / "docker.sh"
    done = subprocess.run(["sh", script, sys.executable], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("docker: ")


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution, unpacked."""
    folder = tmp_path_factory.mktemp("sdist")
    subprocess.run([UV, "build", "--sdist", "-q", "-o", folder, ROOT], check=True, capture_output=True)
    (archive,) = folder.glob("*.tar.gz")
    return trees.unpack(archive, folder / "unpacked")


def test_a_source_distribution_has_all_that_its_readme_speaks_of(sdist: Path) -> None:
    links = re.findall(r"\]\(([^):]+)\)", README)
    assert {"ARCHITECTURE.md", "CONTRIBUTING.md", "manifests/clients"} <= set(links)
    missing = [
        name for name in (*links, "Makefile", "scripts", "tests/conftest.py") if not (sdist / name).exists()
    ]
    assert missing == []


def test_an_installation_of_it_has_all_that_its_commands_need(sdist: Path, tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    python = venv / ("Scripts" if os.name == "nt" else "bin") / "python"
    subprocess.run([UV, "venv", "-q", "--python", sys.executable, venv], check=True, capture_output=True)
    subprocess.run([UV, "pip", "install", "-q", "--python", python, sdist], check=True, capture_output=True)

    def pdbox(*words: str) -> subprocess.CompletedProcess[str]:
        command = [python.with_name("pdbox"), *words]
        environ = {**os.environ, "DOCKER_HOST": "unix:///nonexistent/docker.sock"}
        return subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)

    assert json.loads(pdbox("tools", "--json").stdout) == json.loads(
        (ROOT / "manifests" / "tools.json").read_text("utf-8")
    )
    tasks = json.loads(pdbox("tasks", "list", "--json").stdout)["tasks"]
    assert "shop_discount" in [task["name"] for task in tasks]
    doctor = json.loads(pdbox("doctor", "--json").stdout)
    assert [check["name"] for check in doctor["checks"]] == ["engine", "bubblewrap"]
    # Without isolation the sample runs in a Python of this machine, which has pytest.
    demo = pdbox("demo", "--backend", "process", "--unsafe-no-isolation", "--image", sys.executable)
    assert demo.stdout.endswith("nothing was changed on this machine.\n"), demo.stderr
    packages = venv / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    assert all((packages / name / "py.typed").exists() for name in ("mcp_server", "sandbox", "tools"))
    assert (packages / "mcp_server" / "trajectories" / "report.html").exists()
