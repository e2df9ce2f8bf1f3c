"""A repository must never run its own code on the host by being the working directory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HOME = Path(__file__).parents[2]
NAMES = (
    "json",
    "typing",
    "logging",
    "argparse",
    "anyio",
    "mcp",
    "pydantic",
    "runpy",
    "secrets",
    "sitecustomize",
)


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A repository whose modules all leave a mark when they are imported."""
    mark = f"open({str(tmp_path / 'mark')!r}, 'a').write(__name__ + ' ')\n"
    repo = tmp_path / "repo"
    for package in ("tools", "manifests", "docker"):
        (repo / package).mkdir(parents=True)
        (repo / package / "__init__.py").write_text(mark)
    for name in ("sandbox", *NAMES):
        (repo / f"{name}.py").write_text(mark)
    return repo


@pytest.mark.parametrize("command", ["serve", "tools"])
def test_nothing_of_the_working_directory_is_imported(hostile: Path, command: str) -> None:
    # As it is where pdbox is installed: our packages are on the path, and so is, by `-m`, the working directory.
    environ = {**os.environ, "PYTHONPATH": str(HOME)}
    done = subprocess.run(
        [sys.executable, "-m", "pdbox", command],
        cwd=hostile,
        env=environ,
        input=b"",
        capture_output=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert not (hostile.parent / "mark").exists(), (hostile.parent / "mark").read_text()


@pytest.mark.parametrize("path", [".", "", "{repo}", "nowhere:{repo}/../repo"])
@pytest.mark.parametrize("command", ["serve", "tools"])
def test_the_console_script_starts_with_a_repository_on_pythonpath(
    hostile: Path, path: str, command: str
) -> None:
    (hostile / "sitecustomize.py").unlink()  # that one Python itself imports, before any of our code
    (hostile / "mcp_server").mkdir()
    (hostile / "mcp_server" / "__init__.py").write_text((hostile / "sandbox.py").read_text())
    done = subprocess.run(
        [Path(sys.executable).with_name("pdbox"), command],
        cwd=hostile,
        env={**os.environ, "PYTHONPATH": path.format(repo=hostile)},
        input=b"",
        capture_output=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert not (hostile.parent / "mark").exists(), (hostile.parent / "mark").read_text()


def test_packages_of_somebody_else_are_refused(hostile: Path) -> None:
    path = f"sys.path[:0] = [{str(hostile)!r}]; sys.path.append({str(HOME)!r})"
    code = f"import sys; {path}; from mcp_server.cli import main; sys.exit(main(['tools']))"
    for name in NAMES:
        (hostile / f"{name}.py").unlink(missing_ok=True)
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith("pdbox: the package `tools` is not pdbox's own")
    assert not (hostile.parent / "mark").exists()
