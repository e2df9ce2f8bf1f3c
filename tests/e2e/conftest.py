"""What end-to-end tests share: both places where sessions can run, and a plugin of pytest for sandboxes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

collect_ignore = ["samples"]  # buggy programs on purpose


@pytest.fixture(params=["process", pytest.param("docker", marks=pytest.mark.docker)])
def backend(request: pytest.FixtureRequest) -> list[str]:
    """Flags of `pdbox serve` for one backend."""
    if request.param == "process":
        return ["--backend", "process", "--unsafe-no-isolation"]
    return ["--backend", "docker"]


@pytest.fixture(scope="session")
def xdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with pytest-xdist, for PYTHONPATH: sandboxes have no network."""
    folder = tmp_path_factory.mktemp("xdist")
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(folder)]
    subprocess.run([*command, "pytest-xdist==3.6.1", "execnet==2.1.1"], check=True, capture_output=True)
    return folder
